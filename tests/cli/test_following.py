"""What a user types while a program runs reaches it, a few lines ahead at most."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest

from pie.cli import following
from pie.client import Process

N_LINES = 2000
N_WAITING = 3


class Reader:
    """A process that takes one line after the other, and notes how many were read from the user until then."""

    def __init__(self) -> None:
        self.n_read = 0
        self.taken: list[str] = []
        self.ahead: list[int] = []
        self.ended = asyncio.Event()

    def lines(self) -> Iterator[str]:
        """What the user types."""
        for number in range(N_LINES):
            self.n_read += 1
            yield str(number)

    async def send(self, line: str) -> None:
        """Takes a line."""
        self.taken.append(line)
        self.ahead.append(self.n_read - len(self.taken))
        await asyncio.sleep(0)

    async def close_input(self) -> None:
        """The last line was taken."""
        self.ended.set()


def test_no_more_lines_are_read_than_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that reads slowly holds the user's lines up: they do not gather in memory."""

    async def main() -> Reader:
        reader = Reader()
        monkeypatch.setattr(following, "_MAX_WAITING_LINES", N_WAITING)
        monkeypatch.setattr(following, "stdin_messages", reader.lines)
        with following._forwarding_stdin(cast(Process, cast(Any, reader))):
            await reader.ended.wait()
        return reader

    reader = asyncio.run(main())
    assert reader.taken == [str(number) for number in range(N_LINES)]
    # One is held by who reads, and one is on its way to the program.
    assert max(reader.ahead) <= N_WAITING + 1
