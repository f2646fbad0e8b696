"""What a program depends on is a release of a registry: nothing that its author wrote has an installer read, send or
run anything else.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from pie.bakery import npm
from pie.bakery.build import build
from pie.bakery.requirements import listed_beside
from pie.errors import PieError
from support.folders import write
from support.registries import SCOPE, index, registry
from support.wheels import wheel

ECHO = "async def main(input):\n    return input\n"
SCRIPT = "export async function main(input) { return input; }\n"
PACKAGE = '[package]\nname = "mine"\nversion = "1.2.3"\n'

OPTIONS = ["-e .", "-r /etc/passwd", "--index-url http://127.0.0.1:9/", "--find-links=..", "-c other.txt", "--pre", "  --trusted-host x"]
PLACES = [
    "./lib",
    "../lib",
    "/etc",
    "..",
    ".",
    "lib @ file:///etc",
    "lib@../lib",
    "git+https://127.0.0.1:9/x",
    "lib @ git+ssh://git@127.0.0.1/x",
    "https://127.0.0.1:9/x.whl",
    "file:x",
    "lib-1-py3-none-any.whl",
    "lib.tar.gz",
    "lib==${HOME}",
    "lib ; python_version > '${HOME}'",
    "lib\n--pre",
    "lib" * 2000,
]


@pytest.mark.parametrize("one", PLACES + OPTIONS)
@pytest.mark.parametrize("file", ["Pie.toml", "pyproject.toml", "requirements.txt"])
def test_what_is_not_a_release_is_refused_by_name(tmp_path: Path, file: str, one: str) -> None:
    texts = {
        "Pie.toml": PACKAGE + f"[dependencies]\npython = [{json.dumps(one)}]\n",
        "pyproject.toml": f"[project]\ndependencies = [{json.dumps(one)}]\n",
        "requirements.txt": f"attrs\n{one}\n",
    }
    write(tmp_path, {"main.py": ECHO, file: texts[file]})
    with pytest.raises(PieError, match=r"is an option|does not name a release in an index") as caught:
        build(tmp_path)
    assert caught.value.code in {"build-failed", "invalid-manifest"}
    assert file in caught.value.message
    assert (one.splitlines()[-1] if file == "requirements.txt" else repr(one)[1:-1])[:40].strip() in caught.value.message
    assert len(caught.value.message) < 1000


@pytest.mark.parametrize(
    ("one", "told"),
    [
        ("python-slugify>==8", "'>==8' behind 'python-slugify' is neither a version nor a marker; write 'python-slugify>=8'"),
        ("numpy>>2", "'>>2' behind 'numpy' is neither a version nor a marker; write 'numpy>2'"),
        ("attrs=25", "'=25' behind 'attrs' .*; write 'attrs==25'"),
        ("attrs => 25, < 26", "'=> 25, < 26' behind 'attrs' .*; write 'attrs>=25, < 26'"),
        ("attrs =< 25", "write 'attrs<=25'"),
        ("attrs <> 25", "write 'attrs!=25'"),
        ("attrs !25", "write 'attrs!=25'"),
        ("attrs ~25.1", "write 'attrs~=25.1'"),
        ("attrs^25", "write 'attrs>=25'"),
        ("attrs 25.1", "'25.1' behind 'attrs' .*; write 'attrs==25.1'"),
        ("attrs>=24 <26", "'<26' behind 'attrs>=24' .*; write 'attrs>=24,<26'"),
        ("attrs>=24,<<26", "'<<26' behind 'attrs>=24,' .*; write 'attrs>=24,<26'"),
        ("attrs>", "'>' behind 'attrs' .*; write it as in"),
        ("attrs[test", r"'\[test' behind 'attrs' .*; write it as in"),
        ("attrs and more", "'and more' behind 'attrs' .*; write it as in"),
        (">=25", "it does not begin with the name of a package; write it as in"),
    ],
)
def test_a_misspelt_requirement_is_told_with_its_right_form(tmp_path: Path, one: str, told: str) -> None:
    write(tmp_path, {"requirements.txt": f"attrs\n{one}\n"})
    with pytest.raises(PieError, match=rf"requirements\.txt: the dependency .* is not a requirement: .*{told}") as caught:
        listed_beside(tmp_path)
    assert caught.value.code == "build-failed"
    assert repr(one) in caught.value.message
    assert "path" not in caught.value.message


@pytest.mark.parametrize(
    "one", ["attrs", "attrs>=24", "attrs (>=24, <26)", "zope.interface[test]==7.*", "six; sys_platform == 'wasi'", "a==1+cpu.1"]
)
def test_releases_are_taken_as_they_are_written(tmp_path: Path, one: str) -> None:
    write(tmp_path, {"requirements.txt": f"{one}  # why\n"})
    assert listed_beside(tmp_path) == [one]


def test_a_requirements_file_that_is_too_long_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"requirements.txt": "#" * (300 << 10)})
    with pytest.raises(PieError, match="more than the 262144"):
        listed_beside(tmp_path)


def test_no_file_of_a_program_is_a_module_of_the_installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The installer is a Python program, which takes the first module of a name on its path."""
    (tmp_path / "wheels").mkdir()
    wheel(tmp_path / "wheels", "greetings", {"greetings.py": ""})
    for name, value in index(tmp_path / "wheels").items():
        monkeypatch.setenv(name, value)
    ran = tmp_path / "ran"
    hostile = f"open({str(ran)!r}, 'w').close()\nraise SystemExit(7)\n"
    project = write(tmp_path / "p", {"main.py": ECHO, "requirements.txt": "greetings", "pip.py": hostile, "optparse.py": hostile})
    monkeypatch.chdir(project)
    build(project)
    assert not ran.exists()


def test_a_place_for_temporary_files_that_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"main.py": ECHO, "requirements.txt": "greetings"})
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(PieError, match=r"the folder for temporary files cannot be used \(No such file or directory\); .* TMPDIR") as caught:
        build(tmp_path)
    assert caught.value.code == "build-failed"


NOT_RELEASES: list[Any] = [
    "file:../lib",
    "file:lib",
    "link:../lib",
    "../lib",
    "./lib",
    ".",
    "..",
    "~/lib",
    "/etc",
    "lib.tgz",
    "git+https://127.0.0.1:9/x.git",
    "git://127.0.0.1:9/x.git",
    "git@127.0.0.1:x/y.git",
    "github:someone/something",
    "someone/something",
    "http://127.0.0.1:9/x.tgz",
    "https://127.0.0.1:9/x.tgz",
    "workspace:*",
    "npm:../lib",
    "npm:x@file:../lib",
    "npm:x@../lib",
    "${HOME}",
    5,
    ["1"],
]


@pytest.mark.parametrize("wanted", NOT_RELEASES)
@pytest.mark.parametrize("section", ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "overrides"])
def test_a_package_that_is_not_a_release_is_refused_by_name(tmp_path: Path, section: str, wanted: object) -> None:
    described: dict[str, Any] = {"dependencies": {"first": "^1"}}
    described[section] = {**described.get(section, {}), "lib": {".": wanted} if section == "overrides" else wanted}
    write(tmp_path, {"main.js": SCRIPT, "package.json": json.dumps(described)})
    with pytest.raises(PieError, match="does not name a release in a registry") as caught:
        build(tmp_path)
    assert caught.value.code == "build-failed"
    assert f"{section}.lib" in caught.value.message
    assert not (tmp_path / "node_modules").exists()
    assert not (tmp_path / "package-lock.json").exists()


@pytest.mark.parametrize("described", ['{"lib": "\\ud800"}', '{"\\ud800": "1"}', '{"lib": {"a": 1}}', '{"lib": "1\\n2"}'])
def test_what_no_lock_can_hold_is_refused_where_packages_are_installed_too(tmp_path: Path, described: str) -> None:
    write(tmp_path, {"main.js": SCRIPT, "package.json": f'{{"dependencies": {described}}}', "node_modules/.package-lock.json": "{}"})
    with pytest.raises(PieError, match="does not name a release in a registry") as caught:
        build(tmp_path)
    assert caught.value.message.encode()


@pytest.mark.parametrize(
    "wanted", ["^1.3.0", "1.x || >=2.5.0 <3", "latest", "*", "", "~1", "1.0.0-beta.1+build", "npm:other@^1", "npm:@a/b"]
)
def test_versions_tags_and_other_names_are_releases(wanted: str) -> None:
    npm._check_release(Path("package.json"), "dependencies.x", wanted)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (".npmrc", "registry=http://127.0.0.1:9/${HOME}/", "would tell npm what to do"),
        ("npm-shrinkwrap.json", "{}", "rename it to package-lock.json"),
        ("package.json", json.dumps({"dependencies": {"x": "1"}, "workspaces": ["../*"]}), "workspaces are other folders"),
    ],
)
def test_what_would_tell_npm_what_to_do_is_refused(tmp_path: Path, name: str, text: str, says: str) -> None:
    write(tmp_path, {"main.js": SCRIPT, "package.json": '{"dependencies": {"x": "1"}}', name: text})
    with pytest.raises(PieError, match=says) as caught:
        build(tmp_path)
    assert name in caught.value.message


@pytest.mark.parametrize(
    ("place", "entry", "says"),
    [
        ("node_modules/lib", {"resolved": "../lib", "link": True}, r"'node_modules/lib' comes from '\.\./lib'"),
        ("node_modules/lib", {"version": "file:../lib"}, "comes from 'file:../lib'"),
        ("node_modules/lib", {"version": "1.0.0", "resolved": "file:../lib"}, "comes from 'file:../lib'"),
        ("node_modules/lib", {"version": "1.0.0", "resolved": "git+ssh://git@127.0.0.1/x.git#1"}, "not in a registry of yours"),
        ("node_modules/lib", {"version": "1.0.0", "resolved": "http://127.0.0.1:9/x.tgz"}, "not in a registry of yours"),
        ("node_modules/lib", {"version": "1.0.0", "resolved": "https://registry.npmjs.org@127.0.0.1/x.tgz"}, "not in a registry of yours"),
        ("node_modules/lib", {"version": "1.0.0", "resolved": "http://[::1/x.tgz"}, "not in a registry of yours"),
        ("node_modules/lib", {"version": 5}, "not in a registry of yours"),
        ("../lib", {"version": "1.0.0"}, r"'\.\./lib', which is not in node_modules"),
        ("node_modules/../../lib", {"version": "1.0.0"}, "which is not in node_modules"),
    ],
)
def test_a_lock_that_leads_elsewhere_is_refused(tmp_path: Path, place: str, entry: dict[str, Any], says: str) -> None:
    lock = {"name": "p", "lockfileVersion": 3, "packages": {"": {"dependencies": {"lib": "1"}}, place: entry}}
    write(tmp_path, {"main.js": SCRIPT, "package.json": '{"dependencies": {"lib": "1"}}', "package-lock.json": json.dumps(lock)})
    with pytest.raises(PieError, match=says) as caught:
        build(tmp_path)
    assert caught.value.code == "build-failed"
    assert not (tmp_path / "node_modules").exists()


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[]", "{}", '{"packages": 5}', '{"packages": {"node_modules/x": 5}}', '{"dependencies": {}}']
)
def test_a_lock_that_cannot_be_understood_is_refused(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"main.js": SCRIPT, "package.json": '{"dependencies": {"lib": "1"}}', "package-lock.json": text})
    with pytest.raises(PieError, match=r"package-lock\.json"):
        build(tmp_path)


def test_what_a_dependency_depends_on_is_looked_at_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = write(tmp_path / "home", {"package.json": '{"name": "secret", "version": "1.0.0"}', "secret.txt": "TOP-SECRET-42"})
    project = write(tmp_path / "p", {"main.js": SCRIPT, "package.json": json.dumps({"dependencies": {f"{SCOPE}/honest": "1.0.0"}})})
    with registry({"honest": {"index.js": ""}}, honest={"secret": f"file:{secret}"}) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(PieError, match=r"lists '\.\./home', which is not in node_modules"):
            build(project)
    assert not (project / "node_modules").exists()


def test_no_script_of_a_package_and_no_tool_of_a_project_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = tmp_path / "ran"
    scripts = dict.fromkeys(("preinstall", "install", "postinstall", "prepare"), f"touch {ran}")
    package = {"dependencies": {f"{SCOPE}/honest": "1.0.0"}, "scripts": scripts}
    described = {"name": f"{SCOPE}/honest", "version": "1.0.0", "main": "index.js", "scripts": scripts}
    project = write(
        tmp_path / "p",
        {"main.js": f"import {{ N }} from '{SCOPE}/honest';\nexport const main = async () => N;\n", "package.json": json.dumps(package)},
    )
    with registry({"honest": {"index.js": "export const N = 1;", "package.json": json.dumps(described)}}) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        build(project)
    assert not ran.exists()
    # Nor does the esbuild that comes with a project.
    own = write(project, {"node_modules/.bin/esbuild": f"#!/bin/sh\ntouch {ran}\n"}) / "node_modules/.bin/esbuild"
    own.chmod(0o755)
    write(
        project, {"node_modules/esbuild/package.json": '{"name": "esbuild", "version": "0.25.12", "bin": {"esbuild": "../.bin/esbuild"}}'}
    )
    build(project)
    assert not ran.exists()


def test_the_sdk_is_provided_by_both_of_its_names(tmp_path: Path) -> None:
    for names, needs in ((["inferlet", "@pie-project/inferlet"], False), (["inferlet", "left-pad"], True)):
        (tmp_path / "package.json").write_text(json.dumps({"dependencies": dict.fromkeys(names, "^0.1.0")}))
        assert npm.has_dependencies(tmp_path) == needs
    assert {"--external:inferlet", "--external:@pie-project/inferlet"} <= set(npm._OPTIONS)
