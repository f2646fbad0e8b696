"""The channel to the client that launched the program."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from wit_world.imports import session as _session

from inferlet import _arguments, _json
from inferlet._wait import flush_output, resolve_or_block
from inferlet.errors import ErrorCode, SessionClosed

__all__ = ["SessionClosed", "message", "receive", "receive_file", "receive_signal", "send", "send_file"]


def send(message: object) -> None:
    """Sends one value to the client: a string verbatim, anything else as compact JSON.

    It is one `Stdout` event of the client, whose `form` says which of the two it is. A slow client suspends the
    program.
    """
    if isinstance(message, str):
        text = _arguments.text("message", message)
        flush_output()
        _session.send(text)
    else:
        text = _json.dumps(message, "message", ErrorCode.INVALID_ARGUMENT)
        flush_output()
        _session.send_json(text)


def message(text: str) -> None:
    """Tells the client something beside the output: its `Message` event, in order with the others.

    It is in no log, and `pie run` does not print it. A slow client suspends the program.
    """
    text = _arguments.text("text", text)
    flush_output()
    _session.message(text)


def receive() -> Coroutine[Any, Any, str]:
    """Awaits the next message or signal of the client; after a disconnect raises `SessionClosed`.

    A program that another one has started has no client: there it raises that at once.
    Outside of a running event loop it blocks and returns the text itself. Cancelling the wait loses no message.
    """
    return resolve_or_block(_session.receive(), name="session.receive()")


receive_signal = receive
"""Signals and messages come in one order, through one queue; this name says that a program expects a signal."""


def send_file(data: bytes | bytearray | memoryview) -> None:
    """Sends bytes: one `File` event of the client, in order with the messages. A slow client suspends the program."""
    data = _arguments.blob("data", data)
    flush_output()
    _session.send_file(data)


def receive_file() -> Coroutine[Any, Any, bytes]:
    """Awaits the next file of the client; files wait in a queue of their own. Else as `receive`."""
    return resolve_or_block(_session.receive_file(), name="session.receive_file()")
