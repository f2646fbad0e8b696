"""What a list of operations of `tests/vectors` must answer, on the dummy driver with the embedded tokenizer.

Knows the rules of contexts, turns, generators and seeds, and nothing of pages in use, batches or time.
"""

from __future__ import annotations

import itertools
import json
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import dummy, seeds
from .adapters import AdapterOps
from .chat import Chat, Conversation
from .decoder import Decoder, Event, Vocabulary
from .errors import RefusedError
from .forward import ForwardOps
from .grammar import GrammarOps
from .messages import MessageOps
from .stepping import Generation, GeneratorOps

PAGE_SIZE = 16
MAX_NAME_BYTES = 256
Op = dict[str, Any]


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

    `pending` says how many of the newest taken tokens have no key and value yet. `writes` has the tokens that were not
    written in the plain way, by their slots.
    """

    conversation: Conversation
    tokens: list[int] = field(default_factory=list)
    n_taken: int = 0
    n_committed: int = 0
    n_cached: int = 0
    pending: int = 0
    path: int = 0
    n_forks: int = 0
    released: bool = False
    newest: Generation | None = None
    writes: dict[int, dummy.Write] = field(default_factory=dict)
    n_provisional: int | None = None
    """How many of the newest tokens the last step accepted, as long as they can be replaced."""

    def fork(self) -> Context:
        """A copy on a path of its own."""
        self.n_forks += 1
        self.n_provisional = None
        return self.copied(seeds.fork_path(self.path, self.n_forks))

    def saved(self) -> Context:
        """What a snapshot keeps: it counts as a fork, and is none."""
        self.n_forks += 1
        self.n_provisional = None
        return self.copied(seeds.saved_path(self.path, self.n_forks))

    def copied(self, path: int) -> Context:
        """The same on another path."""
        state = (self.n_taken, self.n_committed, self.n_cached, self.pending, path)
        return Context(self.conversation.copy(), list(self.tokens), *state, writes=dict(self.writes))

    def hashes(self) -> list[int]:
        """What the dummy driver has in the slots of all tokens."""
        found: list[int] = []
        for slot, token in enumerate(self.tokens):
            dummy.append(found, self.writes.get(slot) or dummy.Write(token, slot))
        return found

    def commit(self) -> None:
        """Full pages are committed."""
        n_in_pages = self.n_taken - self.pending
        self.n_committed = max(self.n_committed, n_in_pages // PAGE_SIZE * PAGE_SIZE)


def check_name(name: str) -> None:
    """The name of a snapshot can be shown, and is not long."""
    if not 0 < len(name.encode()) <= MAX_NAME_BYTES or any(unicodedata.category(character) == "Cc" for character in name):
        raise RefusedError("invalid-argument")


class Program(AdapterOps, ForwardOps, GeneratorOps, GrammarOps, MessageOps):
    """The handles of one run, by their names."""

    def __init__(self, model: Model, launch_seed: int, messages: list[str], files: Sequence[list[int]] = ()) -> None:
        AdapterOps.__init__(self)
        ForwardOps.__init__(self)
        GeneratorOps.__init__(self)
        GrammarOps.__init__(self)
        MessageOps.__init__(self)
        self.model = model
        self.launch_seed = launch_seed
        self.messages = messages
        self.files = list(files)
        self.counts: Counter[int] = Counter()
        self.contexts: dict[str, Context] = {}
        self.snapshots: dict[str, Context] = {}
        self.n_opened: Counter[int] = Counter()
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
        context.n_provisional = None

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
        check_name(op["name"])
        self.snapshots[op["name"]] = context.saved()

    def op_open(self, op: Op) -> bool:
        """The n-th context of a snapshot of that path."""
        check_name(op["name"])
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
        check_name(op["name"])
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
        start, end = context.n_taken - context.pending, len(context.tokens)
        ends = range(start // PAGE_SIZE * PAGE_SIZE + PAGE_SIZE, end + 1, PAGE_SIZE)
        prefixes = [tuple(context.tokens[:page_end]) for page_end in ends]
        found = list(itertools.takewhile(self.computed.__contains__, prefixes)) if end > start + 1 else []
        context.n_cached += len(found[-1]) - start if found else 0
        self.computed.update(prefixes)
        context.n_taken, context.pending, context.n_provisional = end, 0, None
        context.commit()

    def op_cached_tokens(self, op: Op) -> int:
        return self.context(op).n_cached

    def op_truncate(self, op: Op) -> None:
        context, n = self.context(op), op["n"]
        context.n_provisional = None
        context.commit()
        if n > context.n_taken - context.n_committed:
            raise RefusedError("truncate-range")
        context.conversation.truncate(context.n_taken, context.n_taken - n)
        del context.tokens[context.n_taken - n : context.n_taken]
        context.n_taken -= n
        context.pending = max(0, context.pending - n)
        context.writes = {slot: write for slot, write in context.writes.items() if slot < context.n_taken}
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

    def op_send_json(self, op: Op) -> None:
        """As `op_send`."""

    def op_message(self, op: Op) -> None:
        """As `op_send`."""

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
            tokens, _ = self.run_step(generation)
            if generation.finish == "stop":
                decoder.end()
            else:
                decoder.take(tokens)
            if generation.finish is not None:
                decoder.finish()
            events += decoder.queue
            decoder.queue = []
        return events

    def op_sleep(self, op: Op) -> None:
        """Time changes nothing."""
