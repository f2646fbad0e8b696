"""The examples that the older README names, and the modules that it lists."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from pie.engine import Engine
from support.command import pie
from support.launching import ROOT, python_source, run

EXAMPLES = ROOT / "examples/python"


def built_and_run(name: str, folder: Path, *arguments: str) -> str:
    """What the README does with an example: it is built, then run with its manifest. Returns what it printed."""
    wasm = folder / f"{name}.wasm"
    done = pie("build", str(EXAMPLES / name), "-o", str(wasm))
    assert done.returncode == 0, done.stderr
    done = pie("run", "--dummy", "--seed", "2", "--path", str(wasm), "--manifest", str(EXAMPLES / name / "Pie.toml"), "--", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.rows("OLD-010")
def test_the_examples_are_projects_by_their_names() -> None:
    for name in ("hello-world", "text-completion", "beam-search"):
        manifest = tomllib.loads((EXAMPLES / name / "Pie.toml").read_text())
        assert manifest["package"]["name"] == name
        assert (EXAMPLES / name / manifest["program"]["entry"]).is_file()


@pytest.mark.rows("OLD-011")
def test_hello_world_answers_at_once(tmp_path: Path) -> None:
    assert "generate_text(" in (EXAMPLES / "hello-world/main.py").read_text()
    assert built_and_run("hello-world", tmp_path, "--max-tokens", "12").strip()


@pytest.mark.rows("OLD-012")
def test_text_completion_streams_what_hello_world_says(tmp_path: Path) -> None:
    assert "case Event.Text(text=t):" in (EXAMPLES / "text-completion/main.py").read_text()
    said = [built_and_run(name, tmp_path, "--prompt", "Hello!", "--max-tokens", "12") for name in ("hello-world", "text-completion")]
    assert said[0].strip() == said[1].strip() != ""


@pytest.mark.rows("OLD-013")
def test_beam_search_has_an_answer_of_each_beam(tmp_path: Path) -> None:
    printed = built_and_run("beam-search", tmp_path, "--beams", "3", "--max-tokens", "4")
    places = [printed.index(f"beam-{number}: ") for number in range(3)]
    assert places == sorted(places)
    texts = [printed[place + len("beam-0: ") :].partition("\nbeam-")[0] for place in places]
    assert len(set(texts)) > 1


IMPORTS = """
from inferlet.context import Context, TokenStream, EventStream, Decoder, Event
from inferlet.model import Model, Tokenizer
from inferlet.sampler import Sampler
from inferlet.forward import ForwardPass
from inferlet.grammar import Grammar, Matcher
from inferlet.adapter import Adapter
from inferlet import _async, session, runtime, messaging
import inferlet, inferlet.session, inferlet.runtime, inferlet.messaging, inferlet._async

names = [Context, TokenStream, EventStream, Decoder, Event, Model, Tokenizer, Sampler, ForwardPass, Grammar, Matcher, Adapter]
def main():
    return [name.__name__ for name in names if getattr(inferlet, name.__name__, name) is not name] + [_async.block_on.__name__]
"""


def test_what_is_imported_by_its_module_is_what_the_root_has(dummy: Engine) -> None:
    outcome = run(dummy, python_source(IMPORTS))
    assert outcome.value == ["block_on"], outcome.traceback
