"""Two engines live in one process, each with a model of its own, and share nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

from pie.config import EMBEDDED_FOLDER
from pie.engine import Engine
from support.launching import finish, python_source

PROGRAM = python_source("""
from inferlet import Context, Model, Sampler, runtime


async def main(input):
    ctx = Context(Model.load("default"))
    ctx.user("Hello!")
    tokens = await ctx.generate(Sampler.argmax(), max_tokens=16).collect_tokens()
    return {"models": runtime.models(), "engine": runtime.instance_id(), "tokens": tokens}
""")


def test_two_engines_in_one_process(tmp_path: Path) -> None:
    other = tmp_path / "other-model"
    shutil.copytree(EMBEDDED_FOLDER, other)
    with Engine() as first, Engine() as second, Engine() as alone:
        first.add_model()
        second.add_model(other, dummy=True)
        alone.add_model()
        for engine in (first, second, alone):
            engine.start()
        reference = finish(alone.launch(PROGRAM)).value
        running = [engine.launch(PROGRAM) for engine in (first, second, first, second)]
        values = [finish(process).value for process in running]
    assert [value["models"] for value in values] == [["pie-tiny"], ["other-model"]] * 2
    assert values[0]["engine"] != values[1]["engine"]
    assert values[0] == values[2]
    assert values[1] == values[3]
    assert values[0]["tokens"] == reference["tokens"] != values[1]["tokens"]
    print(f"{values[0]['models']}: {values[0]['tokens'][:6]}...; {values[1]['models']}: {values[1]['tokens'][:6]}...")
