"""What the dummy driver says where a file tells it to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pie.config import EngineConfig, Flags, ModelConfig, load
from pie.engine import Engine
from pie.errors import PieError
from support.engines import started
from support.launching import finish, python_source

ASKS = python_source(
    "from inferlet import Context, Model, Sampler\n\n\nasync def main(question):\n"
    "    with Context(Model.load('default')) as ctx:\n"
    "        return await ctx.user(question).generate(Sampler.argmax()).collect_text()\n"
)


def test_it_says_what_its_script_has(tmp_path: Path) -> None:
    (tmp_path / "replies.json").write_text(json.dumps([["colour", "It is red."], ["size", "It is ü large."]]), encoding="utf-8")
    # A path is that of the file that names it.
    (tmp_path / "pie.toml").write_text('[[model]]\nname = "pie-tiny"\ndriver = "dummy"\nscript = "replies.json"\n')
    config = load(Flags(file=tmp_path / "pie.toml"), variables={})
    engine = Engine(EngineConfig(data_dir=tmp_path / "data"))
    engine.add_model(options=config.models[0])
    with started(engine):
        asked = {
            "What is the colour?": "It is red.",
            "What is its size?": "It is ü large.",
            "The colour, and the size?": "It is ü large.",
            "Who?": "",
        }
        for question, answer in asked.items():
            outcome = finish(engine.launch(ASKS, input=question))
            assert (outcome.code, outcome.value) == (None, answer), outcome.message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read: No such file"),
        ("", "is not a JSON list of pairs"),
        ('{"colour": "red"}', "is not a JSON list of pairs"),
        ('[["colour"]]', "is not a JSON list of pairs"),
        ('[["colour", 1]]', "is not a JSON list of pairs"),
        ("[" * 100_000, "is not a JSON list of pairs"),
        (" " * ((1 << 20) + 1), "has more than 1048576 bytes"),
    ],
    ids=["absent", "empty", "object", "one", "number", "deep", "long"],
)
def test_what_is_no_script_is_refused_by_name(tmp_path: Path, content: str | None, says: str) -> None:
    path = tmp_path / "replies.json"
    if content is not None:
        path.write_text(content)
    refused(ModelConfig(driver="dummy", script=str(path)), f"the script {str(path)!r} {says}")


def test_a_script_is_for_the_dummy_driver_of_the_engine() -> None:
    for options in (ModelConfig(driver="cpu", script="x.json"), ModelConfig(driver="dummy", isolate=True, script="x.json")):
        refused(options, "script = 'x.json' is what the driver dummy says, in the process of the engine")


def refused(options: ModelConfig, says: str) -> None:
    """A model that cannot be added."""
    with Engine() as engine, pytest.raises(PieError) as caught:
        engine.add_model(options=options)
    assert caught.value.code == "invalid-config"
    assert says in caught.value.message
