"""What a Python script depends on is found where Python's own tools find it, by rules that say who wins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pie.bakery import package_cache, pure_python
from pie.bakery.build import build, ready
from pie.bakery.lock import Pin
from pie.bakery.project import open_project
from pie.bakery.pure_python import Bundled
from pie.bakery.script_metadata import script_metadata
from pie.errors import PieError
from pie.programs import MAX_BUNDLE_FILES, Source
from support.command import pie
from support.folders import write
from support.wheels import wheel

MAIN = "async def main(input):\n    import greetings\n    return greetings.greet(input['name'])\n"
GREETINGS = {"greetings/__init__.py": "def greet(name):\n    return f'Hello {name}'\n"}
BESIDE = {
    "Pie.toml": '[package]\nname = "mine"\nversion = "1"\n[dependencies]\npython = ["{name}"]\n',
    "pyproject.toml": '[project]\nname = "mine"\nversion = "1"\ndependencies = ["{name}"]\n',
    "requirements.txt": "{name}\n",
}


def inline(*names: str, more: str = "") -> str:
    """A block of metadata."""
    lines = [f"dependencies = {json.dumps(list(names))}", *more.splitlines()]
    return "".join(f"{line}\n" for line in ["# /// script", *(f"# {line}".rstrip() for line in lines), "# ///"])


def files(path: Path) -> set[str]:
    """The files of the program that would be launched."""
    program = ready(open_project(path))
    assert isinstance(program, Source)
    return {name for name, _ in program.files}


@pytest.mark.parametrize("file", BESIDE)
def test_a_lone_script_gets_what_a_file_beside_it_names(tmp_path: Path, wheels: Path, file: str) -> None:
    wheel(wheels, "greetings", GREETINGS)
    write(tmp_path / "p", {"main.py": MAIN, file: BESIDE[file].format(name="greetings>=1")})
    done = pie("run", str(tmp_path / "p/main.py"), "--dummy", "--", "--name", "Ada")
    assert done.stdout == "Hello Ada\n", done.stderr


def test_a_lone_script_gets_what_its_metadata_name(tmp_path: Path, wheels: Path) -> None:
    wheel(wheels, "greetings", GREETINGS)
    write(tmp_path / "p", {"main.py": inline("greetings") + MAIN})
    done = pie("run", str(tmp_path / "p/main.py"), "--dummy", "--", "--name", "Ada")
    assert done.stdout == "Hello Ada\n", done.stderr
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == ["main.py"]


@pytest.mark.parametrize("is_lone", [True, False])
def test_a_manifest_wins_then_metadata_then_the_files_of_python(tmp_path: Path, wheels: Path, is_lone: bool) -> None:
    for name in ("of_manifest", "of_metadata", "of_pyproject", "of_requirements"):
        wheel(wheels, name, {f"{name}.py": ""})
    project = write(
        tmp_path / "p",
        {
            "main.py": inline("of-metadata") + "import elsewhere\n" + MAIN,
            "Pie.toml": BESIDE["Pie.toml"].format(name="of-manifest"),
            "pyproject.toml": BESIDE["pyproject.toml"].format(name="of-pyproject"),
            "requirements.txt": BESIDE["requirements.txt"].format(name="of-requirements"),
        },
    )
    path = project / "main.py" if is_lone else project

    def packages() -> set[str]:
        return {name for name in files(path) if name.startswith("of_")}

    assert packages() == {"of_manifest.py"}
    # A manifest that lists nothing leaves it to the others.
    (project / "Pie.toml").write_text('[package]\nname = "mine"\nversion = "1"\n[dependencies]\npython = []\n')
    assert packages() == {"of_metadata.py"}
    (project / "main.py").write_text("import elsewhere\n" + MAIN)
    assert packages() == {"of_pyproject.py", "of_requirements.py"}


def test_a_list_of_the_sdk_alone_leaves_it_to_the_next(tmp_path: Path, wheels: Path) -> None:
    wheel(wheels, "greetings", GREETINGS)
    write(tmp_path / "p", {"main.py": inline("inferlet") + "import greetings\n" + MAIN, "requirements.txt": "greetings\n"})
    assert "greetings/__init__.py" in files(tmp_path / "p/main.py")


def test_a_script_that_needs_no_package_installs_none(tmp_path: Path, wheels: Path) -> None:
    """The files beside it may be those of another program."""
    source = "import json, inferlet, helper\nfrom os import path\nasync def main(input):\n    return json.dumps(helper.N)\n"
    write(tmp_path / "p", {"main.py": source, "helper.py": "import collections.abc\nN = 1\n", "requirements.txt": "torch\n-e .\n"})
    assert files(tmp_path / "p/main.py") == {"main.py", "helper.py"}
    # A folder is one program, whose files are its own.
    with pytest.raises(PieError, match="is an option of the installer"):
        files(tmp_path / "p")


@pytest.mark.parametrize("source", ["import greetings\n", "try:\n    from greetings import greet\nexcept ImportError:\n    pass\n"])
def test_a_script_that_imports_from_elsewhere_is_given_packages(tmp_path: Path, wheels: Path, source: str) -> None:
    wheel(wheels, "greetings", GREETINGS)
    write(tmp_path / "p", {"main.py": source + "async def main(input): ...\n", "requirements.txt": "greetings\n"})
    assert files(tmp_path / "p/main.py") == {"main.py", "greetings/__init__.py"}


def test_the_second_run_needs_no_index_and_no_installer(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(wheels, "greetings", GREETINGS)
    project = write(tmp_path / "p", {"main.py": MAIN, "requirements.txt": "greetings>=1\n"})
    first = files(project)
    for path in wheels.iterdir():
        path.unlink()

    def refuse(*_: object, **__: object) -> str:
        raise AssertionError("an installer ran")

    monkeypatch.setattr(pure_python, "run", refuse)
    assert files(project) == first
    # In another order, and in the file of another project, it is the same.
    assert files(write(tmp_path / "q", {"main.py": MAIN, "requirements.txt": "# the same\n\ngreetings>=1\n"})) == first


def test_where_packages_come_from_is_part_of_what_is_kept(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(wheels, "greetings", GREETINGS)
    project = write(tmp_path / "p", {"main.py": MAIN, "requirements.txt": "greetings\n"})
    files(project)
    other = tmp_path / "others"
    other.mkdir()
    wheel(other, "greetings", {"greetings.py": ""})
    monkeypatch.setenv("PIP_FIND_LINKS", str(other))
    assert files(project) == {"main.py", "requirements.txt", "greetings.py"}


def test_an_index_that_cannot_be_reached_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    write(tmp_path, {"main.py": MAIN, "requirements.txt": "greetings-of-pie-tests\n"})
    with pytest.raises(PieError, match=r"requirements\.txt: the index that packages come from cannot be reached") as caught:
        files(tmp_path / "main.py")
    assert "greetings-of-pie-tests is not kept from an earlier run" in caught.value.message
    assert "pure Python" not in caught.value.message


def test_a_package_that_is_not_there_is_named(tmp_path: Path, wheels: Path) -> None:
    write(tmp_path / "p", {"main.py": inline("greetings-of-pie-tests") + MAIN})
    with pytest.raises(PieError, match=r"main\.py: the dependency 'greetings-of-pie-tests' has no release in pure Python") as caught:
        files(tmp_path / "p/main.py")
    assert caught.value.code == "build-failed"
    assert "No index was asked, since PIP_NO_INDEX=1 is set in the environment: unset it" in caught.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("print(1)\n", None),
        (inline(), ((), ())),
        (inline("a>=1", "b"), (("a>=1", "b"), ())),
        ("#!/usr/bin/env python\r\n" + inline("a").replace("\n", "\r\n"), (("a",), ())),
        ("\ufeff" + inline("a"), (("a",), ())),
        ("x = 1\n" + inline("a", more='\n[tool.pie]\nfiles = ["prompts"]') + "y = 2\n", (("a",), ("prompts",))),
        # It ends at the last line that can be its end. What is of another kind is a comment, and so is what has no end,
        # but where a field says that it is meant.
        ('# /// script\n# dependencies = ["a"]\n# ///\n# more = 1\n# ///\n', "cannot be read"),
        ('# /// script\n# dependencies = ["a"]\n', "main.py:1: no line '# ///' ends the inline metadata .* write it behind line 2$"),
        ('x\n# /// script\n# requires-python = ">=3"\n#\n# dependencies = []\nx = 1\n# ///\n', "main.py:2: .* write it behind line 5$"),
        ('# /// script\r\n# [tool.pie]\r\n# files = ["a"]\r\n\r\n# ///\r\n', "main.py:1: .* write it behind line 3$"),
        ('# /// script\n# dependencies = ["a"]\n#///\n', "main.py:3: '#///' does not begin with '# ', and ends the inline metadata"),
        ('# /// script\n#\n#dependencies = ["a"]\n# ///\n', "main.py:3: '#dependencies = .*write a blank behind its '#'$"),
        ('# /// script\n# dependencies = ["a"]\n#!x\n', "main.py:1: .* write it behind line 2$"),
        ("# /// script\n# runs at night\nx = 1\n", None),
        ('# /// other\n# dependencies = ["a"]\n# ///\n', None),
        (inline("a") + "x = 1\n" + inline("b"), "has 2 blocks of metadata"),
        ("# /// script\n# dependencies = 5\n# ///\n", "dependencies is not a list of texts"),
        ("# /// script\n# dependencies = [5]\n# ///\n", "dependencies is not a list of texts"),
        ("# /// script\n# tool.pie = 5\n# ///\n", "tool.pie is not a table"),
        ("# /// script\n# [tool.pie]\n# fils = []\n# ///\n", r"there is no field tool\.pie\.fils"),
        (f"# /// script\n# [tool.pie]\n# files = {json.dumps(['x'] * 65)}\n# ///\n", "names 65 files, more than 64"),
        ('# // script\n# dependencies = ["a"]\n# ///\n', "main.py:1: '# // script' does not begin inline metadata"),
        ('x = 1\n#/// script\n# dependencies = ["a"]\n# ///\n', "main.py:2: '#/// script' does not begin inline metadata"),
        ("# // script for the night\n# runs alone\n", None),
        ('# /// script\n# dependancies = ["a"]\n# ///\n', "there is no field 'dependancies'; did you mean 'dependencies'?"),
        ("# /// script\n# author = 'a'\n# ///\n", ((), ())),
        (f"# /// script\n# {'a.' * 100_000}a = 1\n# ///\n", "a key has more than 32 parts"),
        (f"# /// script\n# a = {'[' * 100_000}\n# ///\n", "cannot be read"),
        (f"# /// script\n# # {'x' * 300_000}\n# ///\n", "more than 262144"),
    ],
)
def test_metadata_are_read_as_pep_723_says(text: str, expected: object) -> None:
    if isinstance(expected, str):
        with pytest.raises(PieError, match=expected) as caught:
            script_metadata("main.py", text.encode())
        assert "main.py" in caught.value.message
        assert len(caught.value.message) < 1000
        return
    found = script_metadata("main.py", text.encode())
    assert (found and (found.dependencies, found.files)) == expected


def test_many_beginnings_are_read_in_one_go() -> None:
    assert script_metadata("main.py", b"# /// script\n" * 300_000) is None


@pytest.mark.parametrize("one", ["-e .", "./lib", "https://127.0.0.1:9/x.whl"])
def test_metadata_name_releases_alone(tmp_path: Path, one: str) -> None:
    write(tmp_path, {"main.py": inline(one) + MAIN})
    with pytest.raises(PieError, match=r"main\.py: .*(is an option|does not name a release)"):
        build(tmp_path / "main.py")


def test_a_script_names_the_files_that_belong_to_it(tmp_path: Path) -> None:
    source = inline(more='\n[tool.pie]\nfiles = ["prompts", "table.csv"]') + (
        "from importlib.resources import files\n"
        "async def main(input):\n"
        "    return files().joinpath('prompts/a.txt').read_text() + files().joinpath('table.csv').read_text()\n"
    )
    write(
        tmp_path,
        {"main.py": source, "prompts/a.txt": "A", "prompts/.hidden": "", "prompts/x.pyc": "", "table.csv": "1,2", "other.txt": "other"},
    )
    assert files(tmp_path / "main.py") == {"main.py", "prompts/a.txt", "table.csv"}
    done = pie("run", str(tmp_path / "main.py"), "--dummy")
    assert done.stdout == "A1,2\n", done.stderr


@pytest.mark.parametrize("name", ["../secret.txt", "/etc/passwd", "missing.txt", "", ".", "a\0b", "prompts/../../secret.txt"])
def test_a_script_names_nothing_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"secret.txt": "secret", "p/prompts/a.txt": ""})
    # TOML has no NUL but escaped.
    write(tmp_path / "p", {"main.py": inline(more=f"\n[tool.pie]\nfiles = [{json.dumps(name)}]") + MAIN})
    with pytest.raises(PieError, match=r"in tool\.pie\.files, and there is no such file"):
        open_project(tmp_path / "p/main.py")


def test_a_script_cannot_name_too_many_files(tmp_path: Path) -> None:
    many = {f"p/data/{number}": "" for number in range(MAX_BUNDLE_FILES + 1)}
    write(tmp_path, many | {"p/main.py": inline(more='\n[tool.pie]\nfiles = ["data"]') + MAIN})
    with pytest.raises(PieError, match=f"larger than {MAX_BUNDLE_FILES} files"):
        open_project(tmp_path / "p/main.py")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/pie-build/python"


def bundled(text: str) -> Bundled:
    return Bundled({"a/b.py": text.encode()}, (Pin("a", "1", "sha256:" + "0" * 64),))


def test_what_is_kept_is_found_again(cache: Path) -> None:
    key = package_cache.key_of_requirements(["b", "a"])
    assert package_cache.kept(key) is None
    package_cache.keep(key, bundled("x"))
    assert package_cache.kept(package_cache.key_of_requirements(["a", "b"])) == bundled("x")
    assert package_cache.kept(package_cache.key_of_requirements(["a"])) is None
    assert len(list(cache.iterdir())) == 1


def test_what_was_used_longest_ago_is_dropped(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_cache, "MAX_ENTRIES", 2)
    clock = iter(range(1, 100))

    def touch(path: Path) -> None:
        stamp = next(clock)
        real_utime(path, (stamp, stamp))

    real_utime = package_cache.os.utime
    for key in ("one", "two"):
        package_cache.keep(key, bundled(key))
        touch(cache / f"{key}.zip")
    monkeypatch.setattr(package_cache.os, "utime", touch)
    assert package_cache.kept("one") == bundled("one")
    package_cache.keep("three", bundled("three"))
    assert sorted(path.name for path in cache.iterdir()) == ["one.zip", "three.zip"]


def test_what_is_too_large_for_the_cache_is_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_cache, "MAX_BYTES", 1000)
    package_cache.keep("large", bundled("x" * 1001))
    assert not cache.exists()
    package_cache.keep("one", bundled("x" * 500))
    package_cache.keep("two", bundled("y" * 500))
    assert [path.name for path in cache.iterdir()] == ["two.zip"]


@pytest.mark.parametrize("content", [b"", b"PK", b"not an archive at all", b"PK\x05\x06" + b"\0" * 18])
def test_a_damaged_entry_is_dropped(cache: Path, content: bytes) -> None:
    package_cache.keep("key", bundled("x"))
    (cache / "key.zip").write_bytes(content)
    assert package_cache.kept("key") is None
    assert not (cache / "key.zip").exists()


def test_an_entry_that_claims_to_be_encrypted_is_damaged(cache: Path) -> None:
    package_cache.keep("key", bundled("x"))
    content = bytearray((cache / "key.zip").read_bytes())
    # The flag of encryption, in the header of the file and in the list at the end.
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    (cache / "key.zip").write_bytes(content)
    assert package_cache.kept("key") is None
    assert not (cache / "key.zip").exists()


def test_a_cache_that_can_only_be_read_is_read(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package_cache.keep("key", bundled("x"))
    package_cache.keep("damaged", bundled("x"))
    (cache / "damaged.zip").write_bytes(b"PK")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(package_cache.os, "utime", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    assert package_cache.kept("key") == bundled("x")
    assert package_cache.kept("damaged") is None


INSTALLED = {"a.py": "", "share/a.txt": "", "a-1.dist-info/METADATA": "Name: A\nVersion: 1\n\n", "bin/a": "", ".lock": ""}


def test_a_pin_covers_what_lies_beside_the_modules(tmp_path: Path) -> None:
    listed = INSTALLED | {"a-1.dist-info/RECORD": "a.py,,\n../../share/a.txt,,\n../../bin/a,,\n"}
    pins = []
    for folder, files in (("one", listed), ("two", listed), ("three", listed | {"share/a.txt": "x"}), ("four", listed | {"bin/a": "x"})):
        found = pure_python._collected(write(tmp_path / folder, files))
        assert set(found.files) == {"a.py", "share/a.txt"}
        assert [(pin.name, pin.version) for pin in found.packages] == [("a", "1")]
        pins.append(found.packages[0].digest)
    assert pins[0] == pins[1] == pins[3] != pins[2]


def test_a_file_that_no_package_lists_is_refused(tmp_path: Path) -> None:
    write(tmp_path, INSTALLED | {"a-1.dist-info/RECORD": "a.py,,\n"})
    with pytest.raises(PieError, match=r"brought the file 'share/a\.txt', which none of them lists") as caught:
        pure_python._collected(tmp_path)
    assert caught.value.code == "build-failed"


def test_packages_that_markers_leave_out_are_locked_too(tmp_path: Path, wheels: Path) -> None:
    write(tmp_path / "p", {"main.py": "async def main(input): ...\n", "requirements.txt": "greetings; python_version < '3'\n"})
    built = build(tmp_path / "p")
    assert built.lock_path is not None
    assert build(tmp_path / "p").digest == built.digest


def test_a_cache_that_cannot_be_used_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(PieError, match=r"cannot be used: Not a directory.*XDG_CACHE_HOME") as caught:
        package_cache.keep("key", bundled("x"))
    assert caught.value.code == "build-failed"
