"""What the rows share: rounds in turns, figures with their goals, and the file from which the table is written.

Every figure is measured beside a named peer in the same run, in turns (A B B A), in at least five rounds. A row writes
its figures to `build/bench/results/<row>.json`; `tools/write_benchmarks.py` makes the table of them.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/bench"
ROUNDS = 5
"""Rounds of a case, of ours and of its peer."""
SEED = 7
"""The launch seed of every program."""

Measure = Literal["ours", "peer", "ratio", "difference"]


@dataclass(frozen=True)
class Goal:
    """A bound that the median of a measure should keep."""

    measure: Measure
    """`ours` as it is, its `ratio` to the peer, or its `difference` from the peer; each by round."""
    bound: float
    at_least: bool = False
    """The bound is the least, not the most."""


@dataclass(frozen=True)
class Figure:
    """What one case of a row measured. Samples are by round."""

    case: str
    unit: str
    ours: list[float]
    peer: list[float] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    note: str = ""
    """What was counted beside it."""

    def samples(self, measure: Measure) -> list[float]:
        """The samples of a measure, by round."""
        if measure in ("ours", "peer"):
            return self.ours if measure == "ours" else self.peer
        pairs = zip(self.ours, self.peer, strict=True)
        return [ours / peer if measure == "ratio" else ours - peer for ours, peer in pairs]

    def median(self, measure: Measure) -> float:
        """The median over the rounds."""
        return statistics.median(self.samples(measure))


@dataclass(frozen=True)
class Row:
    """What a row of the table says beside its figures."""

    name: str
    title: str
    driver: str
    path: str
    """What lies between the two ends that are timed."""
    peer: str


def in_turns(ours: Callable[[], float], peer: Callable[[], float], rounds: int = ROUNDS) -> tuple[list[float], list[float]]:
    """Runs both in turns, A B B A: whatever drifts with time meets both alike."""
    samples: tuple[list[float], list[float]] = ([], [])
    for round_idx in range(rounds):
        for which in (0, 1) if round_idx % 2 == 0 else (1, 0):
            samples[which].append((ours, peer)[which]())
    return samples


def save(row: Row, figures: Iterable[Figure]) -> dict[str, Figure]:
    """Writes the figures of a row for the table; returns them by case."""
    figures = list(figures)
    folder = BUILD / "results"
    folder.mkdir(parents=True, exist_ok=True)
    content = {"row": asdict(row), "environment": environment(), "figures": [asdict(figure) for figure in figures]}
    fresh = folder / f"{row.name}.new"
    fresh.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    fresh.replace(folder / f"{row.name}.json")
    return {figure.case: figure for figure in figures}


def environment() -> dict[str, Any]:
    """The machine and the versions of a run."""
    cpu = platform.processor()
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    load = os.getloadavg()[0]
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    return {
        "cpu": cpu,
        "n_cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "wasmtime": lock.partition('name = "wasmtime"\nversion = "')[2].partition('"')[0],
        "pie": version("pie-engine"),
        "commit": commit.stdout.strip(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "load_before": round(load, 2),
    }


def rust_bench(name: str, *arguments: str, package: str = "pie-host", timeout_s: float) -> list[dict[str, Any]]:
    """Runs a benchmark of a Rust package; returns its lines."""
    command = ["cargo", "bench", "--quiet", "--profile", "release", "-p", package, "--bench", name, "--", *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, timeout=timeout_s, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}; what it printed stands above")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for line in lines:
        show(f"{name}: {line['case']}: {statistics.median(line['ours']):.6g} {line['unit']}")
    return lines


def show(text: str) -> None:
    """Tells what has been measured so far, on stderr: asv shows it with `--show-stderr`."""
    print(text, file=sys.stderr, flush=True)
