"""Compares how long a server takes to refuse what is another user's with how long it takes to refuse what is not there.

`python -m tools.foreign_timing [--tries 200]` starts a server of the dummy driver, gives one user a process that
runs, one that has ended, a program and a snapshot, and has another user ask for each and for nothing, in random
order. It prints a table: for each request the medians in microseconds and the p of the Mann-Whitney U test (two-
sided, by the normal approximation with a correction for ties), and exits with 1 where the answers differ, or a p is
below 0.01 after Holm's correction for the number of rows.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

_PATIENCE_S = 120.0
_MODEL = "pie-tiny"
_ABSENT_DIGEST = "sha256:" + "0a" * 32
_LEAST_P = 0.01
_KEEPER = """
from inferlet import Adapter, Context, Model, messaging, session


async def main(input):
    ctx = Context(Model.load("default")).user("a secret of 1968")
    await ctx.flush()
    ctx.save("vault")
    if Adapter.open(Model.load("default"), "vault") is None:
        Adapter.create(Model.load("default"), "vault", rank=1)
    messaging.push("jobs", "a secret of 1969")
    session.send("ready")
    await session.receive()
"""


class Asker:
    """A client that speaks the raw protocol, one request at a time."""

    def __init__(self, url: str, hello: dict[str, Any]) -> None:
        opened = connect(url, max_size=None, ping_interval=None, compression=None)
        self._socket: ClientConnection = ExitStack().enter_context(opened)
        self._socket.send(json.dumps({"type": "hello", "protocol": 1, **hello}))
        self._socket.recv(_PATIENCE_S)

    def ask(self, frame: str | bytes) -> tuple[str, int]:
        """The answer, and the nanoseconds until it came."""
        began = time.perf_counter_ns()
        self._socket.send(frame)
        answer = self._socket.recv(_PATIENCE_S)
        took_ns = time.perf_counter_ns() - began
        while not (isinstance(answer, str) and answer.startswith('{"id":7')):
            answer = self._socket.recv(_PATIENCE_S)
        return answer, took_ns

    def ok(self, kind: str, **fields: Any) -> Any:
        """What is answered where nothing is wrong."""
        answer = json.loads(self.ask(text(kind, **fields))[0])
        if "ok" not in answer:
            raise SystemExit(f"{kind} failed: {answer}")
        return answer["ok"]


def text(kind: str, **fields: Any) -> str:
    """A request."""
    return json.dumps({"id": 7, "type": kind, **fields})


def binary(kind: str, payload: bytes, **fields: Any) -> bytes:
    """A request with bytes."""
    header = text(kind, **fields).encode()
    return struct.pack("<I", len(header)) + header + payload


@dataclass(frozen=True)
class Row:
    """A request for what is another's, and the same for what is not there."""

    name: str
    foreign: str | bytes
    absent: str | bytes
    given: tuple[str, str]
    """What the client itself writes, in the one and in the other."""


@dataclass(frozen=True)
class Result:
    """What a row showed."""

    name: str
    same: bool
    foreign_us: float
    absent_us: float
    p: float


def mann_whitney(one: list[int], other: list[int]) -> float:
    """The two-sided p of the U test, by the normal approximation with corrections for ties and continuity."""
    both = sorted([(value, 0) for value in one] + [(value, 1) for value in other])
    ranks_of_one, ties, at = 0.0, 0, 0
    while at < len(both):
        end = at
        while end < len(both) and both[end][0] == both[at][0]:
            end += 1
        rank = (at + 1 + end) / 2
        ranks_of_one += rank * sum(1 for value in both[at:end] if value[1] == 0)
        ties += (end - at) ** 3 - (end - at)
        at = end
    n, m = len(one), len(other)
    u = ranks_of_one - n * (n + 1) / 2
    spread = math.sqrt(n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1))))
    z = max(0.0, abs(u - n * m / 2) - 0.5) / spread if spread else 0.0
    return math.erfc(z / math.sqrt(2))


def measure(row: Row, spy: Asker, tries: int, draw: random.Random) -> Result:
    """Asks for both in random order, so often each."""
    order = [True, False] * tries
    draw.shuffle(order)
    took: dict[bool, list[int]] = {True: [], False: []}
    answers: set[str] = set()
    for is_foreign in [True, False] * 5 + order:
        answer, took_ns = spy.ask(row.foreign if is_foreign else row.absent)
        answers.add(answer.replace(row.given[0] if is_foreign else row.given[1], "GIVEN"))
        took[is_foreign].append(took_ns)
    foreign, absent = took[True][5:], took[False][5:]
    medians = (statistics.median(foreign) / 1000, statistics.median(absent) / 1000)
    return Result(row.name, len(answers) == 1, *medians, mann_whitney(foreign, absent))


def rows(digest: str, pids: dict[str, int], absent_pid: int) -> Iterator[Row]:
    """Every request that names something."""
    verbs: dict[str, dict[str, Any]] = {
        "attach": {},
        "detach": {},
        "send": {"text": "x"},
        "signal": {"text": "x"},
        "close_input": {},
        "terminate": {},
        "outcome": {},
        "logs": {},
    }
    for state, pid in pids.items():
        given = (str(pid), str(absent_pid))
        for verb, fields in verbs.items():
            yield Row(f"{verb}, {state}", text(verb, pid=pid, **fields), text(verb, pid=absent_pid, **fields), given)
        yield Row(f"file, {state}", binary("file", b"x", pid=pid), binary("file", b"x", pid=absent_pid), given)
    named: dict[str, tuple[str, dict[str, Any], str, str]] = {
        "launch, name": ("launch", {"program": "GIVEN"}, "keeper", "absent"),
        "launch, version": ("launch", {"program": "GIVEN"}, "keeper@1.0.0", "absent@1.0.0"),
        "launch, digest": ("launch", {"program": "GIVEN"}, digest, _ABSENT_DIGEST),
        "install, digest": ("install", {"name": "mine", "version": "1", "digest": "GIVEN"}, digest, _ABSENT_DIGEST),
        "uninstall": ("uninstall", {"name": "GIVEN", "version": "1.0.0"}, "keeper", "absent"),
        "discard_topic": ("discard_topic", {"topic": "GIVEN"}, "jobs", "none"),
        "delete_adapter": ("delete_adapter", {"model": _MODEL, "name": "GIVEN"}, "vault", "vaulx"),
        "delete_snapshot": ("delete_snapshot", {"model": _MODEL, "name": "GIVEN"}, "vault", "vaulx"),
    }
    for name, (verb, fields, foreign, absent) in named.items():
        frame = text(verb, **fields)
        yield Row(name, frame.replace("GIVEN", foreign), frame.replace("GIVEN", absent), (foreign, absent))


@contextmanager
def served() -> Iterator[str]:
    """The address of a server of the dummy driver."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"PIE_ENGINE__DATA_DIR": folder, "PIE_SERVER__AUDIT_LOG": f"{folder}/audit.jsonl"}
        command = [sys.executable, "-m", "pie", "serve", "--dummy", "--port", "0"]
        process = subprocess.Popen(command, env=os.environ | settings, stdout=subprocess.PIPE, text=True)
        try:
            for line in process.stdout or ():
                if line.startswith("serving at "):
                    yield line.split()[-1]
                    return
            raise SystemExit("the server did not start")
        finally:
            process.kill()
            process.wait()


def furnish(url: str) -> tuple[Asker, str, dict[str, int]]:
    """A user with a program, a snapshot, a process that runs and one that has ended."""
    from pie.client.programs import read_package  # noqa: PLC0415  # the engine is large

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "keeper.py"
        path.write_text(_KEEPER, encoding="utf-8")
        data = read_package(path, None).launchable()
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    vera = Asker(url, {"user": "vera"})
    vera.ask(binary("upload", data, digest=digest, bytes=len(data), offset=0, last=True))
    manifest = '[package]\nname = "keeper"\nversion = "1.0.0"\n'
    vera.ok("install", name="keeper", version="1.0.0", digest=digest, manifest=manifest)
    pids = {}
    for state in ("running", "ended"):
        pid = pids[state] = vera.ok("launch", program="keeper", detached=True)["pid"]
        while "ready" not in vera.ok("logs", pid=pid, follow=True)["text"]:
            pass
    vera.ok("terminate", pid=pids["ended"])
    while not vera.ok("logs", pid=pids["ended"], after=2**40, follow=True)["ended"]:
        pass
    return vera, digest, pids


def compare(url: str, tries: int, seed: int) -> list[Result]:
    """All rows."""
    draw = random.Random(seed)
    vera, digest, pids = furnish(url)
    spy = Asker(url, {"user": "spy"})
    absent = next(pid for pid in range(10 ** (len(str(pids["running"])) - 1), 2**40) if pid not in pids.values())
    results = [measure(row, spy, tries, draw) for row in rows(digest, pids, absent)]
    vera.ok("ping")
    return results


def holm(results: list[Result]) -> set[str]:
    """The rows whose p is too small, though so many were looked at (S. Holm, 1979)."""
    found = set()
    for at, result in enumerate(sorted(results, key=lambda result: result.p)):
        if result.p > _LEAST_P / (len(results) - at):
            break
        found.add(result.name)
    return found


def main(show: Callable[[str], None] = print) -> int:
    """Prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.foreign_timing", description=__doc__)
    parser.add_argument("--tries", type=int, default=200, help="how often each is asked for")
    parser.add_argument("--seed", type=int, default=1, help="of the order in which they are")
    options = parser.parse_args()
    with served() as url:
        results = compare(url, options.tries, options.seed)
    show(f"{'request':22} {'foreign us':>11} {'absent us':>11} {'p':>7}  answers")
    for result in results:
        same = "same" if result.same else "DIFFER"
        show(f"{result.name:22} {result.foreign_us:11.1f} {result.absent_us:11.1f} {result.p:7.3f}  {same}")
    told = holm(results)
    n_below = sum(result.p <= _LEAST_P for result in results)
    show(f"{len(results)} rows of {options.tries} tries; p <= {_LEAST_P} in {n_below}, after Holm's correction in {len(told)}")
    return int(bool(told) or not all(result.same for result in results))


if __name__ == "__main__":
    sys.exit(main())
