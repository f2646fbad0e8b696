"""The tests that name rows are those that the tool of mutations runs where it is asked to, and no others."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tools import mutate, surface, tagged
from tools.surface import Claim, Row, SurfaceError

ROWS = [
    Row("RS-001", "rust", "Context", "present", (), "fork"),
    Row("JS-001", "javascript", "Context", "present", (), "fork"),
    Row("PY-001", "python", "Forward", "present", (), "pass"),
]
IN_SOURCE = """
// rows: RS-001
fn helper() {}

#[cfg(test)]
mod tests {
    // rows: RS-001
    #[test]
    fn forks() {}

    #[test]
    fn untagged() {}
}

// rows: RS-001
mod snapshots {
    #[test]
    #[ignore]
    fn saves() {}

    proptest! {
        /// Whatever is saved.
        #[test]
        fn opens(n in 0u32..4) {}
    }
}
"""
IN_TESTS = "// rows: RS-001\n#[test]\nfn forks_again() {}\n#[test]\nfn untagged() {}\n"
VECTOR = '{"shows": "PY-001 RS-001", "languages": ["python", "rust"]}'


@pytest.fixture
def claims(tmp_path: Path) -> list[Claim]:
    """A tree with tests of every kind, and what they claim."""
    for name, text in {
        "rust/core/src/kv/mod.rs": IN_SOURCE,
        "rust/core/tests/forking.rs": IN_TESTS,
        "tests/vectors/forks.json": VECTOR,
        "tests/e2e/test_forks.py": '@pytest.mark.rows("PY-001")\ndef test_fork(): pass\ndef test_other(): pass\n',
        "tests/sdk_js/a.test.mjs": "test('[JS-001] what (forks)', f);\ntest(`[JS-001] refused: ${name}`, f);\ntest('no', f);\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return surface.claims(tmp_path)


def test_cargo_is_told_the_whole_names_of_tests(tmp_path: Path, claims: list[Claim]) -> None:
    filled = tagged.fill(tmp_path, "cargo test {cargo rust/core}", claims)
    assert filled is not None
    assert filled.command == (
        "cargo test --lib --test forking -- --exact kv::tests::forks kv::snapshots::saves kv::snapshots::opens forks_again"
    )
    assert filled.n_tests == 4
    for folder, command in {
        "src": "--lib -- --exact kv::tests::forks kv::snapshots::saves kv::snapshots::opens",
        "tests": "--test forking -- --exact forks_again",
    }.items():
        part = tagged.fill(tmp_path, f"{{cargo rust/core/{folder}}}", claims)
        assert part is not None
        assert part.command == command
    assert tagged.fill(tmp_path, "{cargo rust/text}", claims) is None


def test_pytest_is_told_the_ids_of_tests_and_of_vectors(tmp_path: Path, claims: list[Claim]) -> None:
    vector = "tests/vectors/test_vectors.py::test_vector[forks-{}]"
    for command, ids in {
        "{pytest tests}": [vector.format("python"), vector.format("rust"), "tests/e2e/test_forks.py::test_fork"],
        "{pytest tests/vectors@rust}": [vector.format("rust")],
        "{pytest tests/vectors@python tests/e2e}": [vector.format("python"), "tests/e2e/test_forks.py::test_fork"],
    }.items():
        filled = tagged.fill(tmp_path, command, claims)
        assert filled is not None
        # A vector is listed once for each of the rows that it shows, and run once.
        assert sorted(shlex.split(filled.command)) == sorted(ids)
        assert filled.n_tests == len(ids)
    assert tagged.fill(tmp_path, "{pytest tests/vectors@javascript}", claims) is None


def test_node_is_told_the_beginnings_of_titles(tmp_path: Path, claims: list[Claim]) -> None:
    filled = tagged.fill(tmp_path, "node {node} --test", claims)
    assert filled is not None
    assert filled.n_tests == 2
    assert shlex.split(filled.command) == ["node", r"--test-name-pattern=\] (what\ \(forks\)|refused:\ )", "--test"]


def test_claims_are_those_of_the_areas(claims: list[Claim]) -> None:
    assert {claim.row for claim in tagged.of_areas(ROWS, claims, ["Context"])} == {"RS-001", "JS-001"}
    assert tagged.of_areas(ROWS, claims, ["all"]) == claims
    with pytest.raises(SurfaceError, match="no area 'Market'; the areas are Context, Forward, and all"):
        tagged.of_areas(ROWS, claims, ["Market"])


def test_a_command_without_a_place_is_refused(tmp_path: Path, claims: list[Claim]) -> None:
    with pytest.raises(SurfaceError, match="has no place for tests"):
        tagged.fill(tmp_path, "cargo test", claims)


@pytest.mark.parametrize(
    ("printed", "n"),
    [
        ("running 3 tests\ntest result: ok. 3 passed; 0 failed\n\ntest result: ok. 2 passed; 1 failed", 5),
        ("....\n12 passed, 3 deselected in 0.5s\n", 12),
        ("\u2139 tests 9\n\u2139 pass 7\n\u2139 fail 2\n", 7),
        ("# tests 9\n# pass 8\n", 8),
        ("nothing", 0),
    ],
)
def test_what_passed_is_counted(printed: str, n: int) -> None:
    assert tagged.n_passed(printed) == n


def test_fewer_tests_than_name_rows_are_an_error(tmp_path: Path) -> None:
    """A filter that finds nothing would let every change survive, or seem to be caught by tests that name no row."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "code.py").touch()
    subprocess.run(["git", "init", "--quiet"], cwd=source, check=True)
    copy, command = mutate.Copy(source, tmp_path / "copy"), "echo 1 passed"
    target = mutate.Target((), (command,))
    assert list(mutate.tried(copy, target, [], 10.0, {command: 1})) == []
    with pytest.raises(SystemExit, match="1 tests passed, and 2 were to run: echo 1 passed"):
        list(mutate.tried(copy, target, [], 10.0, {command: 2}))


@pytest.mark.parametrize("name", [name for name, target in mutate.TARGETS.items() if target.tagged])
def test_targets_have_tests_that_name_rows(name: str) -> None:
    target, n_tests = mutate.of_tagged(mutate.ROOT, mutate.TARGETS[name], ["all"])
    assert set(n_tests) == set(target.tests)
    assert all(n > 0 for n in n_tests.values())


def test_a_target_whose_tests_name_no_row_is_refused() -> None:
    with pytest.raises(SystemExit, match="no test of this target names a row of all"):
        mutate.of_tagged(mutate.ROOT, mutate.TARGETS["kernels"], ["all"])


def test_the_command_prints_what_is_wrong() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.mutate", "core", "--tagged", "Market"], cwd=mutate.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("there is no area 'Market'")
