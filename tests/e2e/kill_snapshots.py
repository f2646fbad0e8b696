"""Kills engines in the middle of saves, takes, deletes and of their end, many times, and looks at what lies on disk.

    python tests/e2e/kill_snapshots.py --kills 200

Each engine is a process of its own on one folder of snapshots. Its program saves, takes and deletes a few names at
random, and says what it is about to do before it does it; every other engine keeps pages, too. After SIGKILL each name
has to have what it had before, what it was to have, or nothing where it was to go: whole, for the reader in Python,
every page of it included, and for the next engine, which has to draw from it what an engine without snapshots draws
from the same tokens. No other file may be left. Prints a table; the exit code is 1 where a snapshot is torn, something
is left, or the kills missed what they are for.
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
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pie import snapshots
from pie.config import EngineConfig, ModelConfig, SnapshotConfig
from pie.engine import Engine
from pie.errors import PieError
from pie.events import Event
from support.launching import PATIENCE_S, finish, python_source

Pages = Literal["auto", "always"]
"""Whether an engine keeps pages: the dummy driver computes them faster than a disk reads them, so `auto` keeps none."""

NAMES = "abcd"
KINDS = ("save", "take", "delete")
"""What kills are for."""
MANY = 100
"""So many kills have to hit each of them, and fewer any."""
MAX_EXTRA = 4
"""How many times as many as asked for there may be until they have."""
PAGES: tuple[Pages, ...] = get_args(Pages)
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
    model, opens, found = Model.load("default"), input["opens"], {}
    names = Context.snapshots(model) if opens else []
    for name, version in input["versions"].items():
        ctx = Context.open(model, name) if opens else Context(model).append(tokens_of(version))
        found[name] = None if ctx is None else await drawn(ctx)
    return [names, found]
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
    state: State = field(default_factory=lambda: {name: {None} for name in NAMES})
    """What may lie on disk."""


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


def engine(data: Path, pages: Pages) -> Engine:
    """An engine on the folder."""
    opened = Engine(EngineConfig(data_dir=data), snapshots=SnapshotConfig(durability="disk", free_bytes=0, pages=pages))
    opened.add_model(options=ModelConfig(driver="dummy"))
    return opened


def act(data: Path, pages: Pages, seed: int, version: int) -> None:
    """The process that is killed: tells each operation before it begins and after it ended.

    Where its stdin ends it ends its engine.
    """
    is_over = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        is_over.set()

    threading.Thread(target=wait, daemon=True).start()
    with engine(data, pages) as opened:
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


def kill_one(data: Path, pages: Pages, found: Found, drawn: random.Random, version: int) -> int:
    """Starts an engine and kills it; `found.state` becomes what may lie on disk.

    Returns the last version that it began.
    """
    command = [sys.executable, __file__, "--act", str(data), pages, str(drawn.getrandbits(32)), str(version)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    n_ops, is_to_end = drawn.randint(1, MAX_OPS), drawn.random() < 0.15
    told = Told(found.state, version)
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


def look(data: Path, pages: Pages, found: Found, plain: Engine) -> None:
    """Looks at what lies on disk, by the reader and by the next engine; `found.state` becomes that.

    `plain` is an engine without snapshots.
    """
    versions, state = dict[str, int](), found.state
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
        for of_run in snapshots.read_pages(kept):
            found.outcomes["pages of a run"] += 1
            if of_run.problem is not None or of_run.damaged:
                found.wrong.append(f"torn: {of_run.path.name}: {of_run.problem or f'pages {of_run.damaged}'}")
    for name in NAMES:
        actual = versions.get(name)
        if actual not in state[name]:
            found.wrong.append(f"{name} has {actual}, and may have {state[name]}")
        found.outcomes["a name with one of two" if len(state[name]) > 1 else "a name with what was known"] += 1
        state[name] = {actual}
    with engine(data, pages) as opened:
        opened.start()
        names, tokens = drawn_by(opened, versions, opens=True)
    if names != sorted(versions):
        found.wrong.append(f"the next engine knows {names}, and on disk are {sorted(versions)}")
    _, expected = drawn_by(plain, versions, opens=False)
    for name, version in versions.items():
        if tokens[name] != expected[name]:
            found.wrong.append(f"{name} goes on with {tokens[name]}, and version {version} with {expected[name]}")
    kept_files = snapshots.kept_in(of_model)
    needed = {kept.number for kept in kept_files} | {number for kept in kept_files for number in kept.shares}
    for path in list(of_model.iterdir()) if folders else []:
        if path.name not in {".lock", ".binding"} and (path.name.startswith(".") or int(path.name[:16], 16) not in needed):
            found.wrong.append(f"left: {path.name}")


def drawn_by(opened: Engine, versions: dict[str, int], *, opens: bool) -> tuple[list[str], dict[str, list[int] | None]]:
    """The names that an engine knows, and what it draws from each snapshot, or from the tokens of each version."""
    outcome = finish(opened.launch(LOOKING, input={"versions": versions, "opens": opens}))
    assert outcome.code is None, (outcome.code, outcome.message)
    names, tokens = outcome.value
    return names, tokens


def missed(found: Found, n_asked: int) -> list[str]:
    """What the kills were for and have not hit."""
    by_kind = [f"a {kind}" for kind in KINDS if not found.kills[kind]]
    if n_asked >= MANY:
        return by_kind
    return ["a save, a take or a delete"] if len(by_kind) == len(KINDS) else []


def main() -> int:
    """Kills so many engines; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=200, help="how many engines are killed")
    parser.add_argument("--seed", type=int, default=1, help="what the moments are drawn from")
    parser.add_argument("--act", nargs=4, metavar=("DATA", "PAGES", "SEED", "VERSION"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.act:
        pages = next(one for one in PAGES if one == asked.act[1])
        act(Path(asked.act[0]), pages, int(asked.act[2]), int(asked.act[3]))
        return 0
    began_s, found, version, n = time.monotonic(), Found(), 0, 0
    drawn = random.Random(asked.seed)
    with ExitStack() as stack:
        folder, other = (Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2))
        plain = stack.enter_context(Engine(EngineConfig(data_dir=other)))
        plain.add_model(options=ModelConfig(driver="dummy"))
        plain.start()
        while n < asked.kills or (missed(found, asked.kills) and n < MAX_EXTRA * asked.kills):
            version = kill_one(folder, PAGES[n % 2], found, drawn, version) + 1
            # By an engine that keeps pages where the one before did not, and the other way around.
            look(folder, PAGES[n // 2 % 2], found, plain)
            n += 1
            if n % 20 == 0:
                print(f"{n} kills, {len(found.wrong)} wrong", file=sys.stderr, flush=True)
    found.wrong += [f"no engine was killed in the middle of {what}" for what in missed(found, asked.kills)]
    if asked.kills >= MANY and not found.outcomes["pages of a run"]:
        found.wrong.append("no engine kept the pages of a run")
    for what, counts in {"killed in": found.kills, "found:": found.outcomes}.items():
        for which, n in sorted(counts.items()):
            print(f"{n:6} {what} {which}")
    for line in found.wrong:
        print(f"wrong: {line}")
    print(f"{len(found.wrong)} wrong; took {time.monotonic() - began_s:.0f} s")
    return int(bool(found.wrong))


if __name__ == "__main__":
    sys.exit(main())
