"""What is built of projects and files, and what their manifests and dependencies may be."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from host.programs import events
from pie import _engine
from pie.bakery import cargo, npm
from pie.bakery.build import Built, build
from pie.bakery.command import shortened
from pie.bakery.manifest import parse_manifest, usage
from pie.bakery.project import open_project
from pie.bakery.requirements import listed_beside, listed_by_manifest
from pie.compiler import COMMAND
from pie.engine import Engine
from pie.errors import PieError
from pie.events import Event, LastEvent
from pie.launch import Launch
from pie.programs import RUNTIMES, Component
from support.command import pie
from support.folders import write
from support.registries import SCOPE, registry
from support.wheels import wheel

PACKAGE = '[package]\nname = "mine"\nversion = "1.2.3"\n'
ECHO = "async def main(input):\n    return input\n"


def last_event(engine: Engine, program: Component, input: Any = None) -> LastEvent:
    return events(engine.launch(program, input=input))[-1]


def returned(engine: Engine, built: Built, input: Any = None) -> Any:
    event = last_event(engine, Component(built.wasm), input)
    assert isinstance(event, Event.Return), event
    return event.value


def test_a_file_is_built_with_what_it_imports(engine: Engine, tmp_path: Path) -> None:
    write(tmp_path, {"Some Name.py": "import helper\nasync def main(input):\n    return helper.N\n", "helper.py": "N = 7", "other.py": ""})
    built = build(tmp_path / "Some Name.py")
    assert built.wasm == tmp_path / "dist" / "some-name.wasm"
    assert parse_manifest(built.manifest_path.read_text()).name == "some-name"
    packed = _engine.read_packed(built.wasm.read_bytes())
    assert packed is not None
    assert sorted(packed["files"]) == ["Some Name.py", "helper.py"]
    assert returned(engine, built) == 7


@pytest.mark.parametrize("source", [{"main.py": ECHO}, {"main.ts": "export async function main(input: unknown) { return input; }"}])
def test_a_standalone_program_carries_its_runtime_and_shares_its_code(engine: Engine, tmp_path: Path, source: dict[str, str]) -> None:
    write(tmp_path, source)
    small, whole = build(tmp_path, tmp_path / "small.wasm"), build(tmp_path, tmp_path / "whole.wasm", standalone=True)
    assert small.n_bytes < 1000 < 10**6 < whole.n_bytes
    assert small.runtime == whole.runtime
    assert returned(engine, small, {"a": 1}) == {"a": 1}
    assert engine.is_prepared(Component(whole.wasm))
    assert returned(engine, whole, {"a": 1}) == {"a": 1}


def test_a_program_for_a_runtime_that_is_gone_says_so(engine: Engine, tmp_path: Path) -> None:
    gone = "sha256:" + "0" * 64
    wasm = _engine.pack_program("python", {"main.py": ECHO.encode()}, "main.py", None, gone)
    event = last_event(engine, Component(tmp_path, content=wasm))
    assert event.code == "unknown-runtime"
    assert gone in event.message


def test_an_engine_keeps_the_runtimes_that_it_ran_with(engine: Engine, tmp_path: Path) -> None:
    wasm = build(write(tmp_path / "p", {"main.js": "export async function main() { return 5; }"})).wasm
    folder = tmp_path / "runtimes"
    folder.mkdir()
    (folder / "javascript.wasm").write_bytes((RUNTIMES / "javascript.wasm").read_bytes())
    data = {"cache_dir": tmp_path / "cache", "data_dir": tmp_path / "data", "runtimes_dir": folder, "compiler": COMMAND}
    first = _engine.Engine(**data)  # type: ignore[arg-type]
    first.prepare(wasm.read_bytes())
    first.stop()
    # The next release brings another runtime.
    (folder / "javascript.wasm").write_bytes((RUNTIMES / "javascript.wasm").read_bytes() + b"\0\x05\x04next")
    second = _engine.Engine(**data)  # type: ignore[arg-type]
    event = events(second.launch(wasm.read_bytes(), Launch()))[-1]
    assert event == Event.Return("5")
    second.stop()


def test_the_manifest_beside_another_program_is_left_alone(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, {"main.py": ECHO, "Pie.toml": f'[package]\nname = "{name}"\nversion = "1"\n'})
    out = tmp_path / "out"
    out.mkdir()
    assert build(tmp_path / "one", out / "one.wasm").manifest_path == out / "Pie.toml"
    assert build(tmp_path / "two", out / "two.wasm").manifest_path == out / "two.Pie.toml"
    assert build(tmp_path / "one", out / "one.wasm").manifest_path == out / "Pie.toml"
    assert parse_manifest((out / "Pie.toml").read_text()).name == "one"


def test_a_manifest_that_is_written_by_hand_is_left_alone(tmp_path: Path) -> None:
    by_hand = '[package]\nname = "main"\nversion = "9"\ndescription = "by hand"\n'
    write(tmp_path, {"main.py": ECHO, "Pie.toml": by_hand})
    built = build(tmp_path / "main.py", tmp_path / "main.wasm")
    assert (tmp_path / "Pie.toml").read_text() == by_hand
    assert built.manifest_path == tmp_path / "main.Pie.toml"
    assert parse_manifest(built.manifest_path.read_text()).version == "0.1.0"


def test_the_manifest_of_an_earlier_build_is_replaced(tmp_path: Path) -> None:
    for version in ("1", "2"):
        built = build(write(tmp_path, {"main.py": ECHO, "Pie.toml": f'[package]\nname = "mine"\nversion = "{version}"\n'}))
    assert built.manifest_path == tmp_path / "dist/Pie.toml"
    assert built.manifest_path.read_text() == (tmp_path / "Pie.toml").read_text()


def test_pure_python_dependencies_are_bundled(engine: Engine, tmp_path: Path, wheels: Path) -> None:
    wheel(wheels, "greetings", {"greetings/__init__.py": "def greet(name):\n    return f'Hello {name}'\n"})
    write(
        tmp_path,
        {
            "p/Pie.toml": PACKAGE + '[program]\nentry = "src/main.py"\n[dependencies]\npython = ["greetings>=1"]\n',
            "p/src/main.py": "import greetings\nasync def main(input):\n    return greetings.greet(input['name'])\n",
        },
    )
    built = build(tmp_path / "p")
    packed = _engine.read_packed(built.wasm.read_bytes())
    assert packed is not None
    assert sorted(packed["files"]) == ["greetings/__init__.py", "main.py"]
    assert returned(engine, built, {"name": "Ada"}) == "Hello Ada"
    done = pie("run", str(tmp_path / "p"), "--dummy", "--", "--name", "Ada")
    assert done.stdout == "Hello Ada\n", done.stderr


def test_a_compiled_extension_is_refused_by_name(tmp_path: Path, wheels: Path) -> None:
    wheel(wheels, "fast", {"fast/__init__.py": "", "fast/core.so": "machine code"})
    write(tmp_path, {"p/main.py": ECHO, "p/requirements.txt": "fast\n"})
    with pytest.raises(PieError, match=r"the dependency 'fast' has a compiled extension \(fast/core.so\)") as error:
        build(tmp_path / "p")
    assert error.value.code == "build-failed"


def test_where_requirements_come_from(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": '[project]\nname = "p"\ndependencies = ["attrs", "inferlet>=0.1"]\n',
            "requirements.txt": "# what it needs\nrequests[socks, use_chardet] ~= 2.31 ; python_version > '3.8'  # the web\n\n"
            "inferlet\nidna==3.7 \\\n  --hash=sha256:82fe\n",
        },
    )
    beside = [
        "attrs",
        "requests[socks, use_chardet] ~= 2.31 ; python_version > '3.8'",
        "idna==3.7    --hash=sha256:82fe",
    ]
    assert listed_beside(tmp_path) == beside
    assert listed_by_manifest(parse_manifest(PACKAGE + '[dependencies]\npython = ["six", "inferlet"]\n')) == ["six"]
    assert listed_by_manifest(None) == []
    (tmp_path / "pyproject.toml").write_text("dependencies =")
    with pytest.raises(PieError, match=r"pyproject\.toml cannot be read"):
        listed_beside(tmp_path)


def test_npm_dependencies_are_bundled(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        tmp_path,
        {
            "package.json": json.dumps({"name": "p", "type": "module", "dependencies": {f"{SCOPE}/greetings": "^1.0.0"}}),
            "Pie.toml": PACKAGE + '[program]\nlanguage = "typescript"\nentry = "src/main.ts"\n',
            "src/main.ts": f"import {{ greet }} from '{SCOPE}/greetings';\nimport {{ runtime }} from 'inferlet';\n"
            "export async function main(input: { name: string }): Promise<string> {\n  runtime.models();\n"
            "  if (input.name === '') throw new Error('nobody');\n  return greet(input.name);\n}\n",
        },
    )
    with registry({"greetings": {"index.js": "export const greet = (name) => `Hello ${name}`;\n"}}) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        built = build(tmp_path)
    packed = _engine.read_packed(built.wasm.read_bytes())
    assert packed is not None
    assert sorted(packed["files"]) == [npm.BUNDLE, npm.SOURCE_MAP]
    assert json.loads(packed["files"][npm.SOURCE_MAP])["sources"] == [f"node_modules/{SCOPE}/greetings/index.js", "src/main.ts"]
    assert returned(engine, built, {"name": "Ada"}) == "Hello Ada"
    failed = last_event(engine, Component(built.wasm), {"name": ""})
    assert isinstance(failed, Event.Error), failed
    assert "main (src/main.ts:5:" in failed.traceback


def test_packages_and_programs_take_from_the_runtime_what_it_brings(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        tmp_path,
        {
            "package.json": json.dumps({"type": "module", "dependencies": {f"{SCOPE}/short": "1", f"{SCOPE}/long": "1"}}),
            "main.js": f"import {{ S }} from '{SCOPE}/short';\nimport {{ L }} from '{SCOPE}/long';\n"
            "import { Sampler } from '@pie-project/inferlet';\nimport { readFile } from 'node:fs/promises';\n"
            "export const main = () => S === L && L === Sampler && typeof readFile === 'function';\n",
        },
    )
    packages = {
        "short": {"index.js": "export { Sampler as S } from 'inferlet';\n"},
        "long": {"index.js": "export { Sampler as L } from '@pie-project/inferlet';\n"},
    }
    with registry(packages) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        built = build(tmp_path)
    assert returned(engine, built) is True


def test_a_package_json_that_names_only_the_sdk_needs_no_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"package.json": '{"dependencies": {"@pie-project/inferlet": "*", "inferlet": "*"}}'})
    write(tmp_path, {"main.js": "import { Sampler } from '@pie-project/inferlet';\nexport const main = () => typeof Sampler;\n"})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build(tmp_path).n_bytes > 0


def test_without_node_npm_dependencies_are_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"package.json": '{"dependencies": {"left-pad": "1"}}', "main.js": "export async function main() {}"})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PieError, match="needs Node with npm") as error:
        build(tmp_path)
    assert error.value.code == "build-failed"
    (tmp_path / "package.json").write_text('{"dependencies": {"inferlet": "*"}}')
    assert build(tmp_path).n_bytes > 0


@pytest.mark.parametrize(
    ("files", "code", "expected"),
    [
        ({"main.py": ECHO, "Pie.toml": "[package"}, "invalid-manifest", r"Pie\.toml:1: this is not TOML"),
        ({"main.py": ECHO, "Pie.toml": PACKAGE + '[program]\nentry = "app.py"'}, "invalid-manifest", "no such file"),
        ({"main.py": ECHO, "Pie.toml": PACKAGE + '[program]\nlanguage = "rust"'}, "invalid-manifest", r"no Cargo\.toml"),
        ({"main.py": ECHO, "Pie.toml": PACKAGE + '[program]\nlanguage = "typescript"'}, "invalid-manifest", "is python"),
        ({"a.txt": "", "Pie.toml": PACKAGE + '[program]\nentry = "a.txt"'}, "invalid-program", "ends in '.txt'"),
        ({"main.js": "", "package.json": "[]"}, "build-failed", r"package\.json cannot be read"),
        ({"main.js": "", "package.json": "[" * 100_000}, "build-failed", r"package\.json cannot be read"),
        ({"main.js": "", "package.json": '{"dependencies": 5}'}, "build-failed", "dependencies is not an object"),
        ({"main.js": "", "package.json": '{"dependencies": "six"}'}, "build-failed", "dependencies is not an object"),
        ({"main.py": "", "pyproject.toml": f"a = {'[' * 100_000}"}, "build-failed", r"pyproject\.toml cannot be read"),
        ({"main.py": "", "pyproject.toml": "[project]\ndependencies = 5"}, "build-failed", "not a list of texts"),
        ({"main.py": "", "pyproject.toml": "[project]\ndependencies = 'six'"}, "build-failed", "not a list of texts"),
        ({"main.py": "", "pyproject.toml": "[project]\ndependencies = [5]"}, "build-failed", "not a list of texts"),
        ({"main.py": "", "pyproject.toml": "[project]\ndependencies = ['-e.']"}, "build-failed", "'-e.' is an option of the installer"),
        ({"main.py": "", "pyproject.toml": f"[{'a.' * 100_000}a]"}, "build-failed", "a key has more than 32 parts"),
        ({"main.py": "", "pyproject.toml": "#" * 300_000}, "invalid-program", "more than the 262144"),
        ({"main.py": "", "pyproject.toml": "[project]\ndependencies = [' --pre']"}, "build-failed", "is an option of the installer"),
        ({"notes.txt": ""}, "invalid-program", "holds no program"),
        ({"lib.rs": ""}, "invalid-program", "`pie new NAME --rust` makes one"),
    ],
)
def test_a_project_that_cannot_be_built_says_why(tmp_path: Path, files: dict[str, str], code: str, expected: str) -> None:
    with pytest.raises(PieError, match=expected) as error:
        build(write(tmp_path, files))
    assert error.value.code == code
    assert not (tmp_path / "dist").exists()


def unreadable(path: Path) -> None:
    """A file whose reading fails, whoever reads: a folder in its place would not be taken for a file."""
    path.symlink_to("/proc/self/mem")


@pytest.mark.parametrize(
    ("file", "other"),
    [("Pie.toml", "main.py"), ("Cargo.toml", "src/lib.rs"), ("pyproject.toml", "main.py"), ("package.json", "main.js")],
)
def test_a_file_that_cannot_be_read_is_one_clear_error(tmp_path: Path, file: str, other: str) -> None:
    write(tmp_path, {other: ECHO})
    unreadable(tmp_path / file)
    with pytest.raises(PieError, match=f"{file}.*cannot be read"):
        build(tmp_path)


def test_a_place_where_cargo_cannot_build_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"p/Cargo.toml": '[package]\nname = "p"\nversion = "1.0.0"\n', "p/src/lib.rs": "", "file": ""})
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path / "file"))
    with pytest.raises(PieError, match="cannot be used to build in: Not a directory") as caught:
        build(tmp_path / "p")
    assert caught.value.code == "build-failed"


def test_a_path_that_cannot_be_looked_at_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, *, dir_fd: int | None = None) -> os.stat_result:
        raise PermissionError(errno.EACCES, "Permission denied", name)

    monkeypatch.setattr(os, "lstat", refuse)
    with pytest.raises(PieError, match=r"Pie\.toml' cannot be read: Permission denied") as caught:
        open_project(tmp_path)
    assert caught.value.code == "unknown-program"


def test_a_manifest_that_is_no_text_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": ECHO})
    (tmp_path / "Pie.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PieError, match="byte 0 is not UTF-8") as error:
        open_project(tmp_path)
    assert error.value.code == "invalid-manifest"


def test_a_built_program_is_not_built_again(tmp_path: Path) -> None:
    built = build(write(tmp_path, {"main.py": ECHO}))
    with pytest.raises(PieError, match="is built already"):
        build(built.wasm)


def test_rust_that_does_not_compile_shows_what_cargo_said(tmp_path: Path) -> None:
    write(tmp_path, {"Cargo.toml": '[package]\nname = "broken"\nversion = "0.1.0"\n[dependencies', "src/lib.rs": ""})
    with pytest.raises(PieError, match=r"Cargo\.toml") as error:
        build(tmp_path)
    assert error.value.code == "build-failed"


def test_every_error_of_rust_is_shown_and_no_warning(tmp_path: Path) -> None:
    n_errors = 12
    faults = "".join(f'pub fn fault_{number}() -> u8 {{\n    let unused = 1;\n    "text {number}"\n}}\n' for number in range(n_errors))
    manifest = '[package]\nname = "broken"\nversion = "0.1.0"\nedition = "2024"\n[lib]\ncrate-type = ["cdylib"]\n'
    write(tmp_path, {"Cargo.toml": manifest, "src/lib.rs": faults})
    with pytest.raises(PieError) as error:
        build(tmp_path)
    message = error.value.message
    assert f"cargo cannot compile {str(tmp_path)!r}: {n_errors} errors" in message
    assert [number for number in range(n_errors) if f'"text {number}"' not in message] == []
    assert "warning" not in message
    assert "aborting due to" not in message


def test_a_future_that_rust_drops_is_told_with_its_line(tmp_path: Path) -> None:
    manifest = '[package]\nname = "forgetful"\nversion = "0.1.0"\nedition = "2024"\n[lib]\ncrate-type = ["cdylib"]\n'
    text = "async fn answer() -> u8 {\n    7\n}\n\npub async fn main() {\n    answer();\n}\n"
    write(tmp_path, {"Cargo.toml": manifest, "src/lib.rs": text})
    with pytest.raises(PieError, match=r"write `\.await` behind the call") as error:
        build(tmp_path)
    assert error.value.code == "build-failed"
    assert "src/lib.rs:6" in error.value.message


def test_a_wait_of_the_sdk_that_rust_drops_is_told_too(tmp_path: Path) -> None:
    said = "futures do nothing unless you `.await` or poll them"
    warning = {
        "code": {"code": "unused_must_use"},
        "message": "unused return value of `session::receive` that must be used",
        "rendered": "warning: unused return value\n --> src/lib.rs:6",
        "children": [{"level": "note", "message": said}],
    }
    of_cargo = {"reason": "compiler-message", "manifest_path": str(tmp_path / "Cargo.toml")}
    dropped = list(cargo._dropped_futures(json.dumps({**of_cargo, "message": warning}), tmp_path))
    assert dropped == ["warning: unused return value\n --> src/lib.rs:6"]
    other = {**warning, "message": "unused return value of `trim`", "children": [{"level": "note", "message": "it returns a new text"}]}
    assert list(cargo._dropped_futures(json.dumps({**of_cargo, "message": other}), tmp_path)) == []
    # What a macro prints may look so, and be anything.
    for printed in ({**other, "children": 5}, {**other, "children": [5, {"message": 5}]}, {"code": {"code": "unused_must_use"}}):
        assert list(cargo._dropped_futures(json.dumps({**of_cargo, "message": printed}), tmp_path)) == []
    assert list(cargo._dropped_futures(json.dumps({**of_cargo, "manifest_path": 5, "message": warning}), tmp_path)) == []


def test_what_a_macro_prints_is_no_message_of_cargo() -> None:
    said = '{"reason": "one"}\n{ printed\n' + "[" * 100_000 + '\n5\n[1]\n{"reason": "two"}\n'
    assert [message["reason"] for message in cargo._messages(said)] == ["one", "two"]


@pytest.mark.parametrize(("n_lines", "n_left_out"), [(160, 0), (161, 1), (10_000, 9840)])
def test_of_what_a_tool_said_the_beginning_and_the_end_are_shown(n_lines: int, n_left_out: int) -> None:
    shown = shortened("\n".join(f"line {number}" for number in range(n_lines)))
    assert shown.startswith("line 0\n")
    assert shown.endswith(f"line {n_lines - 1}")
    assert (f"[{n_left_out} lines are left out]" in shown) == (n_left_out > 0)
    assert len(shortened("x" * 10**6)) < 2000


PARAMETERS = (
    PACKAGE
    + """[parameters]
prompt = { type = "string", description = "what to say" }
style = { type = "string", default = "short", choices = ["short", "long"] }
n = { type = "int", optional = true, min = 1, max = 9 }
"""
)


def test_help_prints_the_parameters(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": ECHO, "Pie.toml": PARAMETERS})
    expected = (
        "mine 1.2.3\n"
        "  --prompt  string  what to say (required)\n"
        '  --style   string  (one of "short", "long"; default "short")\n'
        "  --n       int     (at least 1; at most 9)\n"
    )
    assert usage(parse_manifest(PARAMETERS)) + "\n" == expected
    assert pie("run", str(tmp_path), "--", "--help").stdout == expected
    built = build(tmp_path)
    assert pie("run", str(built.wasm), "--", "--help").stdout == expected


def test_arguments_for_string_parameters_stay_text(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": ECHO, "Pie.toml": PARAMETERS})
    done = pie("run", str(tmp_path), "--dummy", "--", "--prompt", "42", "--n", "3")
    assert json.loads(done.stdout) == {"prompt": "42", "n": 3, "style": "short"}, done.stderr


@pytest.mark.rows("OLD-015")
def test_a_manifest_that_is_given_takes_the_place_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": ECHO, "other.toml": PARAMETERS})
    built = build(tmp_path)
    done = pie("run", "--path", str(built.wasm), "--manifest", str(tmp_path / "other.toml"), "--dummy")
    assert done.returncode == 1
    assert 'error[invalid-input]: the parameter "prompt" is missing; expected a string (what to say)' in done.stderr


def test_with_a_path_all_that_follows_is_for_the_program(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": ECHO})
    done = pie("run", "--dummy", "--path", str(tmp_path), "--", "./word", "--n", "3")
    assert json.loads(done.stdout) == {"_positional": ["./word"], "n": 3}, done.stderr


def test_the_output_is_a_wasm_file_and_nothing_else_is_replaced(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": ECHO, "Pie.toml": '[package]\nname = "mine"\nversion = "0.1.0"\n'})
    os.mkfifo(tmp_path / "pipe.wasm")
    (tmp_path / "folder.wasm").mkdir()
    for output, part in [
        ("main.py", "does not end in .wasm"),
        ("Pie.toml", "does not end in .wasm"),
        ("missing/", "does not end in .wasm"),
    ]:
        done = pie("build", ".", "-o", output, cwd=tmp_path)
        assert done.returncode == 1, output
        assert "error[build-failed]" in done.stderr, output
        assert part in done.stderr
    done = pie("build", ".", "-o", "pipe.wasm", cwd=tmp_path)
    assert done.returncode == 1
    assert "error[invalid-program]: 'pipe.wasm' cannot be read: it is a named pipe and not a regular file" in done.stderr
    (tmp_path / "pipe.wasm").unlink()
    assert (tmp_path / "main.py").read_text() == ECHO
    assert pie("build", ".", "-o", "folder.wasm", cwd=tmp_path).returncode == 0
    assert (tmp_path / "folder.wasm" / "mine.wasm").is_file()


def test_no_folder_is_made_for_an_output(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": ECHO})
    done = pie("build", ".", "-o", "absent/inner/x.wasm", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "'absent/inner/x.wasm' cannot be written: there is no folder 'absent/inner'; make it before" in done.stderr
    assert not (tmp_path / "absent").exists()
    assert pie("build", ".", "-o", "main.py/x.wasm", cwd=tmp_path).returncode == 1


def test_a_program_has_to_be_named() -> None:
    done = pie("run", "--dummy")
    assert done.returncode == 2
    assert "name the program" in done.stderr


@pytest.mark.rows("OLD-014")
def test_bakery_is_the_same_by_another_name(tmp_path: Path) -> None:
    import sys

    write(tmp_path, {"main.py": ECHO, "Pie.toml": PACKAGE})
    code = "import sys; from pie.cli import bakery; sys.argv = ['bakery', 'build', sys.argv[1], '-o', sys.argv[2]]; bakery()"
    target = tmp_path / "x.wasm"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path), str(target)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert target.read_bytes() == build(tmp_path).wasm.read_bytes()
