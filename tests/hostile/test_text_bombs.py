"""Grammars, templates and texts that take as much work as they may, one after the other: the tokens of another user go
on while the engine works at each. Batches are counted from the message with which the attacker begins to its end.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from e2e.test_same_answer import wait_until
from e2e.test_shares import ops
from hostile.model_folders import EVER
from hostile.test_time import CANARY, Recording
from pie.config import EMBEDDED_FOLDER, ModelConfig
from pie.engine import Engine
from support.launching import PATIENCE_S, finish, load_interpreter, python_source

MANY = 1_900
"""Tokens that the other user wants: nearly as many as a context holds."""
N_BOMBS = 6
LEAST = 8
"""Batches beside each bomb. A bomb takes longer than hundreds of them; where the engine stood still meanwhile, there
would be one, before or behind it.
"""

ATTACKER = python_source("""
from inferlet import Context, Grammar, InferletError, Matcher, Model, session

MAKE = {"schema": Grammar.from_json_schema, "regex": Grammar.from_regex, "ebnf": Grammar.from_ebnf}


def compile(sources):
    tokenizer = Model.load("default").tokenizer()
    for kind, source in sources:
        try:
            Matcher(MAKE[kind](source), tokenizer)
        except InferletError as error:
            yield error.code


def render(description):
    ctx = Context(Model.load("bomb"))
    try:
        ctx.equip([{"name": "look", "description": description, "parameters": {"type": "object", "properties": {}}}])
        ctx.user("x")
    except InferletError as error:
        yield error.code


def encode(n_bytes):
    ctx = Context(Model.load("default"))
    try:
        ctx.user("ab c" * (n_bytes // 4))
        ctx.release()
    except InferletError as error:
        yield error.code


DO = {"compile": compile, "render": render, "encode": encode}


async def main(input):
    session.send("ready")
    await session.receive()
    return [code for what, given in input for code in DO[what](given)]
""")


def grammars(number: int) -> list[list[str]]:
    """Sources that take long to look at or to compile, and that nobody gave before."""
    names = {f"p{at}": {"type": "string", "maxLength": 40 + number} for at in range(1_500)}
    inner: dict[str, Any] = {"required": [f"z{number}"]}
    for at in range(12):
        inner = {"if": {"required": [f"p{at}"]}, "then": inner, "else": inner}
    values = [f"{number}-{at:060}" for at in range(3_000)]
    sources = [
        ["schema", json.dumps(schema)]
        for schema in ({"type": "object", "properties": names, "additionalProperties": False}, inner, {"enum": values})
    ]
    rules = "".join(f"r{at} ::= r{at + 1} r{at + 1}\n" for at in range(900))
    return [
        *sources,
        ["regex", f"((a{{1,100}}){{1,100}}){{1,10{number}}}"],
        ["regex", f"(ab?){{900{number}}}"],
        ["ebnf", f'root ::= r0\n{rules}r900 ::= "{number}"\n'],
    ]


ATTACKS: dict[str, list[list[Any]]] = {
    "grammars": [["compile", grammars(number)] for number in range(N_BOMBS)],
    "templates": [["render", f"boom {number}"] for number in range(N_BOMBS)],
    "tokenizers": [["encode", (2 << 20) - 4 * number] for number in range(N_BOMBS)],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose template takes all the steps that it may for some tools."""
    folder = tmp_path_factory.mktemp("folders") / "bomb"
    shutil.copytree(EMBEDDED_FOLDER, folder)
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    bomb = "{% if tools and 'boom' in (tools[0]['function']['description'] or '') %}" + EVER[0] + EVER[1] + "{% endif %}"
    path.write_text(json.dumps(config | {"chat_template": bomb + config["chat_template"]}), encoding="utf-8")
    return folder


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Engine, Recording]]:
    """An engine on a driver that takes down its batches, with the model of that folder beside it."""
    driver = Recording(0.0)
    with Engine() as engine:
        model = engine.add_model(driver=driver, options=ModelConfig())
        engine.add_model(folder, dummy=True)
        engine.start()
        yield engine, driver
        model.check()


@pytest.mark.parametrize("attack", ATTACKS)
def test_batches_of_another_user_go_on_beside(folder: Path, attack: str) -> None:
    with serving(folder) as (engine, driver):
        attacker = engine.launch(ATTACKER, input=ATTACKS[attack], username="mallory")
        assert attacker.next_event(PATIENCE_S) is not None, "it ended before it was ready"
        other = engine.launch(load_interpreter("rust"), input=ops(CANARY, MANY), username="ada")
        wait_until(lambda: len(driver.batches) > 1 or other.ended)
        n_before = len(driver.batches)
        attacker.send("go")
        outcome = finish(attacker)
        n_beside = len(driver.batches) - n_before
    assert outcome.code is None, outcome.message
    if attack != "tokenizers":
        assert set(outcome.value) <= {"invalid-grammar", "template-error"}
    assert n_beside >= LEAST * N_BOMBS, "the other user waited for what the engine was asked for"
