"""What the two processes say to each other before and after the batches.

They send frames on a socket; its end is the sign that the other process is gone.
"""

from __future__ import annotations

import socket
import struct

LOOKING_S = 50e-6
"""How long each side looks at the shared memory before it sleeps: about what waking a process costs on a small
machine.
"""

_LENGTH = struct.Struct("<I")
_MAX_BYTES = 64 << 20


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
