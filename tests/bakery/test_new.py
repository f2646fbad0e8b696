"""From an empty folder: a new program is built, runs, and passes its own test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pie.bakery.new import new
from pie.errors import PieError
from support.command import environment, pie

MAX_SMALL_BYTES = 4_000
MAX_RUST_BYTES = 400_000


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return pie("run", str(program), "--dummy", "--seed", "7", "--", *arguments)


@pytest.mark.parametrize("flag", ["--python", "--ts", "--js"])
def test_a_new_program_runs_and_is_built_to_the_same_program(tmp_path: Path, flag: str) -> None:
    made = pie("new", "first-one", flag, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    project = tmp_path / "first-one"
    from_source = run(project, "--name", "Ada")
    assert from_source.returncode == 0, from_source.stderr
    assert from_source.stdout.strip()
    built = pie("build", cwd=project)
    assert built.returncode == 0, built.stderr
    wasm = project / "dist" / "first-one.wasm"
    assert wasm.stat().st_size <= MAX_SMALL_BYTES
    assert (project / "dist" / "Pie.toml").read_text() == (project / "Pie.toml").read_text()
    assert "sha256:" in built.stdout
    assert "--max-tokens" in built.stdout
    assert run(wasm, "--name", "Ada").stdout == from_source.stdout
    first = wasm.read_bytes()
    wasm.unlink()
    assert pie("build", cwd=project).returncode == 0
    assert wasm.read_bytes() == first


def test_the_test_of_a_new_python_program_passes(tmp_path: Path) -> None:
    project = new("mine", "python", tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=project, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


@pytest.mark.parametrize("language", ["typescript", "javascript"])
def test_the_test_of_a_new_script_passes(tmp_path: Path, language: str) -> None:
    project = new("mine", language, tmp_path)  # type: ignore[arg-type]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["node", "--test", "tests/"], cwd=project, env={**environment(), "PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "# pass 2" in done.stdout


def test_editors_find_the_types_of_a_new_typescript_program(tmp_path: Path) -> None:
    project = new("mine", "typescript", tmp_path)
    tsc = Path(__file__).resolve().parents[2] / "js/inferlet/node_modules/.bin/tsc"
    done = subprocess.run([str(tsc), "-p", str(project)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_new_rust_program_is_built_runs_and_passes_its_test(tmp_path: Path) -> None:
    project = new("mine", "rust", tmp_path)
    built = pie("build", str(project), "-o", str(tmp_path / "out" / "mine.wasm"), patience_s=1800)
    assert built.returncode == 0, built.stderr
    wasm = tmp_path / "out" / "mine.wasm"
    assert wasm.stat().st_size <= MAX_RUST_BYTES
    done = pie("run", "--dummy", "--path", str(wasm), "--manifest", str(project / "Pie.toml"), "--", "--name", "Ada")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    refused = run(wasm, "--nmae", "Ada")
    assert refused.returncode == 1
    assert 'error[invalid-input]: there is no parameter "nmae"' in refused.stderr
    target = Path(os.environ.get("CARGO_TARGET_DIR") or tmp_path / "target") / "new-program"
    tested = subprocess.run(
        ["cargo", "test", "--quiet"],
        cwd=project,
        env={**environment(), "CARGO_TARGET_DIR": str(target)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert tested.returncode == 0, tested.stderr
    assert "1 passed" in tested.stdout


@pytest.mark.parametrize("name", ["", "A", "a/b", "../a", "a.b", "1a", "-a", "a\0b", "x" * 65, "a b", "ä"])
def test_a_name_that_no_program_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PieError, match="cannot be the name of a program") as error:
        new(name, "python", tmp_path)
    assert error.value.code == "invalid-name"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "language"), [("test", "rust"), ("self", "rust"), ("inferlet", "rust"), ("class", "python")])
def test_a_word_of_the_language_is_no_name(tmp_path: Path, name: str, language: str) -> None:
    with pytest.raises(PieError, match="choose another name") as error:
        new(name, language, tmp_path)  # type: ignore[arg-type]
    assert error.value.code == "invalid-name"


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kept").write_text("precious")
    done = pie("new", "mine", cwd=tmp_path)
    assert done.returncode == 1
    assert "is there already" in done.stderr
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["kept"]


def test_one_language_is_chosen(tmp_path: Path) -> None:
    done = pie("new", "mine", "--rust", "--ts", cwd=tmp_path)
    assert done.returncode == 1
    assert "rust and typescript" in done.stderr
    assert list(tmp_path.iterdir()) == []
