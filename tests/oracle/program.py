"""What a list of operations of `tests/vectors` must answer, on the dummy driver with the embedded tokenizer.

Knows the rules of contexts, turns, generators and seeds, and nothing of pages in use, batches or time.
"""

from __future__ import annotations

import itertools
import json
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import dummy, seeds
from .chat import Chat, Conversation
from .decoder import Decoder, Event, Vocabulary
from .sampler import Sampler, draw

PAGE_SIZE = 16
MAX_NAME_BYTES = 256
Op = dict[str, Any]


class RefusedError(Exception):
    """An operation that must fail with a code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Model:
    """The dummy driver behind a model folder."""

    folder: Path
    name: str = field(init=False)
    vocab_size: int = field(init=False)
    max_context: int = field(init=False)
    end_tokens: frozenset[int] = field(init=False)
    chat: Chat = field(init=False)
    vocabulary: Vocabulary = field(init=False)

    def __post_init__(self) -> None:
        """Reads the folder."""
        config = json.loads((self.folder / "config.json").read_text(encoding="utf-8"))
        generation = json.loads((self.folder / "generation_config.json").read_text(encoding="utf-8"))
        self.name = self.folder.name.replace("_", "-")
        self.vocab_size, self.max_context = config["vocab_size"], config["max_position_embeddings"]
        ends = generation["eos_token_id"]
        self.end_tokens = frozenset(ends if isinstance(ends, list) else [ends])
        self.chat = Chat(self.folder)
        self.vocabulary = Vocabulary(self.chat.tokenizer)

    def decoder(self) -> Decoder:
        """A chat decoder."""
        return Decoder(self.vocabulary, self.end_tokens | frozenset(self.chat.closing()[:1]))


@dataclass
class Context:
    """Every token, how many of them were taken by a pass, how many of those lie in committed pages, and the turns.

    `pending` says that the newest taken token has no key and value yet.
    """

    conversation: Conversation
    tokens: list[int] = field(default_factory=list)
    n_taken: int = 0
    n_committed: int = 0
    n_cached: int = 0
    pending: bool = False
    path: int = 0
    n_forks: int = 0
    released: bool = False
    newest: Generation | None = None

    def fork(self) -> Context:
        """A copy on a path of its own."""
        self.n_forks += 1
        return self.copied(seeds.fork_path(self.path, self.n_forks))

    def saved(self) -> Context:
        """What a snapshot keeps: it counts as a fork, and is none."""
        self.n_forks += 1
        return self.copied(seeds.saved_path(self.path, self.n_forks))

    def copied(self, path: int) -> Context:
        """The same on another path."""
        state = (self.n_taken, self.n_committed, self.n_cached, self.pending, path)
        return Context(self.conversation.copy(), list(self.tokens), *state)

    def commit(self) -> None:
        """Full pages are committed."""
        n_in_pages = self.n_taken - int(self.pending)
        self.n_committed = max(self.n_committed, n_in_pages // PAGE_SIZE * PAGE_SIZE)


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

    def stops(self) -> frozenset[int]:
        """Every token that ends it."""
        return self.stop if self.ignores_ends else self.ends | self.template_stop | self.stop


class Program:
    """The handles of one run, by their names."""

    def __init__(self, model: Model, launch_seed: int, messages: list[str], files: Sequence[list[int]] = ()) -> None:
        self.model = model
        self.launch_seed = launch_seed
        self.messages = messages
        self.files = list(files)
        self.counts: Counter[int] = Counter()
        self.contexts: dict[str, Context] = {}
        self.snapshots: dict[str, Context] = {}
        self.n_opened: Counter[int] = Counter()
        self.generators: dict[str, Generation] = {}
        self.decoders: dict[str, Decoder] = {}
        self.computed: set[tuple[int, ...]] = set()
        """What was computed, up to the end of a page each."""

    def run(self, ops: list[Op]) -> list[Any]:
        """The transcript."""
        return [self.answer(op) for op in ops]

    def answer(self, op: Op) -> Any:
        """The entry of one operation."""
        try:
            return getattr(self, f"op_{op['op']}")(op)
        except RefusedError as refused:
            return {"error": refused.code}

    def context(self, op: Op) -> Context:
        """The context that an operation names; a released one is refused."""
        context = self.contexts[op["ctx"]]
        if context.released:
            raise RefusedError("context-released")
        return context

    def append(self, context: Context, tokens: list[int]) -> None:
        """Adds to the buffer."""
        if any(not 0 <= token < self.model.vocab_size for token in tokens):
            raise RefusedError("invalid-token")
        context.tokens += tokens

    def op_all(self, op: Op) -> list[list[Any]]:
        """Branches that share nothing: their order cannot matter."""
        return [self.run(branch) for branch in op["ops"]]

    def op_context(self, op: Op) -> None:
        self.contexts[op["as"]] = Context(Conversation(self.model.chat))

    def op_fork(self, op: Op) -> None:
        self.contexts[op["as"]] = self.context(op).fork()

    def op_save(self, op: Op) -> None:
        """A snapshot is a copy that nobody touches."""
        context = self.context(op)
        context.commit()
        if not 0 < len(op["name"].encode()) <= MAX_NAME_BYTES:
            raise RefusedError("invalid-argument")
        self.snapshots[op["name"]] = context.saved()

    def op_open(self, op: Op) -> bool:
        """The n-th context of a snapshot of that path."""
        snapshot = self.snapshots.get(op["name"])
        if snapshot is not None:
            self.n_opened[snapshot.path] += 1
            path = seeds.opened_path(snapshot.path, self.n_opened[snapshot.path])
            self.contexts[op["as"]] = snapshot.copied(path)
        return snapshot is not None

    def op_take(self, op: Op) -> bool:
        found = self.op_open(op)
        self.snapshots.pop(op["name"], None)
        return found

    def op_delete(self, op: Op) -> None:
        if self.snapshots.pop(op["name"], None) is None:
            raise RefusedError("snapshot-missing")

    def op_snapshots(self, _op: Op) -> list[str]:
        return sorted(self.snapshots)

    def op_suspend(self, op: Op) -> None:
        """Where pages are changes nothing."""
        self.context(op)

    def op_release(self, op: Op) -> None:
        self.contexts[op["ctx"]].released = True

    def fill(self, role: str, op: Op) -> None:
        """Adds a message."""
        context = self.context(op)
        self.append(context, context.conversation.fill(role, op["text"], context.tokens))

    def op_system(self, op: Op) -> None:
        self.fill("system", op)

    def op_user(self, op: Op) -> None:
        self.fill("user", op)

    def op_assistant(self, op: Op) -> None:
        self.fill("assistant", op)

    def op_cue(self, op: Op) -> None:
        context = self.context(op)
        self.append(context, context.conversation.cue(context.tokens))

    def op_seal(self, op: Op) -> None:
        context = self.context(op)
        self.append(context, context.conversation.seal(context.tokens))

    def op_append(self, op: Op) -> None:
        context = self.context(op)
        self.append(context, op["tokens"])
        context.conversation.raw(context.tokens, len(op["tokens"]))

    def op_append_text(self, op: Op) -> None:
        self.op_append(op | {"tokens": self.model.chat.encode(op["text"])})

    def op_flush(self, op: Op) -> None:
        self.compute(self.context(op))

    def compute(self, context: Context) -> None:
        """A pass over all that is not computed. More than one token is looked for among what was, a page at a time."""
        start, end = context.n_taken - int(context.pending), len(context.tokens)
        ends = range(start // PAGE_SIZE * PAGE_SIZE + PAGE_SIZE, end + 1, PAGE_SIZE)
        prefixes = [tuple(context.tokens[:page_end]) for page_end in ends]
        found = list(itertools.takewhile(self.computed.__contains__, prefixes)) if end > start + 1 else []
        context.n_cached += len(found[-1]) - start if found else 0
        self.computed.update(prefixes)
        context.n_taken, context.pending = end, False
        context.commit()

    def op_cached_tokens(self, op: Op) -> int:
        return self.context(op).n_cached

    def op_truncate(self, op: Op) -> None:
        context, n = self.context(op), op["n"]
        context.commit()
        if n > context.n_taken - context.n_committed:
            raise RefusedError("truncate-range")
        context.conversation.truncate(context.n_taken, context.n_taken - n)
        del context.tokens[context.n_taken - n : context.n_taken]
        context.n_taken -= n
        context.pending = context.pending and n == 0
        if context.newest is not None and context.newest.finish is None:
            context.newest.finish = "closed"

    def op_seq_len(self, op: Op) -> int:
        return self.context(op).n_taken

    def op_buffer(self, op: Op) -> list[int]:
        context = self.context(op)
        return context.tokens[context.n_taken :]

    def op_page_size(self, op: Op) -> int:
        self.context(op)
        return PAGE_SIZE

    def op_generate(self, op: Op) -> None:
        context = self.context(op)
        sampler = sampler_of(op["sampler"])
        if any(not 0 <= token < self.model.vocab_size for token in op.get("stop", [])):
            raise RefusedError("invalid-token")
        automatic = op.get("auto_flush", True)
        if automatic and context.conversation.needs_cue:
            context.tokens += context.conversation.cue(context.tokens)
        if not context.tokens:
            raise RefusedError("empty-context")
        if context.newest is not None and context.newest.finish is None:
            context.newest.finish = "closed"
        template = frozenset(self.model.chat.closing()[:1]) if automatic else frozenset()
        seed = op["sampler"].get("seed", op.get("seed"))
        layers = (self.model.end_tokens, template, frozenset(op.get("stop", [])))
        made = Generation(context, sampler, seed, "seed" in op["sampler"], op.get("max_tokens"), *layers)
        made.ignores_ends = op.get("ignore_eos", False)
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
        generation.template_stop = frozenset(op["tokens"])
        generation.ends = frozenset(self.model.end_tokens if op["tokens"] else ())

    def op_add_stop(self, op: Op) -> None:
        generation = self.generator(op)
        generation.stop |= frozenset(op["tokens"])

    def op_ignore_eos(self, op: Op) -> None:
        self.generator(op).ignores_ends = op["value"]

    def op_set_seed(self, op: Op) -> None:
        generation = self.generator(op)
        if generation.opened:
            raise RefusedError("invalid-argument")
        if not generation.has_sampler_seed:
            generation.seed = op["seed"]

    def op_step(self, op: Op) -> dict[str, Any] | None:
        generation = self.generator(op)
        if generation.finish is not None:
            return None
        return {"tokens": [self.sample(generation)], "finish": generation.finish}

    def sample(self, generation: Generation) -> int:
        """One step: draws, accepts, and decides whether it ends."""
        context = generation.context
        generation.opened = True
        if generation.key is None:
            start = seeds.origin(context.path, context.tokens)
            generation.key = generation.seed
            if generation.key is None:
                generation.key = seeds.derive(self.launch_seed, start, self.counts[start])
            self.counts[start] += 1
        hashes: list[int] = []
        dummy.extend(hashes, context.tokens)
        row = dummy.logits(self.model.name, self.model.vocab_size, hashes[-1])
        token = draw(row, generation.sampler, generation.key, len(context.tokens))
        self.compute(context)
        context.tokens.append(token)
        context.n_taken, context.pending = len(context.tokens), True
        context.conversation.raw(context.tokens, 1, generated=True)
        generation.n_accepted += 1
        if token in generation.stops():
            generation.finish = "stop"
        elif generation.n_accepted == generation.max_tokens or len(context.tokens) >= self.model.max_context:
            generation.finish = "length"
        return token

    def op_collect_tokens(self, op: Op) -> list[int]:
        generation = self.generator(op)
        tokens = []
        while generation.finish is None:
            tokens.append(self.sample(generation))
        return tokens

    def op_collect_text(self, op: Op) -> str:
        stops = self.generator(op).stops()
        tokens = self.op_collect_tokens(op)
        control = {token for token in tokens if token in stops}
        text: str = self.model.chat.tokenizer.decode([token for token in tokens if token not in control], skip_special_tokens=True)
        return text

    def op_tokens_generated(self, op: Op) -> int:
        return self.generators[op["gen"]].n_accepted

    def op_is_done(self, op: Op) -> bool:
        return self.generators[op["gen"]].finish is not None

    def op_finish_reason(self, op: Op) -> str | None:
        return self.generators[op["gen"]].finish

    def op_encode(self, op: Op) -> list[int]:
        return self.model.chat.encode(op["text"])

    def op_decode(self, op: Op) -> str:
        if any(not 0 <= token < self.model.vocab_size for token in op["tokens"]):
            raise RefusedError("invalid-token")
        text: str = self.model.chat.tokenizer.decode(op["tokens"], skip_special_tokens=False)
        return text

    def op_models(self, op: Op) -> list[str]:
        return [self.model.name]

    def op_send(self, op: Op) -> None:
        """The client sees it; the program sees nothing."""

    def op_receive(self, op: Op) -> str:
        if not self.messages:
            raise RefusedError("session-closed")
        return self.messages.pop(0)

    def op_send_file(self, op: Op) -> None:
        """As `op_send`."""

    def op_receive_file(self, op: Op) -> list[int]:
        if not self.files:
            raise RefusedError("session-closed")
        return self.files.pop(0)

    def op_version(self, _op: Op) -> str:
        manifest = tomllib.loads((Path(__file__).resolve().parents[2] / "Cargo.toml").read_text(encoding="utf-8"))
        version: str = manifest["workspace"]["package"]["version"]
        return version

    def op_username(self, _op: Op) -> str:
        """Who launches it is called by the vector and the language."""
        return "{name}-{language}"

    def op_instance_id(self, _op: Op) -> bool:
        """Whether it is a text, the same each time."""
        return True

    def op_args(self, _op: Op) -> list[str]:
        return []

    def op_launch_seed(self, _op: Op) -> int:
        return self.launch_seed

    def op_model_name(self, _op: Op) -> str:
        return self.model.name

    def op_vocab_size(self, _op: Op) -> int:
        return self.model.vocab_size

    def op_vocabs(self, op: Op) -> list[Any]:
        """How many tokens there are, and the bytes of some."""
        return [self.model.vocab_size, [list(self.model.vocabulary.bytes[token]) for token in op["tokens"]]]

    def op_special_tokens(self, _op: Op) -> list[Any]:
        control = sorted(self.model.vocabulary.control.items())
        return [[id_, list(content.encode())] for id_, content in control]

    def op_split_regex(self, _op: Op) -> str:
        file = json.loads((self.model.folder / "tokenizer.json").read_text(encoding="utf-8"))
        parts = file["pre_tokenizer"]["pretokenizers"]
        pattern: str = next(part["pattern"]["Regex"] for part in parts if part["type"] == "Split")
        return pattern

    def op_snapshot(self, op: Op) -> bool:
        """A snapshot under a name that is made up, taken at once."""
        context = self.context(op)
        context.commit()
        self.snapshots["made up"] = context.fork()
        return self.op_take({"name": "made up", "as": op["as"]})

    def op_message_tokens(self, op: Op) -> list[int]:
        """What a message adds to others: here nothing depends on them."""
        return Conversation(self.model.chat).fill(op["role"], op["text"], [])

    def op_cue_tokens(self, _op: Op) -> list[int]:
        return self.model.chat.cue()

    def op_seal_tokens(self, _op: Op) -> list[int]:
        return self.model.chat.closing()

    def op_stop_tokens(self, _op: Op) -> list[int]:
        return self.model.chat.closing()[:1]

    def decoder(self, op: Op) -> Decoder:
        """The decoder of that name, made at its first use."""
        return self.decoders.setdefault(op["as"], self.model.decoder())

    def op_chat_feed(self, op: Op) -> Event:
        decoder = self.decoder(op)
        if any(not 0 <= token < self.model.vocab_size for token in op["tokens"]):
            raise RefusedError("invalid-token")
        decoder.take(op["tokens"])
        return decoder.next()

    def op_chat_finish(self, op: Op) -> Event:
        decoder = self.decoder(op)
        decoder.finish()
        return decoder.next()

    def op_chat_reset(self, op: Op) -> None:
        self.decoder(op).reset()

    def op_chat_stream(self, op: Op) -> list[Event]:
        """Every event of a generation, step by step: its stop token shows nothing, and its end is the end of the
        turn.
        """
        generation, decoder, events = self.generator(op), self.model.decoder(), []
        while generation.finish is None:
            token = self.sample(generation)
            if generation.finish == "stop":
                decoder.end()
            else:
                decoder.take([token])
            if generation.finish is not None:
                decoder.finish()
            events += decoder.queue
            decoder.queue = []
        return events

    def op_sleep(self, op: Op) -> None:
        """Time changes nothing."""


def sampler_of(spec: dict[str, Any]) -> Sampler:
    """The sampler of an operation; a parameter out of its range is refused."""
    kind, temperature = spec["kind"], spec.get("temperature", 0.0)
    p, k = spec.get("p", 1.0), spec.get("k", 1)
    legal_p = 0 <= p <= 1 if kind == "min_p" else 0 < p <= 1
    if not (temperature >= 0 and legal_p and k >= 1 and spec.get("draws", 1) == 1):
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
