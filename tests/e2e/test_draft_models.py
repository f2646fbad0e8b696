"""Generators for which another model of the engine drafts: the tokens are those without drafts, in all languages."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pie.config import EMBEDDED_FOLDER, Flags, load
from pie.engine import Engine
from support.checkpoints import write_checkpoint, write_shallow_copy
from support.engines import started
from support.launching import LANGUAGES, finish, load_interpreter, python_source, run

SEED = 11
LAYERS = (0, 1, 2, 3, 4, 6, 7)
"""Of the eight layers of pie-tiny, those of the draft model."""

FILE = """
[model.tiny]
path = "pie-tiny"

[model.shallow]
path = "{folder}/shallow"
page_size = 8

[model.random]
path = "{folder}/random"

[model.hashes]
path = "pie-tiny"
driver = "dummy"

[model.foreign]
path = "{folder}/foreign"
driver = "dummy"

[model.small]
path = "pie-tiny"
driver = "dummy"
max_contexts = 4
max_process_contexts = 1
"""


def write_models(folder: Path) -> None:
    """Draft models: one that thinks like pie-tiny, one that does not, and one of another vocabulary."""
    write_shallow_copy(folder / "shallow", EMBEDDED_FOLDER, LAYERS)
    write_checkpoint(folder / "random", vocab_size=4096)
    shutil.copytree(EMBEDDED_FOLDER, folder / "foreign")
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(EMBEDDED_FOLDER / name, folder / "random")
    # Two tokens have each other's ids.
    tokenizer = folder / "foreign/tokenizer.json"
    content = json.loads(tokenizer.read_text())
    vocab = content["model"]["vocab"]
    one, other = sorted(vocab, key=vocab.__getitem__)[1000:1002]
    vocab[one], vocab[other] = vocab[other], vocab[one]
    tokenizer.write_text(json.dumps(content))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("drafts")
    write_models(folder)
    file = folder / "pie.toml"
    file.write_text(FILE.format(folder=folder))
    with started(Engine.from_config(load(Flags(file=file), variables={}))) as engine:
        yield engine


def drafted(engine: Engine) -> tuple[int, int]:
    """Tokens that were drafted for the first model, and those of them that were accepted."""
    stats = engine.models[0].stats()
    return stats["n_drafted"], stats["n_drafts_accepted"]


def generation(speculation: bool | str, temperature: float, **how: Any) -> list[dict[str, Any]]:
    """A generation that is collected, and one that is stepped."""
    sampler = {"kind": "top_p", "temperature": temperature, "p": 0.95}
    options = {"sampler": sampler, "max_tokens": 24, "seed": 5, "system_speculation": speculation} | how
    ops: list[dict[str, Any]] = []
    for name in ("collected", "stepped"):
        ops.append({"op": "context", "as": name})
        ops.append({"op": "user", "ctx": name, "text": "Tell me a story about a fox. Tell me a story about a fox."})
        ops.append({"op": "generate", "ctx": name, "as": name} | options)
    ops.append({"op": "collect_tokens", "gen": "collected"})
    return [*ops, *({"op": "step", "gen": "stepped"} for _ in range(24)), {"op": "tokens_generated", "gen": "stepped"}]


def tokens_of(engine: Engine, language: str, ops: list[dict[str, Any]]) -> tuple[list[int], list[int]]:
    """What both drew, the step by step one joined."""
    outcome = run(engine, load_interpreter(language), {"ops": ops}, seed=SEED)
    assert outcome.code is None, outcome.message
    collected, *steps, n_stepped = outcome.value[6:]
    stepped = [token for step in steps if step is not None for token in step["tokens"]]
    assert len(stepped) == n_stepped
    return collected, stepped


@pytest.mark.rows("JS-054 PY-051 RS-074")
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_draft_model_changes_no_token(engine: Engine, temperature: float, language: str) -> None:
    plain = tokens_of(engine, "python", generation(False, temperature))
    assert plain[0] == plain[1]
    for name in ("shallow", "random", "hashes", "tiny", "default"):
        before = drafted(engine)
        assert tokens_of(engine, language, generation(name, temperature)) == plain, name
        n_drafted, n_accepted = (now - then for now, then in zip(drafted(engine), before, strict=True))
        print(f"{language}, temperature {temperature}, {name}: {n_accepted} of {n_drafted} drafts accepted")
        assert n_drafted > 0
        if name in ("tiny", "default"):
            # It drafts by the sampler, the seed and the positions of the generator: that is what it draws itself.
            assert n_accepted == n_drafted, name
        elif name == "shallow":
            assert n_accepted > n_drafted / 4
        else:
            assert n_accepted < n_drafted / 4, name


@pytest.mark.rows("PY-049 PY-051")
def test_a_mask_holds_for_drafts_too(engine: Engine) -> None:
    mask = {"logit_mask": [100, 200]}
    plain = tokens_of(engine, "python", generation(False, 1.0, **mask))
    before = drafted(engine)
    assert tokens_of(engine, "python", generation("tiny", 1.0, **mask)) == plain
    n_drafted, n_accepted = (now - then for now, then in zip(drafted(engine), before, strict=True))
    assert n_accepted == n_drafted > 0


@pytest.mark.rows("JS-054 PY-051 RS-074")
@pytest.mark.parametrize("language", LANGUAGES)
def test_draft_models_that_cannot_be_had(engine: Engine, language: str) -> None:
    ops = [{"op": "context", "as": "c"}, {"op": "append", "ctx": "c", "tokens": [1, 2]}]
    ops += [
        {"op": "generate", "ctx": "c", "as": "g", "sampler": {"kind": "argmax"}, "max_tokens": 3, "system_speculation": name}
        for name in ("absent", "foreign")
    ]
    outcome = run(engine, load_interpreter(language), {"ops": ops})
    assert [step["error"] for step in outcome.value[2:]] == ["unknown-model", "invalid-argument"]


WHY = """
from inferlet import Context, InferletError, Model, Sampler

async def main(input):
    found, contexts = [], []
    for name in input["models"]:
        contexts.append(Context(Model.load("default")))
        contexts[-1].append([1, 2])
        try:
            contexts[-1].generate(Sampler.argmax(), system_speculation=name)
        except InferletError as error:
            found.append(f"{error.code}: {error}")
    return found
"""


def test_errors_name_the_models(engine: Engine) -> None:
    outcome = run(engine, python_source(WHY), {"models": ["absent", "foreign"]})
    assert outcome.code is None, outcome.traceback
    found = outcome.value
    assert found[0].startswith("unknown-model: ")
    assert '"absent"' in found[0]
    assert all(name in found[0] for name in ("tiny", "shallow", "random", "hashes", "foreign", "small"))
    assert found[1].startswith("invalid-argument: ")
    assert all(word in found[1] for word in ('"foreign"', '"tiny"', "4096"))


LIMITS = """
from inferlet import Context, InferletError, Model, Sampler

async def main(input):
    contexts = [Context(Model.load("default")) for _ in range(2)]
    for ctx in contexts:
        ctx.append([1, 2])
    first = contexts[0].generate(Sampler.argmax(), max_tokens=4, system_speculation="small")
    try:
        contexts[1].generate(Sampler.argmax(), max_tokens=4, system_speculation="small")
    except InferletError as error:
        refused = str(error.code)
    tokens = await first.collect_tokens()
    # A newer generator of the context takes the place of the older one, and of what drafts for it.
    contexts[0].release()
    again = contexts[1].generate(Sampler.argmax(), max_tokens=4, system_speculation="small")
    return [refused, tokens == await again.collect_tokens()]
"""


@pytest.mark.rows("PY-051")
def test_what_drafts_is_charged_to_the_process_and_ends_with_the_generator(engine: Engine) -> None:
    outcome = run(engine, python_source(LIMITS))
    assert outcome.value == ["limit-resources", True], outcome.message
    assert [model.stats()["n_contexts"] for model in engine.models] == [0] * len(engine.models)


BUDGET = """
from inferlet import Context, Model, Sampler

async def main(input):
    ctx = Context(Model.load("default"))
    ctx.append(list(range(20)))
    return len(await ctx.generate(Sampler.argmax(), max_tokens=20, ignore_eos=True, system_speculation="shallow").collect_tokens())
"""


def test_drafts_do_not_count_for_a_token_budget(engine: Engine) -> None:
    assert finish(engine.launch(python_source(BUDGET), token_budget=40)).value == 20
    assert finish(engine.launch(python_source(BUDGET), token_budget=39)).code == "token-budget"


CANCEL = """
import asyncio
from inferlet import Context, Model, Sampler

async def main(input):
    def made():
        ctx = Context(Model.load("default"))
        ctx.user("Tell me a story about a fox.")
        return ctx, ctx.generate(Sampler.top_p(1.0, 0.95), seed=3, max_tokens=40, ignore_eos=True, system_speculation="shallow")

    _, g = made()
    plain = await g.collect_tokens()
    ctx, g = made()
    n_cancelled = 0
    for n in range(8):
        task = asyncio.create_task(g.collect_tokens())
        await asyncio.sleep(0.0005 * n)
        task.cancel()
        try:
            return [plain == await task, n_cancelled]
        except asyncio.CancelledError:
            n_cancelled += 1
        if n % 2:
            ctx.suspend()
    return [plain == await g.collect_tokens(), n_cancelled]
"""


def test_a_generation_that_is_cancelled_and_suspended_says_the_same(engine: Engine) -> None:
    outcome = run(engine, python_source(CANCEL))
    assert outcome.code is None, outcome.traceback
    same, n_cancelled = outcome.value
    assert same
    assert n_cancelled > 0


ENDLESS = """
from inferlet import Context, Model, Sampler, session

async def main(input):
    ctx = Context(Model.load("default"))
    ctx.append([1, 2])
    g = ctx.generate(Sampler.argmax(), ignore_eos=True, system_speculation="shallow")
    async for step in g:
        await step.execute()
        session.send("step")
"""


ONE_PASS_EACH = """
from inferlet import Context, Model, runtime


async def main(input):
    for name in runtime.models():
        await Context(Model.load(name)).append([5, 6, 7]).flush()
    return len(runtime.models())
"""


def test_nothing_is_left_of_a_program_that_is_ended(engine: Engine) -> None:
    process = engine.launch(python_source(ENDLESS))
    for _ in range(3):
        assert process.next_event(120.0) is not None
    process.cancel()
    assert finish(process).code == "cancelled"
    # A context goes once the batch that computes it has ended, which another pass of each model comes behind.
    assert run(engine, python_source(ONE_PASS_EACH)).value == len(engine.models)
    assert [model.stats()["n_contexts"] for model in engine.models] == [0] * len(engine.models)
    for model in engine.models:
        model.check()
