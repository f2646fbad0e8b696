"""The guides: their commands run, their TOML is a configuration or a manifest, their names exist, and their snippets
run in three languages.
"""

from __future__ import annotations

import os
import re
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pie.bakery.manifest import parse_manifest
from pie.config import EMBEDDED_FOLDER, Flags, load
from pie.config.settings import settings
from pie.engine import Engine, Program
from pie.programs import load_program
from support.command import shell
from support.launching import ROOT, Outcome, finish, python_source, typescript_source
from support.web import Web, web
from tools.gen_guides import MIXED, PAGES, TARGET, rust, snippets

GUIDES = ROOT / "docs/guide"
REFERENCE = ROOT / "docs/reference"
# Blocks between fences, by language, and indented ones, which have none.
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^ {4}.*\n|^\n(?= {4}))+", re.MULTILINE)


def indented(page: Path) -> list[str]:
    return [textwrap.dedent(text).strip() + "\n" for text in INDENTED.findall(page.read_text())]


def run(line: str, folder: Path, home: Path) -> str:
    """What a line of a shell prints, which must succeed; what was compiled once is shared with every test."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return shell(line, folder, HOME=str(home), XDG_CACHE_HOME=cache)


def test_the_commands_of_the_guide_to_building_run(tmp_path: Path) -> None:
    blocks = FENCED.findall((GUIDES / "building.md").read_text())
    assert {language for language, _ in blocks} == {"bash"}
    lines = [line.partition(" #")[0].rstrip() for _, text in blocks for line in text.splitlines()]
    printed = {line: run(line, tmp_path, tmp_path) for line in lines}
    assert printed["pie run poet --dummy -- --name Ada"]
    assert "--name" in printed["pie run poet -- --help"]
    assert "carries the language runtime" in printed["pie build poet -o poet-alone.wasm --standalone"]
    assert {path.name for path in tmp_path.iterdir()} >= {"poet", "poet-alone.wasm", "Pie.toml"}
    assert (tmp_path / "poet/dist/Pie.toml").read_bytes() == (tmp_path / "poet/Pie.toml").read_bytes()


def test_the_commands_of_the_guide_to_models_run(tmp_path: Path) -> None:
    (commands,) = (text for text in indented(GUIDES / "models.md") if text.startswith("pie "))
    (folder,) = set(re.findall(r"~/(\S+)", commands))
    (tmp_path / folder).parent.mkdir(parents=True)
    (tmp_path / folder).symlink_to(EMBEDDED_FOLDER)
    for line in commands.splitlines():
        assert run(line, ROOT, tmp_path)


@pytest.mark.parametrize("page", [GUIDES / "models.md", GUIDES / "cuda.md", REFERENCE / "configuration.md"], ids=lambda page: page.name)
def test_a_configuration_that_is_shown_is_one(tmp_path: Path, page: Path) -> None:
    fenced = [text for language, text in FENCED.findall(page.read_text()) if language == "toml"]
    shown = fenced + [text for text in indented(page) if text.startswith("[")]
    assert shown
    for text in shown:
        file = tmp_path / "config.toml"
        file.write_text(text)
        config = load(Flags(file=file), variables={})
        given = tomllib.loads(text)
        assert len(config.models) == len(given["model"])


def test_the_manifest_that_is_shown_is_one() -> None:
    blocks = [text for language, text in FENCED.findall((REFERENCE / "manifest.md").read_text()) if language == "toml"]
    assert [parse_manifest(text).name for text in blocks[:1]] == ["poet"]


def test_the_guide_to_limits_names_what_there_is() -> None:
    rows = re.findall(r"^\| .* \| (.*) \| (.*) \|$", (GUIDES / "limits.md").read_text(), re.MULTILINE)
    limits = {name for row, _ in rows for name in re.findall(r"`([a-z_.]+)`", row)} - {"token_budget"}
    codes = {code for _, row in rows for code in re.findall(r"`([a-z-]+)`", row)}
    named = settings()
    known = {
        *named["limits"],
        *(f"{section}.{name}" for section in ("engine", "runtime", "snapshots", "server", "model") for name in named[section]),
    }
    known_codes = {error["code"] for error in tomllib.loads((ROOT / "tools/errors.toml").read_text())["error"]}
    assert len(limits) > 10
    assert (limits - known, codes - known_codes) == (set(), set())


PYTHON_FRAME = """
import ast, inspect
from inferlet import *

async def main(given):
    names = globals()
    names["server"] = given["server"]
    names["model"] = Model.load("default")
    names["ctx"] = Context(names["model"]).user("How much does a violin cost?")
    ran = eval(compile(given["snippet"], "guide.py", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.iscoroutine(ran):
        await ran
"""
TYPESCRIPT_FRAME = """
import {
  AnyNames
} from 'inferlet';

export async function main({ server }: { server: string }) {
  const model = Model.load('default');
  const ctx = new Context(model).user('How much does a violin cost?');
SNIPPET}
"""
NAMES = """Adapter anyJson brle chat Context Distribution ebnf Entropy files Grammar GrammarConstraint InferletError
jsonSchema Logits Logprob Matcher mcp messaging Model reasoning regex runtime Sampler scheduling session tools"""
PROGRAMS = {"count": python_source("def main(input):\n    return len(input['text'].split())\n")}
"""Those that snippets start."""


@pytest.fixture(scope="module")
def server() -> Iterator[Web]:
    with web() as opened:
        yield opened


def run_snippet(engine: Engine, program: Program, server: Web, snippet: str = "") -> Outcome:
    return finish(engine.launch(program, input={"snippet": snippet, "server": server.url}, programs=PROGRAMS))


@pytest.mark.parametrize("name", snippets("python"))
def test_a_python_snippet_runs(tiny: Engine, server: Web, name: str) -> None:
    outcome = run_snippet(tiny, python_source(PYTHON_FRAME), server, snippets("python")[name])
    assert outcome.code is None, outcome.traceback


@pytest.mark.parametrize("name", snippets("typescript"))
def test_a_typescript_snippet_runs(tiny: Engine, server: Web, name: str) -> None:
    lines = snippets("typescript")[name].splitlines(keepends=True)
    imports = "".join(line for line in lines if line.startswith("import "))
    # A name is imported once: what the snippet imports itself is not lent to it.
    lent = set(NAMES.split()) - set(re.findall(r"\w+", imports))
    frame = TYPESCRIPT_FRAME.replace("AnyNames", ", ".join(sorted(lent)))
    body = "".join(line for line in lines if not line.startswith("import "))
    outcome = run_snippet(tiny, typescript_source(imports + frame.replace("SNIPPET", body)), server)
    assert outcome.code is None, outcome.traceback or outcome.message


@pytest.mark.parametrize("name", snippets("rust"))
def test_a_rust_snippet_runs(tiny: Engine, server: Web, name: str) -> None:
    outcome = run_snippet(tiny, load_program(ROOT / "build/programs/guides.wasm"), server, name)
    assert outcome.code is None, outcome.message


def test_the_snippets_of_the_guide_to_languages_run(tiny: Engine) -> None:
    blocks = dict(FENCED.findall((GUIDES / "languages.md").read_text()))
    assert set(blocks) == {"python", "typescript"}
    python = python_source(blocks["python"])
    typescript = typescript_source(f"export async function main() {{\n{blocks['typescript']}}}\n")
    for program in (python, typescript):
        outcome = finish(tiny.launch(program, input={}))
        assert outcome.code is None, outcome.traceback or outcome.message


def test_every_snippet_stands_in_three_languages() -> None:
    python, typescript, of_rust = (snippets(language).keys() for language in ("python", "typescript", "rust"))
    mixed = {name for name in python if name.partition("/")[0] in MIXED}
    assert python == typescript
    assert python - mixed <= of_rust <= python
    assert {name.partition("/")[0] for name in python} == {*PAGES, *MIXED}
    assert TARGET.read_text() == rust()
