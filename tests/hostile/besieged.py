"""Attacks on the memory of an engine, each run in a process of its own: `python -m hostile.besieged NAME` prints what
became of it, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from hostile.running import NEIGHBOUR, SEED
from pie._engine import Process
from pie.config import EngineConfig, ModelConfig
from pie.engine import Engine
from pie.errors import PieError
from pie.programs import Source
from support.engines import started
from support.launching import finish, typescript_source

MEMORY_BYTES = 256 << 20
"""Of the engine that is attacked.

Two compilations at once have a quarter of it, and one user has three eighths of the rest.
"""
TRIES = 3


@dataclass(frozen=True)
class Attack:
    """What each of so many programs of one user does."""

    body: str
    n_programs: int
    waits: bool = False
    """For a message, when it has done what it does."""
    catches: bool = True
    """What its body throws, to answer with the code."""

    @property
    def program(self) -> Source:
        """The program."""
        wait = "await session.receive().catch(() => {});" if self.waits else ""
        tried = f"try {{ {self.body} }} catch (error) {{ code = error.code ?? error.name; }}" if self.catches else self.body
        return typescript_source(
            "import { Context, Model, Sampler, session } from 'inferlet';\n"
            "export async function main(input) {\n"
            "const model = Model.load('default'); const held = []; let code = null;\n"
            f"{tried}\nsession.send('done'); {wait}\nreturn code;\n}}\n"
        )


ATTACKS = {
    "arrays": Attack("held.push(new Uint8Array(60 << 20).fill(1));", 8, waits=True, catches=False),
    "encodes": Attack("model.tokenizer().encode('ab c'.repeat(1 << 20));", 6),
    "short encodes": Attack("for (let i = 0; i < 20; i++) model.tokenizer().encode('ab c'.repeat(1 << 14));", 4),
    "messages of a chat": Attack("new Context(model).user('ab c'.repeat(1 << 20));", 6),
    "stop tokens": Attack(
        "for (let i = 0; i < 200; i++) { const c = new Context(model); c.user('x');"
        " held.push(c.generate(Sampler.argmax(), { stop: new Uint32Array(2e5).fill(5) })); }",
        2,
    ),
    "tokens of contexts": Attack(
        "for (let i = 0; i < 1000; i++) { const c = new Context(model); c.append(new Array(2000).fill(5)); held.push(c); }", 4, waits=True
    ),
    "snapshots": Attack(
        "const c = new Context(model); c.append(new Array(2000).fill(5)); for (let i = 0; i < 2000; i++) c.save(input + i);", 2, waits=True
    ),
    "output that nobody reads": Attack("for (let i = 0; i < 4; i++) session.send('x'.repeat(7 << 20));", 16),
}


@dataclass(frozen=True)
class Met:
    """What became of an attack."""

    codes: list[str | None]
    """With which its launches were refused, its programs ended, or their call was refused; none where nothing was."""
    neighbour: bool
    """Another user's program beside it said what it says alone."""
    before_bytes: int
    most_bytes: int
    """Of the process, before the attack and during it."""
    held: dict[str, dict[str, int]]
    """What is charged when all have ended."""
    charged: dict[str, int]
    """What the attacker was charged with while the neighbour ran."""
    slower: float
    """How many times as long as alone the neighbour took, at best of a few tries."""


def rss_bytes() -> int:
    """Memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise RuntimeError("/proc/self/status has no VmRSS")


@contextmanager
def watched() -> Iterator[list[int]]:
    """The most memory that this process takes while the body runs, as the only entry."""
    most = [rss_bytes()]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.003):
            most[0] = max(most[0], rss_bytes())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        over.set()
        thread.join()


def _launch(engine: Engine, attack: Attack, number: int) -> Process | str | None:
    try:
        return engine.launch(attack.program, input=f"{number} ", username="mallory")
    except PieError as error:
        return error.code


def _outcome(launched: Process | str | None) -> str | None:
    if launched is None or isinstance(launched, str):
        return launched
    launched.close_input()
    outcome = finish(launched)
    code: str | None = outcome.code or outcome.value
    return code


def _until_done(launched: list[Process | str | None]) -> None:
    """Waits until each program that waits has said that it does, or has ended."""
    for process in launched:
        if isinstance(process, Process):
            process.next_event(60.0)


def _spoken(engine: Engine) -> tuple[list[object], float]:
    """What an honest program of another user says each time, and how long it takes at best."""
    said, durations = [], []
    for _ in range(TRIES):
        began = time.monotonic()
        said.append(finish(engine.launch(NEIGHBOUR, seed=SEED, username="ada")).value)
        durations.append(time.monotonic() - began)
    return said, min(durations)


def meet(attack: Attack) -> Met:
    """Runs an attack beside an honest program of another user."""
    engine = Engine(EngineConfig(memory_bytes=MEMORY_BYTES))
    engine.add_model(options=ModelConfig(driver="dummy"))
    with started(engine):
        finish(engine.launch(NEIGHBOUR, seed=SEED))
        alone, alone_s = _spoken(engine)
        finish(engine.launch(typescript_source("export function main() {}")))
        before = rss_bytes()
        with watched() as most:
            launched = [_launch(engine, attack, number) for number in range(attack.n_programs)]
            if attack.waits:
                _until_done(launched)
            neighbour, beside_s = _spoken(engine)
            charged = engine.memory().get("mallory", {})
            codes = [_outcome(each) for each in launched]
        held = engine.memory()
    return Met(codes, neighbour == alone, before, most[0], held, charged, beside_s / alone_s)


def main() -> None:
    """Runs the attack that the command line names."""
    print(json.dumps(asdict(meet(ATTACKS[sys.argv[1]]))))


if __name__ == "__main__":
    main()
