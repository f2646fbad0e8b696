"""The MCP servers that a client runs, for the programs that it launches.

The server of Pie speaks to them; the client starts the process of one when it is asked to, and carries its lines. What
a server prints that is not a message of the protocol is dropped here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from pie.client.wire import Frame
from pie.errors import PieError

_PIECE_BYTES = 64 << 10
_HEAD_BYTES = 4 << 10
# Links at once: at least as many as a server of Pie opens, and as many that are ending.
_MAX_LINKS = 1024
# Lines that wait for a server that does not read: of one link, and their bytes of one link and of all.
_MAX_LINES = 1024
_MAX_LINK_BYTES = 16 << 20
_MAX_WAITING_BYTES = 64 << 20
_END_S = 2.0
# JSON may write a byte of a line as six; most are written as they are.
_ESCAPED = 2
_ID = re.compile(rb'"id"\s*:\s*(\d{1,20})')
_INTERNAL_ERROR = -32603

Say = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Sends a message of a type with these fields."""


@dataclass(frozen=True)
class Command:
    """How a server is started."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    """All its variables."""
    cwd: Path | None = None


@dataclass
class _Waiting:
    """What waits for the servers of one connection."""

    n_bytes: int = 0
    """Bytes of all lines that no server has read yet."""


class McpServers:
    """The servers of one connection: those that are registered, and a link for each that runs."""

    def __init__(self, say: Say, frame_bytes: int) -> None:
        self._say = say
        self._line_bytes = max(_HEAD_BYTES, frame_bytes // _ESCAPED - _HEAD_BYTES)
        self._commands: dict[str, Command] = {}
        self._links: dict[int, _Link] = {}
        self._waiting = _Waiting()

    def register(self, name: str, command: Command) -> Command | None:
        """A server of that name is started so from now on; returns the command whose place it takes."""
        before = self._commands.get(name)
        self._commands[name] = command
        return before

    def unregister(self, name: str) -> None:
        """There is no server of that name any more; links that are open stay."""
        self._commands.pop(name, None)

    def take(self, frame: Frame) -> None:
        """Starts a process, hands it a line or ends it, as the server of Pie asks. It never waits.

        PieError `protocol-error` for a start by a number whose process has not ended: nobody would end that one; and
        `limit-mcp-calls` for a start beyond the most links.
        """
        if frame.type == "mcp_start":
            self._start(frame.link, self._commands.get(frame.server))
        elif (link := self._links.get(frame.link)) is None:
            return  # it has ended, and the server of Pie is about to hear of it
        elif frame.type == "mcp_line":
            link.put(frame.text)
        elif frame.type == "mcp_stop":
            link.stop()  # it stays known until it is over, so that `close` waits for it

    def stop(self) -> None:
        """Ends every process, soon."""
        for link in self._links.values():
            link.stop()

    async def close(self) -> None:
        """Ends every process, and waits for that."""
        links, self._links = list(self._links.values()), {}
        for link in links:
            link.stop()
        for link in links:
            await link.ended()

    def _start(self, number: int, command: Command | None) -> None:
        self._links = {number: link for number, link in self._links.items() if not link.is_over}
        if number in self._links:
            message = f"the server of Pie started an MCP server as the link {number}, which is still open; connect again"
            raise PieError("protocol-error", message)
        if len(self._links) >= _MAX_LINKS:
            message = f"the server of Pie started one more MCP server than the {_MAX_LINKS} that this client runs at once; connect again"
            raise PieError("limit-mcp-calls", message)
        self._links[number] = _Link(number, command, self._waiting, self._say, self._line_bytes)


class _Link:
    """A process, and its two ways."""

    def __init__(self, number: int, command: Command | None, waiting: _Waiting, say: Say, line_bytes: int) -> None:
        self._number = number
        self._say = say
        self._line_bytes = line_bytes
        self._waiting = waiting
        self._n_bytes = 0
        """Bytes of the lines that wait for this process."""
        self._lines: asyncio.Queue[bytes] = asyncio.Queue(_MAX_LINES)
        self._full: str | None = None
        """Which bound was met by what waits; none as long as none was."""
        self._is_full = asyncio.Event()
        self._is_stopping = False
        self._has_ended = False
        self._task = asyncio.create_task(self._run(command), name=f"pie-client-mcp-{number}")
        # One that is stopped before it has begun does not run at all.
        self._task.add_done_callback(lambda _: self._drop_lines())

    @property
    def is_over(self) -> bool:
        """Whether the process has ended, or is about to."""
        return self._task.done()

    def put(self, text: str) -> None:
        """A line for the process. One more than may wait ends it."""
        if self._has_ended or self._full is not None:
            return
        line = text.encode() + b"\n"
        self._full = self._bound_met(len(line))
        if self._full is None:
            self._count(len(line))
            self._lines.put_nowait(line)
        else:
            self._is_full.set()

    def stop(self) -> None:
        """Ends the process, soon. Again it does nothing: a second cancelling would interrupt the end of the process."""
        if not self._is_stopping:
            self._is_stopping = True
            self._task.cancel()

    async def ended(self) -> None:
        """Waits for the end."""
        await asyncio.wait({self._task})

    def _bound_met(self, n_bytes: int) -> str | None:
        """Which bound a further line of so many bytes would be beyond."""
        if self._lines.full():
            return f"{_MAX_LINES} lines wait, the most of one server at this client (limit-mcp-calls)"
        for held, most, whose in (
            (self._n_bytes, _MAX_LINK_BYTES, "one server"),
            (self._waiting.n_bytes, _MAX_WAITING_BYTES, "all servers"),
        ):
            if held + n_bytes > most:
                return f"{held + n_bytes} bytes would wait, of at most {most} of {whose} at this client (limit-mcp-bytes)"
        return None

    def _count(self, n_bytes: int) -> None:
        """So many bytes more wait."""
        self._n_bytes += n_bytes
        self._waiting.n_bytes += n_bytes

    def _drop_lines(self) -> None:
        """Nothing waits for the process any more, which writes nothing more."""
        self._has_ended = True
        self._count(-self._n_bytes)
        self._lines = asyncio.Queue(1)

    async def _run(self, command: Command | None) -> None:
        try:
            why = "this client has no such server" if command is None else await self._serve(command)
        finally:
            self._drop_lines()
        await self._say("mcp_end", {"link": self._number, "text": why})

    async def _serve(self, command: Command) -> str:
        """Runs a process to its end; why it has ended."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command.argv, stdin=PIPE, stdout=PIPE, env=command.env, cwd=command.cwd, start_new_session=True
            )
        except (OSError, ValueError) as error:
            return f"it cannot be started ({error})"
        assert process.stdin is not None
        assert process.stdout is not None
        reading: asyncio.Task[Any] = asyncio.create_task(self._read(process.stdout))
        others: set[asyncio.Task[Any]] = {asyncio.create_task(self._write(process.stdin)), asyncio.create_task(self._is_full.wait())}
        try:
            await asyncio.wait({reading, *others}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (reading, *others):
                task.cancel()
            await _end(process)
            await asyncio.gather(reading, *others, return_exceptions=True)
        why = "it ended" if self._full is None else f"it does not read what it is sent: {self._full}"
        return f"{why} (status {process.returncode})"

    async def _read(self, stdout: asyncio.StreamReader) -> None:
        """Carries the lines of the process, until its output ends."""
        kept, is_too_long = bytearray(), False
        while piece := await stdout.read(_PIECE_BYTES):
            *ended, rest = piece.split(b"\n")
            for part in ended:
                kept += part if not is_too_long else b""
                await self._carry(bytes(kept), is_too_long=is_too_long or len(kept) > self._line_bytes)
                kept, is_too_long = bytearray(), False
            if not is_too_long:
                kept += rest
                if len(kept) > self._line_bytes:
                    # What is left of it is its beginning, which may tell whose it is.
                    is_too_long = True
                    del kept[_HEAD_BYTES:]

    async def _carry(self, line: bytes, *, is_too_long: bool) -> None:
        if not line.lstrip().startswith(b"{"):
            return
        if is_too_long:
            if (found := _ID.search(line[:_HEAD_BYTES])) is None:
                return
            text = _too_long(int(found[1]), self._line_bytes)
        else:
            try:
                text = line.decode()
            except UnicodeDecodeError:
                return
        await self._say("mcp_line", {"link": self._number, "text": text})

    async def _write(self, stdin: asyncio.StreamWriter) -> None:
        """Writes lines until the process reads no more."""
        with contextlib.suppress(ConnectionError):
            while True:
                line = await self._lines.get()
                stdin.write(line)
                await stdin.drain()
                self._count(-len(line))


async def _end(process: Process) -> None:
    """Lets a process end by itself, for a while; then kills it, with what it has started."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _END_S)
    finally:
        # Also where the loop itself ends, and with it this wait.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
    # What it has written and nobody reads would keep its pipes open, beyond the loop.
    process._transport.close()  # type: ignore[attr-defined]


def _too_long(request_id: int, most: int) -> str:
    """What stands for an answer that cannot be carried."""
    message = f"the answer is longer than the {most} bytes that this client carries; ask for less"
    error = {"code": _INTERNAL_ERROR, "message": message}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error}).decode()
