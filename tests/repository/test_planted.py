"""The table of planted faults follows the code, and the tool that makes them says which tests caught them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tools import mutate
from tools.mutate import TARGETS, Copy, Fault, Report, Target, read_planted
from tools.mutation_sites import sites

ROOT = Path(__file__).resolve().parents[2]
FAULTS = read_planted()

# What an audit planted and nothing caught, and what has to be caught beside it.
WANTED = {
    "min-p drops what lies on its bound",
    "who was refused for long is never preferred",
    "attention drops the values of slots from 2,048 on",
    "offsets into the pool wrap at 2^32 elements",
    "truncate leaves the state of the turns",
    "the ramp of yarn ends at half as many",
    "minP of JavaScript has a default of its own",
    "a verdict keeps a rejected token",
    "a read uses its neighbour's mask",
    "a phase skips answered where it goes ahead",
    "a late mask is lost",
    "a row that waits past its bound holds the batch",
}


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_fault_has_its_place_in_the_code(fault: Fault) -> None:
    site = fault.site(ROOT)
    text = (ROOT / site.path).read_text(encoding="utf-8")
    assert text[site.start : site.end] == fault.old
    assert site.apply(text) != text
    assert fault.tests
    held = fault.held_to()
    assert "{" not in "".join(held.tests).replace("${", ""), "a command is not known"


def test_names_are_of_one_fault_each_and_none_is_left_out() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names)
    assert set(names) >= WANTED


def test_the_tests_of_a_fault_are_there() -> None:
    missing = []
    for fault in FAULTS:
        for command in fault.tests:
            words = [word.strip("'") for word in command.split()]
            missing += [word for word in words if re.match(r"tests/\w", word) and not (ROOT / word).exists()]
            crate = re.search(r"-p pie-(\w+) --test (\w+)", command)
            if crate and not (ROOT / "rust" / crate[1] / "tests" / f"{crate[2]}.rs").exists():
                missing.append(crate[0])
    assert missing == []


def test_every_kind_of_code_can_be_changed() -> None:
    crates = {path.parent.name for path in (ROOT / "rust").glob("*/Cargo.toml")}
    # They are tests themselves.
    left_out = crates - set(TARGETS) - {"fuzz", "interleavings"}
    assert left_out == set()
    listed = subprocess.run(["git", "ls-files", "js/inferlet/src", "rust/js-runtime"], cwd=ROOT, check=True, capture_output=True, text=True)
    for target, suffix in (("js-sdk", ".ts"), ("js-runtime", ".rs")):
        folder = "js/inferlet/src/" if target == "js-sdk" else "rust/js-runtime/"
        names = {name for name in listed.stdout.split() if name.startswith(folder) and name.endswith(suffix)}
        names = {name for name in names if not name.endswith(".d.ts") and sites(Path(name), (ROOT / name).read_text(encoding="utf-8"))}
        drawn = {str(site.path) for site in mutate.draw(ROOT, TARGETS[target].files, 100_000, seed=1)}
        assert names - drawn == set()


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with one target, and a table of its faults."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "code.sh").write_text("echo one\necho two\n")
    subprocess.run(["git", "init", "--quiet"], cwd=source, check=True)
    (tmp_path / "planted.toml").write_text(
        "\n".join(
            f'[[fault]]\nname = "{name}"\ntarget = "plain"\nfile = "code.sh"\nold = "echo {old}"\nnew = "{new}"\ntests = ["{test}"]\n'
            for name, old, new, test in (
                ("caught", "one", "echo three", "bash code.sh | grep one"),
                ("survives", "two", "echo four", "true"),
                ("rotten", "five", "", "true"),
            )
        )
    )
    monkeypatch.setattr(mutate, "ROOT", source)
    monkeypatch.setattr(mutate, "COPY", tmp_path / "copies")
    monkeypatch.setitem(mutate.TARGETS, "plain", Target(("code.sh",), ("true",)))
    return tmp_path


def test_faults_are_made_and_what_caught_them_is_written(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    caught, survives, _ = read_planted(tree / "planted.toml")
    report = Report(tree / "log.md", "Planted faults")
    for name, outcome in mutate.planted([caught, survives], 10.0):
        report.add(name, outcome)
    report.end()
    assert report.words == ["caught", "survived"]
    lines = (tree / "log.md").read_text(encoding="utf-8").splitlines()
    assert lines[:4] == ["# Planted faults", "", "| | site | change | outcome | test that failed |", "|---|---|---|---|---|"]
    assert lines[4].startswith("| caught | code.sh:1 | `echo one` -> `echo three` | caught | ")
    assert lines[5] == "| survives | code.sh:2 | `echo two` -> `echo four` | survived |  |"
    assert lines[-1] == "1 caught, 1 survived, 0 does not build."
    assert "| caught | code.sh:1 |" in capsys.readouterr().out
    assert (tree / "copies/plain/code.sh").read_text() == (tree / "source/code.sh").read_text()


def test_a_fault_whose_place_is_gone_is_told(tree: Path) -> None:
    rotten = read_planted(tree / "planted.toml")[2]
    with pytest.raises(SystemExit, match=r"'rotten' has 0 places in code\.sh"):
        rotten.site(Copy(tree / "source", tree / "copy").folder)


def test_a_name_that_no_fault_has_is_told() -> None:
    with pytest.raises(SystemExit, match="no fault is called nobody"):
        mutate.main(["--planted", "nobody"])
