"""The guide to clients: its snippets run, and print the same. That of Rust is compiled as a test of its crate."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from client.test_three_clients import commands
from pie.client import connect
from support.command import PATIENCE_S, environment, shell
from support.launching import ROOT
from support.serving import serving

GUIDE = (ROOT / "docs/guide/clients.md").read_text(encoding="utf-8")
SERVING = (ROOT / "docs/guide/serving.md").read_text(encoding="utf-8")
ADDRESS = "ws://127.0.0.1:8080"


def block(page: str, language: str, *, nth: int = 0) -> str:
    """A snippet of a language; the first if not said otherwise."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[nth]


def test_the_snippets_run_and_print_the_same(tmp_path: Path) -> None:
    (tmp_path / "shout.py").write_text(block(SERVING, "python"))
    package = tmp_path / "node_modules/pie-client"
    package.parent.mkdir()
    package.symlink_to(ROOT / "js/client")

    install, printed = block(GUIDE, "console").removeprefix("$ ").splitlines()
    with serving(tmp_path / "server") as served:
        assert shell(install, tmp_path, PIE_CLIENT__URL=served.url) == f"{printed}\n"
        for language, nth, name, of in (
            ("python", 0, "talk.py", "python"),
            ("python", 2, "wait.py", "python"),
            ("js", 0, "talk.mjs", "javascript"),
        ):
            (tmp_path / name).write_text(block(GUIDE, language, nth=nth).replace(ADDRESS, served.url))
            command = [*commands()[of][:-1], name]
            done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=PATIENCE_S, env=environment())
            assert done.returncode == 0, done.stderr
            assert done.stdout == "Hello\nHEY\nreturned 1\n"


def test_the_snippet_of_one_call_runs(tmp_path: Path) -> None:
    (tmp_path / "story.py").write_text("def main(input):\n    return input['topic']\n")
    snippet = block(GUIDE, "python", nth=1).replace("story.py", str(tmp_path / "story.py"))
    names: dict[str, object] = {}
    exec(f"async def call(client):\n    {snippet}    return value\n", names)

    async def run(url: str) -> object:
        async with connect(url) as client:
            return await names["call"](client)  # type: ignore[operator]

    with serving(tmp_path / "server") as served:
        assert asyncio.run(run(served.url)) == "rain"


def test_the_guide_names_every_verb_of_each_client() -> None:
    """Those of JavaScript by its sources; those of Rust are the same."""
    process, client = ((ROOT / f"js/client/src/{name}.ts").read_text(encoding="utf-8") for name in ("process", "client"))
    verbs = set(re.findall(r"^  async ([a-zA-Z]+)[(<]", client + process, re.MULTILINE)) - {"next"}
    assert len(verbs) > 25
    assert {verb for verb in verbs if f"`{verb}(" not in GUIDE} == set()
    rust = "".join((ROOT / f"rust/client/src/{name}.rs").read_text(encoding="utf-8") for name in ("client", "process"))
    # The name of an upload is an option in JavaScript.
    of_rust = set(re.findall(r"^    pub async fn (\w+)", rust, re.MULTILINE)) - {"connect", "next", "upload_named"}
    assert of_rust == {re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", verb) for verb in verbs}
    version = json.loads((ROOT / "js/client/package.json").read_text(encoding="utf-8"))["version"]
    assert f"pie-js/{version}" in (ROOT / "js/client/src/opening.ts").read_text(encoding="utf-8")


def test_the_guide_has_the_types_of_rust_and_a_manifest_that_takes_the_crate() -> None:
    for name in ("client", "process"):
        source = (ROOT / f"rust/client/src/{name}.rs").read_text(encoding="utf-8")
        for verb, given in re.findall(r"^    pub async fn (\w+)\(\s*&self,?\s*([^{]*?)\) ->", source, re.MULTILINE | re.DOTALL):
            if verb != "upload_named":
                arguments = " ".join(given.split()).removesuffix(",")
                assert f"`{verb}({arguments})`" in GUIDE, verb
    manifest = tomllib.loads(block(GUIDE, "toml"))
    crate = ROOT / manifest["dependencies"]["pie-client"]["path"].removeprefix("PATH/")
    assert tomllib.loads((crate / "Cargo.toml").read_text(encoding="utf-8"))["package"]["name"] == "pie-client"
    # Without these features there is no `#[tokio::main]`.
    assert set(manifest["dependencies"]["tokio"]["features"]) == {"macros", "rt-multi-thread"}
    readme = block((crate / "README.md").read_text(encoding="utf-8"), "toml")
    assert tomllib.loads(readme)["dependencies"] == manifest["dependencies"]


@pytest.mark.parametrize("page", ["docs/guide/clients.md", "js/client/README.md"])
def test_the_javascript_client_is_built_before_it_is_installed(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    ends = [text.index(f"`{command}") for command in ("npm ci`", "npm run build`", "npm install")]
    assert ends == sorted(ends)
