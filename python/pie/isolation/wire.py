"""What the two processes say to each other beside batches.

Before and after the batches these are frames on a socket, whose end is the sign that one is gone; in order with
batches, commands, which take the way of batches and begin with a word that no batch begins with.
"""

from __future__ import annotations

import json
import socket
import struct
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pie.backends.base import (
    AdapterName,
    ChangeAdapter,
    Command,
    CopyAdapter,
    CreateAdapter,
    DropAdapter,
    ExportPages,
    ImportPages,
    LoadAdapter,
    RefusedAdapterError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from pie.batch_layout import U32

LOOKING_S = 50e-6
"""How long each side looks at the shared memory before it sleeps: about what waking a process costs on a small
machine.
"""

_LENGTH = struct.Struct("<I")
_MAX_BYTES = 64 << 20
MAX_REASON_CHARACTERS = 1000
"""Of why a sequence failed or a device was lost."""
_COMMAND_MAGIC = 0x444E4D43
_UNSUPPORTED = "\0unsupported\0"
"""Begins the reason of a command that the driver does not serve; no other reason does."""
_REFUSED: dict[str, Literal["invalid-adapter", "limit-adapters"]] = {
    "\0invalid-adapter\0": "invalid-adapter",
    "\0limit-adapters\0": "limit-adapters",
}
"""What begins the reason why an adapter cannot be taken, with its code."""
_COMMANDS: tuple[type[Command], ...] = (
    LoadAdapter,
    CreateAdapter,
    ChangeAdapter,
    CopyAdapter,
    DropAdapter,
    ExportPages,
    ImportPages,
)


def command_words(command: Command) -> U32:
    """A command as words: what it begins with, its bytes of JSON, and these."""
    content = json.dumps([type(command).__name__, asdict(command)]).encode()
    head = np.array([_COMMAND_MAGIC, len(content)], np.uint32)
    return np.concatenate([head, np.frombuffer(content + bytes(-len(content) % 4), np.uint32)])


def read_command(words: U32) -> Command | None:
    """The command that words are; None where they are a batch."""
    if int(words[0]) != _COMMAND_MAGIC:
        return None
    name, fields = json.loads(words[2:].tobytes()[: int(words[1])])
    kind = next(kind for kind in _COMMANDS if kind.__name__ == name)
    values: dict[str, Any] = {key: _read_value(key, value) for key, value in fields.items()}
    return kind(**values)


def _read_value(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        return AdapterName(**value)
    if key == "pages":
        return tuple((int(place), int(page)) for place, page in value)
    return tuple((int(seed), float(factor)) for seed, factor in value) if isinstance(value, list) else value


def refusal(error: UnsupportedError | RefusedAdapterError) -> str:
    """What the process of a driver says of a command that it does not serve, or of an adapter that it cannot take."""
    return f"\0{error.code}\0{error}" if isinstance(error, RefusedAdapterError) else f"{_UNSUPPORTED}{error}"


def refused(text: str) -> UnsupportedError | RefusedAdapterError | None:
    """The error of which `refusal` made the text; None where it is another one."""
    if text.startswith(_UNSUPPORTED):
        return UnsupportedError(text.removeprefix(_UNSUPPORTED))
    for begin, code in _REFUSED.items():
        if text.startswith(begin):
            return RefusedAdapterError(code, text.removeprefix(begin))
    return None


def send(connection: socket.socket, content: bytes) -> None:
    """Writes a frame."""
    connection.sendall(_LENGTH.pack(len(content)) + content)


class Frame:
    """A frame that is being read."""

    def __init__(self) -> None:
        self._read = bytearray()

    def read(self, connection: socket.socket) -> bytes | None:
        """Reads on; None while there is more to come.

        EOFError where the other side is gone, TimeoutError as the socket does.
        """
        part = connection.recv(self._wanted() - len(self._read))
        if not part:
            raise EOFError("the other process is gone")
        self._read += part
        return bytes(self._read[_LENGTH.size :]) if len(self._read) >= _LENGTH.size and len(self._read) == self._wanted() else None

    def _wanted(self) -> int:
        """Bytes of the frame as far as is known."""
        if len(self._read) < _LENGTH.size:
            return _LENGTH.size
        length: int = _LENGTH.unpack_from(self._read)[0]
        if length > _MAX_BYTES:
            raise EOFError(f"a frame of {length} bytes is none of ours")
        return _LENGTH.size + length


def receive(connection: socket.socket) -> bytes:
    """The next frame; EOFError where the other side is gone."""
    frame = Frame()
    while (content := frame.read(connection)) is None:
        pass
    return content
