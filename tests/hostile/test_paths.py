"""Nothing outside of a program's folder is read, nothing strange in it is waited for, and nobody is told the server's
paths.
"""

from __future__ import annotations

import os
import resource
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from pie import folder as folder_module
from pie import programs as programs_module
from pie.bakery.build import build
from pie.bakery.project import open_project
from pie.cli.tables import print_table
from pie.cli.terminal import plain
from pie.errors import PieError
from pie.folder import Folder
from pie.programs import MAX_BUNDLE_BYTES, Component, Source, load_program
from support.command import command, environment
from support.folders import write

SECRET = "TOP-SECRET-42"
MAIN = "import helper\nasync def main(input):\n    return 1\n"
PATIENCE_S = 60
MEMORY_BYTES = 2 << 30


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A downloaded project beside a secret of its user."""
    write(tmp_path, {"home/secret.txt": SECRET, "home/secret.py": f"X = '{SECRET}'", "project/main.py": MAIN, "project/helper.py": "N = 1"})
    return tmp_path / "project"


def refusal(path: Path) -> PieError:
    """The error of a program that must not be opened."""
    with pytest.raises(PieError) as caught:
        open_project(path)
    assert SECRET not in caught.value.message
    return caught.value


def content(path: Path) -> dict[str, bytes]:
    """The files of the program at a path."""
    program = load_program(path)
    assert isinstance(program, Source)
    return dict(program.files)


@pytest.mark.parametrize(
    "target", ["../home/secret.txt", "{home}/secret.txt", "{project}/../home/secret.txt", "data/../../home/secret.txt", "/dev/zero"]
)
@pytest.mark.parametrize("name", ["notes.txt", "data/notes.txt", "helper.py", "Pie.toml", "main.py"])
def test_a_link_out_of_the_folder_is_refused_by_name(project: Path, name: str, target: str) -> None:
    (project / "data").mkdir()
    target = target.format(home=project.parent / "home", project=project)
    if name.startswith("data/") and not target.startswith("/"):
        target = f"../{target}"
    (project / name).unlink(missing_ok=True)
    (project / name).symlink_to(target)
    error = refusal(project)
    assert error.code == "invalid-program"
    for part in (str(project / name), f"a link to {target!r}", f"outside of the program's folder {str(project)!r}", "put a copy"):
        assert part in error.message


def test_links_to_folders_outside_are_refused_too(project: Path) -> None:
    (project / "data").symlink_to("../home")
    error = refusal(project)
    assert "a link to '../home'" in error.message
    # By way of a link that stays inside.
    (project / "data").unlink()
    (project / "inner").symlink_to("outer")
    (project / "outer").symlink_to("../home")
    assert "a link to '../home'" in refusal(project).message
    # As the folder of the sources.
    shutil.rmtree(project)
    project.mkdir()
    (project / "src").symlink_to("../home")
    (project.parent / "home" / "main.py").write_text(MAIN)
    assert "a link to '../home'" in refusal(project).message


@pytest.mark.parametrize("name", ["package.json", "pyproject.toml", "requirements.txt", "Cargo.toml", "tsconfig.json"])
def test_files_that_describe_a_project_are_not_read_through_links(project: Path, name: str) -> None:
    if name == "package.json":
        (project / "main.py").rename(project / "main.js")
    if name == "tsconfig.json":
        write(project, {"Cargo.toml": "[package]"})
    (project / name).symlink_to("../home/secret.txt")
    with pytest.raises(PieError, match="outside of the program's folder"):
        build(project)


def test_what_a_script_imports_is_not_read_through_links(project: Path) -> None:
    (project / "helper.py").unlink()
    (project / "helper.py").symlink_to("../home/secret.py")
    assert "a link to '../home/secret.py'" in refusal(project / "main.py").message
    (project / "helper.py").unlink()
    (project / "helper").symlink_to("../home")
    assert "a link to '../home'" in refusal(project / "main.py").message
    write(project, {"main.js": "import './lib/secret.js';"})
    (project / "lib").symlink_to("../home")
    assert "a link to '../home'" in refusal(project / "main.js").message


def test_links_inside_are_followed_and_the_command_may_name_one(project: Path) -> None:
    write(project, {"data/a.txt": "a", "src/helper.py": "N = 2", "src/main.py": MAIN})
    (project / "b.txt").symlink_to("data/a.txt")
    (project / "c.txt").symlink_to(project / "b.txt")
    (project / "data/d.txt").symlink_to("../data/../b.txt")
    (project / "more").symlink_to("data")
    (project / "src/shared.py").symlink_to("../helper.py")
    found = content(project)
    assert {path: found[path] for path in ("b.txt", "c.txt", "data/d.txt", "src/shared.py")} == {
        "b.txt": b"a",
        "c.txt": b"a",
        "data/d.txt": b"a",
        "src/shared.py": b"N = 1",
    }
    assert not any(path.startswith("more/") for path in found)
    # Whoever names a link means what it leads to.
    named = project.parent / "named"
    named.symlink_to(project)
    assert content(named) == found
    script = project.parent / "home/script.py"
    script.symlink_to(project / "helper.py")
    assert content(script) == {"script.py": b"N = 1"}


def test_links_that_lead_nowhere_end(project: Path) -> None:
    (project / "a").symlink_to("b")
    (project / "b").symlink_to("a")
    assert "more than 40 links" in refusal(project).message
    (project / "a").unlink()
    (project / "b").unlink()
    (project / "gone.txt").symlink_to("missing.txt")
    assert "a link to nothing" in refusal(project).message
    (project / "gone.txt").unlink()
    (project / "self").symlink_to(".")
    assert set(content(project)) == {"main.py", "helper.py"}


def pipe(path: Path) -> None:
    """A FIFO that nobody writes to."""
    os.mkfifo(path)


def listening(path: Path) -> None:
    """A socket."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def huge(path: Path) -> None:
    """20 GiB that take no room."""
    path.touch()
    os.truncate(path, 20 << 30)


def zeros(path: Path) -> None:
    """A link to bytes without end."""
    path.symlink_to("/dev/zero")


COMMANDS = (
    ("run", "--dummy"),
    ("run", "--server", "ws://127.0.0.1:9"),
    ("install", "--server", "ws://127.0.0.1:9"),
    ("build",),
)


def refused(arguments: list[str]) -> str:
    """What a command prints that must fail soon, and within little memory, before it loads or connects to anything."""

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

    done = subprocess.run(
        command(arguments),
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        preexec_fn=bounded,
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("error[") == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_every_command_refuses_what_leads_out(project: Path, arguments: tuple[str, ...]) -> None:
    (project / "secret.txt").symlink_to("../home/secret.txt")
    said = refused([arguments[0], str(project), *arguments[1:]])
    assert "error[invalid-program]" in said
    assert "'../home/secret.txt', outside of the program's folder" in said
    assert not (project / "dist").exists()


@pytest.mark.parametrize(
    ("make", "expected"), [(pipe, "a named pipe"), (listening, "a socket"), (huge, "32 MiB"), (zeros, "outside of the program's folder")]
)
def test_strange_files_are_refused_before_they_are_read(
    project: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], expected: str
) -> None:
    monkeypatch.chdir(project)
    # In a folder that is taken whole, and as a module that a script imports.
    make(project / "a.txt")
    assert expected in refused(["build", str(project)])
    (project / "helper.py").unlink()
    make(project / "helper.py")
    assert expected in refused(["build", str(project / "main.py")])


def test_a_huge_component_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "x.wasm"
    huge(path)
    for arguments in (["run", "--dummy"], ["install"]):
        said = refused([*arguments, str(path)])
        assert "error[limit-program]" in said
        assert f"{20 << 30} bytes" in said
        assert "limits.component_bytes" in said


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_name_that_is_not_utf_8_is_refused_by_name(project: Path, arguments: tuple[str, ...]) -> None:
    strange = os.fsdecode(b"\xff")
    (project / f"{strange}.txt").write_text("")
    assert "its name is not UTF-8" in refused([arguments[0], str(project), *arguments[1:]])
    (project / f"{strange}.txt").unlink()
    (project / "Pie.toml").write_text('[package]\nname = "p"\nversion = "1"\n')
    project.rename(project.parent / strange)
    assert "cannot be the path of a program: it is not UTF-8" in refused([arguments[0], str(project.parent / strange), *arguments[1:]])


def test_arguments_that_are_not_utf_8_are_one_error() -> None:
    strange = os.fsdecode(b"\xff")
    said = refused(["key", "add", strange, "--user", strange])
    assert said == "error[invalid-argument]: '\\udcff' is not UTF-8; give it in UTF-8, or rename the file\n"


def test_sizes_are_summed_before_anything_is_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.bin", "b.bin"):
        (project / name).touch()
        os.truncate(project / name, MAX_BUNDLE_BYTES // 2)

    def read(self: Folder, path: PurePosixPath, max_bytes: int = 0) -> bytes:
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr(Folder, "read", read)
    with pytest.raises(PieError, match="32 MiB"):
        load_program(project)


def test_a_file_that_says_too_little_is_not_read_for_ever(tmp_path: Path) -> None:
    # Files of the system say that they are empty.
    with Folder(Path("/proc/self")) as here, pytest.raises(PieError, match="more than the 4 that are read"):
        here.read(PurePosixPath("status"), 4)


@pytest.mark.parametrize("swapped", ["link", "pipe", "folder"])
def test_what_is_swapped_in_between_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch, swapped: str) -> None:
    place = project / "helper.py"
    really_open = os.open

    def swapping(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        """Puts something else in the place of the file, after it was looked at."""
        if path == "helper.py" and not place.is_symlink() and place.is_file():
            place.unlink()
            if swapped == "link":
                place.symlink_to("../home/secret.py")
            elif swapped == "pipe":
                os.mkfifo(place)
            else:
                place.mkdir()
        return really_open(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swapping)
    with Folder(project) as opened:
        if swapped == "folder":
            assert opened.read(PurePosixPath("helper.py")) is None
            return
        with pytest.raises(PieError, match=r"became a link|a named pipe"):
            opened.read(PurePosixPath("helper.py"))


def test_a_folder_that_becomes_a_link_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, {"data/secret.txt": "mine"})
    really_open = os.open

    def swapping(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        if path == "data" and not (project / "data").is_symlink():
            shutil.rmtree(project / "data")
            (project / "data").symlink_to("../home")
        return really_open(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swapping)
    with Folder(project) as opened:
        assert opened.read(PurePosixPath("data/secret.txt")) is None


def test_a_mount_inside_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "data").mkdir()
    (project / "data/a.txt").write_text("a")
    really_mount = folder_module._mount

    def mounted(opened: int) -> tuple[str, int]:
        kind, number = really_mount(opened)
        return kind, number + (os.fstat(opened).st_ino == (project / "data").stat().st_ino)

    monkeypatch.setattr(folder_module, "_mount", mounted)
    error = refusal(project)
    assert str(project / "data") in error.message
    assert "is a mount inside of the program's folder" in error.message


def test_a_real_bind_mount_is_told_from_a_folder(project: Path) -> None:
    (project / "data").mkdir()
    script = (
        "import sys; from pathlib import Path; from pie.folder import Folder, PurePosixPath\n"
        "with Folder(Path(sys.argv[1])) as opened:\n    print(opened.read(PurePosixPath('data/secret.txt')))\n"
    )
    python = [command([])[0], "-c", script, str(project)]
    mount = f"mount --bind {project.parent / 'home'} {project / 'data'}"
    made = subprocess.run(
        ["unshare", "-m", "sh", "-c", f'{mount} && echo mounted && exec "$@"', "sh", *python],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    # Who may not mount is told so, and nothing was read.
    refused_by = "is a mount inside of the program's folder" if "mounted" in made.stdout else "not permitted"
    assert refused_by in made.stderr.lower() + made.stderr
    assert made.returncode != 0
    assert SECRET not in made.stdout + made.stderr


def test_a_mount_of_the_system_is_told_from_a_folder() -> None:
    with Folder(Path("/")) as top, pytest.raises(PieError, match="is a mount inside of the program's folder"):
        top.read(PurePosixPath("proc/self/status"))


@pytest.mark.parametrize("made", ["link to a folder", "link to a file", "folder"])
def test_the_default_output_is_a_regular_file_or_new(project: Path, made: str) -> None:
    place, home = project / "dist/project.wasm", project.parent / "home"
    place.parent.mkdir()
    if made == "folder":
        place.mkdir()
    else:
        place.symlink_to("../../home" if made == "link to a folder" else "../../home/secret.txt")
    with pytest.raises(PieError, match="is not replaced") as caught:
        build(project)
    assert caught.value.code == "build-failed"
    assert str(place) in caught.value.message
    assert [path.name for path in place.parent.iterdir()] == [place.name]
    assert sorted(path.name for path in home.iterdir()) == ["secret.py", "secret.txt"]
    assert (home / "secret.txt").read_text() == SECRET


def test_a_dist_that_is_a_link_is_refused_inside_too(project: Path) -> None:
    (project / "data").mkdir()
    (project / "dist").symlink_to("data")
    with pytest.raises(PieError, match="is a link, and nothing is written through it"):
        build(project)
    assert not list((project / "data").iterdir())


def test_a_dist_that_becomes_a_link_is_not_written_through(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = project.parent / "home"
    really_replace = os.replace

    def swapping(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        if not (project / "dist").is_symlink():
            (project / "dist").rename(project / "moved")
            (project / "dist").symlink_to("../home")
        really_replace(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "replace", swapping)
    build(project)
    assert sorted(path.name for path in (project / "moved").iterdir()) == ["Pie.toml", "project.wasm"]
    assert sorted(path.name for path in home.iterdir()) == ["secret.py", "secret.txt"]


def test_a_file_that_grows_while_it_is_read_is_held_to_the_limit(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs_module, "MAX_BUNDLE_BYTES", 1000)
    really_size = Folder.size

    def growing(self: Folder, path: PurePosixPath) -> int:
        """Makes the file longer, after it was looked at."""
        size_bytes = really_size(self, path)
        (project / path).write_text("#" * 600)
        return size_bytes

    monkeypatch.setattr(Folder, "size", growing)
    with pytest.raises(PieError, match=r"(main|helper)\.py' has 600 bytes, more than the 400") as caught:
        load_program(project)
    assert caught.value.code == "invalid-program"


def test_a_file_that_is_removed_meanwhile_is_named_by_its_path(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, {"data/a.txt": "a"})
    really_size = Folder.size

    def removing(self: Folder, path: PurePosixPath) -> int:
        size_bytes = really_size(self, path)
        if path.name == "a.txt":
            (project / path).unlink()
        return size_bytes

    monkeypatch.setattr(Folder, "size", removing)
    with pytest.raises(PieError, match="removed meanwhile") as caught:
        load_program(project)
    assert repr(str(project / "data/a.txt")) in caught.value.message


def test_imports_of_a_file_that_does_not_parse_are_found(project: Path) -> None:
    (project / "main.py").write_text("def main(:\nfrom helper import (\n  N,\n)\n")
    assert set(content(project / "main.py")) == {"main.py", "helper.py"}


def test_a_long_dotted_name_costs_what_is_there(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    really_open = Folder._open

    def counting(self: Folder, path: PurePosixPath) -> int:
        looked.append(path)
        return really_open(self, path)

    monkeypatch.setattr(Folder, "_open", counting)
    (project / "main.py").write_text("import " + ".".join(["a"] * 10_000) + "\n")
    assert set(content(project / "main.py")) == {"main.py"}
    assert len(looked) < 10


@pytest.mark.parametrize(("name", "text"), [("main.py", "import a{n}, main.b{n}\n"), ("main.js", "import './a{n}'; import './b/a{n}';\n")])
def test_many_imports_cost_what_is_there(project: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    looked = []
    really_open = Folder._open

    def counting(self: Folder, path: PurePosixPath) -> int:
        looked.append(path)
        return really_open(self, path)

    monkeypatch.setattr(Folder, "_open", counting)
    (project / name).write_text("".join(text.format(n=n) for n in range(10_000)))
    assert set(content(project / name)) == {name}
    assert len(looked) < 10
    (project / name).write_text("".join(text.format(n=n) for n in range(40_000)))
    with pytest.raises(PieError, match="imports more than 65536 modules"):
        content(project / name)


def test_a_source_too_long_to_look_for_imports_in_is_refused(project: Path) -> None:
    (project / "main.py").write_text("#" * ((4 << 20) + 1))
    with pytest.raises(PieError, match="more than the 4194304 in which imports are looked for"):
        load_program(project / "main.py")


def test_nothing_is_written_through_links(project: Path) -> None:
    (project / "dist").symlink_to("../home")
    with pytest.raises(PieError, match="outside of the program's folder"):
        build(project)
    assert sorted(path.name for path in (project.parent / "home").iterdir()) == ["secret.py", "secret.txt"]


def test_a_component_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "x.wasm").write_bytes(b"\0asm")
    (tmp_path / "y.wasm").symlink_to("x.wasm")
    assert Component(tmp_path / "y.wasm").read() == b"\0asm"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größer 漢字 🦀 👩\u200d🚀", "größer 漢字 🦀 👩\u200d🚀"),
        ("\x1b[2Jgone\x07\x9b", "\\x1b[2Jgone\\x07\\x9b"),
        ("10 %\r20 %\nnext", "10 %\\r20 %\\nnext"),
        ("user\u202enimda\u2066\u200f", "user\\u202enimda\\u2066\\u200f"),
        ("a\u2028b\ufeff", "a\\u2028b\\ufeff"),
    ],
)
def test_what_a_table_shows_is_what_is_there(text: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert plain(text) == shown
    print_table(("NAME",), [(text,)])
    assert shown in capsys.readouterr().out
