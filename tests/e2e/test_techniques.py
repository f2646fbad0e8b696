"""The examples of what programs build of passes, samplers, probes, masks and speculators, on the embedded model."""

from __future__ import annotations

from typing import Any

import pytest

from pie.engine import Engine
from support.launching import example, python_source, run

SEED = 7
PLAIN = """
from inferlet import Context, Model, Sampler

async def main(input):
    ctx = Context(Model.load("default"))
    if "system" in input:
        ctx.system(input["system"])
    return await ctx.user(input["prompt"]).generate(Sampler.argmax(), max_tokens=input["max_tokens"]).collect_text()
"""


def value_of(engine: Engine, name: str, **given: Any) -> Any:
    """What an example returns, twice the same."""
    program = example(name, "python")
    first, again = (run(engine, program, given, seed=SEED) for _ in range(2))
    assert first.code is None, first.traceback
    assert first.value == again.value
    return first.value


def plain(engine: Engine, prompt: str, max_tokens: int, **given: str) -> str:
    """The likeliest token at each step."""
    outcome = run(engine, python_source(PLAIN), {"prompt": prompt, "max_tokens": max_tokens} | given)
    assert outcome.code is None, outcome.traceback
    text: str = outcome.value
    return text


def test_evolution_makes_an_answer_likelier(tiny: Engine) -> None:
    """Twice the same, bit by bit; docs/learning.svg has the whole curve."""
    found = value_of(tiny, "evolution", steps=6, population=8)
    assert len(found["curve"]) == 7
    assert found["curve"][-1] > found["curve"][0]


def test_one_beam_is_argmax_and_several_differ(tiny: Engine) -> None:
    texts = value_of(tiny, "beam_search", beams=3, max_tokens=12)
    assert len(set(texts)) == len(texts) == 3
    (alone,) = value_of(tiny, "beam_search", beams=1, max_tokens=12)
    assert alone == plain(tiny, "Name an animal.", 12)


def test_contrastive_decoding_without_contrast_is_argmax(tiny: Engine) -> None:
    assert value_of(tiny, "contrastive_decoding", weight=0.0) == plain(tiny, "Name an animal.", 24, system="You are a helpful assistant.")


def test_contrast_changes_a_text(tiny: Engine) -> None:
    prompt = "Tell me a short story about a fox."
    texts = [value_of(tiny, "contrastive_decoding", prompt=prompt, weight=weight, max_tokens=24) for weight in (0.0, 0.9)]
    assert texts[0] != texts[1]


def test_a_watermark_is_found_in_what_it_marked_alone(tiny: Engine) -> None:
    found = value_of(tiny, "watermark", max_tokens=48)["green"]
    assert found["marked"] == 1.0
    assert 0.25 < found["plain"] < 0.75


def test_a_tree_of_thoughts_has_a_thought_a_level(tiny: Engine) -> None:
    assert len(value_of(tiny, "tree_of_thoughts", depth=2, branches=3, max_tokens=12)) == 2


def test_thoughts_share_the_pages_of_what_they_have_in_common(tiny: Engine) -> None:
    """What the thoughts of a level begin with is computed once: it is neither computed for each nor found computed."""
    prompt = " ".join(f"The fox met animal number {n} and they talked about the weather." for n in range(24))

    def n_new(depth: int) -> int:
        before = tiny.models[0].stats()
        outcome = run(tiny, example("tree_of_thoughts", "python"), {"prompt": prompt, "depth": depth, "branches": 6, "max_tokens": 8})
        assert outcome.code is None, outcome.traceback
        after = tiny.models[0].stats()
        return sum(after[name] - before[name] for name in ("n_tokens", "n_reused"))

    n_prompt, n_tree = n_new(0), n_new(1)
    print(f"{n_prompt} tokens in common, {n_tree} with 6 thoughts, which are judged")
    assert n_prompt > 200
    assert n_tree < 2 * n_prompt < 6 * n_prompt


def test_a_window_with_sinks_goes_far_beyond_it(tiny: Engine) -> None:
    value = value_of(tiny, "windowed_attention", window=16, sinks=4, max_tokens=640)
    assert value["seen"] == 20
    assert value["length"] > 32 * value["seen"]
    assert value["text"]


def test_a_window_that_holds_everything_changes_nothing(tiny: Engine) -> None:
    wide = [value_of(tiny, "windowed_attention", window=n, max_tokens=24)["text"] for n in (1000, 2000)]
    assert wide[0] == wide[1] == plain(tiny, "Tell me a short story about a fox.", 24)
    assert wide[0] != value_of(tiny, "windowed_attention", window=4, sinks=1, max_tokens=24)["text"]


def test_guidance_of_one_is_argmax(tiny: Engine) -> None:
    prompt = "Tell me a short story about a fox."
    one, three = (value_of(tiny, "guidance", prompt=prompt, scale=scale, max_tokens=12) for scale in (1.0, 3.0))
    assert one == plain(tiny, prompt, 12)
    assert three


def test_jacobi_decoding_gives_what_single_steps_give_in_fewer_passes(tiny: Engine) -> None:
    wide, narrow = (value_of(tiny, "jacobi_decoding", width=width, max_tokens=24) for width in (6, 1))
    assert wide["tokens"] == narrow["tokens"]
    assert len(wide["tokens"]) == 24
    assert wide["text"].startswith(plain(tiny, "Tell me a short story about a fox.", 24))
    assert wide["passes"] <= narrow["passes"] <= 24


def test_self_consistency_stops_early(tiny: Engine) -> None:
    value = value_of(tiny, "self_consistency", prompt="How much does a guitar cost?", samples=12, at_once=3)
    assert value["asked"] == sum(value["votes"].values()) <= 12
    assert value["answer"] in value["votes"]


def test_output_is_validated_by_the_probabilities_of_its_tokens(tiny: Engine) -> None:
    strict, lax = (value_of(tiny, "validated_output", least=least) for least in (1.0, 0.0))
    assert (strict["sure"], lax["sure"], lax["doubtful"]) == (False, True, [])
    assert 0 < lax["mean"] <= 1


def test_the_best_of_several_has_the_highest_score(tiny: Engine) -> None:
    value = value_of(tiny, "best_of_n", n=4)
    assert len(value["scores"]) == 4
    assert value["score"] == max(value["scores"]) <= 0


@pytest.mark.parametrize("n", [16, 48])
def test_a_speculator_of_n_grams_changes_no_token(tiny: Engine, n: int) -> None:
    value = value_of(tiny, "ngram_speculator", prompt="one two three one two three one two three", max_tokens=n)
    assert value["same"]
    assert value["accepted"] <= value["drafted"]
    assert value["steps"] + value["accepted"] >= n
