"""More contexts than pages, and prompts that begin alike: every program gets the tokens that it gets alone, and nothing
is computed for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pie.batch import Batch
from pie.config import ModelConfig
from pie.engine import Engine
from pie.stats import ModelStats
from support.launching import LANGUAGES, Outcome, example, finish, load_interpreter

N_PROGRAMS = 100
PAGE_SIZE = 16
CHAT = {"max_tokens": 48, "temperature": 0.8, "top_p": 0.95}
ANIMALS = ["fox", "dog", "cat", "bird", "fish"]
N_HOLDING, N_HELD = 20, 150
"""Programs that hold two contexts, and tokens of each."""
NO_SWAP = 1  # bytes: fewer than a page holds


def chat(number: int) -> dict[str, Any]:
    """The input of a program that says something of its own."""
    return CHAT | {"prompt": f"Tell me story {number} about a {ANIMALS[number % len(ANIMALS)]}."}


def talk(options: ModelConfig, numbers: Sequence[int], at_once: int) -> tuple[list[Outcome], ModelStats]:
    """Runs chats, so many at once; gives their outcomes and the counters afterwards."""
    outcomes: list[Outcome] = []
    with Engine() as engine:
        model = engine.add_model(options=options)
        engine.start()
        for first in range(0, len(numbers), at_once):
            programs = [(example("chat", LANGUAGES[number % 3]), chat(number), number) for number in numbers[first : first + at_once]]
            processes = [engine.launch(program, input=said, seed=number) for program, said, number in programs]
            outcomes += [finish(process) for process in processes]
        model.check()
        stats = model.stats()
        assert stats["n_pages_used"] == 0
    assert all(outcome.code is None for outcome in outcomes), [outcome.message for outcome in outcomes if outcome.code]
    return outcomes, stats


@pytest.fixture(scope="module")
def ample() -> tuple[list[Outcome], int]:
    """What each of them says where there is room for all, which is what it says alone, and the pages that each
    needs.
    """
    outcomes, stats = talk(ModelConfig(), range(N_PROGRAMS), at_once=N_PROGRAMS)
    alone, _ = talk(ModelConfig(), range(0, N_PROGRAMS, 10), at_once=1)
    assert [outcome.text for outcome in outcomes[::10]] == [outcome.text for outcome in alone]
    return outcomes, stats["n_tokens"] // N_PROGRAMS // PAGE_SIZE


@pytest.mark.parametrize("swap_bytes", [0, NO_SWAP])
def test_programs_that_need_four_times_the_pool_get_what_they_get_alone(ample: tuple[list[Outcome], int], swap_bytes: int) -> None:
    expected, n_pages_each = ample
    options = ModelConfig(n_pages=n_pages_each * N_PROGRAMS // 4, swap_bytes=swap_bytes)
    outcomes, stats = talk(options, range(N_PROGRAMS), at_once=N_PROGRAMS)
    print(f"{n_pages_each} pages each, pool {stats['n_pages']}: {stats}")
    assert [outcome.text for outcome in outcomes] == [outcome.text for outcome in expected]
    assert stats["n_suspended"] > 0
    assert (stats["n_copied_in"] > 0) == (swap_bytes != NO_SWAP)


@pytest.mark.parametrize("swap_bytes", [0, NO_SWAP])
def test_programs_that_wait_for_one_context_while_they_hold_another_all_finish(swap_bytes: int) -> None:
    """Twenty at once on a pool for three of their contexts: whoever holds one and waits for the other never keeps the
    pool.
    """
    work = [held_and_awaited(number) for number in range(N_HOLDING)]
    n_pages_each = -(-(N_HELD + 8) // PAGE_SIZE)
    expected, _ = interpreted(ModelConfig(driver="dummy"), work, at_once=1)
    values, stats = interpreted(ModelConfig(driver="dummy", n_pages=3 * n_pages_each, swap_bytes=swap_bytes), work, at_once=N_HOLDING)
    assert values == expected
    assert stats["n_suspended"] > 0
    assert stats["n_pages_used"] == 0


def interpreted(options: ModelConfig, work: list[list[dict[str, Any]]], at_once: int) -> tuple[list[Any], ModelStats]:
    """What programs answer that run these operations, so many at once, and the counters afterwards."""
    values: list[Any] = []
    with Engine() as engine:
        model = engine.add_model(options=options)
        engine.start()
        for first in range(0, len(work), at_once):
            numbers = range(first, min(first + at_once, len(work)))
            programs = [(load_interpreter(LANGUAGES[number % 3]), work[number]) for number in numbers]
            outcomes = [finish(process) for process in [engine.launch(program, input={"ops": ops}, seed=7) for program, ops in programs]]
            assert all(outcome.code is None for outcome in outcomes), [outcome.message for outcome in outcomes if outcome.code]
            values += [outcome.value for outcome in outcomes]
        model.check()
        return values, model.stats()


def held_and_awaited(number: int) -> list[dict[str, Any]]:
    """Computes context a, and awaits b while it holds a; then goes on with both in turn."""
    ops: list[dict[str, Any]] = []
    for name, salt in (("a", 2 * number), ("b", 2 * number + 1)):
        tokens = [salt, *((salt * 31 + token * 7) % 3000 for token in range(N_HELD - 1))]
        ops += [{"op": "context", "as": name}, {"op": "append", "ctx": name, "tokens": tokens}, {"op": "flush", "ctx": name}]
    for turn, name in enumerate("baab"):
        ops += [
            {"op": "generate", "ctx": name, "as": f"g{turn}", "sampler": {"kind": "argmax"}, "max_tokens": 4},
            {"op": "collect_tokens", "gen": f"g{turn}"},
        ]
    return ops


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_prompt_is_computed_once_for_each_user(language: str) -> None:
    """As the driver sees it: the tokens of its batches."""
    computed = 0

    def count(batch: Batch, _logits: Any) -> None:
        nonlocal computed
        computed += len(batch.tokens)

    ops = [
        {"op": "context", "as": "c"},
        {"op": "append_text", "ctx": "c", "text": "one two three four five six seven eight nine ten " * 150},
        {"op": "generate", "ctx": "c", "as": "g", "sampler": {"kind": "argmax"}, "max_tokens": 4},
        {"op": "collect_tokens", "gen": "g"},
    ]
    shown: list[dict[str, Any]] = [{"op": "seq_len", "ctx": "c"}, {"op": "cached_tokens", "ctx": "c"}]
    with Engine() as engine:
        engine.add_model(observe=count)
        engine.start()
        driven, values = [], []
        for username in ("ada", "ada", "bob"):
            before = computed
            outcome = finish(engine.launch(load_interpreter(language), input={"ops": ops + shown}, username=username))
            assert outcome.code is None, outcome.message
            driven.append(computed - before)
            values.append(outcome.value)
    print(f"{language}: {driven} tokens computed")
    assert values[0][:-1] == values[1][:-1] == values[2][:-1]
    # The last token drawn is not computed.
    length = values[0][-2] - 1
    assert driven[0] == driven[2] == length > 1_500
    # What follows the last full page, and the tokens drawn.
    assert driven[1] <= PAGE_SIZE + 4
    assert [value[-1] for value in values] == [0, length - driven[1], 0]
