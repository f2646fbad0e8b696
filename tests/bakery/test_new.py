"""From an empty folder: a new program is built, runs, and passes its own test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pie.bakery.cargo_lock import lock_of_crate
from pie.bakery.manifest import is_program_name, parse_manifest
from pie.bakery.new import new
from pie.errors import PieError
from support.command import environment, pie
from support.folders import write

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
    (tmp_path / "out").mkdir()
    built = pie("build", str(project), "--locked", "-o", str(tmp_path / "out" / "mine.wasm"), patience_s=1800)
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


def test_the_lock_of_a_new_crate_holds_the_crate_and_what_it_needs(tmp_path: Path) -> None:
    locked = (new("poet", "rust", tmp_path) / "Cargo.lock").read_text()
    packages = {one["name"]: one for one in tomllib.loads(locked)["package"]}
    assert packages["poet"] == {"name": "poet", "version": "0.1.0", "dependencies": ["inferlet", "serde", "serde_json"]}
    assert {name for name, one in packages.items() if "source" not in one} == {"poet", "inferlet", "inferlet-macros"}
    assert "serde_core" in packages
    # A name that a crate of the lock has too is told from it by the version.
    locked = (new("elsa", "rust", tmp_path) / "Cargo.lock").read_text()
    assert re.search(r'^ "elsa \d+\.\d+\.\d+",$', locked, re.MULTILINE)


def test_the_lock_of_a_crate_is_as_cargo_writes_it() -> None:
    """The lock of a workspace of one crate, from itself."""
    manifest = b'[package]\nname = "a"\nversion = "1.0.0"\n[dependencies]\nc = "1"\nb = "1"\n'
    head = "# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\nversion = 4\n"
    source = 'source = "registry+https://index"\nchecksum = "00"\n'
    written = f"""{head}
[[package]]
name = "a"
version = "1.0.0"
dependencies = [
 "b",
 "c 1.0.0",
]

[[package]]
name = "b"
version = "1.0.0"
{source}dependencies = [
 "c 2.0.0",
]

[[package]]
name = "c"
version = "1.0.0"
{source}
[[package]]
name = "c"
version = "2.0.0"
{source}"""
    other = f'\n[[package]]\nname = "example"\nversion = "0.1.0"\ndependencies = [\n "d",\n]\n\n[[package]]\nname = "d"\nversion = "1.0.0"\n{source}'
    tested = written.replace(' "c 1.0.0",\n', "") + other
    with pytest.raises(KeyError, match="b 9"):
        lock_of_crate(tested.replace('"c 2.0.0"', '"b 9"').encode(), manifest)
    assert lock_of_crate(tested.encode(), manifest).decode() == written


@pytest.mark.parametrize("name", ["", "A", "a/B", "..", "a/..", ".a", "-a", "a\0b", "x" * 65, "a b", "ä", "a\n", "/"])
def test_a_name_that_no_program_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PieError, match=r"cannot be the (name|folder) of a") as error:
        new(name, "python", tmp_path)
    assert error.value.code == "invalid-name"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["a", "9", "1a", "a.b", "a_b-c.d", "x" * 64, "A", "a/b", ".a", "_a", "-a", "x" * 65, "a b", "ä", "", "a\n"]
)
def test_a_new_program_and_a_manifest_have_one_rule_of_names(name: str) -> None:
    text = f'[package]\nname = {json.dumps(name)}\nversion = "1"\n'
    if is_program_name(name):
        assert parse_manifest(text).name == name
        return
    with pytest.raises(PieError, match=r"package\.name") as caught:
        parse_manifest(text)
    assert caught.value.code == "invalid-manifest"


@pytest.mark.parametrize("language", ["python", "typescript", "javascript", "rust"])
@pytest.mark.parametrize("place", ["my.poet", "9lives", "sub/deeper/poet", "poet/"])
def test_a_program_is_made_at_a_path_and_called_as_its_folder(tmp_path: Path, place: str, language: str) -> None:
    project = new(place, language, tmp_path)  # type: ignore[arg-type]
    assert project == tmp_path / place
    assert parse_manifest((project / "Pie.toml").read_text()).name == place.rstrip("/").rpartition("/")[2]
    if language == "rust":
        made = tomllib.loads((project / "Cargo.toml").read_text())
        assert re.fullmatch("[a-z][a-z0-9_-]*", made["package"]["name"])
        # What the guides use.
        assert {"inferlet", "serde", "serde_json"} <= made["dependencies"].keys()


def test_a_program_is_made_in_the_folder_that_one_is_in(tmp_path: Path) -> None:
    here = tmp_path / "My Poet"
    write(here, {"notes.txt": "precious"})
    done = pie("new", ".", "--lang", "python", cwd=here)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Made a program in this folder. Next: pie run . -- --help\n"
    assert parse_manifest((here / "Pie.toml").read_text()).name == "my-poet"
    assert (here / "notes.txt").read_text() == "precious"
    assert run(here, "--name", "Ada").returncode == 0
    # What is there is not overwritten, and nothing is left half made.
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    done = pie("new", ".", "--ts", cwd=here)
    assert done.returncode == 1
    assert "is there already, and nothing is overwritten" in done.stderr
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


def test_what_was_written_goes_again_where_the_rest_cannot_be(tmp_path: Path) -> None:
    write(tmp_path, {"src": "a file in the place of the folder"})
    with pytest.raises(PieError, match=r"cannot be filled|is there already"):
        new(".", "python", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["src"]


@pytest.mark.parametrize(
    ("flags", "language"),
    [
        ((), "python"),
        (("--typescript",), "typescript"),
        (("--javascript",), "javascript"),
        (("--lang", "ts"), "typescript"),
        (("--lang", "Rust"), "rust"),
        (("--lang", "py", "--python"), "python"),
    ],
)
def test_the_language_is_said_in_several_ways(tmp_path: Path, flags: tuple[str, ...], language: str) -> None:
    done = pie("new", "mine", *flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert parse_manifest((tmp_path / "mine/Pie.toml").read_text()).language == language


def test_a_language_that_there_is_none_of_is_named(tmp_path: Path) -> None:
    done = pie("new", "mine", "--lang", "perl", cwd=tmp_path)
    assert done.returncode == 1
    assert "error[invalid-argument]: --lang 'perl' is not a language of programs; give one of rust, python" in done.stderr
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
