"""Kills engines in the middle of saves, takes, deletes and of their end, many times, and looks at what lies on disk.

    python tests/e2e/kill_snapshots.py --kills 200

Each engine is a process of its own on one folder of snapshots. Its program saves, takes and deletes a few names at
random, and says what it is about to do before it does it. After SIGKILL each name has to have what it had before, what
it was to have, or nothing where it was to go: whole, for the reader in Python and for the next engine, which has to
draw from it what it draws from the same tokens without a snapshot. No other file may be left. Prints a table; the exit
code is 1 where a snapshot is torn, or something is left.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pie import snapshots
from pie.config import EngineConfig, ModelConfig, SnapshotConfig
from pie.engine import Engine
from pie.errors import PieError
from pie.events import Event
from support.launching import PATIENCE_S, finish, python_source

NAMES = "abcd"
MAX_OPS = 12
"""Operations of one engine before it is killed, at most."""
MAX_DELAY_S = 0.006
"""An operation takes less than this: the moment of the kill is drawn from it."""

TOKENS = """
def tokens_of(version):
    # The first ones are those of all others.
    n = 900 + version * 37 % 1100
    return [i % 4000 if i < 1100 else (i * 7 + version) % 4000 for i in range(n)]
"""

ACTING = python_source(
    TOKENS
    + """
import random

from inferlet import Context, InferletError, Model, session


async def told(line):
    session.send(line)
    await session.receive()


async def main(input):
    model, version = Model.load("default"), input["version"]
    drawn = random.Random(input["seed"])
    while True:
        version += 1
        name, kind = drawn.choice(input["names"]), drawn.choice(["save", "save", "save", "take", "delete"])
        ctx = Context(model).append(tokens_of(version))
        if version % 2:
            await ctx.flush()
        await told(f"begin {kind} {name} {version}")
        if kind == "save":
            ctx.save(name)
        elif kind == "take":
            taken = Context.take(model, name)
            if taken is not None:
                taken.release()
        else:
            try:
                Context.delete(model, name)
            except InferletError as error:
                if error.code != "snapshot-missing":
                    raise
        ctx.release()
        await told(f"end {kind} {name} {version}")
"""
)

LOOKING = python_source(
    TOKENS
    + """
from inferlet import Context, Model, Sampler


async def drawn(ctx):
    tokens = await ctx.generate(Sampler.argmax(), max_tokens=3, stop=[]).collect_tokens()
    ctx.release()
    return tokens


async def main(input):
    model, wrong = Model.load("default"), []
    names = Context.snapshots(model)
    for name, version in input["versions"].items():
        ctx = Context.open(model, name)
        if ctx is None:
            wrong.append(f"{name} is not there")
        elif await drawn(ctx) != await drawn(Context(model).append(tokens_of(version))):
            wrong.append(f"{name} goes on with other tokens than version {version}")
    if names != sorted(input["versions"]):
        wrong.append(f"the names are {names}")
    return wrong
"""
)

State = dict[str, set[int | None]]
"""What each name may have: versions, and None for nothing."""


@dataclass
class Found:
    """What the kills came to."""

    kills: Counter[str] = field(default_factory=Counter)
    """By what was under way."""
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Told:
    """What an engine told of its operations so far."""

    def __init__(self, state: State, version: int) -> None:
        self.state, self.version, self.kind, self.is_under_way = state, version, "starting", True

    def note(self, line: str) -> None:
        """Takes a line: an operation begins, or has ended."""
        edge, self.kind, name, version = line.split()
        self.is_under_way = edge == "begin"
        if name in self.state:
            self.version = int(version)
            after = self.version if self.kind == "save" else None
            self.state[name] = self.state[name] | {after} if self.is_under_way else {after}


def tokens_of(version: int) -> list[int]:
    """The tokens of a version, as the programs make them."""
    n = 900 + version * 37 % 1100
    return [i % 4000 if i < 1100 else (i * 7 + version) % 4000 for i in range(n)]


def engine(data: Path) -> Engine:
    """An engine on the folder."""
    opened = Engine(EngineConfig(data_dir=data), snapshots=SnapshotConfig(durability="disk", free_bytes=0))
    opened.add_model(options=ModelConfig(driver="dummy"))
    return opened


def act(data: Path, seed: int, version: int) -> None:
    """The process that is killed: tells each operation before it begins and after it ended.

    Where its stdin ends it ends its engine.
    """
    is_over = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        is_over.set()

    threading.Thread(target=wait, daemon=True).start()
    with engine(data) as opened:
        opened.start()
        process = opened.launch(ACTING, input={"seed": seed, "version": version, "names": NAMES})
        while not is_over.is_set():
            match process.next_event(PATIENCE_S):
                case Event.Stdout(text):
                    os.write(1, f"{text}\n".encode())
                    process.send("go on")
                case other:
                    raise SystemExit(f"{other!r}")
        os.write(1, b"begin ending - 0\n")
    os.write(1, b"end ending - 0\n")


def kill_one(data: Path, found: Found, state: State, drawn: random.Random, version: int) -> int:
    """Starts an engine and kills it; `state` becomes what may lie on disk. Returns the last version that it began."""
    command = [sys.executable, __file__, "--act", str(data), str(drawn.getrandbits(32)), str(version)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    n_ops, is_to_end = drawn.randint(1, MAX_OPS), drawn.random() < 0.15
    told = Told(state, version)
    for line in process.stdout:
        told.note(line)
        n_ops -= told.is_under_way
        if n_ops <= 0 and is_to_end and told.kind != "ending":
            process.stdin.close()
        elif n_ops <= 0:
            break
    time.sleep(drawn.random() * MAX_DELAY_S)
    process.send_signal(signal.SIGKILL)
    # What it told before it was killed is in the pipe.
    for line in process.stdout:
        told.note(line)
    if process.wait() not in {0, -signal.SIGKILL}:
        found.wrong.append(f"an engine ended with {process.returncode}")
    found.kills[told.kind if told.is_under_way else "between"] += 1
    return told.version


def look(data: Path, found: Found, state: State) -> None:
    """Looks at what lies on disk, by the reader and by the next engine; `state` becomes that."""
    versions: dict[str, int] = {}
    folders = [path for path in (data / "snapshots").iterdir() if path.is_dir()] if (data / "snapshots").exists() else []
    # The first engines may be killed before there is one.
    of_model = folders[0] if folders else data
    known = {name: {version for version in state[name] if version is not None} for name in NAMES}
    for kept in snapshots.kept_in(of_model):
        try:
            content = snapshots.read_content(kept)
        except PieError as error:
            found.wrong.append(f"torn: {error.message}")
            continue
        tokens = [*content.tokens, *content.pending, *content.buffer]
        whose = [version for version in known.get(kept.name, ()) if tokens_of(version) == tokens]
        if not whose:
            found.wrong.append(f"{kept.name} has {len(tokens)} tokens of none of the versions {sorted(known.get(kept.name, ()))}")
            continue
        versions[kept.name] = whose[0]
    for name in NAMES:
        actual = versions.get(name)
        if actual not in state[name]:
            found.wrong.append(f"{name} has {actual}, and may have {state[name]}")
        found.outcomes["one of two" if len(state[name]) > 1 else "what was known"] += 1
        state[name] = {actual}
    with engine(data) as opened:
        opened.start()
        outcome = finish(opened.launch(LOOKING, input={"versions": versions}))
        found.wrong += outcome.value if outcome.code is None else [f"{outcome.code}: {outcome.message}"]
    kept_files = snapshots.kept_in(of_model)
    needed = {kept.number for kept in kept_files} | {number for kept in kept_files for number in kept.shares}
    for path in list(of_model.iterdir()) if folders else []:
        if path.name not in {".lock", ".binding"} and (path.name.startswith(".") or int(path.name[:16], 16) not in needed):
            found.wrong.append(f"left: {path.name}")


def main() -> int:
    """Kills so many engines; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=200, help="how many engines are killed")
    parser.add_argument("--seed", type=int, default=1, help="what the moments are drawn from")
    parser.add_argument("--act", nargs=3, metavar=("DATA", "SEED", "VERSION"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.act:
        act(Path(asked.act[0]), int(asked.act[1]), int(asked.act[2]))
        return 0
    began_s, found, version = time.monotonic(), Found(), 0
    drawn = random.Random(asked.seed)
    state: State = {name: {None} for name in NAMES}
    with tempfile.TemporaryDirectory() as folder:
        for n in range(asked.kills):
            version = kill_one(Path(folder), found, state, drawn, version) + 1
            look(Path(folder), found, state)
            if n % 20 == 19:
                print(f"{n + 1} kills, {len(found.wrong)} wrong", file=sys.stderr, flush=True)
    for what, counts in {"killed": found.kills, "names with": found.outcomes}.items():
        for which, n in sorted(counts.items()):
            print(f"{n:6} {what} {which}")
    for line in found.wrong:
        print(f"wrong: {line}")
    print(f"{len(found.wrong)} wrong; took {time.monotonic() - began_s:.0f} s")
    return int(bool(found.wrong))


if __name__ == "__main__":
    sys.exit(main())
