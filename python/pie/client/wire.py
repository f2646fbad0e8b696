"""Frames of the protocol: what travels, and what is not one. `docs/reference/protocol.md` describes each message."""

from __future__ import annotations

import struct
from typing import Any, Literal, TypeVar

import msgspec

from pie.errors import PieError
from pie.events import AnyEvent, Event

PROTOCOL = 1

_HEADER_LENGTH = struct.Struct("<I")
_MAX_HEADER_BYTES = 64 << 10
_MAX_SHOWN_BYTES = 80

T = TypeVar("T")


class ErrorInfo(msgspec.Struct, frozen=True):
    """An error as it travels."""

    code: str
    message: str
    details: dict[str, Any] = {}

    def to_error(self) -> PieError:
        """The exception that it stands for."""
        return PieError(self.code, self.message, self.details)


class ServerLimits(msgspec.Struct, frozen=True):
    """What one server takes: sizes in bytes, and the number of requests that may be open at once."""

    frame_bytes: int
    message_bytes: int
    upload_bytes: int
    window_bytes: int
    open_requests: int
    name_bytes: int = 0
    """Of the name of an upload; a server of before takes none."""


class Greeting(msgspec.Struct, frozen=True):
    """What a server of any version says first."""

    protocol: int
    server: str = ""


class Challenge(msgspec.Struct, frozen=True):
    """What a server wants to be signed before it says hello."""

    type: str
    nonce: str = ""


class Hello(msgspec.Struct, frozen=True):
    """The first message of a server."""

    protocol: int
    server: str
    instance: str
    user: str
    limits: ServerLimits
    role: str = "user"


class Frame(msgspec.Struct):
    """Any message of a server: an answer has an `id`, everything else a `type`."""

    type: str = ""
    id: int | None = None
    ok: msgspec.Raw = msgspec.Raw(b"")
    """Empty where there is none."""
    error: ErrorInfo | None = None
    pid: int = 0
    seq: int = 0
    kind: str = ""
    text: str = ""
    form: Literal["text", "json"] | None = None
    value: str = "null"
    code: str | None = None
    message: str = ""
    error_kind: str | None = None
    traceback: str = ""
    link: int = 0
    server: str = ""


_frames = msgspec.json.Decoder(Frame)


def encode(message: dict[str, Any]) -> str:
    """A text frame; what callers gave was looked at by `checks`.

    PieError `invalid-argument` for what JSON cannot hold even so.
    """
    try:
        return msgspec.json.encode(message).decode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise PieError("invalid-argument", f"the message cannot be written as JSON: {error}") from error


def encode_binary(header: dict[str, Any], payload: bytes | memoryview) -> bytes:
    """A binary frame: the length of the header (u32, little-endian), the header, the payload."""
    text = msgspec.json.encode(header)
    return b"".join((_HEADER_LENGTH.pack(len(text)), text, payload))


def decode(data: str | bytes) -> tuple[Frame, bytes]:
    """A frame of a server with its payload, which is empty unless it is binary.

    PieError `protocol-error` for anything else.
    """
    if isinstance(data, str):
        return parse(data, _frames), b""
    if len(data) < _HEADER_LENGTH.size:
        raise _broken(f"a binary frame of {len(data)} bytes has no header")
    (n_bytes,) = _HEADER_LENGTH.unpack_from(data)
    end = _HEADER_LENGTH.size + n_bytes
    if n_bytes > _MAX_HEADER_BYTES or end > len(data):
        raise _broken(f"a binary frame of {len(data)} bytes names a header of {n_bytes} bytes")
    return parse(data[_HEADER_LENGTH.size : end], _frames), data[end:]


def parse(data: str | bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T]) -> T:
    """JSON of a server as a typed value; PieError `protocol-error` where it is none or of another form."""
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        shown = bytes(memoryview(data.encode() if isinstance(data, str) else data)[:_MAX_SHOWN_BYTES])
        raise _broken(f"{shown!r}: {error}") from error


def to_event(frame: Frame, payload: bytes) -> AnyEvent:
    """The event in a frame of the type `event`."""
    match frame.kind:
        case "stdout":
            return Event.Stdout(frame.text, frame.form, seq=frame.seq)
        case "stderr":
            return Event.Stderr(frame.text, seq=frame.seq)
        case "message":
            return Event.Message(frame.text, seq=frame.seq)
        case "notice":
            return Event.Notice(frame.text, seq=frame.seq)
        case "file":
            return Event.File(payload, seq=frame.seq)
        case "return":
            return Event.Return(frame.value, seq=frame.seq)
        case "error":
            return Event.Error(frame.code or "program-error", frame.message, frame.error_kind, frame.traceback, seq=frame.seq)
        case other:
            raise _broken(f"an event of the unknown kind {other!r}")


def event_bytes(event: AnyEvent) -> int:
    """What an event counts towards the window of its process: roughly the size of what it carries.

    For text that is its characters.
    """
    match event:
        case Event.File(data):
            return len(data)
        case Event.Error():
            return len(event.message) + len(event.traceback)
        case Event.Stdout(text) | Event.Stderr(text) | Event.Message(text) | Event.Notice(text):
            return len(text)
        case Event.Return():
            return len(event.text)


def _broken(what: str) -> PieError:
    message = f"the server sent what is not a message of protocol {PROTOCOL}: {what}; check that the address is that of `pie serve`"
    return PieError("protocol-error", message)
