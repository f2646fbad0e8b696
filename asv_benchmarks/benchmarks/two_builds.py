"""Measures a row in this tree and in another that is built: `python -m benchmarks.two_builds ROW --beside PATH`.

ROW is a module and its class, such as `step.StepCost`. Each sample comes from a process of one tree, which runs one
round of each case with the benchmark of that tree; the two take turns (A B B A), so that whatever drifts with
time meets both alike. Prints both and their ratio by round, and writes them to `build/bench/beside/<row>.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import BUILD, ROOT, ROUNDS, in_turns, show

ONE_ROUND = """
import dataclasses, importlib, json, sys
from benchmarks import harness
harness.ROUNDS, harness.in_turns.__defaults__ = 1, (1,)
module = importlib.import_module("benchmarks." + sys.argv[1])
module.save = lambda row, figures: [dataclasses.asdict(figure) for figure in figures]
print("\\n" + json.dumps(getattr(module, sys.argv[2])().setup_cache()))
"""
"""One round of a row, with the files of the tree in which it runs. Nothing is written to its results."""


@dataclass(frozen=True)
class Tree:
    """A tree that is built."""

    folder: Path

    @property
    def commit(self) -> str:
        """The commit that is checked out there."""
        asked = ["git", "-C", str(self.folder), "rev-parse", "--short", "HEAD"]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() or "no commit"

    def sample(self, module: str, row: str) -> dict[str, dict[str, Any]]:
        """The figures of one round, by case. Raises RuntimeError where the benchmark ends with an error."""
        own = self.folder / ".venv/bin/python"
        paths = os.pathsep.join(str(self.folder / name) for name in ("asv_benchmarks", "python"))
        done = subprocess.run(
            [str(own) if own.exists() else sys.executable, "-c", ONE_ROUND, module, row],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{module}.{row} in {self.folder} ended with {done.returncode}; what it printed stands above")
        return {figure["case"]: figure for figure in json.loads(done.stdout.splitlines()[-1])}


def value(figure: dict[str, Any]) -> float:
    """What a figure is held to: the measure of its first goal, or the time itself."""
    measure = figure["goals"][0]["measure"] if figure["goals"] else "ours"
    ours = statistics.median(figure["ours"])
    if measure == "ours":
        return ours
    peer = statistics.median(figure["peer"])
    return {"peer": peer, "ratio": ours / peer, "difference": ours - peer}[measure]


def measure(here: Tree, there: Tree, module: str, row: str, rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    """The values of each case that both trees have, by round: here, and there."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    rounds_here: list[dict[str, dict[str, Any]]] = []
    rounds_there: list[dict[str, dict[str, Any]]] = []

    def run(tree: Tree, samples: list[dict[str, dict[str, Any]]]) -> float:
        samples.append(tree.sample(module, row))
        show(f"{module}.{row}: round {len(samples)} in {tree.folder}")
        return 0.0

    in_turns(lambda: run(here, rounds_here), lambda: run(there, rounds_there), rounds)
    for case in rounds_here[0].keys() & rounds_there[0].keys():
        found[case] = ([value(figures[case]) for figures in rounds_here], [value(figures[case]) for figures in rounds_there])
    return {case: found[case] for case in rounds_here[0] if case in found}


def table(found: dict[str, tuple[list[float], list[float]]], here: str, there: str) -> str:
    """The cases with the medians of both and of their ratios, the smallest and the largest ratio behind it."""
    lines = [f"| case | here ({here}) | there ({there}) | here / there |", "|---|---|---|---|"]
    for case, (ours, theirs) in found.items():
        # A difference from a peer may be nothing, or less.
        ratios = [a / b for a, b in zip(ours, theirs, strict=True) if b > 0]
        spread = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})" if ratios else "none"
        lines.append(f"| {case} | {statistics.median(ours):.4g} | {statistics.median(theirs):.4g} | {spread} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("row", help="module.Class of asv_benchmarks/benchmarks")
    parser.add_argument("--beside", type=Path, required=True, metavar="PATH", help="another tree that is built")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args(arguments)
    module, point, row = given.row.partition(".")
    if not point or not row:
        parser.error(f"{given.row} names no class; write module.Class, such as step.StepCost")
    if not (given.beside / "asv_benchmarks/benchmarks").is_dir():
        parser.error(f"{given.beside} has no asv_benchmarks/benchmarks; name the root of a tree that is built")
    if given.rounds < 1:
        parser.error(f"--rounds {given.rounds} measures nothing; ask for one or more")
    here, there = Tree(ROOT), Tree(given.beside.resolve())
    found = measure(here, there, module, row, given.rounds)
    if not found:
        raise SystemExit(f"no case of {given.row} stands in both trees")
    print(table(found, here.commit, there.commit))
    folder = BUILD / "beside"
    folder.mkdir(parents=True, exist_ok=True)
    content = {"here": here.commit, "there": there.commit, "cases": found}
    (folder / f"{given.row}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
