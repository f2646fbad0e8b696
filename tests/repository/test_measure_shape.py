"""The tool that measures the shape of a tree: lines, the longest file and the longest function, beside a commit's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import measure_shape
from tools.measure_shape import PARTS, Shape, is_code, python_functions, script_functions, shape, shapes

ROOT = Path(__file__).resolve().parents[2]
RUST = "fn one() {\n    two();\n}\n\n#[cfg(test)]\nmod tests {\n    fn of_tests() {\n        a();\n        b();\n    }\n}\n"
PYTHON = "async def one():\n    def inner():\n        pass\n    return inner\n"
SCRIPT = """export class A {
  async read<T>(): Promise<T> {
    if (this.#a()) {
      return 1;
    }
    return 2;
  }
}

export function wait(
  a: number,
): number {
  return a;
}
"""


def test_functions_are_measured_in_each_language() -> None:
    assert python_functions(PYTHON) == {"one in line 1": 4, "inner in line 2": 2}
    assert script_functions(SCRIPT) == {"read in line 2": 6, "wait in line 10": 5}
    found = shape({"rust/core/src/a.rs": RUST, "rust/core/src/b.rs": "fn b() {}\n"})
    assert found == Shape(2, 5, (4, "a.rs"), (3, "a.rs: one in line 1"))
    assert shape({}) == Shape(0, 0, (0, "none"), (0, "none"))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("rust/core/src/a.rs", "", True),
        ("rust/core/src/tests.rs", "", False),
        ("rust/core/src/jobs_tests.rs", "", False),
        ("rust/core/src/modelled_queue.rs", "", False),
        ("rust/core/src/latest.rs", "", True),
        ("js/inferlet/src/host.d.ts", "", False),
        ("python/inferlet/a.py", "# Generated from tools/errors.toml.\n", False),
        ("python/inferlet/a.toml", "", False),
    ],
)
def test_tests_and_what_is_generated_are_left_out(name: str, text: str, expected: bool) -> None:
    assert is_code(name, text) is expected


def test_a_commit_stands_before_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rust/core/src/a.rs"
    file.parent.mkdir(parents=True)
    file.write_text("fn a() {}\n")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    for arguments in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "a")):
        subprocess.run([*git, *arguments], cwd=tmp_path, check=True)
    file.write_text("fn a() {\n    b();\n}\n")
    monkeypatch.setattr(measure_shape, "ROOT", tmp_path)
    assert measure_shape.main(["--at", "HEAD"]) == 0
    line = "| rust/core | 1 | 1 -> 3 | 1 (a.rs) -> 3 (a.rs) | 1 (a.rs: a in line 1) -> 3 (a.rs: a in line 1) |"
    assert line in capsys.readouterr().out.splitlines()
    with pytest.raises(SystemExit, match="git has no commit 'never' here"):
        measure_shape.main(["--at", "never"])


def test_every_part_is_there() -> None:
    found = shapes(measure_shape.files_now(ROOT))
    assert found.keys() == PARTS.keys()
    assert {part for part, one in found.items() if one.n_files == 0} == set()
