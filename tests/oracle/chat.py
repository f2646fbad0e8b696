"""The chat rules, by jinja2 and tokenizers alone: what pie-text must give for a model folder."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

Message = dict[str, str]

# Stands for content of which only the place matters; letters that no template writes.
_MARK = "QXZJ"


class Chat:
    """The template and the tokenizer of a model folder."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
        environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
        self._template = environment.from_string(config["chat_template"])
        self._variables = {name: config.get(name) for name in ("bos_token", "eos_token", "pad_token")}

    def render(self, messages: list[Any], *, cue: bool = False, tools: list[Any] | None = None) -> str:
        """The text of a conversation, with the header of the answer at its end if `cue`."""
        return self._template.render(messages=messages, add_generation_prompt=cue, tools=tools, **self._variables)

    def encode(self, text: str) -> list[int]:
        """Token ids, control tokens parsed, nothing added."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def encode_content(self, before: str, content: str, after: str) -> list[int]:
        """Ids of `before + content + after`, of which only the template's parts may hold control tokens.

        The text between two control tokens of the template is encoded whole, as if it had been typed at once.
        """
        control = [token.content for token in self.tokenizer.get_added_tokens_decoder().values()]
        start = max((before.rfind(token) + len(token) for token in control if token in before), default=0)
        end = min((after.find(token) for token in control if token in after), default=len(after))
        self.tokenizer.encode_special_tokens = True
        try:
            middle: list[int] = self.tokenizer.encode(before[start:] + content + after[:end], add_special_tokens=False).ids
        finally:
            self.tokenizer.encode_special_tokens = False
        return self.encode(before[:start]) + middle + self.encode(after[end:])

    def closing(self) -> list[int]:
        """What follows the content of an assistant message."""
        return self.encode(self.render([{"role": "user", "content": "x"}, {"role": "assistant", "content": _MARK}]).rpartition(_MARK)[2])

    def cue(self) -> list[int]:
        """The header of an answer to a question."""
        asked = [{"role": "user", "content": "x"}]
        return self.encode(self.render(asked, cue=True)[len(self.render(asked)) :])


@dataclass(frozen=True)
class Stretch:
    """Tokens of a context that belong together: `said` and `sealed` end a turn, `open` begins the assistant's, `raw` is
    nobody's.

    A `cut` is what is left of another one, whose tokens went on up to `whole`.
    """

    kind: str
    start: int
    end: int
    role: str = "assistant"
    content: str = _MARK
    opening: tuple[int, ...] = ()
    closing: tuple[int, ...] = ()
    of: Stretch | None = None

    def moved(self, n: int) -> Stretch:
        """The same, further on."""
        return replace(self, start=self.start + n, end=self.end + n)

    def cut_to(self, end: int) -> Stretch:
        """What is left of it."""
        # A cue that is shorter than its ids begins in raw ones: what is left of it is nobody's, as those are.
        if self.kind == "raw" or (self.kind == "open" and self.end - self.start < len(self.opening)):
            return Stretch("raw", self.start, end)
        return Stretch("cut", self.start, end, of=self.of or self)


@dataclass
class Conversation:
    """The turn state of one context: what stands where. Words of an open turn stand in no stretch."""

    chat: Chat
    log: list[Stretch] = field(default_factory=list)

    def copy(self) -> Conversation:
        """An independent one with the same state."""
        return Conversation(self.chat, list(self.log))

    @property
    def kind(self) -> str | None:
        """What stands last."""
        return self.log[-1].kind if self.log else None

    @property
    def needs_cue(self) -> bool:
        """Whether generating opens the assistant's turn first."""
        return self.kind in ("said", "sealed")

    def messages(self) -> list[Message]:
        """What was said."""
        return [{"role": it.role, "content": it.content} for it in self.log if it.kind in ("said", "sealed")]

    def message(self, role: str, text: str) -> tuple[list[int], tuple[int, ...], tuple[int, ...]]:
        """The ids of a message after all others, of what stands before its content, and behind it."""
        before = self.chat.render(self.messages()) if self.messages() else ""
        whole = self.chat.render([*self.messages(), {"role": role, "content": _MARK}])
        assert whole.startswith(before), "the template rewrites what was said: not a case for this oracle"
        opening, _, closing = whole[len(before) :].partition(_MARK)
        ids = self.chat.encode_content(opening, text, closing)
        return ids, tuple(self.chat.encode(opening)), tuple(self.chat.encode(closing))

    def cue_ids(self) -> tuple[int, ...]:
        """The ids of the answer's header."""
        return tuple(self.chat.encode(self.chat.render(self.messages(), cue=True)[len(self.chat.render(self.messages())) :]))

    def fill(self, role: str, text: str, tokens: list[int]) -> list[int]:
        """The ids that a message adds behind `tokens`, which are all of the context."""
        kept = self.begun(tokens)
        ids, opening, closing = self.message(role, text)
        if kept is not None and ids[: len(kept)] == kept:
            ids, start = ids[len(kept) :], self.log.pop().start
        else:
            written = [] if self.kind == "raw" else self.seal(tokens)
            ids, opening, closing = self.message(role, text)
            start = len(tokens) + len(written)
            ids = written + ids
        self.log.append(Stretch("said", start, len(tokens) + len(ids), role, text, opening, closing))
        return ids

    def cue(self, tokens: list[int]) -> list[int]:
        """The ids of the answer's header; none when it stands already."""
        if self.kind == "open":
            return []
        kept, cue, written = self.begun(tokens), list(self.cue_ids()), []
        if kept is not None and cue[: len(kept)] == kept:
            cue, start = cue[len(kept) :], self.log.pop().start
        else:
            written = self.seal(tokens) if self.kind == "cut" else []
            cue = cue if written else beyond(self.free(tokens), list(self.cue_ids()))
            start = len(tokens) + len(written)
        self.log.append(Stretch("open", start, len(tokens) + len(written) + len(cue), opening=self.cue_ids()))
        return written + cue

    def seal(self, tokens: list[int]) -> list[int]:
        """The closing ids that are not written yet; none when nothing is open."""
        if self.kind == "cut":
            ids, whole = self.rest(self.log.pop(), tokens)
        elif self.kind in ("open", "raw"):
            closing = self.chat.closing()
            ids = beyond(self.free(tokens), closing)
            whole = Stretch("sealed", len(tokens), 0, closing=tuple(closing))
        else:
            return []
        self.log.append(replace(whole, end=len(tokens) + len(ids)))
        return ids

    def raw(self, tokens: list[int], n: int, *, generated: bool = False) -> None:
        """The last `n` of these came in as they are."""
        if n == 0 or self.kind == "open":
            return
        if self.kind == "raw":
            self.log[-1] = replace(self.log[-1], end=len(tokens))
        else:
            self.log.append(Stretch("raw", len(tokens) - n, len(tokens)))
        cue = self.chat.cue()
        if not generated and self.free(tokens)[-len(cue) :] == cue:
            self.log.append(Stretch("open", len(tokens), len(tokens), opening=tuple(cue)))

    def truncate(self, old: int, new: int) -> None:
        """Tokens from `new` to `old` are dropped; what stands behind them moves up."""
        behind = [it.moved(new - old) if it.start >= old else replace(it, end=it.end + new - old) for it in self.log if it.end > old]
        kept = [it for it in self.log if it.end <= new]
        kept += [it.cut_to(new) for it in self.log if it.start < new < it.end <= old]
        self.log = kept + behind

    def begun(self, tokens: list[int]) -> list[int] | None:
        """What a cut left of a header or a cue, of which the end is missing."""
        cut = self.log[-1] if self.kind == "cut" else None
        if cut is None or cut.of is None or cut.of.kind == "sealed":
            return None
        left = tokens[cut.start :]
        return left if missing(list(cut.of.opening), left) else None

    def rest(self, cut: Stretch, tokens: list[int]) -> tuple[list[int], Stretch]:
        """What is missing of a stretch that was cut, up to its closing; and what it is then."""
        assert cut.of is not None
        opening = missing(list(cut.of.opening), tokens[cut.start :])
        n_gone = cut.of.end - cut.of.start - (cut.end - cut.start)
        if cut.of.kind == "open":
            closing = self.chat.closing()
            return [*opening, *closing], Stretch("sealed", cut.start, 0, closing=tuple(closing))
        closing = list(cut.of.closing)
        return [*opening, *closing[max(len(closing) - n_gone, 0) :]], replace(cut.of, start=cut.start)

    def free(self, tokens: list[int]) -> list[int]:
        """The tokens at the end that no template wrote."""
        written = [it.end for it in self.log if it.kind != "raw" and not (it.of and it.of.kind == "open")]
        return tokens[max(written, default=0) :]


def missing(ids: list[int], left: list[int]) -> list[int]:
    """The ids behind those that are left, where they begin with those."""
    return ids[len(left) :] if ids[: len(left)] == left else []


def beyond(tail: list[int], ids: list[int]) -> list[int]:
    """Ids without those with which the tail ends."""
    return ids[next(n for n in range(len(ids), -1, -1) if n == 0 or tail[-n:] == ids[:n]) :]
