"""The tool that tries whether tests notice changes: what it changes, and what it says of each change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import mutate
from tools.mutate import Copy, Target, draw, first_failure, row
from tools.mutation_sites import masked, sites

RUST = """
/// Whether a < b.
#[derive(PartialEq)]
pub const MOST: usize = 8;

fn clamp(a: u32, limit: u32) -> u32 {
    // if a > limit { 1 }
    if a > limit && limit != 0 {
        note("a + b < 3");
        return limit - 1;
    }
    a
}

#[cfg(test)]
mod tests {
    fn f() { if 1 < 2 { g(); } }
}
"""
PYTHON = '''
"""Is a < b?"""

def clamp(a: int, limit: int = 8) -> int:
    """a + b"""
    if a > limit and limit != 0:  # a < 3
        self.note("a - 1")
        self.last = limit
        return limit - 1
    return a
'''
SCRIPT = """
// a < b
export function clamp(a: number, limit = 8): number {
  if (a > limit && limit !== 0) {
    note(`a < ${a} + 1`);
    return limit - 1;
  }
  return a;
}
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "a.rs",
            RUST,
            {
                ("comparison", ">", ">="),
                ("comparison", "!=", "=="),
                ("truth", "&&", "||"),
                ("constant", "0", "1"),
                ("constant", "1", "2"),
                ("arithmetic", "-", "+"),
                ("condition", "a > limit && limit != 0", "!(a > limit && limit != 0)"),
                ("statement", 'note("a + b < 3");', ";"),
            },
        ),
        (
            "a.py",
            PYTHON,
            {
                ("comparison", ">", ">="),
                ("comparison", "!=", "=="),
                ("truth", "and", "or"),
                ("constant", "0", "1"),
                ("constant", "1", "2"),
                ("arithmetic", "-", "+"),
                ("condition", "a > limit and limit != 0", "not (a > limit and limit != 0)"),
                ("statement", 'self.note("a - 1")', "pass"),
                ("statement", "self.last = limit", "pass"),
            },
        ),
        (
            "a.ts",
            SCRIPT,
            {
                ("comparison", ">", ">="),
                ("comparison", "!==", "==="),
                ("truth", "&&", "||"),
                ("constant", "0", "1"),
                ("constant", "1", "2"),
                ("arithmetic", "-", "+"),
                ("condition", "a > limit && limit !== 0", "!(a > limit && limit !== 0)"),
                ("statement", "note(`a < ${a} + 1`);", ";"),
            },
        ),
    ],
)
def test_code_alone_is_changed(name: str, text: str, expected: set[tuple[str, str, str]]) -> None:
    assert {(site.kind, site.old, site.new) for site in sites(Path(name), text)} == expected


@pytest.mark.parametrize(("name", "text"), [("a.rs", RUST), ("a.py", PYTHON), ("a.ts", SCRIPT)])
def test_a_change_is_made_in_its_place(name: str, text: str) -> None:
    for site in sites(Path(name), text):
        changed = site.apply(text)
        assert changed != text
        lines, others = text.splitlines(), changed.splitlines()
        assert [number for number, (a, b) in enumerate(zip(lines, others, strict=True), 1) if a != b] == [site.line]


def test_what_is_masked_keeps_its_place() -> None:
    code = masked(RUST, ".rs")
    assert len(code) == len(RUST)
    assert code.count("\n") == RUST.count("\n")
    assert "derive" not in code
    assert "mod tests" not in code


@pytest.mark.parametrize(
    "code",
    [
        "fn f<'a>(x: &'a str) -> Vec<u32> { g::<8>(x) }",
        "fn f() -> [u32; 8] { todo }",
        "fn f(x: (u32, u32)) -> u32 { x.1 }",
        "fn f(it: impl Fn() + Send) {}",
        "pub fn f(n: u32) -> u32;",
        "let x = y;",
        "let f = || g; spawn(move || h);",
    ],
)
def test_types_and_declarations_are_not_changed(code: str) -> None:
    assert sites(Path("a.rs"), code) == []


def test_the_same_seed_draws_the_same_changes(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "code.rs").write_text(RUST)
    (tmp_path / "tests" / "code.rs").write_text(RUST)
    drawn = draw(tmp_path, ["**/*.rs"], 4, seed=5)
    assert drawn == draw(tmp_path, ["**/*.rs"], 4, seed=5)
    assert {site.path for site in drawn} == {Path("code.rs")}
    assert len({site.line for site in drawn}) == len(drawn)
    assert len(draw(tmp_path, ["**/*.rs"], 1000, seed=5)) < 10


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree under version control, whose test looks at a part of what its code does."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "code.py").write_text("def f(a):\n    if a > 2:\n        return 1\n    return 0 - a\n")
    (source / "check.py").write_text("from code_copy import f\n")
    (source / "check.sh").write_text('python3 -B -c \'exec(open("code.py").read()); assert f(3) == 1, "f(3)"\'\n')
    subprocess.run(["git", "init", "--quiet"], cwd=source, check=True)
    return source


def test_what_tests_see_is_caught_and_the_rest_survives(tree: Path, tmp_path: Path) -> None:
    copy = Copy(tree, tmp_path / "copy")
    target = Target(("code.py",), ("true", "bash check.sh"), build="python3 -B -m py_compile code.py")
    outcomes = {
        site.kind: copy.attempt(target, site).word for site in sites(Path("code.py"), (tree / "code.py").read_text()) if site.line > 1
    }
    assert outcomes["condition"] == "caught"
    assert outcomes["arithmetic"] == "survived"
    assert (tmp_path / "copy" / "code.py").read_text() == (tree / "code.py").read_text()


def test_what_does_not_build_or_does_not_end_is_told(tree: Path, tmp_path: Path) -> None:
    copy = Copy(tree, tmp_path / "copy")
    site = sites(Path("code.py"), (tree / "code.py").read_text())[0]
    assert copy.attempt(Target((), ("true",), build="false"), site).word == "does not build"
    endless = copy.attempt(Target((), ("read -r < <(sleep 60)",)), site, limit=0.1)
    assert (endless.word, endless.by) == ("caught", "not done after 0 s")


def test_a_copy_follows_the_tree(tree: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    Copy(tree, folder)
    (folder / "code.py").write_text("changed")
    (tree / "check.py").unlink()
    Copy(tree, folder)
    assert (folder / "code.py").read_text() == (tree / "code.py").read_text()
    assert not (folder / "check.py").exists()


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("FAILED tests/a.py::test_b - assert 1 == 2\n1 failed in 0.1s", "tests/a.py::test_b"),
        ("failures:\n\n---- a::tests::b stdout ----\npanicked", "a::tests::b"),
        ("ok 1 - a\nnot ok 2 - [JS-024] b\n", "not ok 2 - [JS-024] b"),
        ("error: it ended\n", "error: it ended"),
        ("", "ended with an error and printed nothing"),
    ],
)
def test_the_first_test_that_failed_is_named(printed: str, name: str) -> None:
    assert first_failure(printed) == name


def test_a_row_of_the_table_shows_bars(tree: Path) -> None:
    site = sites(Path("a.rs"), RUST)[0]
    outcome = mutate.Outcome(mutate.Site(site.path, "truth", 0, 2, 8, "&&", "||"), "caught", "a::b")
    assert row(3, outcome) == "| 3 | a.rs:8 | `&&` -> `\\|\\|` | caught | a::b |"


def test_every_target_has_code_and_tests() -> None:
    for name, target in mutate.TARGETS.items():
        assert len(draw(mutate.ROOT, target.files, 5, seed=1)) == 5, name
        assert target.tests, name
