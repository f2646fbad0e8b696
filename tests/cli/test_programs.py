"""Which files make up the program behind a path."""

import os
import re
from pathlib import Path

import pytest

from pie.errors import PieError
from pie.programs import MAX_BUNDLE_FILES, Component, Source, load_program
from support.folders import write


def names(program: Component | Source) -> set[str]:
    assert isinstance(program, Source)
    return {path for path, _ in program.files}


def test_a_python_file_brings_what_it_imports_and_nothing_else(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "main.py": "import json, helper\nfrom package.inner import thing\nimport absent",
            "helper.py": "import second",
            "second.py": "import helper",
            "package/__init__.py": "from . import sibling",
            "package/inner.py": "from .deep import x\nthing = 1",
            "package/sibling.py": "",
            "package/deep/__init__.py": "from ..sibling import y",
            "secret.py": "",
        },
    )
    program = load_program(tmp_path / "main.py")
    expected = {
        "main.py",
        "helper.py",
        "second.py",
        "package/__init__.py",
        "package/inner.py",
        "package/sibling.py",
        "package/deep/__init__.py",
    }
    assert names(program) == expected
    assert isinstance(program, Source)
    assert (program.language, program.entry) == ("python", "main.py")


def test_a_typescript_file_brings_its_relative_imports(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.ts": "import { b } from './b.js';\nimport './c';\nconst d = await import(\"./lib/d.ts\");\nimport x from 'inferlet';",
            "b.ts": "export * from './lib/d';",
            "c.js": "import '../outside.js'",
            "lib/d.ts": "",
            "unused.ts": "",
        },
    )
    assert names(load_program(tmp_path / "a.ts")) == {"a.ts", "b.ts", "c.js", "lib/d.ts"}


def test_a_folder_is_taken_whole_but_for_what_tools_leave(tmp_path: Path) -> None:
    write(tmp_path, {"main.ts": "", "data/x.json": "{}", "node_modules/p/index.js": "", ".git/config": "", "a.pyc": ""})
    program = load_program(tmp_path)
    assert names(program) == {"main.ts", "data/x.json"}
    assert isinstance(program, Source)
    assert (program.language, program.entry) == ("javascript", "main.ts")


def test_a_folder_may_keep_its_sources_in_src(tmp_path: Path) -> None:
    write(tmp_path, {"src/main.py": "", "src/other.py": "", "README.md": ""})
    assert names(load_program(tmp_path)) == {"main.py", "other.py"}


def test_a_component_is_a_path(tmp_path: Path) -> None:
    write(tmp_path, {"x.wasm": ""})
    assert load_program(tmp_path / "x.wasm") == Component(tmp_path / "x.wasm")


@pytest.mark.parametrize(
    ("files", "path", "code", "words"),
    [
        ({}, "absent.py", "unknown-program", ["absent.py"]),
        ({"x.rb": ""}, "x.rb", "invalid-program", [".rb", ".py", ".wasm"]),
        ({"other.py": ""}, ".", "invalid-program", ["main.py"]),
    ],
)
def test_what_is_no_program_is_named(tmp_path: Path, files: dict[str, str], path: str, code: str, words: list[str]) -> None:
    write(tmp_path, files)
    with pytest.raises(PieError) as caught:
        load_program(tmp_path / path)
    assert caught.value.code == code
    assert all(word in caught.value.message for word in words)


@pytest.mark.parametrize("name", ["x" * 5000 + ".py", "a\0b.py", "h\udcff.py"])
def test_a_name_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(PieError) as caught:
        load_program(tmp_path / name)
    assert caught.value.code == "unknown-program"
    assert len(caught.value.message) < 600


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.py"
    os.mkfifo(pipe)
    with pytest.raises(PieError, match="is not a regular file") as raised:
        load_program(pipe)
    assert raised.value.code == "invalid-program"


def test_a_huge_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "main.py").touch()
    for file_idx in range(MAX_BUNDLE_FILES):
        (tmp_path / f"{file_idx}.txt").touch()
    with pytest.raises(PieError, match=str(MAX_BUNDLE_FILES)):
        load_program(tmp_path)


def test_a_file_that_does_not_parse_is_left_to_the_language_runtime(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": "def main(:"})
    assert names(load_program(tmp_path / "main.py")) == {"main.py"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("hello.rs", "a program in Rust is a folder with a Cargo.toml; `pie new NAME --rust` makes one"),
        ("poet/src/lib.rs", "a program in Rust is a folder with a Cargo.toml; give 'poet', which has one"),
        ("poet/src", "a program in Rust has a Cargo.toml there: give 'poet', which has one"),
        ("stream/src", "a program in Rust has a Cargo.toml there: `pie new NAME --rust` makes one"),
    ],
)
def test_a_part_of_a_rust_program_is_told_what_to_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, says: str) -> None:
    write(tmp_path, {"hello.rs": "", "poet/Cargo.toml": "[package]\n", "poet/src/lib.rs": "", "stream/src/lib.rs": ""})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PieError, match=re.escape(says)) as error:
        load_program(Path(given))
    assert error.value.code == "invalid-program"
