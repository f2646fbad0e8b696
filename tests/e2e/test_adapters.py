"""Adapters of programs on the embedded model and on the dummy driver: whose they are, how long they last, and what they
never share.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pie.config import EngineConfig, ModelConfig
from pie.engine import Engine
from pie.models.config import read_json_object
from pie.models.safetensors import read_tensors
from support.engines import started
from support.launching import Outcome, finish, python_source, run

HEAD = """
import asyncio
from inferlet import *
from inferlet.adapter import Adapter
from inferlet.errors import InferletError

model = Model.load(runtime.models()[0])

async def said(adapter, ctx=None, **options):
    ctx = ctx or Context(model).append(range(40, 75))
    return await ctx.generate(Sampler.argmax(), max_tokens=12, ignore_eos=True, adapter=adapter, **options).collect_tokens()

def code_of(call):
    try:
        call()
    except InferletError as error:
        return error.code

async def main(input):
"""


def program(body: str) -> Any:
    return python_source(HEAD + "".join(f"    {line}\n" for line in body.strip().splitlines()))


def value_of(engine: Engine, body: str, username: str | None = None, **given: Any) -> Any:
    outcome: Outcome = (
        finish(engine.launch(program(body), input=given, username=username)) if username else run(engine, program(body), given)
    )
    assert outcome.code is None, (outcome.code, outcome.message, outcome.traceback)
    return outcome.value


LEARNS = """
a = Adapter.create(model, "learns", rank=4, alpha=64)
plain = await said(None)
fresh = await said(a)
fork = a.fork("fork")
a.change([(seed, 0.5) for seed in range(4)], sigma=0.5)
changed, kept = await said(a), await said(fork)
a.save("mine")
fork.load("mine")
return [plain, fresh, changed, kept, await said(fork), await said(a, zo_seed=3), await said(a, zo_seed=3), Adapter.names(model)]
"""


@pytest.mark.rows("PY-140..147")
def test_a_copy_stays_as_it_is_and_what_was_saved_is_the_same(tiny: Engine) -> None:
    plain, fresh, changed, kept, loaded, perturbed, again, names = value_of(tiny, LEARNS, "learner")
    assert plain == fresh == kept
    assert changed not in (plain, perturbed)
    assert loaded == changed
    assert perturbed == again
    assert names == ["fork", "learns"]
    assert value_of(tiny, "return [Adapter.names(model), Adapter.open(model, 'learns') is None]", "another") == [[], True]
    ends = "for name in Adapter.names(model): Adapter.delete(model, name)\nreturn Adapter.names(model)"
    assert value_of(tiny, ends, "learner") == []


def test_a_saved_adapter_is_there_after_a_restart_and_nothing_else_is(tmp_path: Path) -> None:
    def engine() -> Engine:
        made = Engine(EngineConfig(data_dir=tmp_path))
        made.add_model()
        return made

    with started(engine()) as first:
        made = "a = Adapter.create(model, 'a', rank=4, alpha=64)\na.change([(5, 0.7)], sigma=0.25)\na.save('/scratch/kept/a')\n"
        before = value_of(first, made + "return [await said(a), await said(a, zo_seed=1)]")
    with started(engine()) as second:
        loaded = "b = Adapter.create(model, 'b')\nb.load('kept/a')\nreturn [await said(b), await said(b, zo_seed=1), Adapter.names(model)]"
        assert value_of(second, loaded) == [*before, ["b"]]
    (folder,) = (tmp_path / "scratch").rglob("kept/a")
    assert read_json_object(folder / "adapter_config.json")["r"] == 4
    tensors = read_tensors(folder / "adapter_model.safetensors")
    assert len(tensors) % 14 == 0
    assert all(np.isfinite(tensor.float32()).all() for tensor in tensors.values())


BAD = """
import os
a = Adapter.create(model, "a", rank=4)
a.save("a")
before = await said(a)
def spoiled(change):
    text = open("/scratch/a/adapter_config.json").read()
    os.makedirs("/scratch/bad", exist_ok=True)
    open("/scratch/bad/adapter_config.json", "w").write(change(text))
    data = open("/scratch/a/adapter_model.safetensors", "rb").read()
    open("/scratch/bad/adapter_model.safetensors", "wb").write(data)
    try:
        a.load("bad")
    except InferletError as error:
        return [error.code, error.message]
told = [spoiled(lambda text: text.replace('"r": 4', f'"r": {rank}')) for rank in (0, 5, 100_000)]
told.append(spoiled(lambda text: text.replace('"use_dora": false', '"use_dora": true')))
told.append(spoiled(lambda text: text.replace('"q_proj"', '"lm_head"')))
os.remove("/scratch/bad/adapter_model.safetensors")
open("/scratch/bad/adapter_model.bin", "w").write("pickle")
try:
    a.load("bad")
except InferletError as error:
    told.append([error.code, error.message])
return [told, await said(a) == before]
"""


def test_what_cannot_be_loaded_is_told_and_changes_nothing(tiny: Engine) -> None:
    told, is_unchanged = value_of(tiny, BAD, "loader")
    for (code, message), expected in zip(
        told,
        ("r is 0", "but the rank 5", "r is 100000", "use_dora is True", "names 'lm_head'", "adapter_model.bin is pickled"),
        strict=True,
    ):
        print(f"{code}: {message}")
        assert code == "invalid-adapter"
        assert expected in message
        assert "/tmp" not in message
    assert is_unchanged


PAIR = """
import os
def files():
    return [open("/scratch/pair/" + name, "rb").read() for name in ("adapter_config.json", "adapter_model.safetensors")]
a = Adapter.create(model, "pair", rank=2)
a.save("pair")
before = files()
a.change([(1, 0.5)])
os.mkdir("/scratch/pair/.adapter_config.json.part")
code = code_of(lambda: a.save("pair"))
left = files() == before
os.rmdir("/scratch/pair/.adapter_config.json.part")
a.save("pair")
return [code, left, files() == before, sorted(os.listdir("/scratch/pair"))]
"""


def test_the_files_of_an_adapter_are_saved_together_or_not_at_all(tiny: Engine) -> None:
    names = ["adapter_config.json", "adapter_model.safetensors"]
    assert value_of(tiny, PAIR, "saver") == ["invalid-argument", True, False, names]


IN_FLIGHT = """
a = Adapter.create(model, "busy")
other = Adapter.open(model, "busy")
ctx = Context(model).append(range(20))
run = asyncio.ensure_future(said(a, ctx))
await asyncio.sleep(0)
codes = [code_of(lambda: Adapter.delete(model, "busy"))]
tokens = await run
Adapter.delete(model, "busy")
codes += [code_of(lambda: other.fork("x")), code_of(lambda: Adapter.delete(model, "busy"))]
# The context goes on, and so does what was computed with it.
fork = ctx.fork()
fork.suspend()
return [codes, len(tokens), await said(None, fork) == await said(None, ctx)]
"""


def test_destroying_one_in_flight_is_refused_and_nobody_is_disturbed(tiny: Engine) -> None:
    assert value_of(tiny, IN_FLIGHT, "hasty") == [["adapter-busy", "adapter-missing", "adapter-missing"], 12, True]


ALONE = """
tokens = list(range(100, 148))
a, b = Adapter.create(model, "a"), Adapter.create(model, "b", rank=2)
counts = []
for adapter, options in [(None, {}), (a, {}), (a, {"zo_seed": 1}), (a, {"zo_seed": 2}), (b, {}), (a, {}), (a, {"zo_seed": 2}), (None, {})]:
    ctx = Context(model).append(tokens)
    await ctx.generate(Sampler.argmax(), max_tokens=1, adapter=adapter, **options).collect_tokens()
    counts.append(ctx.cached_tokens)
a.change([(1, 0.1)])
ctx = Context(model).append(tokens)
await ctx.generate(Sampler.argmax(), max_tokens=1, adapter=a).collect_tokens()
return [*counts, ctx.cached_tokens]
"""


def test_pages_are_never_shared_between_adapters_versions_or_seeds(dummy: Engine) -> None:
    counts = value_of(dummy, ALONE, "alone")
    assert [count > 0 for count in counts] == [False] * 5 + [True] * 3 + [False], counts


def test_quotas_are_told(tmp_path: Path) -> None:
    engine = Engine(EngineConfig(data_dir=tmp_path))
    engine.add_model(options=ModelConfig(max_user_adapters=2, max_adapters=3, max_user_adapter_bytes=1 << 20, adapter_bytes=3 << 20))
    with started(engine) as opened:
        codes = "return [code_of(lambda: Adapter.create(model, name, rank=rank)) for name, rank in input['asked']]"
        asked = [["a", 1], ["b", 1], ["c", 1], ["a", 1]]
        assert value_of(opened, codes, "ada", asked=asked) == [None, None, "limit-adapters", "adapter-exists"]
        assert value_of(opened, codes, "bob", asked=[["x", 512], ["x", 1], ["y", 1]]) == ["limit-adapters", None, "limit-adapters"]


def test_zo_seed_without_an_adapter_is_an_error(tiny: Engine) -> None:
    body = "return [code_of(lambda: None), await wrong()]"
    wrong = """
async def wrong():
    try:
        await said(None, zo_seed=3)
    except InferletError as error:
        return error.code
"""
    source = python_source(HEAD.replace("async def main", wrong + "\nasync def main") + f"    {body}\n")
    assert run(tiny, source).value == [None, "invalid-argument"]
