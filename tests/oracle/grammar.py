"""What matchers must answer: grammars by all of their texts, which are written down by hand."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import masks
from .errors import RefusedError

if TYPE_CHECKING:
    from .program import Model

Op = dict[str, Any]


@dataclass
class Walker:
    """A matcher: the texts of its grammar, and what was accepted."""

    model: Model
    texts: frozenset[bytes]
    stop: frozenset[int]
    is_part: bool = False
    """The grammar has more texts than these; then only they are walked, and nobody asks what else may follow."""
    text: bytes = b""
    stopped: bool = False
    last: int | None = None
    """The token that was accepted last."""
    queue: list[int] = field(default_factory=list)
    """What is left of the tokens of text that was found forced."""

    @classmethod
    def of(cls, model: Model, op: Op) -> Walker:
        """At the beginning; a grammar without texts is refused."""
        stop = model.end_tokens | frozenset(model.chat.closing()[:1])
        if "letters" in op:
            return Letters(model, frozenset(), stop, letters=op["letters"].encode(), n=op["n"], around=op["around"].encode())
        if "texts" not in op:
            raise RefusedError("invalid-grammar")
        return cls(model, frozenset(text.encode() for text in op["texts"]), stop, op.get("is_part", False))

    def copied(self) -> Walker:
        """One that goes on by itself."""
        other = copy(self)
        other.queue = list(self.queue)
        return other

    def reset(self) -> None:
        """Goes back to the beginning."""
        self.text, self.stopped, self.last, self.queue = b"", False, None, []

    @property
    def rest(self) -> list[bytes]:
        """How the texts go on."""
        return [text[len(self.text) :] for text in self.texts if text.startswith(self.text)]

    @property
    def common(self) -> bytes:
        """What all of them go on with."""
        least, most = min(self.rest), max(self.rest)
        n_same = next((n for n, (one, other) in enumerate(zip(least, most, strict=False)) if one != other), len(least))
        return least[:n_same]

    @property
    def may_end(self) -> bool:
        """Whether what was accepted is a text."""
        return self.text in self.texts

    @property
    def is_terminated(self) -> bool:
        """Whether a stop token was accepted, or nothing else could follow."""
        return self.stopped or self.rest == [b""]

    def bytes_of(self, token: int) -> bytes:
        """What a token writes: nothing where it is a control token."""
        vocabulary = self.model.vocabulary
        return b"" if token in vocabulary.control else vocabulary.bytes.get(token, b"")

    def may_follow(self, content: bytes) -> bool:
        """Whether a text goes on so."""
        return bool(content) and any(rest.startswith(content) for rest in self.rest)

    def accept(self, tokens: list[int]) -> None:
        """Goes on by all of them, or by none."""
        other = self.copied()
        for token in tokens:
            other.accept_one(token)
        self.text, self.stopped, self.last, self.queue = other.text, other.stopped, other.last, other.queue

    def accept_one(self, token: int) -> None:
        """Goes on by one."""
        if not self.is_terminated and token in self.stop and self.may_end:
            self.stopped = True
            return
        if self.is_terminated or not self.may_follow(self.bytes_of(token)):
            raise RefusedError("grammar-mismatch")
        self.queue = self.queue[1:] if self.queue[:1] == [token] else []
        self.text += self.bytes_of(token)
        self.last = token

    def forced(self) -> list[int]:
        """The tokens of the text that must follow, up to those that could be longer."""
        assert not self.is_part
        if not self.queue and not self.is_terminated and not self.may_end:
            self.queue = self.tokens_of(self.common)
        return list(self.queue)

    def tokens_of(self, must: bytes) -> list[int]:
        """The tokens of a text that must follow. A token that another one could begin with, and go on, is a choice."""
        tokens = self.written(must)
        if self.last is not None and tokens:
            with_before = self.written(self.bytes_of(self.last) + must)
            # Whoever writes it together with the token before has to agree, or write that one otherwise.
            assert with_before[0] != self.last or with_before[1:] == tokens, (self.last, must)
        n_sure = len(tokens)
        for n in range(len(tokens)):
            end = b"".join(map(self.bytes_of, tokens[n:]))
            begun = must[: len(must) - len(end)]
            longer = (content for content in self.contents() if content.startswith(end) and content != end)
            if any(self.may_follow(begun + content) for content in longer):
                n_sure = n
                break
        return tokens[:n_sure]

    def written(self, content: bytes) -> list[int]:
        """A text as the tokenizer writes it; bytes that are none by the longest tokens."""
        try:
            return self.model.chat.encode(content.decode())
        except UnicodeDecodeError:
            tokens: list[int] = []
            while content:
                longest = max(filter(content.startswith, self.contents()), key=len)
                tokens.append(self.model.vocabulary.token(longest))
                content = content[len(longest) :]
            return tokens

    def contents(self) -> list[bytes]:
        """What the tokens of the vocabulary write."""
        return [content for token in self.model.vocabulary.bytes if (content := self.bytes_of(token))]

    def mask(self) -> list[int]:
        """The tokens that may follow; of text that must follow, the next of its tokens alone."""
        if self.is_terminated:
            raise RefusedError("grammar-mismatch")
        if self.forced():
            return masks.of_bits([token == self.queue[0] for token in range(self.model.vocab_size)])
        return masks.of_bits([self.allows(token) for token in range(self.model.vocab_size)])

    def allows(self, token: int) -> bool:
        """Whether a token may follow where nothing is forced."""
        return self.may_end if token in self.stop else self.may_follow(self.bytes_of(token))


@dataclass
class Letters(Walker):
    """One of a grammar whose texts are too many to be written down: so many of some letters, in any order."""

    letters: bytes = b""
    n: int = 0
    around: bytes = b""
    """What stands in front of them and behind them."""

    @property
    def rest(self) -> list[bytes]:
        """How the first and the last of the texts go on."""
        n_left = min(self.n, self.n + len(self.around) - len(self.text))
        begin = self.around[len(self.text) :] if len(self.text) < len(self.around) else b""
        end = self.around[len(self.text) - len(self.around) - self.n :] if n_left <= 0 else self.around
        return list(dict.fromkeys(begin + letter.to_bytes() * max(n_left, 0) + end for letter in (min(self.letters), max(self.letters))))

    @property
    def may_end(self) -> bool:
        """Whether what was accepted is a text."""
        return self.rest == [b""]

    def may_follow(self, content: bytes) -> bool:
        """Whether a text goes on so."""
        rest = self.rest[0]
        places = zip(content, self.rest[0], self.rest[-1], strict=False)
        return 0 < len(content) <= len(rest) and all(byte == one or (one != other and byte in self.letters) for byte, one, other in places)


class GrammarOps:
    """The operations on grammars, of a program that has a `model`."""

    def __init__(self) -> None:
        self.grammars: dict[str, Op] = {}
        self.matchers: dict[str, Walker] = {}

    def op_grammar(self, op: Op) -> None:
        Walker.of(self.model, op)
        self.grammars[op["as"]] = op

    def op_matcher(self, op: Op) -> None:
        self.matchers[op["as"]] = Walker.of(self.model, self.grammars[op["grammar"]])

    def op_matcher_mask(self, op: Op) -> list[int]:
        return self.matchers[op["matcher"]].mask()

    def op_matcher_accept(self, op: Op) -> None:
        self.matchers[op["matcher"]].accept(op["tokens"])

    def op_matcher_forced(self, op: Op) -> list[int]:
        return self.matchers[op["matcher"]].forced()

    def op_matcher_ended(self, op: Op) -> bool:
        return self.matchers[op["matcher"]].is_terminated

    def op_matcher_reset(self, op: Op) -> None:
        self.matchers[op["matcher"]].reset()

    def op_matcher_fork(self, op: Op) -> None:
        self.matchers[op["as"]] = self.matchers[op["matcher"]].copied()
