"""`pie.lock`: what was built is built again, and what does not fit is refused."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from pie import _engine
from pie.bakery import npm, package_cache
from pie.bakery.build import build, ready
from pie.bakery.lock import Lock, LockUse, Pin, read_lock
from pie.bakery.project import open_project
from pie.errors import PieError
from pie.programs import Source
from support.command import pie
from support.folders import write
from support.registries import SCOPE, registry
from support.wheels import wheel

MAIN = "import greetings\nasync def main(input):\n    return greetings.VERSION\n"
PROJECT = {"main.py": MAIN, "requirements.txt": "greetings\n"}
DIGEST = "sha256:" + "0" * 64


@pytest.fixture
def project(tmp_path: Path, wheels: Path) -> Path:
    """A project that depends on a package, of which there is version 1."""
    release(wheels, "1")
    return write(tmp_path / "p", PROJECT)


def release(wheels: Path, version: str) -> None:
    wheel(wheels, "greetings", {"greetings.py": f"VERSION = {version!r}\n"}, version, ["words"])
    wheel(wheels, "words", {"words.py": ""})


def bundled(path: Path, use: LockUse = LockUse.UPDATE) -> dict[str, bytes]:
    """The files of the program that is built."""
    packed = _engine.read_packed(build(path, lock=use).wasm.read_bytes())
    assert packed is not None
    return dict(packed["files"])


def version(path: Path, use: LockUse = LockUse.UPDATE) -> str:
    return bundled(path, use)["greetings.py"].decode().split("'")[1]


def test_what_was_built_is_built_again(project: Path, wheels: Path) -> None:
    assert version(project) == "1"
    locked = tomllib.loads((project / "pie.lock").read_text())
    assert locked["version"] == 1
    assert locked["python"]["requirements"] == ["greetings"]
    assert [(one["name"], one["version"]) for one in locked["python"]["package"]] == [("greetings", "1"), ("words", "1")]
    assert all(one["digest"].startswith("sha256:") for one in locked["python"]["package"])
    release(wheels, "2")
    before = (project / "dist/p.wasm").read_bytes()
    assert version(project) == "1"
    assert version(project, LockUse.REQUIRE) == "1"
    # The lock is none of the files of the program.
    assert (project / "dist/p.wasm").read_bytes() == before
    assert version(project, LockUse.UPGRADE) == "2"
    assert 'version = "2"' in (project / "pie.lock").read_text()


def test_what_was_built_runs_offline(project: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready(open_project(project))  # what is found without a lock is kept by the requirements
    build(project)
    for wheel_file in wheels.glob("*.whl"):
        wheel_file.unlink()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    source = ready(open_project(project))
    assert isinstance(source, Source)
    assert "greetings.py" in dict(source.files)
    assert version(project, LockUse.REQUIRE) == "1"


def test_another_machine_builds_the_same(project: Path, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = bundled(project)
    release(wheels, "2")
    monkeypatch.setattr(package_cache, "kept", lambda _: None)
    assert bundled(project, LockUse.REQUIRE) == first
    assert bundled(project) == first


def test_the_program_that_runs_is_the_one_that_is_locked(project: Path, wheels: Path) -> None:
    build(project)
    release(wheels, "2")
    program = ready(open_project(project))
    assert isinstance(program, Source)
    assert dict(program.files)["greetings.py"] == b"VERSION = '1'\n"
    done = pie("run", str(project), "--dummy")
    assert done.stdout == "1\n", done.stderr


def test_a_lock_that_does_not_fit_is_refused_and_a_build_makes_it_anew(project: Path, wheels: Path) -> None:
    build(project)
    release(wheels, "2")
    write(project, {"requirements.txt": "greetings>1\n"})
    says = (
        r"pie\.lock does not fit requirements\.txt: it lacks 'greetings>1' and it has 'greetings', which nobody asks for; `pie build` makes"
    )
    with pytest.raises(PieError, match=says) as caught:
        ready(open_project(project))
    assert caught.value.code == "build-failed"
    with pytest.raises(PieError, match=says):
        build(project, lock=LockUse.REQUIRE)
    done = pie("build", "--locked", cwd=project)
    assert done.returncode == 1
    assert "pie.lock does not fit requirements.txt" in done.stderr
    assert version(project) == "2"
    assert version(project, LockUse.REQUIRE) == "2"


def test_where_a_lock_is_required_there_has_to_be_one(project: Path) -> None:
    with pytest.raises(PieError, match=r"there is no .*pie\.lock, which --locked goes by; `pie build` makes it"):
        build(project, lock=LockUse.REQUIRE)
    assert not (project / "dist").exists()
    # What depends on nothing has nothing to lock.
    (project / "requirements.txt").unlink()
    write(project, {"main.py": "async def main(input): ...\n"})
    assert build(project, lock=LockUse.REQUIRE).lock_path is None
    assert not (project / "pie.lock").exists()


def test_a_release_that_was_changed_is_refused(project: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(project)
    wheel(wheels, "greetings", {"greetings.py": "VERSION = 'another'\n"}, "1", ["words"])
    # On a machine on which nothing is kept.
    monkeypatch.setattr(package_cache, "kept", lambda _: None)
    for use in (LockUse.UPDATE, LockUse.REQUIRE):
        with pytest.raises(PieError, match=r"greetings 1 has the digest .*, and .*pie\.lock pins .*: the release was changed"):
            build(project, lock=use)
    assert version(project, LockUse.UPGRADE) == "another"


def test_a_pinned_release_that_is_gone_is_named(project: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(project)
    (wheels / "greetings-1-py3-none-any.whl").unlink()
    monkeypatch.setattr(package_cache, "kept", lambda _: None)
    with pytest.raises(PieError, match=r"the dependency 'greetings\b.*has no release in pure Python"):
        build(project)


def test_a_script_with_metadata_has_a_lock_of_its_own(tmp_path: Path, wheels: Path) -> None:
    release(wheels, "1")
    source = '# /// script\n# dependencies = ["greetings"]\n# ///\n' + MAIN
    write(tmp_path / "p", {"one.py": source, "two.py": source.replace('greetings"', 'greetings>=1"')})
    assert build(tmp_path / "p/one.py").lock_path == tmp_path / "p/one.pie.lock"
    assert build(tmp_path / "p/two.py").lock_path == tmp_path / "p/two.pie.lock"
    release(wheels, "2")
    assert version(tmp_path / "p/one.py", LockUse.REQUIRE) == "1"


def test_a_script_goes_by_the_lock_of_the_file_beside_it(project: Path, wheels: Path) -> None:
    build(project)
    release(wheels, "2")
    assert version(project / "main.py", LockUse.REQUIRE) == "1"


def test_what_does_not_make_a_lock_writes_none(project: Path) -> None:
    ready(open_project(project))
    assert not (project / "pie.lock").exists()
    build(project)
    (project / "pie.lock").write_text((project / "pie.lock").read_text() + "# checked by hand\n")
    assert build(project, lock=LockUse.REQUIRE).lock_path == project / "pie.lock"
    ready(open_project(project))
    assert (project / "pie.lock").read_text().endswith("# checked by hand\n")


def test_an_error_names_once_who_asked(project: Path) -> None:
    build(project)
    write(project, {"requirements.txt": "greetings>1\n"})
    with pytest.raises(PieError, match="does not fit") as caught:
        build(project, lock=LockUse.REQUIRE)
    assert caught.value.message.count("requirements.txt") == 1


def test_a_lock_is_not_written_through_a_link(project: Path, tmp_path: Path) -> None:
    write(tmp_path, {"secret.txt": "secret"})
    (project / "pie.lock").symlink_to("../secret.txt")
    for use in LockUse:
        with pytest.raises(PieError, match=r"pie\.lock"):
            build(project, lock=use)
    assert (tmp_path / "secret.txt").read_text() == "secret"


def test_a_lock_is_read_as_it_was_written(tmp_path: Path) -> None:
    lock = Lock(
        "python", ("a>=1", "b ; python_version > '3.8'", 'c ; os_name == "wasi"'), (Pin("a", "1!1.0+x", DIGEST), Pin("b-c", "2", DIGEST))
    )
    write(tmp_path, {"pie.lock": lock.text()})
    assert read_lock(tmp_path, "pie.lock", "python") == lock
    of_npm = Lock("npm", ("a@^1",), (Pin("@b/c", "2.0.0", ""), Pin("a", "1.0.0", "sha512-" + "A" * 86 + "==")))
    write(tmp_path, {"npm.lock": of_npm.text()})
    assert read_lock(tmp_path, "npm.lock", "npm") == of_npm
    assert read_lock(tmp_path, "pie.lock", "npm") is None
    assert read_lock(tmp_path, "other.lock", "python") is None


def test_no_lock_is_written_that_is_not_read_again() -> None:
    many = tuple(Pin(f"a{number}", "1", DIGEST) for number in range(4097))
    assert Lock("python", (), many[1:]).text()
    with pytest.raises(PieError, match="the program has 4097 packages, more than the 4096 that a lock holds"):
        Lock("python", (), many).text()


@pytest.mark.parametrize(
    "text",
    [
        "version = 1\n[python",
        "[" * 100_000,
        f"version = 1\n{'a.' * 100_000}a = 1",
        "version = 2\n",
        "",
        "version = 1\npython = 5\n",
        "version = 1\n[python]\nrequirements = 5\n",
        "version = 1\n[python]\nrequirements = [5]\n",
        "version = 1\n[python]\npackage = 5\n",
        "version = 1\n[python]\npackage = [5]\n",
        'version = 1\n[[python.package]]\nname = "a"\n',
        f'version = 1\n[[python.package]]\nname = "../a"\nversion = "1"\ndigest = "{DIGEST}"\n',
        f'version = 1\n[[python.package]]\nname = "a"\nversion = "1 --index-url=http://127.0.0.1:9"\ndigest = "{DIGEST}"\n',
        f'version = 1\n[[python.package]]\nname = "a"\nversion = "1\\n--pre"\ndigest = "{DIGEST}"\n',
        'version = 1\n[[python.package]]\nname = "a"\nversion = "1"\ndigest = "md5:0"\n',
        f'version = 1\n[[python.package]]\nname = 5\nversion = "1"\ndigest = "{DIGEST}"\n',
        # Without a digest, whatever has the version would be taken.
        'version = 1\n[[python.package]]\nname = "a"\nversion = "1"\n',
        'version = 1\n[[python.package]]\nname = "a"\nversion = "1"\ndigest = ""\n',
        "version = 1\n" + f'[[python.package]]\nname = "a"\nversion = "1"\ndigest = "{DIGEST}"\n' * 4097,
    ],
)
def test_a_damaged_lock_is_one_clear_error(tmp_path: Path, text: str) -> None:
    write(tmp_path, {**PROJECT, "pie.lock": text})
    for use in (LockUse.FOLLOW, LockUse.UPDATE, LockUse.REQUIRE):
        with pytest.raises(PieError, match=r"pie\.lock cannot be read") as caught:
            build(tmp_path, lock=use)
        assert caught.value.code == "build-failed"
        assert len(caught.value.message) < 1000


def test_the_two_wishes_are_not_given_together(project: Path) -> None:
    done = pie("build", "--locked", "--upgrade", cwd=project)
    assert done.returncode == 1
    assert "error[invalid-argument]: --locked builds with the packages of pie.lock" in done.stderr


def test_no_package_of_npm_is_something_else_than_no_list(tmp_path: Path) -> None:
    assert npm.installed(tmp_path) is None
    packages = {"": {}, "node_modules/a": {"version": "1.0.0", "optional": True}, "node_modules/b": {"version": "1.0.0", "dev": True}}
    write(tmp_path, {"node_modules/.package-lock.json": json.dumps({"packages": packages})})
    assert npm.installed(tmp_path) == ()


def test_packages_of_npm_are_locked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"dependencies": {f"{SCOPE}/honest": "^1.0.0"}}
    main = f"import {{ N }} from '{SCOPE}/honest';\nexport const main = async () => N;\n"
    project = write(tmp_path / "p", {"main.js": main, "package.json": json.dumps(wanted)})
    with registry({"honest": {"index.js": "export const N = 1;"}, "other": {"index.js": ""}}) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        built = build(project)
        assert built.lock_path == project / "pie.lock"
        lock = read_lock(project, "pie.lock", "npm")
        assert lock is not None
        assert lock.requirements == (f"{SCOPE}/honest@^1.0.0",)
        assert [(pin.name, pin.version) for pin in lock.packages] == [(f"{SCOPE}/honest", "1.0.0")]
        assert lock.packages[0].digest.startswith("sha512-")
        assert build(project, lock=LockUse.REQUIRE).digest == built.digest

        # Another version was installed beside npm's lock.
        listing = project / "node_modules/.package-lock.json"
        listing.write_text(listing.read_text().replace('"1.0.0"', '"1.0.1"'))
        with pytest.raises(PieError, match=rf"pie\.lock pins {SCOPE}/honest 1\.0\.0, but 1\.0\.1 was found; `npm ci` installs"):
            ready(open_project(project))

        # The program asks for more than was locked.
        wanted["dependencies"][f"{SCOPE}/other"] = "1"
        write(project, {"package.json": json.dumps(wanted)})
        with pytest.raises(PieError, match=rf"pie\.lock does not fit .*package\.json: it lacks '{SCOPE}/other@1'"):
            build(project, lock=LockUse.REQUIRE)
        build(project)
        lock = read_lock(project, "pie.lock", "npm")
        assert lock is not None
        assert [pin.name for pin in lock.packages] == [f"{SCOPE}/honest", f"{SCOPE}/other"]
        build(project, lock=LockUse.UPGRADE)
        assert read_lock(project, "pie.lock", "npm") == lock
