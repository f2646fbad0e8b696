"""The chat rules, by jinja2 and tokenizers alone: what pie-text must give for a model folder."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
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

    def render(self, messages: list[Message], *, cue: bool = False) -> str:
        """The text of a conversation, with the header of the answer at its end if `cue`."""
        return self._template.render(messages=messages, add_generation_prompt=cue, **self._variables)

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


@dataclass
class Conversation:
    """The turn state of one context: its messages, and whether the answer's header stands open at the end."""

    chat: Chat
    messages: list[Message] = field(default_factory=list)
    open_turn: bool = False

    def copy(self) -> Conversation:
        """An independent one with the same state."""
        return Conversation(self.chat, list(self.messages), self.open_turn)

    def fill(self, role: str, text: str, tail: list[int]) -> list[int]:
        """The ids that a message adds behind `tail`, the newest tokens of the context."""
        ids = self.seal(tail)
        before = self.chat.render(self.messages) if self.messages else ""
        whole = self.chat.render([*self.messages, {"role": role, "content": _MARK}])
        assert whole.startswith(before), "the template rewrites what was said: not a case for this oracle"
        opening, _, closing = whole[len(before) :].partition(_MARK)
        self.messages.append({"role": role, "content": text})
        return ids + self.chat.encode_content(opening, text, closing)

    def cue(self) -> list[int]:
        """The ids of the answer's header; none when it stands already."""
        if self.open_turn:
            return []
        self.open_turn = True
        return self.chat.encode(self.chat.render(self.messages, cue=True)[len(self.chat.render(self.messages)) :])

    def seal(self, tail: list[int]) -> list[int]:
        """The closing ids that the model has not written itself; none when no turn is open."""
        if not self.open_turn:
            return []
        self.open_turn = False
        self.messages.append({"role": "assistant", "content": _MARK})
        closing = self.chat.closing()
        written = next(n for n in range(len(closing), -1, -1) if n == 0 or tail[-n:] == closing[:n])
        return closing[written:]
