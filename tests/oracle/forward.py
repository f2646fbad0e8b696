"""What forward passes of programs must answer, and operations on masks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from . import dummy, masks, probes, seeds
from .adapters import Use, written
from .errors import RefusedError
from .sampler import Sampler, draw

if TYPE_CHECKING:
    from .program import Context, Model

Op = dict[str, Any]


@dataclass
class Pass:
    """A forward pass that is put together."""

    context: Context
    tokens: list[int] = field(default_factory=list)
    positions: list[int | None] = field(default_factory=list)
    masks: list[list[int]] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    attached: list[tuple[str, Op]] = field(default_factory=list)
    """Samplers and probes with their names, in order."""
    zo_seed: int | None = None
    adapter: bytes | None = None
    """The weights of what it is computed with."""
    executed: bool = False


class ForwardOps:
    """The operations on forward passes, of a program that has `contexts` and a `model`."""

    model: Model
    launch_seed: int

    def __init__(self) -> None:
        self.passes: dict[str, Pass] = {}
        self.outputs: dict[str, dict[str, Op]] = {}

    def op_forward(self, op: Op) -> None:
        self.passes[op["as"]] = Pass(self.context(op))

    def op_input(self, op: Op) -> None:
        self.op_input_at(op | {"positions": [None] * len(op["tokens"])})

    def op_input_at(self, op: Op) -> None:
        made = self.drafted(op)
        if len(op["tokens"]) != len(op["positions"]) or any(
            position is not None and position >= self.model.max_context for position in op["positions"]
        ):
            raise RefusedError("invalid-argument")
        if any(token >= self.model.vocab_size for token in op["tokens"]):
            raise RefusedError("invalid-token")
        made.tokens += op["tokens"]
        made.positions += op["positions"]

    def op_attention_mask(self, op: Op) -> None:
        made = self.drafted(op)
        for mask in op["masks"]:
            fitting(mask, self.model.max_context)
        made.masks = op["masks"]

    def op_mask(self, op: Op) -> None:
        made = self.drafted(op)
        if not any(fitting(op["mask"], self.model.vocab_size)):
            raise RefusedError("invalid-argument")
        made.mask = op["mask"]

    def op_sample(self, op: Op) -> None:
        made = self.drafted(op)
        sampler_of(op["sampler"], most_draws=65_536)
        if not op["indices"]:
            raise RefusedError("invalid-argument")
        made.attached.append((op["as"], op))

    def op_probe(self, op: Op) -> None:
        made = self.drafted(op)
        checked_probe(op["probe"], self.model.vocab_size)
        made.attached.append((op["as"], op))

    def op_pass_zo_seed(self, op: Op) -> None:
        self.drafted(op).zo_seed = op["seed"]

    def op_start_position(self, op: Op) -> int:
        return len(self.passes[op["fwd"]].context.tokens)

    def op_execute(self, op: Op) -> None:
        made = self.drafted(op)
        made.executed = True
        context = made.context
        if context.released:
            raise RefusedError("context-released")
        first = len(context.tokens) if made.tokens else context.n_taken - context.pending
        n_indexed = len(made.tokens) or len(context.tokens) - first
        wanted = [index for _, one in made.attached for index in (one["indices"] if "indices" in one else [one["index"]])]
        if n_indexed == 0 or any(index >= n_indexed for index in wanted) or (made.zo_seed is not None and made.adapter is None):
            raise RefusedError("invalid-argument")
        tokens, writes = context.tokens + made.tokens, dict(context.writes)
        if made.masks and len(made.masks) != n_indexed:
            raise RefusedError("invalid-argument")
        for index in range(n_indexed):
            slot = first + index
            position = made.positions[index] if made.tokens else None
            mask = made.masks[index] if made.masks else []
            if not any(fitting(mask, len(tokens))[: slot + 1]):
                raise RefusedError("invalid-argument")
            if mask or position is not None:
                writes[slot] = dummy.Write(tokens[slot], slot if position is None else position, mask)
        start = seeds.origin(context.path, context.tokens)
        context.writes, n_before = writes, len(context.tokens)
        context.tokens = tokens
        if made.adapter is not None:
            written(context, context.n_taken - context.pending, len(tokens), Use(made.adapter, made.zo_seed))
        context.conversation.raw(tokens, len(tokens) - n_before)
        self.compute(context)
        self.outputs[op["as"]] = self.read_rows(made, context.hashes(), first, start)

    def read_rows(self, made: Pass, hashes: list[int], first: int, start: int) -> dict[str, Op]:
        """What the accessors give of each handle."""
        found: dict[str, Op] = {}
        n_rows, derived = 0, seeds.derive(self.launch_seed, start, self.counts[start])
        for name, one in made.attached:
            if "probe" in one:
                found[name] = self.reading(hashes[first + one["index"]], one["probe"])
                continue
            sampler, tokens, n_draws = sampler_of(one["sampler"], most_draws=65_536), [], one["sampler"].get("draws", 1)
            seed = one["sampler"].get("seed", derived)
            for index in one["indices"]:
                row = masked(self.row(hashes[first + index]), made.mask)
                position = first + index + 1
                tokens += [draw(row, sampler, seed, position, slot=n_rows, index=nth) for nth in range(n_draws)]
                n_rows += 1
            found[name] = {"token": tokens[0], "tokens": tokens}
        if n_rows:
            self.counts[start] += 1
        return found

    def row(self, last: int) -> Any:
        """The logits behind a slot."""
        return dummy.logits(self.model.name, self.model.vocab_size, last)

    def reading(self, last: int, probe: Op) -> Op:
        """What a probe reads behind a slot."""
        if probe["kind"] == "embedding":
            return {"embedding": dummy.embedding(self.model.name, self.model.vocab_size, last)}
        return probes.read(self.row(last), probe)

    def op_read(self, op: Op) -> Op:
        """A handle of another pass gives nothing."""
        return self.outputs.get(op["out"], {}).get(op["handle"], {})

    def drafted(self, op: Op) -> Pass:
        """The pass that an operation changes; it is executed once."""
        made = self.passes[op["fwd"]]
        if made.executed:
            raise RefusedError("invalid-argument")
        return made

    def op_mask_of_bools(self, op: Op) -> list[int]:
        return masks.of_bits(op["allowed"])

    def op_mask_shortest(self, op: Op) -> list[int]:
        return masks.of_bits(fitting(op["mask"], op["length"]))

    def op_mask_and(self, op: Op) -> list[int]:
        for mask in op["masks"]:
            fitting(mask, op["length"])
        return masks.intersection(op["masks"], op["length"])

    def op_mask_allowing(self, op: Op) -> list[int]:
        if any(element >= op["length"] for element in op["elements"]):
            raise RefusedError("invalid-argument")
        return masks.of_bits([element in op["elements"] for element in range(op["length"])])

    def op_mask_allowed(self, op: Op) -> list[int]:
        return [element for element, value in enumerate(fitting(op["mask"], op["length"])) if value]

    def op_mask_pack(self, op: Op) -> list[int]:
        row = fitting(op["mask"], op["length"])
        return [sum(bit << n for n, bit in enumerate(row[at : at + 8])) for at in range(0, len(row), 8)]

    def op_mask_unpack(self, op: Op) -> list[int]:
        row = [bool(byte >> n & 1) for byte in op["bits"] for n in range(8)]
        if len(op["bits"]) != -(-op["length"] // 8) or any(row[op["length"] :]):
            raise RefusedError("invalid-argument")
        return masks.of_bits(row[: op["length"]])

    def op_mask_window(self, op: Op) -> list[list[int]]:
        if op["window"] == 0 or op["start"] + op["n"] > masks.MAX_ROW:
            raise RefusedError("invalid-argument")
        return masks.window(op["start"], op["n"], op["window"], op["sinks"])

    def op_mask_causal(self, op: Op) -> list[list[int]]:
        return masks.causal(op["start"], op["n"])


def fitting(mask: list[int], length: int) -> list[bool]:
    """The bits of a mask; one that does not fit its row is refused."""
    try:
        return masks.bits(mask, length)
    except masks.UnfitError:
        raise RefusedError("invalid-argument") from None


def masked(row: Any, mask: list[int]) -> Any:
    """A row in which what is forbidden has no probability."""
    return np.where(np.array(masks.bits(mask, len(row))), row, np.float32(-np.inf)) if mask else row


def checked_probe(probe: Op, vocab_size: int) -> Op:
    """A probe; a parameter out of its range is refused."""
    try:
        probes.check(probe, vocab_size)
    except probes.InvalidProbeError as error:
        raise RefusedError(str(error)) from None
    return probe


def sampler_of(spec: dict[str, Any], most_draws: int = 1) -> Sampler:
    """The sampler of an operation; a parameter out of its range is refused."""
    kind, temperature = spec["kind"], spec.get("temperature", 0.0)
    p, k = spec.get("p", 1.0), spec.get("k", 1)
    legal_p = 0 <= p <= 1 if kind == "min_p" else 0 < p <= 1
    if not (temperature >= 0 and legal_p and k >= 1 and 1 <= spec.get("draws", 1) <= most_draws):
        raise RefusedError("invalid-sampler")
    match kind:
        case "argmax":
            return Sampler()
        case "top_p":
            return Sampler(temperature, top_p=p)
        case "top_k":
            return Sampler(temperature, top_k=k)
        case "min_p":
            return Sampler(temperature, min_p=p)
        case "top_k_top_p":
            return Sampler(temperature, top_k=k, top_p=p)
        case "multinomial":
            return Sampler(temperature)
    raise ValueError(kind)
