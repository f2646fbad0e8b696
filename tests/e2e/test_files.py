"""Files of programs, by the standard means of each language: whose they are, how long they last, what bounds them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pie.config import EngineConfig, ModelConfig, RuntimeConfig
from pie.engine import Engine
from pie.errors import PieError
from pie.programs import Component, Source, load_program
from support.command import pie, squeezed
from support.engines import started
from support.launching import LANGUAGES, ROOT, Outcome, finish, python_source, typescript_source

SCENARIO = [
    "one\nzwei ä\n",
    12,
    ["a.txt", "deep"],
    "x",
    [ord("x"), 0, 0, ord("y"), 0, 0],
    "ENOENT",
    "ENOTEMPTY",
    "EEXIST",
    "EISDIR",
    "EEXIST",
    [],
    False,
]
PATHS = {
    "python": ROOT / "tests/e2e/files/files.py",
    "typescript": ROOT / "tests/e2e/files/files.ts",
    "rust": ROOT / "build/programs/files.wasm",
}


def program(language: str) -> Component | Source:
    return load_program(PATHS[language])


@contextmanager
def engine(data: Path, **settings: Any) -> Iterator[Engine]:
    """An engine that keeps files below a folder of the test."""
    runtime = RuntimeConfig(**{"fs_free_bytes": 0} | settings)
    opened = Engine(EngineConfig(data_dir=data), runtime=runtime)
    opened.add_model(options=ModelConfig(driver="dummy"))
    with started(opened):
        yield opened


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, Path]]:
    """An engine with the defaults, and its folder."""
    data = tmp_path_factory.mktemp("data")
    with engine(data) as opened:
        yield opened, data


def run(opened: Engine, language: str, task: str, user: str = "ada", **arguments: Any) -> Outcome:
    return finish(opened.launch(program(language), input={"do": task} | arguments, seed=7, username=user))


@pytest.mark.rows("PY-204 JS-212")
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_same_files_in_every_language(kept: tuple[Engine, Path], language: str) -> None:
    outcome = run(kept[0], language, "scenario", user=f"scenario-{language}", root="/scratch")
    assert outcome.value == SCENARIO, outcome.message


@pytest.mark.rows("SES-045")
@pytest.mark.parametrize("language", LANGUAGES)
def test_files_last_between_runs_and_engines(tmp_path: Path, language: str) -> None:
    for text in ("first", "second"):
        with engine(tmp_path) as opened:
            if text == "second":
                assert run(opened, language, "read", path="/scratch/kept.txt").value == "first"
            written = run(opened, language, "write", path="/scratch/kept.txt", text=text)
            assert written.code is None, written.message
            assert run(opened, language, "read", path="/scratch/kept.txt").value == text
    assert (tmp_path / "scratch/user/ada/kept.txt").read_text() == "second"


ERRORS = """
import { appendFile, lstat, mkdir, mkdtemp, open, readFile, readdir, readlink, rename, rmdir, stat, writeFile } from 'node:fs/promises';

async function told(call: Promise<unknown>): Promise<unknown[]> {
  try {
    return [(await call) ?? null];
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    return [code ?? null, message];
  }
}

export async function main(): Promise<unknown[]> {
  await writeFile('/scratch/f', 'text');
  await mkdir('/scratch/d');
  await using folder = await open('/scratch/d');
  return [
    await told(readFile('/scratch')),
    await told(folder.readFile()),
    await told(readdir('/scratch/f')),
    await told(rename('/scratch/f', '/data/x')),
    await told(rename('/scratch/none', '/scratch/x')),
    await told(readFile('/scratch/f', { enc: 'utf8' } as never)),
    await told(writeFile('/scratch/f', 'lost', { encodnig: 'utf8' } as never)),
    await told(mkdir('/scratch/a/b', { recursve: true } as never)),
    await told(writeFile('/scratch/f', 5 as never)),
    await told(appendFile('/scratch/f', 'lost', 'latin1' as never)),
    await told(readFile(5 as never)),
    await told(open('/scratch/f', 'q' as never)),
    await told((stat as any)('/scratch/f', { bigint: true })),
    await told((lstat as any)('/scratch/f', { bigint: true })),
    await told((folder.stat as any)({ bigint: true })),
    await told((rmdir as any)('/scratch/d', { recursive: true })),
    await told((readlink as any)('/scratch/f', { encodnig: 'utf8' })),
    await told((mkdtemp as any)('/scratch/t', { encodnig: 'utf8' })),
    await told(writeFile('/scratch/g', 'mine', { mode: 0o600 } as never)),
    await told(readFile('/scratch/f', 'utf8')),
  ];
}
"""


@pytest.mark.rows("JS-212")
def test_errors_of_files_in_javascript_say_what_is_at_fault(kept: tuple[Engine, Path]) -> None:
    outcome = finish(kept[0].launch(typescript_source(ERRORS), input={}, username="errors"))
    assert outcome.code is None, outcome.message
    elsewhere = "a program has no files of the machine but in folders given by `pie run --mount DIR=/data`; it keeps its own below /scratch"
    expected = [
        ("EISDIR", "EISDIR: illegal operation on a directory, read '/scratch'"),
        ("EISDIR", "EISDIR: illegal operation on a directory, read '/scratch/d'"),
        ("ENOTDIR", "ENOTDIR: not a directory, scandir '/scratch/f'"),
        ("ENOENT", f"ENOENT: no such file or directory, rename '/scratch/f' -> '/data/x': {elsewhere}"),
        ("ENOENT", "ENOENT: no such file or directory, rename '/scratch/none' -> '/scratch/x'"),
        ("invalid-argument", "readFile() has no option 'enc'; its options are encoding, flag"),
        ("invalid-argument", "writeFile() has no option 'encodnig'; did you mean 'encoding'?"),
        ("invalid-argument", "mkdir() has no option 'recursve'; did you mean 'recursive'?"),
        ("invalid-argument", "a file holds a string or bytes, not number"),
        ("invalid-argument", "the encoding is latin1; give 'utf8', or none for bytes"),
        ("invalid-argument", "a path is a string, not number"),
        ("invalid-argument", "the flag is q; give one of r, r+, w"),
        ("invalid-argument", "stat() has no option 'bigint'; it takes none, so leave it out"),
        ("invalid-argument", "lstat() has no option 'bigint'; it takes none, so leave it out"),
        ("invalid-argument", "stat() has no option 'bigint'; it takes none, so leave it out"),
        ("invalid-argument", "rmdir() has no option 'recursive'; write `rm(path, { recursive: true })`"),
        ("invalid-argument", "readlink() has no option 'encodnig'; did you mean 'encoding'?"),
        ("invalid-argument", "mkdtemp() has no option 'encodnig'; did you mean 'encoding'?"),
    ]
    *errors, mine, text = outcome.value
    assert [(code, message[: len(words)]) for (code, message), (_, words) in zip(errors, expected, strict=True)] == expected
    # What is refused has emptied nothing.
    assert (mine, text) == ([None], ["text"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_users_have_folders_of_their_own(kept: tuple[Engine, Path], language: str) -> None:
    users = [f"{name}-{language}" for name in ("ada", "Ada", "../ada", "a/b", "", "ada.")]
    for user in users:
        assert run(kept[0], language, "write", user=user, path="/scratch/mine", text=user).code is None
    for user in users:
        assert run(kept[0], language, "read", user=user, path="/scratch/mine").value == user
        assert run(kept[0], language, "list", user=user, path="/scratch").value == ["mine"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_full_folder_refuses_with_a_code_of_its_own(tmp_path: Path, language: str) -> None:
    with engine(tmp_path, fs_bytes=100_000, fs_files=5) as opened:
        # The C library under Python and Rust has one number for every write that fails.
        name = "EDQUOT" if language == "typescript" else "EIO"
        assert run(opened, language, "fill", path="/scratch/big", size=200_000).value == [name, "limit-files", True]
        failed = run(opened, language, "uncaught", path="/scratch/big", size=200_000)
        assert failed.code == "limit-files"
        assert failed.message is not None
        assert "more than runtime.fs_bytes = 100000; remove some, or raise the limit" in failed.message
        assert run(opened, language, "many", path="/scratch", n=10).value == [4, "EDQUOT", "limit-files"]
        # What is removed is given back.
        (tmp_path / "scratch/user/ada/3").unlink()
    with engine(tmp_path, fs_bytes=100_000, fs_files=5) as opened:
        assert run(opened, language, "many", path="/scratch", n=10).value == [4, "EDQUOT", "limit-files"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_path_that_is_too_long_is_an_error_of_its_own(kept: tuple[Engine, Path], language: str) -> None:
    opened, user = kept[0], f"long-{language}"
    paths = ["/scratch/" + "x" * 100_000, "/scratch/" + "y/" * 50_000]
    assert run(opened, language, "reach", user=user, paths=paths).value == [["ENAMETOOLONG"] * 3] * 2
    for path in paths:
        failed = run(opened, language, "write", user=user, path=path, text="")
        assert failed.code == "limit-files"
        assert failed.message is not None
        assert re.search(r"a path of \d{5,6} bytes is longer than 4096, the most that one may have; give a shorter one", failed.message)
    # A name that the system alone finds too long has no code of the engine.
    named = "/scratch/" + "z" * 1000
    assert run(opened, language, "reach", user=user, paths=[named]).value == [["ENAMETOOLONG"] * 3]
    assert run(opened, language, "write", user=user, path=named, text="").code == "program-error"


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_outside_is_reached(kept: tuple[Engine, Path], language: str) -> None:
    opened, data = kept
    (data / "secret").write_text("TOP-SECRET-42")
    user = f"escape-{language}"
    assert run(opened, language, "write", user=user, path="/scratch/x", text="").code is None
    own = data / "scratch/user" / user
    (own / "outwards").symlink_to("../../../secret")
    (own / "absolute").symlink_to(data / "secret")
    (own / "folder").symlink_to("../../..")
    (own / "loop").symlink_to("loop")
    os.mkfifo(own / "pipe")
    paths = [
        *(f"/scratch/{name}" for name in ("outwards", "absolute", "folder/secret", "loop", "pipe", "outwards/", "../ada", "x/../../ada")),
        *(f"/scratch/{name}" for name in ("../../../secret", "./.././../../secret", "../" * 40 + "etc/passwd", "x" * 100_000)),
        *("/etc/passwd", "/", "", ".", "..", "secret", "../secret", str(data / "secret"), "/dev/zero", "/proc/self/mem"),
        *("//etc/passwd", "/scratchy", "/scratch/../etc/passwd", "x/" * 50_000),
    ]
    found = run(opened, language, "reach", user=user, paths=paths)
    assert found.code is None, found.message
    for path, stopped in zip(paths, found.value, strict=True):
        assert None not in stopped, path
    assert (data / "secret").read_text() == "TOP-SECRET-42"
    assert sorted(path.name for path in data.iterdir()) == [".lock", "runtimes", "scratch", "secret"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_folder_is_given_to_read(tmp_path: Path, language: str) -> None:
    shared = tmp_path / "shared"
    (shared / "deep").mkdir(parents=True)
    (shared / "deep/a.txt").write_text("given")
    (shared / "out").symlink_to("../secret")
    (tmp_path / "secret").write_text("TOP-SECRET-42")
    os.mkfifo(shared / "pipe")
    with engine(tmp_path / "data", fs_mounts=(f"{shared}=/data", f"{shared}/deep=/more/deep")) as opened:
        assert run(opened, language, "read", path="/data/deep/a.txt").value == "given"
        assert run(opened, language, "read", path="/more/deep/a.txt").value == "given"
        assert run(opened, language, "list", path="/data").value == ["deep", "out", "pipe"]
        assert run(opened, language, "scenario", root="/scratch").value == SCENARIO
        found = run(opened, language, "reach", paths=["/data/new", "/data/deep/a.txt", "/data/out", "/data/pipe"])
        assert found.value[0] == ["ENOENT", "EROFS", "EROFS"]
        assert found.value[1] == [None, "EROFS", "EROFS"]
        assert all(stopped is not None for row in found.value[2:] for stopped in row)
    assert (shared / "deep/a.txt").read_text() == "given"


@pytest.mark.parametrize("language", LANGUAGES)
def test_where_files_are_off_every_use_says_how_to_turn_them_on(tmp_path: Path, language: str) -> None:
    with engine(tmp_path, fs_scope="off") as opened:
        outcomes = [
            run(opened, language, "uncaught", path="/scratch/x", size=1),
            run(opened, language, "read", path="/scratch/x"),
            run(opened, language, "list", path="/scratch"),
            run(opened, language, "list", path="/"),
            run(opened, language, "make", path="/scratch/deep/er"),
        ]
    for outcome in outcomes:
        assert outcome.code == "files-off"
        assert outcome.message is not None
        assert outcome.message.endswith('runtime.fs_scope = "off"; set it to "user" in the configuration of the engine')
    assert not (tmp_path / "scratch").exists()


@pytest.mark.parametrize("language", LANGUAGES)
def test_one_engine_at_a_time_keeps_files_in_a_folder(tmp_path: Path, language: str) -> None:
    with engine(tmp_path) as first:
        assert run(first, language, "write", path="/scratch/kept.txt", text="first").code is None
        with engine(tmp_path) as second:
            outcome = run(second, language, "uncaught", path="/scratch/x", size=1)
        assert outcome.code == "files-off"
        assert outcome.message is not None
        assert f"the folder {tmp_path} is used by another engine" in outcome.message
        assert "engine.data_dir" in outcome.message
    with engine(tmp_path) as third:
        assert run(third, language, "read", path="/scratch/kept.txt").value == "first"


@pytest.mark.parametrize(
    ("scope", "folders"),
    [("shared", ["shared"]), ("program", ["program/ada", "program/bob"]), ("user", ["user/ada", "user/bob"]), ("process", ["process"])],
)
def test_whose_the_folder_is(tmp_path: Path, scope: str, folders: list[str]) -> None:
    one, other = python_source(PATHS["python"].read_text()), load_program(PATHS["rust"])
    with engine(tmp_path, fs_scope=scope) as opened:

        def does(what: Component | Source, user: str, task: str, **arguments: Any) -> Outcome:
            return finish(opened.launch(what, input={"do": task} | arguments, username=user))

        def lists(what: Component | Source, user: str) -> list[str]:
            listed: list[str] = does(what, user, "list", path="/scratch").value
            return listed

        assert does(one, "ada", "write", path="/scratch/a", text="x").code is None
        seen = [lists(one, "ada"), lists(other, "ada"), lists(one, "bob")]
    expected = {
        "shared": [["a"], ["a"], ["a"]],
        "program": [["a"], [], []],
        "user": [["a"], ["a"], []],
        "process": [[], [], []],
    }
    assert seen == expected[scope]
    assert all((tmp_path / "scratch" / folder).is_dir() for folder in folders)
    if scope == "process":
        # They are removed off the threads that run programs.
        while list((tmp_path / "scratch/process").iterdir()):
            time.sleep(0.01)


def test_no_more_files_are_open_than_may_be(tmp_path: Path) -> None:
    text = """
import errno
from inferlet import files

def main(input):
    opened = []
    try:
        while len(opened) < 100:
            opened.append(open(f"/scratch/{len(opened)}", "wb"))
    except OSError as error:
        refused = [len(opened), errno.errorcode[error.errno], files.refusal().code]
    opened.pop().close()
    open("/scratch/again", "wb").close()
    return refused
"""
    with engine(tmp_path, fs_open_files=8) as opened:
        outcome = finish(opened.launch(python_source(text)))
    assert outcome.value == [8, "ENOMEM", "limit-resources"], outcome.message


@pytest.mark.parametrize(
    ("mounts", "part"),
    [
        (("srv=/data",), "fs_mounts"),
        (("/no/such/folder=/data",), "cannot be opened"),
        (("/tmp=/scratch/x",), "not in /scratch"),
        (("/tmp=/data", "/=/data"), "comes second at that path"),
    ],
)
def test_a_mount_that_cannot_be_is_refused_by_name(tmp_path: Path, mounts: tuple[str, ...], part: str) -> None:
    with pytest.raises(PieError) as caught:
        Engine(EngineConfig(data_dir=tmp_path), runtime=RuntimeConfig(fs_mounts=mounts))
    assert caught.value.code == "invalid-config"
    assert part in caught.value.message


LOOKS = """
import errno
import os


def main(input):
    for folder in input:
        for name in sorted(os.listdir(folder)):
            print(folder, name, open(f"{folder}/{name}").read())
    try:
        open(f"{input[0]}/new", "w")
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


def test_the_command_gives_folders_to_read(tmp_path: Path) -> None:
    here = tmp_path / "here"
    for folder, text in ((here / "docs", "of docs"), (here / "deep/more", "of more"), (tmp_path / "beside", "of beside")):
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text(text)
    (here / "looks.py").write_text(LOOKS)
    # A relative folder is one of the current folder, not of the program's.
    mounts = ("--mount", "docs=/data", "--mount", "./deep/more=/deep/more", "--mount", "../beside=/beside", "--mount", f"{here}=/here")
    done = pie("run", "looks.py", "--dummy", *mounts, "--input", '["/data", "/deep/more", "/beside"]', cwd=here)
    assert done.returncode == 0, done.stderr
    expected = ["/data a.txt of docs", "/deep/more a.txt of more", "/beside a.txt of beside", "EROFS"]
    assert [line for line in done.stdout.splitlines() if line != "null"] == expected
    assert not (here / "docs/new").exists()
    elsewhere = pie("run", "here/looks.py", "--dummy", "--mount", "here/docs=/data", "--input", '["/data"]', cwd=tmp_path)
    assert elsewhere.stdout.splitlines()[0] == "/data a.txt of docs", elsewhere.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "parts"),
    [
        (
            ("--server", "127.0.0.1:1", "--mount", "docs=/data"),
            2,
            ("--mount", "the folders of a server are set by its configuration: fs_mounts"),
        ),
        (("--dummy", "--mount", "docs"), 1, ("invalid-config", "fs_mounts", "DIR=/PATH")),
        (("--dummy", "--mount", "=/data"), 1, ("invalid-config", "fs_mounts", "DIR=/PATH")),
        (("--dummy", "--mount", "docs=data"), 1, ("invalid-config", "fs_mounts", "DIR=/PATH")),
        (("--dummy", "--mount", "docs=/scratch/x"), 1, ("invalid-config", "not in /scratch")),
        (("--dummy", "--mount", "absent=/data"), 1, ("invalid-config", "absent", "cannot be opened")),
        (("--dummy", "--mount", "looks.py=/data"), 1, ("invalid-config", "looks.py")),
    ],
)
def test_a_folder_that_the_command_cannot_give_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], status: int, parts: tuple[str, ...]
) -> None:
    (tmp_path / "looks.py").write_text(LOOKS)
    (tmp_path / "docs").mkdir()
    done = pie("run", "looks.py", *arguments, cwd=tmp_path)
    assert done.returncode == status, done.stderr
    assert [part for part in parts if squeezed(part) not in squeezed(done.stderr)] == [], done.stderr
