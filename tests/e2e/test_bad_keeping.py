"""Every kind of bad input to the market, to snapshots and to adapters: an error with a code that says what to do,
nothing torn, and everyone else is served meanwhile and afterwards. The kinds stand in `bad_keeping.toml`;
`pytest -s tests/e2e/test_bad_keeping.py` prints each with its message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.test_snapshots_on_disk import engine, folder
from pie import snapshots
from pie.config import EngineConfig, Flags, ModelConfig, SnapshotConfig, load
from pie.engine import Engine
from pie.errors import PieError
from support.bad_lines import Case, World, check_held, check_lines, check_met, of, read_cases, tell
from support.engines import started
from support.launching import finish, python_source

CASES = read_cases(Path(__file__).parent / "bad_keeping.toml")

# What fails is returned; a child returns it to its parent.
PROGRAM = """
import asyncio
import json
import math
import os

from inferlet import Adapter, Context, InferletError, Model, Sampler, runtime

model = Model.load("default")
FIRST = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
CONFIG, WEIGHTS = "/scratch/bad/adapter_config.json", "/scratch/bad/adapter_model.safetensors"
# A dict of nothing, as `pickle.dumps` writes it.
PICKLE = bytes([0x80, 4, 0x7D, 0x94, 0x2E])


def adapter():
    return Adapter.open(model, "a") or Adapter.create(model, "a", rank=4)


async def said(a):
    ctx = Context(model).append(range(40, 60))
    return await ctx.generate(Sampler.argmax(), max_tokens=12, ignore_eos=True, adapter=a).collect_tokens()


def load(change):
    # Loads what `save` wrote, whose config and tensors were changed since.
    adapter().save("bad")
    with open(CONFIG) as file:
        config = json.load(file)
    with open(WEIGHTS, "rb") as file:
        data = file.read()
    start = 8 + int.from_bytes(data[:8], "little")
    header, data = json.loads(data[8:start]), data[start:]
    header.pop("__metadata__", None)
    tensors = {name: [it["dtype"], it["shape"], data[slice(*it["data_offsets"])]] for name, it in header.items()}
    change(config, tensors)
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(CONFIG, "w") as file:
        json.dump(config, file)
    with open(WEIGHTS, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)
    adapter().load("bad")


async def fails(input):
{body}


async def main(input):
    try:
        return await fails(input)
    except InferletError as error:
        return {"code": error.code, "message": error.message}
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The embedded model, and room for few names of each user."""
    keeping = SnapshotConfig(durability="disk", free_bytes=0, user_snapshots=20)
    opened = Engine(EngineConfig(data_dir=tmp_path_factory.mktemp("bad_keeping")), snapshots=keeping)
    opened.add_model(options=ModelConfig(max_user_snapshots=50, max_user_adapters=20))
    with started(opened):
        yield World(opened, PROGRAM, {"is_child": False})


@of(CASES, "python")
def test_what_a_program_does_wrong_has_its_code_and_disturbs_nobody(world: World, case: Case) -> None:
    beside = world.launch_honest()
    # Each has a user of its own, whose names are left.
    code, message = world.met(case, f"mallory-{CASES.index(case)}")
    check_met(case, code, message)
    assert "/tmp" not in message
    assert finish(beside).value == world.usual
    assert world.serves_others()


@of(CASES, "config")
def test_a_configuration_that_asks_for_too_much_is_refused(tmp_path: Path, case: Case) -> None:
    file = tmp_path / "pie.toml"
    file.write_text(case["config"], encoding="utf-8")
    with pytest.raises(PieError) as refused:
        load(Flags(file=file), variables={})
    check_met(case, refused.value.code, refused.value.message)


@of(CASES, "holds")
def test_what_takes_more_than_a_program_is_shown_elsewhere(case: Case) -> None:
    check_held(case)


def test_each_line_says_how_it_ends() -> None:
    check_lines(CASES, "python", "config", "holds")


SAVES = python_source("""
from inferlet import Context, Model


async def main(input):
    model = Model.load("default")
    for number, name in enumerate(input["names"]):
        # No two begin alike, so that each has the file of its runs alone.
        with Context(model).user(name).append([number + 1] * input["n"]) as ctx:
            await ctx.flush()
            ctx.append([1, 2, 3]).save(name)
""")
OPENS = python_source("""
from inferlet import Context, InferletError, Model


def opened(model, name):
    try:
        with Context.open(model, name) as ctx:
            return [None, ctx.seq_len]
    except InferletError as error:
        return [error.code, error.message]


async def main(input):
    model = Model.load("default")
    return {name: opened(model, name) for name in input["names"]}
""")
N_TOKENS = snapshots.RUN_TOKENS + 76
"""Of each snapshot: a whole run and a tail."""

Damage = Callable[[bytes, snapshots.Kept], bytes]


def flipped(part: str) -> Damage:
    """A bit in the middle of a part."""

    def flip(raw: bytes, kept: snapshots.Kept) -> bytes:
        offset, n_bytes, _ = kept.extents[part]
        assert n_bytes > 0
        return flip_at(raw, offset + n_bytes // 2)

    return flip


def flip_at(raw: bytes, at: int) -> bytes:
    return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


def cut(percent: int) -> Damage:
    return lambda raw, _kept: raw[: len(raw) * percent // 100]


def of_version_7(raw: bytes, _kept: snapshots.Kept) -> bytes:
    """Its header is right."""
    start = raw[:8] + (7).to_bytes(4, "little") + raw[12 : snapshots.HEADER_BYTES - 32]
    return start + hashlib.sha256(start).digest() + raw[snapshots.HEADER_BYTES :]


DAMAGES: dict[str, Damage] = {
    "a flipped bit in the header": lambda raw, _kept: flip_at(raw, snapshots.HEADER_BYTES // 2),
    **{f"a flipped bit in the part {part}": flipped(part) for part in snapshots.PARTS},
    **{f"a cut at {percent} %": cut(percent) for percent in range(100)},
    "a byte too many": lambda raw, _kept: raw + b"!",
    "another version": of_version_7,
}
NOT_HIS = "another owner"
WHOLE = "whole"


def found(opened: Engine, username: str, names: list[str]) -> dict[str, list[Any]]:
    """What opening each of the snapshots of a user gives: a code and a message, or none and how many tokens."""
    outcome = finish(opened.launch(OPENS, input={"names": names}, username=username))
    assert outcome.code is None, outcome.message
    value: dict[str, list[Any]] = outcome.value
    return value


def save(opened: Engine, username: str, names: list[str]) -> None:
    outcome = finish(opened.launch(SAVES, input={"names": names, "n": N_TOKENS}, username=username))
    assert outcome.code is None, outcome.message


def test_a_damaged_snapshot_is_told_and_others_are_opened(tmp_path: Path) -> None:
    of_users = {"ada": [*DAMAGES, WHOLE], "bob": [NOT_HIS, WHOLE]}
    with engine(tmp_path, pages="never") as first:
        for user, names in of_users.items():
            save(first, user, names)
    kept = {(it.owner, it.name): it for it in snapshots.kept_in(folder(tmp_path))}
    for name, damage in DAMAGES.items():
        it = kept["ada", name]
        it.path.write_bytes(damage(it.path.read_bytes(), it))
    kept["bob", NOT_HIS].path.write_bytes(kept["ada", WHOLE].path.read_bytes())
    with engine(tmp_path, pages="never") as second:
        for user, names in of_users.items():
            told = found(second, user, names)
            code, n_tokens = told.pop(WHOLE)
            assert code is None
            assert n_tokens >= N_TOKENS
            assert len(told) == len(names) - 1
            for name, (code, message) in told.items():
                tell(f"a snapshot file with {name}", f"error[{code}] {message}")
                assert code == "snapshot-unusable", (name, message)
                assert "delete" in message, (name, message)
                assert str(tmp_path) not in message
        # Each can be saved over.
        save(second, "ada", ["a cut at 50 %"])
        assert found(second, "ada", ["a cut at 50 %"])["a cut at 50 %"][0] is None


def test_a_snapshot_of_another_model_is_told_with_both(tmp_path: Path) -> None:
    with engine(tmp_path, pages="never") as first:
        save(first, "ada", [WHOLE])
    # The same name, and weights in place of the dummy driver.
    with engine(tmp_path, ModelConfig(), pages="never") as second:
        code, message = found(second, "ada", [WHOLE])[WHOLE]
        tell("a snapshot file of another model", f"error[{code}] {message}")
        assert code == "snapshot-unusable"
        assert "other weights or another configuration" in message
        assert "serve the model that saved it, or delete the snapshot" in message
    with engine(tmp_path, pages="never") as third:
        assert found(third, "ada", [WHOLE])[WHOLE][0] is None
