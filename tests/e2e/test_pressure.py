"""More contexts than pages, and prompts that begin alike: every program gets the tokens that it gets alone, and nothing is computed for nothing."""

from __future__ import annotations

from typing import Any

import pytest

from pie.config import ModelConfig
from pie.engine import Engine
from support.launching import LANGUAGES, Outcome, example, finish, load_interpreter

N_PROGRAMS = 40
PAGE_SIZE = 16
CHAT = {"max_tokens": 64, "temperature": 0.8, "top_p": 0.95}
ANIMALS = ["fox", "dog", "cat", "bird", "fish"]
NO_SWAP = 1  # bytes: fewer than a page holds


def chat(number: int) -> dict[str, Any]:
    """The input of a program that says something of its own."""
    return CHAT | {"prompt": f"Tell me story {number} about a {ANIMALS[number % len(ANIMALS)]}."}


def talk(options: ModelConfig, numbers: range) -> tuple[list[Outcome], dict[str, int], int]:
    """Launches chats at once; gives their outcomes, the counters afterwards, and the pages that each of them would need alone."""
    with Engine() as engine:
        model = engine.add_model(options=options)
        engine.start()
        languages = [LANGUAGES[number % 3] for number in numbers]
        processes = [
            engine.launch(example("chat", language), input=chat(number), seed=number)
            for number, language in zip(numbers, languages, strict=True)
        ]
        outcomes = [finish(process) for process in processes]
        model.check()
        stats = model.stats()
        assert stats["n_pages_used"] == 0
    assert all(outcome.code is None for outcome in outcomes), [outcome.message for outcome in outcomes if outcome.code]
    return outcomes, stats, stats["n_tokens"] // len(numbers) // PAGE_SIZE


@pytest.mark.parametrize("swap_bytes", [0, NO_SWAP])
def test_programs_that_need_four_times_the_pool_get_what_they_get_alone(swap_bytes: int) -> None:
    ample, _, n_pages_each = talk(ModelConfig(), range(N_PROGRAMS))
    alone = [talk(ModelConfig(), range(number, number + 1))[0][0] for number in range(0, N_PROGRAMS, 10)]
    tight, stats, _ = talk(ModelConfig(n_pages=n_pages_each * N_PROGRAMS // 4, swap_bytes=swap_bytes), range(N_PROGRAMS))
    print(f"{n_pages_each} pages each, pool {stats['n_pages']}: {stats}")
    assert [outcome.text for outcome in tight] == [outcome.text for outcome in ample]
    assert [outcome.text for outcome in ample[::10]] == [outcome.text for outcome in alone]
    assert stats["n_suspended"] > 0
    assert (stats["n_copied_in"] > 0) == (swap_bytes != NO_SWAP)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_prompt_is_computed_once_for_each_user(language: str) -> None:
    ops = [
        {"op": "context", "as": "c"},
        {"op": "append_text", "ctx": "c", "text": "one two three four five six seven eight nine ten " * 150},
        {"op": "generate", "ctx": "c", "as": "g", "sampler": {"kind": "argmax"}, "max_tokens": 4},
        {"op": "collect_tokens", "gen": "g"},
    ]
    with Engine() as engine:
        model = engine.add_model()
        engine.start()
        computed, values = [], []
        for username in ("ada", "ada", "bob"):
            before = model.stats()["n_tokens"]
            outcome = finish(engine.launch(load_interpreter(language), input={"ops": ops}, username=username))
            assert outcome.code is None, outcome.message
            computed.append(model.stats()["n_tokens"] - before)
            values.append(outcome.value)
    print(f"{language}: {computed} tokens computed")
    assert values[0] == values[1] == values[2]
    assert computed[0] == computed[2] > 1400
    # What follows the last full page, and the tokens drawn.
    assert computed[1] <= PAGE_SIZE + 4
