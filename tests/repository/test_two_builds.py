"""Two builds measured in turns: each sample comes from a process of one tree, and both are printed with their ratio."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLAIN = """
from pathlib import Path
from benchmarks.harness import ROUNDS, Figure, Goal, Row, in_turns, save

ROW = Row(name="plain", title="", driver="", path="", peer="")

class Plain:
    def setup_cache(self):
        here = Path.cwd()
        with (here.parent / "turns").open("a") as turns:
            turns.write(here.name + chr(10))
        timed, peer = in_turns(lambda: {ours}, lambda: 1.0)
        assert len(timed) == ROUNDS == 1
        return save(ROW, [
            Figure("a time", "us", timed, peer),
            Figure("a difference", "us", timed, peer, goals=[Goal("difference", 5.0)]),
            Figure("only {name}", "us", timed),
        ])
"""


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """Two trees of one benchmark, of which the second takes twice as long."""
    made = []
    for name, ours in (("new", 3.0), ("old", 6.0)):
        folder = tmp_path / name / "asv_benchmarks/benchmarks"
        folder.mkdir(parents=True)
        for file in ("__init__.py", "harness.py", "two_builds.py"):
            shutil.copy(ROOT / "asv_benchmarks/benchmarks" / file, folder)
        (folder / "plain.py").write_text(PLAIN.replace("{ours}", str(ours)).replace("{name}", name))
        made.append(tmp_path / name)
    return made[0], made[1]


def compare(here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.two_builds", *arguments],
        cwd=here,
        env=os.environ | {"PYTHONPATH": str(here / "asv_benchmarks")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_both_are_measured_in_turns_and_printed_with_their_ratio(trees: tuple[Path, Path]) -> None:
    new, old = trees
    done = compare(new, "plain.Plain", "--beside", str(old), "--rounds", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[2] == "| a time | 3 | 6 | 0.500 (0.500 to 0.500) |"
    assert lines[3] == "| a difference | 2 | 5 | 0.400 (0.400 to 0.400) |"
    assert len(lines) == 4, "what only one of them has is left out"
    assert (new.parent / "turns").read_text().split() == ["new", "old", "old", "new"]
    written = json.loads((new / "build/bench/beside/plain.Plain.json").read_text())
    assert written["cases"]["a time"] == [[3.0, 3.0], [6.0, 6.0]]
    assert not (old / "build").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("plain", "--beside", "{old}"), "plain names no class"),
        (("plain.Plain", "--beside", "{old}/asv_benchmarks"), "has no asv_benchmarks/benchmarks"),
        (("plain.Plain", "--beside", "{old}", "--rounds", "0"), "--rounds 0 measures nothing"),
        (("plain.Other", "--beside", "{old}"), "plain.Other in"),
    ],
)
def test_what_cannot_be_measured_is_told(trees: tuple[Path, Path], arguments: tuple[str, ...], says: str) -> None:
    new, old = trees
    done = compare(new, *(argument.replace("{old}", str(old)) for argument in arguments))
    assert done.returncode != 0
    assert says in done.stderr
