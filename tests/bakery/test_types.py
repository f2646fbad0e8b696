"""Types: `pie build --check`, the types beside loose files, and the link that commands make in a project."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pie.bakery import sdk, type_check
from pie.bakery.build import build, ready
from pie.bakery.new import new
from pie.bakery.project import open_project
from pie.errors import PieError
from support.command import pie
from support.folders import write
from support.wheels import wheel

TSC = Path(__file__).resolve().parents[2] / "js/inferlet/node_modules/.bin/tsc"
TIMER = """import { Context, Model, Sampler } from 'inferlet';
import * as same from '@pie-project/inferlet';
import data from './data.json' with { type: 'json' };

export async function main(input: { name: string }): Promise<string> {
  await new Promise((r) => setTimeout(r, 20));
  await new Promise<void>((resolve) => setTimeout(resolve));
  const late: string = await new Promise((resolve) => setTimeout(resolve, 20, 'late'));
  const timer: number = setInterval(() => {}, 10);
  clearInterval(timer);
  setTimeout((a: number, b: string) => console.log(a, b), 10, 1, 'two');
  const model = Model.load(same.runtime.models()[0]!);
  using ctx = new Context(model).user(`${data[0]} ${input.name} ${late}`);
  return await ctx.generate(Sampler.topP(0.6, 0.95), { maxTokens: 8 }).collectText();
}
"""
WRONG = "export async function main(): Promise<number> {\n  const n: number = 'x';\n  return n;\n}\n"


def tsc(folder: Path) -> str:
    """What the compiler says of a folder; nothing where all is right."""
    done = subprocess.run([str(TSC), "-p", str(folder)], capture_output=True, text=True, check=False)
    return done.stdout


@pytest.fixture
def with_tsc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{TSC.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def without_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "no-tools").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "no-tools"))
    monkeypatch.setattr(type_check.importlib.util, "find_spec", lambda _: None)


def test_loose_files_get_types(tmp_path: Path) -> None:
    write(tmp_path, {"hello.ts": TIMER, "data.json": "[1]"})
    done = pie("types", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert tsc(tmp_path) == ""
    assert (tmp_path / ".pie/.gitignore").read_text().endswith("*\n")
    write(tmp_path, {"hello.ts": WRONG})
    assert "hello.ts(2,9): error TS2322" in tsc(tmp_path)
    # Again, and from elsewhere: nothing changes.
    before = (tmp_path / "tsconfig.json").read_bytes()
    assert pie("types", str(tmp_path)).returncode == 0
    assert (tmp_path / "tsconfig.json").read_bytes() == before


def test_settings_of_ones_own_are_left_as_they_are(tmp_path: Path) -> None:
    write(tmp_path, {"hello.ts": TIMER, "data.json": "[1]", "tsconfig.json": "{}"})
    done = pie("types", cwd=tmp_path)
    assert done.returncode == 1
    assert '"inferlet": ["./.pie/sdk/js/index.d.ts"]' in done.stderr
    assert ".pie/sdk/js/globals.d.ts" in done.stderr
    assert (tmp_path / "tsconfig.json").read_text() == "{}"
    done = pie("types", str(tmp_path / "missing"))
    assert done.returncode == 1
    assert "is not a folder" in done.stderr


def test_types_are_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    folder = write(tmp_path / "p", {"hello.ts": TIMER})
    (folder / ".pie").symlink_to("../outside")
    done = pie("types", cwd=folder)
    assert done.returncode == 1
    assert "is a link, and nothing is made outside" in done.stderr
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("command", ["run", "build"])
def test_running_makes_the_types_of_a_project_as_building_does(tmp_path: Path, command: str) -> None:
    project = new("mine", "typescript", tmp_path)
    shutil.rmtree(project / ".pie")
    done = pie(command, str(project), *(["--dummy"] if command == "run" else []))
    assert done.returncode == 0, done.stderr
    write(project, {"src/main.ts": TIMER, "src/data.json": "[1]"})
    config = (project / "tsconfig.json").read_text()
    (project / "tsconfig.json").write_text(config.replace('"noEmit": true,', '"noEmit": true, "resolveJsonModule": true,'))
    assert tsc(project) == ""


def test_a_link_that_another_command_makes_meanwhile_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Path.symlink_to

    def make_twice(path: Path, target: Path, target_is_directory: bool = False) -> None:
        make(path, target, target_is_directory)
        make(path, target, target_is_directory)

    monkeypatch.setattr(Path, "symlink_to", make_twice)
    place = sdk.make_link(tmp_path)
    assert place.readlink() == sdk.FOLDER


def test_a_project_that_names_no_types_is_left_alone(tmp_path: Path) -> None:
    ready(open_project(write(tmp_path, {"main.ts": WRONG, "tsconfig.json": "{}"})))
    assert not (tmp_path / ".pie").exists()


def test_a_folder_that_cannot_be_written_runs_all_the_same(tmp_path: Path) -> None:
    # A file in the place of the folder: even root cannot make a link in it.
    project = new("mine", "typescript", tmp_path)
    shutil.rmtree(project / ".pie")
    (project / ".pie").write_text("")
    ready(open_project(project))


@pytest.mark.usefixtures("with_tsc")
@pytest.mark.parametrize("has_settings", [True, False])
def test_tsc_checks_what_is_built(tmp_path: Path, has_settings: bool) -> None:
    project = new("mine", "typescript", tmp_path) if has_settings else tmp_path / "loose"
    path = project if has_settings else project / "main.ts"
    write(
        project,
        {
            "src/main.ts" if has_settings else "main.ts": TIMER.replace(
                "import data from './data.json' with { type: 'json' };", "const data = [1];"
            )
        },
    )
    built = build(path, with_types=True)
    assert built.types == "tsc has found nothing wrong with the types"
    write(project, {"src/main.ts" if has_settings else "main.ts": WRONG})
    with pytest.raises(PieError, match=r"tsc has found faults:\n.*main\.ts\(2,9\): error TS2322") as caught:
        build(path, with_types=True)
    assert caught.value.code == "build-failed"
    # Nobody asked.
    assert build(path).types is None


def test_mypy_checks_what_is_built_with_its_packages(tmp_path: Path, wheels: Path) -> None:
    wheel(wheels, "greetings", {"greetings/__init__.py": "def greet(name: str) -> str:\n    return name\n", "greetings/py.typed": ""})
    right = "import greetings\nimport helper\nasync def main(input: dict[str, str]) -> str:\n    return greetings.greet(helper.NAME)\n"
    project = write(tmp_path / "p", {"main.py": right, "helper.py": "NAME = 'Ada'\n", "requirements.txt": "greetings\n"})
    assert build(project, with_types=True).types == "mypy has found nothing wrong with the types"
    write(project, {"main.py": right.replace("helper.NAME", "5"), "helper.py": "NAME: int = 'Ada'\n"})
    with pytest.raises(PieError, match="mypy has found faults") as caught:
        build(project, with_types=True)
    assert "main.py:4: error: Argument 1 to" in caught.value.message
    assert "helper.py:1: error: Incompatible types" in caught.value.message
    assert not (project / ".mypy_cache").exists()


@pytest.mark.usefixtures("without_tools")
@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("main.ts", WRONG, "tsc is not there; install it with `npm install --save-dev typescript`"),
        ("main.js", "export const main = () => 1;\n", "JavaScript is checked where there is a tsconfig.json"),
        ("main.py", "async def main(input): ...\n", "mypy is not there; install it with `python -m pip install mypy`"),
    ],
)
def test_where_no_checker_is_there_it_says_so(tmp_path: Path, file: str, text: str, expected: str) -> None:
    built = build(write(tmp_path / "p", {file: text}), with_types=True)
    assert built.types is not None
    assert built.types.startswith("the types were not checked: ")
    assert expected in built.types


def test_the_command_prints_what_was_found(tmp_path: Path) -> None:
    write(tmp_path, {"main.js": "export const main = () => 1;\n"})
    done = pie("build", "--check", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the types were not checked: JavaScript is" in done.stdout


def test_the_types_are_those_of_the_sdk_by_both_names() -> None:
    settings = type_check.loose_settings("types")
    paths = json.loads(json.dumps(settings))["compilerOptions"]["paths"]
    assert paths == {"inferlet": ["types/index.d.ts"], "@pie-project/inferlet": ["types/index.d.ts"]}
