"""Snapshots from outside: saved by one program and opened by another one, of any language; each user has his own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from pie.config import ModelConfig
from pie.engine import Engine
from support.engines import started
from support.launching import LANGUAGES, ROOT, finish, load_interpreter, python_source, run, typescript_source

Op = dict[str, Any]

PROMPT: list[Op] = [
    {"op": "context", "as": "c"},
    {"op": "system", "ctx": "c", "text": "Be brief. " * 40},
    {"op": "flush", "ctx": "c"},
]
WARM = {"kind": "multinomial", "temperature": 1.0, "draws": 1}


@pytest.fixture
def engine() -> Iterator[Engine]:
    """The dummy driver; nothing was saved yet."""
    engine = Engine()
    engine.add_model(options=ModelConfig(driver="dummy"))
    with started(engine):
        yield engine


def transcript(engine: Engine, language: str, ops: list[Op], *, seed: int = 7, username: str | None = None) -> list[Any]:
    """What the operations answer in a program of its own."""
    outcome = finish(engine.launch(load_interpreter(language), input={"ops": ops}, seed=seed, username=username))
    assert outcome.code is None, outcome.message
    value: list[Any] = outcome.value
    return value


def generated(ctx: str, sampler: Op, n: int) -> list[Op]:
    """The next tokens of a context."""
    return [
        {"op": "generate", "ctx": ctx, "as": f"g{ctx}", "sampler": sampler, "max_tokens": n},
        {"op": "collect_tokens", "gen": f"g{ctx}"},
    ]


def saved(name: str) -> Op:
    return {"op": "save", "ctx": "c", "name": name}


def opened(name: str, take: bool = False) -> Op:
    return {"op": "take" if take else "open", "name": name, "as": "c"}


@pytest.mark.rows("RS-041")
@pytest.mark.parametrize(("saver", "opener"), list(zip(LANGUAGES, LANGUAGES[1:] + LANGUAGES[:1], strict=True)))
def test_another_program_goes_on_where_one_stopped_and_computes_only_what_is_new(engine: Engine, saver: str, opener: str) -> None:
    (model,) = engine.models
    question: list[Op] = [{"op": "user", "ctx": "c", "text": "Hello!"}, *generated("c", {"kind": "argmax"}, 8)]
    expected = transcript(engine, opener, [*PROMPT, *question], username="another")[-1]
    *_, n_prompt = transcript(engine, saver, [*PROMPT, {"op": "seq_len", "ctx": "c"}, saved("prompt"), {"op": "seq_len", "ctx": "c"}])
    assert n_prompt > 100
    before = model.stats()
    assert transcript(engine, opener, [opened("prompt"), *question])[-1] == expected
    after = model.stats()
    assert after["n_tokens"] - before["n_tokens"] < 40
    assert after["n_snapshots"] == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_conversation_of_many_programs_is_that_of_one(engine: Engine, language: str) -> None:
    turns = ["Hello!", "And now?", "Good bye."]
    spoken: list[list[Op]] = [[{"op": "user", "ctx": "c", "text": text}, *generated("c", {"kind": "argmax"}, 6)] for text in turns]
    whole = transcript(engine, language, [*PROMPT, *(op for turn in spoken for op in turn)])
    expected = [answer for answer in whole if isinstance(answer, list)]
    transcript(engine, language, [*PROMPT, saved("session")])
    answers = [transcript(engine, language, [opened("session"), *turn, saved("session")])[-2] for turn in spoken]
    assert answers == expected


@pytest.mark.rows("JS-026 PY-021 RS-036")
def test_of_many_programs_that_take_a_snapshot_one_gets_it(engine: Engine) -> None:
    for _ in range(5):
        transcript(engine, "python", [*PROMPT, saved("one")])
        programs = [load_interpreter(language) for language in LANGUAGES] * 4
        processes = [engine.launch(program, input={"ops": [opened("one", take=True)]}) for program in programs]
        taken = [finish(process).value for process in processes]
        assert sorted(taken) == [[False]] * 11 + [[True]]


def test_each_user_has_his_own(engine: Engine) -> None:
    transcript(engine, "python", [*PROMPT, saved("mine")], username="ann")
    names: Op = {"op": "snapshots"}
    mistaken: Op = {"op": "delete", "name": "mine"}
    for language in LANGUAGES:
        ops = [names, opened("mine"), opened("mine", take=True), mistaken]
        assert transcript(engine, language, ops, username="bob") == [[], False, False, {"error": "snapshot-missing"}]
        assert transcript(engine, language, [names, opened("mine")], username="ann") == [["mine"], True]


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_drawn_repeats_with_the_launch_seed(engine: Engine, language: str) -> None:
    transcript(engine, "python", [*PROMPT, saved("prompt")], seed=1)
    ops = [*(opened("prompt") | {"as": name} for name in "ab"), *generated("a", WARM, 8), *generated("b", WARM, 8)]
    first = transcript(engine, language, ops, seed=2)
    assert first[-1] != first[-3]
    assert transcript(engine, language, ops, seed=2) == first
    assert transcript(engine, language, ops, seed=3) != first


MADE_UP = (
    python_source(
        "from inferlet import Context, Model\nasync def main(input):\n    return Context(Model.load('default')).append([1, 2, 3]).snapshot()\n"
    ),
    typescript_source(
        "import { Context, Model } from 'inferlet';\n"
        "export async function main(): Promise<string> {\n  return new Context(Model.load('default')).append([1, 2, 3]).snapshot();\n}\n"
    ),
)


@pytest.mark.rows("JS-030 PY-025")
def test_a_name_that_is_made_up_is_answered_and_new(engine: Engine) -> None:
    names = [run(engine, program).value for program in MADE_UP * 2]
    assert len(set(names)) == 4
    assert transcript(engine, "rust", [{"op": "snapshots"}, opened(names[1]), {"op": "buffer", "ctx": "c"}]) == [
        sorted(names),
        True,
        [1, 2, 3],
    ]


def unnamed(n_saves: int, label: str = "") -> Any:
    made = f"Context(Model.load('default'){label}).append([1])"
    return python_source(f"from inferlet import Context, Model\ndef main(input):\n    c = {made}\n" + "    c.save()\n" * n_saves)


def test_a_save_without_a_name_that_replaces_what_another_program_kept_says_so(engine: Engine) -> None:
    # What a context kept itself it may replace, and so may one that has a label of the program's own.
    quiet = [run(engine, program) for program in (unnamed(2), unnamed(1, ", name='mine'"), unnamed(1, ", name='mine'"))]
    assert [(outcome.code, "".join(outcome.stderr)) for outcome in quiet] == [(None, "")] * 3
    told = "".join(run(engine, unnamed(2)).stderr)
    assert told.startswith('warning: `ctx.save()` replaced the snapshot "context-1", a name that was made up; give a name')
    assert told.count("warning") == 1


def test_what_was_deleted_leaves_nothing_behind(engine: Engine) -> None:
    (model,) = engine.models
    transcript(engine, "typescript", [*PROMPT, saved("a"), saved("b")])
    assert model.stats()["n_snapshots"] == 2
    transcript(engine, "rust", [{"op": "delete", "name": "a"}, {"op": "delete", "name": "b"}])
    assert model.stats()["n_snapshots"] == 0


def test_opened_tokens_count_against_the_budget_and_what_is_refused_stays(engine: Engine) -> None:
    transcript(engine, "python", [*PROMPT, saved("prompt")])
    program = load_interpreter("python")
    outcome = finish(engine.launch(program, input={"ops": [opened("prompt", take=True), {"op": "snapshots"}]}, token_budget=50))
    assert outcome.value == [{"error": "token-budget"}, ["prompt"]]


def test_the_conversation_of_the_guide_goes_on_in_the_next_program(engine: Engine) -> None:
    guide = (ROOT / "docs/guide/programs.md").read_text()
    (body,) = (text for text in re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL) if "Context.open" in text)
    program = python_source(f"from inferlet import Context, Model, Sampler\n\n{body}")
    for question in ("Hello!", "And now?"):
        outcome = run(engine, program, {"question": question})
        assert outcome.code is None, outcome.message
        assert outcome.value
    said = transcript(engine, "python", [{"op": "open", "name": "session", "as": "c"}, {"op": "seq_len", "ctx": "c"}])
    assert said[0]
    assert said[1] > 2 * 64
