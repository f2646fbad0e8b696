"""Runs `pie serve` as a user does, and talks to it."""

from __future__ import annotations

import asyncio
import functools
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pie.client import AnyEvent, Client, Event, PieError, Process, connect
from support import unprivileged
from support.command import PATIENCE_S, command, environment
from support.launching import ROOT

MODEL = "pie-tiny"
_LOOK_S = 0.01
CHAT = ROOT / "build/programs/chat.wasm"

# Sends one text a token, and goes on after a stop token.
STREAM = """
import random
from inferlet import Context, Model, Sampler, session


async def main(input):
    ctx = Context(Model.load("default")).user(input["prompt"])
    n = input.get("n", 64)
    taken = []
    while len(taken) < n:
        g = ctx.generate(Sampler.top_p(0.9, 0.95), max_tokens=n - len(taken), seed=random.getrandbits(63))
        async for step in g:
            out = await step.execute()
            for token in out.tokens:
                session.send(f"{token} ")
            taken += out.tokens
    return taken
"""

# Answers each message, then each file, until the client says that there will be no more.
ECHO = """
from inferlet import session


async def main(input):
    session.send("ready")
    n = 0
    while True:
        try:
            text = await session.receive()
        except session.SessionClosed:
            return n
        if text == "file":
            data = await session.receive_file()
            session.send_file(bytes(reversed(data)))
        else:
            session.send("<" + text + ">")
        n += 1
"""

# Writes without end.
FLOOD = """
def main(input):
    while True:
        print("x" * 1000)
"""

SPIN = """
def main(input):
    print("spinning", flush=True)
    while True:
        pass
"""


@dataclass
class Served:
    """A running server."""

    url: str
    process: subprocess.Popen[str]
    folder: Path

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        self.process.send_signal(number)

    def wait(self) -> int:
        """Waits for its end; returns the exit code."""
        return self.process.wait(PATIENCE_S)

    @property
    def stderr(self) -> str:
        """What it has written to stderr."""
        return (self.folder / "stderr").read_text()

    def logged(self, words: str, n_times: int = 1) -> str:
        """The line of its log that has these words for the n-th time, which is waited for: a thread of its own writes
        the log.
        """
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            found = [line for line in self.stderr.splitlines() if words in line]
            if len(found) >= n_times:
                return found[n_times - 1]
            time.sleep(_LOOK_S)
        raise AssertionError(f"{words!r} is not {n_times} times in the log: {self.stderr}")


def server_environment(folder: Path, **settings: object) -> dict[str, str]:
    """The environment of a server whose data lie in `folder`; settings are written as `server__grace_s=0`."""
    variables = {f"PIE_{name.upper()}": str(value) for name, value in settings.items()}
    return environment() | {"PIE_ENGINE__DATA_DIR": str(folder / "data")} | variables


@contextmanager
def serving(folder: Path, *options: str, without_privileges: bool = False, **settings: object) -> Iterator[Served]:
    """A server of the dummy driver on a port of its own, which listens when the body begins and has ended when it is
    left.
    """
    folder.mkdir(parents=True, exist_ok=True)
    arguments = ["serve", *(options or ("--dummy", "--port", "0"))]
    with (folder / "stderr").open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, unprivileged.__file__, *arguments] if without_privileges else command(arguments),
            env=server_environment(folder, **settings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("serving at "):
                yield Served(line.split()[-1], process, folder)
                break
        else:
            raise AssertionError(f"the server ended with {process.wait()}: {(folder / 'stderr').read_text()}")
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


def scenario(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Runs an async test."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        async def main() -> None:
            async with asyncio.timeout(PATIENCE_S):
                await test(*arguments, **named)

        asyncio.run(main())

    return run


@asynccontextmanager
async def client_of(served: Served, user: str = "alice") -> AsyncIterator[Client]:
    """A client."""
    async with connect(served.url, user=user) as client:
        yield client


async def install_source(client: Client, folder: Path, text: str, name: str) -> str:
    """Installs a Python program of one file; returns what it is launched by."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(text)
    return await client.install(folder / f"{name}.py")


async def collect(process: Process) -> list[AnyEvent]:
    """All events that are left."""
    return [event async for event in process.events()]


def streamed(events: list[AnyEvent]) -> str:
    """What was sent."""
    return "".join(event.text for event in events if isinstance(event, Event.Stdout))


async def ended(client: Client, pid: int) -> None:
    """Waits until a process has ended, without taking an event."""
    after = 0
    while True:
        logs = await client.logs(pid, after=after, follow=True)
        if logs.ended and not logs.text:
            return
        after = logs.next


async def exit_of(client: Client, pid: int) -> str | None:
    """How an ended process ended."""
    return next(process.exit for process in await client.list(all=True) if process.pid == pid)


async def pages_in_use(client: Client) -> int:
    """Pages in use by the model of the server."""
    pages: int = (await client.stats())["models"][MODEL]["n_pages_used"]
    return pages


async def refused(call: Awaitable[object]) -> PieError:
    """The error of a call that must fail."""
    try:
        await call
    except PieError as error:
        return error
    raise AssertionError("nothing was refused")
