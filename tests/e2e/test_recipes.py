"""The whole programs of the recipes and of the README run as printed. The short snippets run in `test_guides.py`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from client.test_three_clients import commands
from e2e.test_http_in import door
from pie.engine import Engine
from pie.events import Event
from pie.programs import Source
from support.command import PATIENCE_S, environment, shell
from support.launching import ROOT, example, python_source, run, typescript_source
from support.serving import serving
from tools.gen_guides import files

RECIPES = files("recipes")
PAGE = (ROOT / "docs/guide/recipes.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDRESS = "ws://127.0.0.1:8080"
QUESTION = "How much does a violin cost?"
SEED = 7

ALONE = """
from inferlet import Context, Model


async def main(input):
    ctx = Context(Model.load("default")).system("You are a helpful assistant.")
    return await ctx.ask(input["question"], max_tokens=16)
"""


def block(language: str, start: str) -> str:
    """The block of the README in a language that begins so."""
    blocks: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    (found,) = (text for text in blocks if text.startswith(start))
    return found


def source(language: str, text: str) -> Source:
    return python_source(text) if language == "python" else typescript_source(text)


def test_the_twenty_questions_of_the_readme_are_an_example_that_answers(tiny: Engine) -> None:
    text = block("python", '"""Twenty questions')
    assert text == (ROOT / "examples/python/questions.py").read_text(encoding="utf-8")
    outcome = run(tiny, python_source(text), seed=SEED)
    assert outcome.code is None, outcome.traceback
    assert len(outcome.value) == 20
    # A fork answers what a context of its own does.
    alone = run(tiny, python_source(ALONE), {"question": "What is 7 + 7?"}, seed=SEED)
    assert outcome.value[6] == alone.value


def test_the_twenty_questions_have_the_same_answers_in_typescript(tiny: Engine) -> None:
    answers = [run(tiny, example("questions", language), seed=SEED).value for language in ("python", "typescript")]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("language", ["python", "typescript"])
def test_the_first_program_of_the_readme_runs(tiny: Engine, language: str) -> None:
    start = {"python": "from inferlet import Context, Model, Sampler", "typescript": "import { Context, Model, Sampler }"}
    text = block(language, start[language])
    outcome = run(tiny, source(language, text), {"name": "Ada"}, seed=SEED)
    assert outcome.code is None, outcome.traceback or outcome.message
    assert isinstance(outcome.value, str)


def looked_up(engine: Engine, program: Source) -> tuple[list[Any], Any]:
    """What a program asks its client for, which gives prices, and what it returns."""
    process = engine.launch(program, input={"question": QUESTION}, seed=SEED)
    asked: list[Any] = []
    while (event := process.next_event(PATIENCE_S)) is not None:
        match event:
            case Event.Stdout():
                asked.append(event.value)
                process.send(json.dumps({"price": 340}))
            case Event.Return():
                return asked, event.value
            case Event.Error(code, message):
                raise AssertionError(f"{code}: {message}")
    raise AssertionError("the program said nothing more")


@pytest.mark.parametrize(("language", "name"), [("python", "lookup.py"), ("typescript", "lookup.ts")])
def test_a_program_asks_its_client_for_a_tool(tiny: Engine, language: str, name: str) -> None:
    asked, answer = looked_up(tiny, source(language, RECIPES[name]))
    assert asked == [{"call": "get_price", "arguments": {"item": "violin"}}]
    assert "340" in answer


def test_the_clients_run_the_tool(tmp_path: Path) -> None:
    for name in ("lookup.py", "ask.py", "ask.mjs"):
        (tmp_path / name).write_text(RECIPES[name], encoding="utf-8")
    package = tmp_path / "node_modules/pie-client"
    package.parent.mkdir()
    package.symlink_to(ROOT / "js/client")

    install = re.findall(r"`(pie install lookup\.py .*?)`", PAGE)[0]
    with serving(tmp_path / "server", "--port", "0") as served:
        assert shell(install, tmp_path, PIE_CLIENT__URL=served.url) == "lookup@1.0\n"
        for command in ([sys.executable, "ask.py"], [*commands()["javascript"][:-1], "ask.mjs"]):
            script = tmp_path / command[-1]
            script.write_text(script.read_text(encoding="utf-8").replace(ADDRESS, served.url), encoding="utf-8")
            done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=PATIENCE_S, env=environment())
            assert done.returncode == 0, done.stderr
            assert "340" in done.stdout


@pytest.mark.parametrize("name", ["front.py", "front.ts"])
def test_the_front_end_serves_its_page_and_streams_answers(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(RECIPES[name], encoding="utf-8")
    with door(tmp_path, path, shared=False) as opened:
        page = opened.ask("/")
        assert page.status == 200, page.body
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert b"new EventSource" in page.body
        answer = opened.ask("/ask?question=What%20does%20an%20owl%20eat%3F")
        assert answer.headers["content-type"] == "text/event-stream"
        lines = [line for line in answer.body.decode().split("\n") if line]
        assert lines
        assert all(isinstance(json.loads(line.removeprefix("data: "))["text"], str) for line in lines)


def test_every_whole_program_of_the_recipes_is_run_here() -> None:
    assert set(RECIPES) == {"lookup.py", "lookup.ts", "ask.py", "ask.mjs", "front.py", "front.ts"}
