"""Speculation changes no token: 50 prompts, with nobody, n-grams, a draft model and a hostile speculator proposing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pie.config import EMBEDDED_FOLDER, ModelConfig
from pie.engine import Engine
from support.checkpoints import write_shallow_copy
from support.engines import started
from support.launching import python_source, run

LAYERS = (0, 1, 2, 3, 4, 6, 7)
"""Of the eight layers of pie-tiny, those of the draft model."""
ANIMALS = ["fox", "dog", "cat", "bird", "fish"]
QUESTIONS = [
    "Tell me a story about a {}.",
    "What does a {} eat?",
    "Write a list of ten names for a {}.",
    "Say after me, five times: the {} runs to the river.",
    "Where does a {} live?",
    "Count to ten as a {} would.",
    "Why is a {} happy? Why is a {} happy? Why is a {} happy?",
    "Write a poem of a {} and a tree.",
    "Describe a {} in one word.",
    'Answer with JSON: {{"animal": "{}", "legs": ...}}',
]
PROMPTS = [question.replace("{}", animal).replace("{{", "{").replace("}}", "}") for question in QUESTIONS for animal in ANIMALS]

PROGRAM = """
import asyncio
from inferlet import Context, Model, Sampler

class Wrong:
    # It proposes what has nothing to do with the text, and does not care what becomes of it.
    def __init__(self, ctx):
        self.ctx = ctx
    def draft(self):
        start = self.ctx.seq_len + len(self.ctx.buffer())
        return [7 * (start + n) % 4000 for n in range(12)], list(range(start, start + 12))
    def accept(self, tokens):
        pass

async def one(index, prompt, given):
    ctx = Context(Model.load("default"))
    ctx.user(prompt)
    options = {"speculator": Wrong(ctx)} if given["hostile"] else {"system_speculation": given["speculation"]}
    sampler = Sampler.top_p(given["temperature"], 1.0)
    return await ctx.generate(sampler, max_tokens=32, seed=index, **options).collect_tokens()

async def main(input):
    return await asyncio.gather(*(one(index, prompt, input) for index, prompt in enumerate(input["prompts"])))
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder: Path = write_shallow_copy(tmp_path_factory.mktemp("shallow"), EMBEDDED_FOLDER, LAYERS)
    engine = Engine()
    engine.add_model(options=ModelConfig(driver="cpu", name="tiny"))
    engine.add_model(folder, options=ModelConfig(driver="cpu", name="shallow"))
    with started(engine) as engine:
        yield engine


def tokens_of(engine: Engine, temperature: float, speculation: bool | str, *, hostile: bool = False) -> list[list[int]]:
    given = {"prompts": PROMPTS, "temperature": temperature, "speculation": speculation, "hostile": hostile}
    outcome = run(engine, python_source(PROGRAM), given)
    assert outcome.code is None, outcome.traceback
    tokens: list[list[int]] = outcome.value
    return tokens


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_fifty_prompts_are_answered_alike_whoever_proposes(engine: Engine, temperature: float) -> None:
    assert len(set(PROMPTS)) == 50
    plain = tokens_of(engine, temperature, False)
    assert len({tuple(tokens) for tokens in plain}) > 25
    proposers: dict[str, bool | str] = {"n-grams": True, "draft model": "shallow", "hostile": False}
    for who, speculation in proposers.items():
        before = engine.models[0].stats()
        assert tokens_of(engine, temperature, speculation, hostile=who == "hostile") == plain, who
        after = engine.models[0].stats()
        n_drafted, n_accepted = (after[name] - before[name] for name in ("n_drafted", "n_drafts_accepted"))
        rate = n_accepted / max(1, n_drafted)
        print(f"temperature {temperature}, {who}: {n_accepted} of {n_drafted} drafts accepted ({rate:.2f})")
        assert n_drafted > 0
        assert (rate < 0.05) if who == "hostile" else (rate > 0.3 or who == "n-grams")


REFUSED = """
from inferlet import Context, InferletError, Model, Sampler

class Bad:
    def __init__(self, tokens, positions):
        self.drafts = tokens, positions
    def draft(self):
        return self.drafts
    def accept(self, tokens):
        pass

async def main(input):
    codes, texts = [], []
    for n, step in ((100_000, 1), (4, 2), (4, -1), (4, 0)):
        ctx = Context(Model.load("default"))
        ctx.user("Name an animal.")
        length = len(ctx.buffer())
        bad = Bad([1] * n, [length + 9 + step * index for index in range(n)] if step != 1 else list(range(length, length + n)))
        try:
            await ctx.generate(Sampler.argmax(), max_tokens=8, speculator=bad).collect_tokens()
        except InferletError as error:
            codes.append(str(error.code))
        texts.append(await ctx.generate(Sampler.argmax(), max_tokens=8).collect_tokens())
    ctx = Context(Model.load("default"))
    plain = await ctx.user("Name an animal.").generate(Sampler.argmax(), max_tokens=8).collect_tokens()
    return [codes, all(tokens == plain for tokens in texts)]
"""


def test_drafts_without_end_or_order_are_refused_and_the_context_goes_on(engine: Engine) -> None:
    outcome = run(engine, python_source(REFUSED))
    assert outcome.code is None, outcome.traceback
    assert outcome.value == [["invalid-argument"] * 4, True]
