"""What generators must answer, step by step."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from . import dummy, masks, seeds
from .adapters import Use, written
from .errors import RefusedError
from .forward import checked_probe, fitting, masked, sampler_of
from .grammar import Walker
from .sampler import Sampler, draw
from .stopping import Said, said

if TYPE_CHECKING:
    from .program import Context

Op = dict[str, Any]


@dataclass
class Masks:
    """A constraint that answers with these masks in turn, and afterwards with no restriction. `seen` has what it was
    given.
    """

    masks: list[list[int]]
    seen: list[list[int]] = field(default_factory=list)
    answer: list[int] | None = None
    """For the step that is open."""

    def ask(self, accepted: list[int]) -> list[int]:
        """The mask of a step: asked again in the same one, it is the same."""
        if self.answer is None:
            n = len(self.seen)
            self.seen.append(list(accepted))
            self.answer = self.masks[n] if n < len(self.masks) else []
        return self.answer


@dataclass
class Drafts:
    """A speculator that proposes these tokens in turn, and afterwards none. `told` has what it was told."""

    drafts: list[list[int]]
    told: list[list[Any]] = field(default_factory=lambda: [["reset"]])
    n: int = 0


@dataclass
class Generation:
    """A generator."""

    context: Context
    sampler: Sampler
    seed: int | None
    has_sampler_seed: bool
    max_tokens: int | None
    ends: frozenset[int]
    template_stop: frozenset[int]
    stop: frozenset[int]
    key: int | None = None
    n_accepted: int = 0
    opened: bool = False
    finish: str | None = None
    ignores_ends: bool = False
    logit_mask: list[int] = field(default_factory=list)
    zo_seed: int | None = None
    adapter: bytes | None = None
    """The weights of what it is computed with."""
    constraints: list[Masks] = field(default_factory=list)
    grammars: list[Walker] = field(default_factory=list)
    speculator: Drafts | None = None
    every_step: list[tuple[str, Op]] = field(default_factory=list)
    """Probes of every step, with their names."""
    accepted: list[int] = field(default_factory=list)
    """What the last step accepted."""
    drawn: list[int] = field(default_factory=list)
    """Every token since it was made."""
    set_texts: frozenset[str] = frozenset()
    """The texts in place of the template's stop tokens."""
    stop_texts: frozenset[str] = frozenset()
    """Those that were added."""
    owes: bool = False
    """The last step drew nothing, and nobody said what follows."""
    undone: list[Op] = field(default_factory=list)
    """What was asked of the step that failed, which comes again."""

    def stops(self) -> frozenset[int]:
        """Every token that ends it."""
        return self.stop if self.ignores_ends else self.ends | self.template_stop | self.stop


def apart(given: str | list[int | str]) -> tuple[frozenset[int], frozenset[str]]:
    """Stop tokens and stop texts, which are given as a text or as a list of both. A refused text is an error."""
    items = [given] if isinstance(given, str) else given
    texts = frozenset(item for item in items if isinstance(item, str))
    if len(texts) > 64 or any(not 1 <= len(text.encode()) <= 256 for text in texts):
        raise RefusedError("invalid-argument")
    return frozenset(item for item in items if isinstance(item, int)), texts


class GeneratorOps:
    """The operations on generators, of a program that has `contexts` and a `model`."""

    def __init__(self) -> None:
        self.generators: dict[str, Generation] = {}

    def op_generate(self, op: Op) -> None:
        context = self.context(op)
        sampler = sampler_of(op["sampler"])
        stop_tokens, stop_texts = apart(op.get("stop", []))
        if any(not 0 <= token < self.model.vocab_size for token in stop_tokens):
            raise RefusedError("invalid-token")
        automatic = op.get("auto_flush", True)
        if automatic and context.conversation.needs_cue:
            context.tokens += context.conversation.cue(context.tokens)
        context.n_provisional = None
        if not context.tokens:
            raise RefusedError("empty-context")
        if context.newest is not None and context.newest.finish is None:
            context.newest.finish = "closed"
        template = frozenset(self.model.chat.closing()[:1]) if automatic else frozenset()
        seed = op["sampler"].get("seed", op.get("seed"))
        layers = (self.model.end_tokens, template, stop_tokens)
        made = Generation(context, sampler, seed, "seed" in op["sampler"], op.get("max_tokens"), *layers)
        made.stop_texts = stop_texts
        made.ignores_ends = op.get("ignore_eos", False)
        made.logit_mask = op.get("logit_mask", [])
        if not any(fitting(made.logit_mask, self.model.vocab_size)) or op.get("horizon") == 0:
            raise RefusedError("invalid-argument")
        self.constrain(made, op.get("constrain", []))
        made.speculator = Drafts(**op["speculator"]) if "speculator" in op else None
        made.zo_seed = op.get("zo_seed")
        made.adapter = self.weights(op) if "adapter" in op else None
        if made.max_tokens == 0:
            made.finish = "length"
        self.generators[op["as"]] = context.newest = made

    def generator(self, op: Op) -> Generation:
        """The generator that an operation names; a retired one is refused."""
        generation = self.generators[op["gen"]]
        if generation.finish == "closed":
            raise RefusedError("generator-retired")
        return generation

    def op_set_max_tokens(self, op: Op) -> None:
        self.generator(op).max_tokens = op["n"]

    def op_stop(self, op: Op) -> None:
        generation = self.generator(op)
        generation.template_stop, generation.set_texts = apart(op["tokens"])
        generation.ends = frozenset(self.model.end_tokens if op["tokens"] else ())

    def op_add_stop(self, op: Op) -> None:
        generation = self.generator(op)
        tokens, texts = apart(op["tokens"])
        generation.stop |= tokens
        generation.stop_texts |= texts

    def op_ignore_eos(self, op: Op) -> None:
        self.generator(op).ignores_ends = op["value"]

    def op_logit_mask(self, op: Op) -> None:
        generation = self.generator(op)
        if generation.opened or not any(fitting(op["mask"], self.model.vocab_size)):
            raise RefusedError("invalid-argument")
        generation.logit_mask = op["mask"]

    def op_system_speculation(self, op: Op) -> None:
        generation = self.generator(op)
        if generation.opened or generation.speculator is not None:
            raise RefusedError("invalid-argument")
        if op.get("model", self.model.name) != self.model.name:
            raise RefusedError("unknown-model")

    def op_set_seed(self, op: Op) -> None:
        generation = self.generator(op)
        if generation.opened:
            raise RefusedError("invalid-argument")
        if not generation.has_sampler_seed:
            generation.seed = op["seed"]

    def op_step(self, op: Op) -> dict[str, Any] | None:
        """One step, with what is asked of it alone; None after the end."""
        generation = self.generator(op)
        if generation.owes:
            raise RefusedError("step-pending")
        generation.context.n_provisional = None
        if generation.finish is not None:
            return None
        generation.undone.append(op)
        own = [one for asked in generation.undone for one in asked.get("probes", [])]
        attached = generation.every_step + [(one["as"], one) for one in own]
        for _, one in attached:
            checked_probe(one["probe"], self.model.vocab_size)
        if any(one["index"] > 0 for _, one in attached):
            raise RefusedError("invalid-argument")
        tokens, last = self.run_step(generation, draws=not any(asked.get("clear") for asked in generation.undone))
        generation.undone = []
        if "as" in op:
            found = {name: self.reading(last, one["probe"]) for name, one in attached}
            self.outputs[op["as"]] = ({"auto": {"token": tokens[0], "tokens": tokens}} if tokens else {}) | found
        return {"tokens": tokens, "finish": generation.finish}

    def run_step(self, generation: Generation, *, draws: bool = True) -> tuple[list[int], int]:
        """Asks, draws, accepts, and decides whether it ends. Returns the tokens, and the h of the slot it reads."""
        context, speculator = generation.context, generation.speculator
        if generation.zo_seed is not None and generation.adapter is None:
            raise RefusedError("invalid-argument")
        drafts = []
        if speculator is not None:
            drafts = speculator.drafts[speculator.n] if speculator.n < len(speculator.drafts) else []
            speculator.n += 1
            if any(token >= self.model.vocab_size for token in drafts):
                raise RefusedError("invalid-token")
        given = [constraint.ask(generation.accepted) for constraint in generation.constraints]
        for mask in given:
            if not any(fitting(mask, self.model.vocab_size)):
                raise RefusedError("invalid-argument")
        for walker in generation.grammars:
            walker.stop = generation.stops()
        by_grammars = [walker.mask() for walker in generation.grammars]
        mask = masks.intersection([*given, *by_grammars, generation.logit_mask], self.model.vocab_size)
        if mask == [0]:
            raise RefusedError("invalid-argument")
        generation.opened = True
        self.count(generation)
        hashes = self.hashes_of(generation)
        first = hashes[-1]
        self.compute(context)
        tokens: list[int] = []
        if draws:
            tokens = self.draw_run(generation, hashes, mask, [] if given or by_grammars else drafts)
        generation.owes = not draws
        self.fold(generation, tokens, 1)
        tokens = self.walk(generation, tokens)
        if speculator is not None:
            n_kept = 0 if given else max(len(tokens) - 1, 0)
            if len(drafts) > n_kept:
                speculator.told.append(["rollback", len(drafts) - n_kept])
            speculator.told.append(["accept", tokens])
        for constraint in generation.constraints:
            constraint.answer = None
        return tokens, first

    def hashes_of(self, generation: Generation) -> list[int]:
        """What the slots of all tokens hold once the step is computed; the last one as its row is."""
        context = generation.context
        use = None if generation.adapter is None else Use(generation.adapter, generation.zo_seed)
        start, end = context.n_taken - context.pending, len(context.tokens)
        if start < end:
            written(context, start, end, use)
            return context.hashes()
        # The last token is read again, as it was written but for the adapter, and stays as it is.
        hashes = context.hashes()[:-1]
        write = context.writes.get(end - 1) or dummy.Write(context.tokens[-1], end - 1)
        plain = replace(write, adapter=0, version=0, zo_seed=None)
        dummy.append(hashes, plain if use is None else use.of(plain))
        return hashes

    def walk(self, generation: Generation, tokens: list[int]) -> list[int]:
        """Grammars go on by what was drawn. The text that one alone forces is accepted with it."""
        walkers = generation.grammars
        if not walkers or not tokens:
            return tokens
        for walker in walkers:
            walker.accept(tokens)
        goes_on = generation.finish is None and not any(walker.is_terminated for walker in walkers)
        if goes_on and len(walkers) == 1 and not generation.constraints and not generation.logit_mask:
            forced = walkers[0].forced()
            if forced:
                kept = self.replace(generation, [*tokens, *forced])
                walkers[0].accept(kept[len(tokens) :])
                tokens = kept
        # What nothing may follow is whole, though there is no room for more.
        if generation.finish in (None, "length") and any(walker.is_terminated for walker in walkers):
            generation.finish = "constraint"
        return tokens

    def count(self, generation: Generation) -> None:
        """The key of a generation, found at its first step."""
        if generation.key is not None:
            return
        context = generation.context
        start = seeds.origin(context.path, context.tokens)
        generation.key = generation.seed
        if generation.key is None:
            generation.key = seeds.derive(self.launch_seed, start, self.counts[start])
        self.counts[start] += 1

    def draw_run(self, generation: Generation, hashes: list[int], mask: list[int], drafts: list[int]) -> list[int]:
        """The token behind what there is, and those behind drafts as long as they are the same."""
        context = generation.context
        assert generation.key is not None
        tokens: list[int] = []
        while True:
            row = masked(self.row(hashes[-1]), mask)
            position = len(context.tokens) + len(tokens)
            tokens.append(draw(row, generation.sampler, generation.key, position))
            n = len(tokens)
            if n > len(drafts) or drafts[n - 1] != tokens[-1] or self.ending(generation, tokens) is not None:
                return tokens
            dummy.append(hashes, dummy.Write(tokens[-1], len(hashes)))

    def ending(self, generation: Generation, tokens: list[int]) -> str | None:
        """Why a generation ends behind tokens that it has not counted yet."""
        if tokens and (tokens[-1] in generation.stops() or self.said(generation, tokens).cut is not None):
            return "stop"
        n_accepted, length = generation.n_accepted + len(tokens), len(generation.context.tokens) + len(tokens)
        return "length" if n_accepted == generation.max_tokens or length >= self.model.max_context else None

    def said(self, generation: Generation, tokens: list[int]) -> Said:
        """What a generation has said, with tokens that it has not counted yet."""
        texts = generation.set_texts | generation.stop_texts
        found = Said("", "")
        for found in said(self.model.vocabulary, generation.drawn + tokens, texts):  # noqa: B007 - the last one is wanted
            pass
        return found

    def fold(self, generation: Generation, tokens: list[int], n_pending: int) -> None:
        """Tokens enter the context, `n_pending` of them without keys and values."""
        context = generation.context
        generation.finish = self.ending(generation, tokens)
        context.tokens += tokens
        context.n_taken, context.pending = len(context.tokens), n_pending if tokens else context.pending
        context.conversation.raw(context.tokens, len(tokens), generated=True)
        context.n_provisional = len(tokens)
        generation.n_accepted += len(tokens)
        generation.accepted = tokens
        generation.drawn += tokens

    def op_accept(self, op: Op) -> list[int]:
        """Other tokens in place of what the last step accepted, cut behind a stop token and at the cap."""
        generation, given = self.generator(op), op["tokens"]
        if any(token >= self.model.vocab_size for token in given):
            raise RefusedError("invalid-token")
        return self.replace(generation, given)

    def replace(self, generation: Generation, given: list[int]) -> list[int]:
        """The same, without a check of the tokens. Grammars stay where they are."""
        context = generation.context
        n = context.n_provisional
        if n is None:
            raise RefusedError("step-pending")
        before = context.tokens[context.n_taken - n : context.n_taken]
        context.conversation.truncate(context.n_taken, context.n_taken - n)
        del context.tokens[context.n_taken - n : context.n_taken]
        del generation.drawn[len(generation.drawn) - n :]
        context.n_taken -= n
        context.pending = 0
        generation.n_accepted -= n
        kept: list[int] = []
        for token in given:
            kept.append(token)
            if self.ending(generation, kept) is not None:
                break
        generation.owes = False
        self.fold(generation, kept, len(kept))
        if generation.speculator is not None and kept != before:
            added = kept[:n] == before
            generation.speculator.told += [["accept", kept[n:]]] if added else [["reset"], ["accept", list(generation.drawn)]]
        return kept

    def op_probe_each_step(self, op: Op) -> None:
        generation = self.generator(op)
        checked_probe(op["probe"], self.model.vocab_size)
        generation.every_step.append((op["as"], op))

    def op_constrain(self, op: Op) -> None:
        self.constrain(self.generator(op), op["constrain"])

    def constrain(self, generation: Generation, given: list[Op]) -> None:
        """Adds constraints: by masks, and by grammars, each of which begins where it is added."""
        made = [Masks(one["masks"]) if "masks" in one else Walker.of(self.model, one) for one in given]
        generation.constraints += [one for one in made if isinstance(one, Masks)]
        generation.grammars += [one for one in made if isinstance(one, Walker)]

    def op_horizon(self, op: Op) -> None:
        self.generator(op)
        if op["n"] == 0:
            raise RefusedError("invalid-argument")

    def op_zo_seed(self, op: Op) -> None:
        self.generator(op).zo_seed = op["seed"]

    def op_constraint_log(self, op: Op) -> list[list[list[int]]]:
        """What each constraint was given."""
        return [constraint.seen for constraint in self.generators[op["gen"]].constraints]

    def op_speculator_log(self, op: Op) -> list[list[Any]]:
        """What the speculator was told."""
        speculator = self.generators[op["gen"]].speculator
        assert speculator is not None
        return list(speculator.told)

    def op_collect_tokens(self, op: Op) -> list[int]:
        generation = self.generator(op)
        if generation.owes:
            raise RefusedError("step-pending")
        tokens = []
        while generation.finish is None:
            tokens += self.run_step(generation)[0]
        return tokens

    def op_collect_text(self, op: Op) -> str:
        stops = self.generator(op).stops()
        if self.generators[op["gen"]].set_texts | self.generators[op["gen"]].stop_texts:
            return self.collect_cut(op)
        tokens = self.op_collect_tokens(op)
        control = {token for token in tokens if token in stops}
        text: str = self.model.chat.tokenizer.decode([token for token in tokens if token not in control], skip_special_tokens=True)
        return text

    def collect_cut(self, op: Op) -> str:
        """The text of a generation that has stop texts, but for what was said before."""
        generation = self.generator(op)
        before = self.said(generation, []).text
        self.op_collect_tokens(op)
        last = generation.drawn[-1:]
        whole = self.said(generation, [])
        if whole.cut is None and last and last[0] in generation.stops():
            # A stop token is not shown.
            generation.drawn.pop()
            whole = self.said(generation, [])
            generation.drawn += last
        return whole.text[len(before) :]

    def op_text_stream(self, op: Op) -> list[Any]:
        """A piece for each step that shows something, and all of them joined."""
        generation = self.generator(op)
        texts = generation.set_texts | generation.stop_texts
        pieces, shown = [], self.said(generation, []).text
        n_before = len(shown)
        while generation.finish is None:
            self.run_step(generation)
            found = self.said(generation, [])
            is_stopped = generation.finish == "stop" and found.cut is None
            if is_stopped:
                last = generation.drawn.pop()
                found = self.said(generation, [])
                generation.drawn.append(last)
            text = found.shown(texts) if generation.finish is None else found.text
            if len(text) > len(shown):
                pieces.append(text[len(shown) :])
                shown = text
        return [pieces, shown[n_before:]]

    def op_collect_json(self, op: Op) -> Any:
        """The value of a document, which any JSON goes on beside what constrains it, so that no text is jumped over."""
        generation = self.generator(op)
        assert generation.grammars, "without a grammar the documents have no end"
        generation.constraints.append(Masks([]))
        text = self.op_collect_text(op)
        generation.constraints.pop()
        if generation.finish not in ("constraint", "stop"):
            raise RefusedError("json-cut")
        return json.loads(text)

    def op_give_up(self, op: Op) -> list[Any]:
        """Nothing comes of a collection that is given up, and nothing is seen of it, but that its context is busy."""
        self.generator(op)
        while self.generators[op["beside"]].finish is None:
            self.run_step(self.generators[op["beside"]])
        busy = ("append", "truncate", "fork", "flush")
        return [{"error": "context-busy"} if one["op"] in busy else self.run([one])[0] for one in op["seen"]]

    def op_tokens_generated(self, op: Op) -> int:
        return self.generators[op["gen"]].n_accepted

    def op_is_done(self, op: Op) -> bool:
        return self.generators[op["gen"]].finish is not None

    def op_finish_reason(self, op: Op) -> str | None:
        return self.generators[op["gen"]].finish
