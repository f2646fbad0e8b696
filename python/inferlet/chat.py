"""Chat turns as tokens, and the decoder of what the model says, by the template of the checkpoint.

A template that refuses a message, or has no such place, is the error `template-error`.
"""

from __future__ import annotations

from dataclasses import dataclass

from wit_world.imports import chat as _chat
from wit_world.imports import generation as _generation

from inferlet import _arguments
from inferlet._decoding import EventDecoder
from inferlet.errors import host
from inferlet.model import Model
from inferlet.output import Output

__all__ = ["Decoder", "Event", "assistant", "cue", "seal", "stop_tokens", "system", "user"]


class Event:
    """What the tokens of one `Decoder.feed` meant; match on the classes below."""

    @dataclass(frozen=True)
    class Idle:
        """No boundary and no text to show."""

    @dataclass(frozen=True)
    class Delta:
        """Visible text."""

        text: str

    @dataclass(frozen=True)
    class Done:
        """The end of the turn, with its whole text."""

        text: str

    @dataclass(frozen=True)
    class Interrupt:
        """A control token that has no text."""

        token: int


AnyEvent = Event.Idle | Event.Delta | Event.Done | Event.Interrupt


class Decoder(EventDecoder[AnyEvent]):
    """Turns tokens into text without tearing characters apart.

    `hide_thoughts` and `hide_calls` leave out what the decoders of `reasoning` and `tools` tell; what began as a call
    and is none is shown.
    """

    def __init__(self, model: Model, *, hide_thoughts: bool = False, hide_calls: bool = False) -> None:
        _arguments.of_type("model", model, Model)
        raw = (
            _chat.Decoder.create_hiding(model._raw, hide_thoughts, hide_calls)
            if hide_thoughts or hide_calls
            else _chat.Decoder.create(model._raw)
        )
        super().__init__(raw, _event, Event.Idle)

    @classmethod
    def _of_generator(cls, raw: _generation.Generator, *, hide_thoughts: bool = False, hide_calls: bool = False) -> Decoder:
        """A decoder of what a generator accepts from now on, which shows none of its stop texts."""
        decoder = cls.__new__(cls)
        EventDecoder.__init__(decoder, _chat.Decoder.create_for(raw, hide_thoughts, hide_calls), _event, Event.Idle)
        return decoder


def visible_text(decoder: Decoder, output: Output) -> str:
    """The text that a decoder shows of a whole generation."""
    return "".join(event.text for event in decoder.events(output) if isinstance(event, Event.Delta))


def _event(raw: _chat.Event) -> AnyEvent:
    match raw:
        case _chat.Event_Delta(value=text):
            return Event.Delta(text)
        case _chat.Event_Done(value=text):
            return Event.Done(text)
        case _chat.Event_Interrupt(value=token):
            return Event.Interrupt(token)
        case _:
            return Event.Idle()


def system(model: Model, msg: str) -> list[int]:
    """The tokens of a system message that follows others."""
    return _message(model, _chat.Role.SYSTEM, msg)


def user(model: Model, msg: str) -> list[int]:
    """The tokens of a user message that follows others."""
    return _message(model, _chat.Role.USER, msg)


def assistant(model: Model, msg: str) -> list[int]:
    """The tokens of a whole assistant message that follows others."""
    return _message(model, _chat.Role.ASSISTANT, msg)


def cue(model: Model) -> list[int]:
    """The tokens that open the assistant's turn."""
    _arguments.of_type("model", model, Model)
    return list(host(_chat.cue_tokens, model._raw))


def seal(model: Model) -> list[int]:
    """The tokens that close the assistant's turn."""
    _arguments.of_type("model", model, Model)
    return list(host(_chat.seal_tokens, model._raw))


def stop_tokens(model: Model) -> list[int]:
    """The ids of the tokens that end a turn."""
    _arguments.of_type("model", model, Model)
    return list(host(_chat.stop_tokens, model._raw))


def _message(model: Model, role: _chat.Role, msg: str) -> list[int]:
    _arguments.of_type("model", model, Model)
    return list(host(_chat.message_tokens, model._raw, role, _arguments.text("msg", msg)))
