"""The rules of chat decoders, by the vocabulary file and Python's own UTF-8 decoder."""

from __future__ import annotations

import codecs
from typing import Any

Event = dict[str, Any]
IDLE: Event = {"type": "idle"}


def bytes_of_letters() -> dict[str, int]:
    """The letter that stands for each byte in a byte-level vocabulary, as GPT-2 has it: printable ones for
    themselves.
    """
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + index): byte for index, byte in enumerate(others)}


class Vocabulary:
    """The bytes of every token, and which tokens are control tokens."""

    def __init__(self, tokenizer: Any) -> None:
        letters = bytes_of_letters()
        added = tokenizer.get_added_tokens_decoder()
        self.control = {id_: token.content for id_, token in added.items() if token.special}
        self.bytes = {
            id_: bytes(letters[letter] for letter in text) for text, id_ in tokenizer.get_vocab(with_added_tokens=False).items()
        } | {id_: token.content.encode() for id_, token in added.items()}

    def token(self, content: bytes) -> int:
        """The token of these bytes."""
        return next(id_ for id_, found in self.bytes.items() if found == content)


class Decoder:
    """Turns tokens into events."""

    def __init__(self, vocabulary: Vocabulary, stop: frozenset[int]) -> None:
        self.vocabulary = vocabulary
        self.stop = stop
        self.reset()

    def reset(self) -> None:
        """The start of a turn."""
        self.utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self.reply = ""
        self.begun = False
        self.queue: list[Event] = []

    def take(self, tokens: list[int]) -> None:
        """Queues what tokens mean."""
        for token in tokens:
            if token in self.stop:
                self.end()
            elif token in self.vocabulary.control:
                self.show(b"", final=True)
                self.queue.append({"type": "interrupt", "token": token})
            else:
                self.begun = True
                self.show(self.vocabulary.bytes[token])

    def show(self, content: bytes, *, final: bool = False) -> None:
        """Queues text, in one event with text that is queued last."""
        text = self.utf8.decode(content, final)
        self.reply += text
        if text and self.queue and self.queue[-1]["type"] == "delta":
            self.queue[-1] = {"type": "delta", "text": self.queue[-1]["text"] + text}
        elif text:
            self.queue.append({"type": "delta", "text": text})

    def end(self) -> None:
        """Queues the end of the turn."""
        self.show(b"", final=True)
        self.queue.append({"type": "done", "text": self.reply})
        self.reply, self.begun = "", False

    def finish(self) -> None:
        """Ends a turn that was begun."""
        if self.begun:
            self.end()

    def next(self) -> Event:
        """The oldest event."""
        return self.queue.pop(0) if self.queue else IDLE
