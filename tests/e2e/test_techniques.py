"""The examples of what programs build of passes, samplers, probes, masks and speculators, on the embedded model."""

from __future__ import annotations

from typing import Any

from pie.engine import Engine
from support.launching import example, run

SEED = 7


def value_of(engine: Engine, name: str, **given: Any) -> Any:
    """What an example returns, twice the same."""
    program = example(name, "python")
    first, again = (run(engine, program, given, seed=SEED) for _ in range(2))
    assert first.code is None, first.traceback
    assert first.value == again.value
    return first.value


def test_beam_search_finds_at_least_what_argmax_finds(tiny: Engine) -> None:
    texts = value_of(tiny, "beam_search", beams=3, max_tokens=12)
    assert len(set(texts)) == len(texts) == 3
    assert value_of(tiny, "beam_search", beams=1, max_tokens=12)[0]


def test_contrastive_decoding_without_contrast_is_argmax(tiny: Engine) -> None:
    weighed = value_of(tiny, "contrastive_decoding", weight=0.5, max_tokens=12)
    assert weighed
    assert value_of(tiny, "contrastive_decoding", weight=0.0, max_tokens=12)


def test_a_tree_of_thoughts_has_a_thought_a_level(tiny: Engine) -> None:
    assert len(value_of(tiny, "tree_of_thoughts", depth=2, branches=3, max_tokens=12)) == 2


def test_a_window_with_sinks_goes_far_beyond_it(tiny: Engine) -> None:
    value = value_of(tiny, "windowed_attention", window=16, sinks=4, max_tokens=80)
    assert value["length"] > 80 > value["seen"] == 20
    assert value["text"]


def test_a_window_that_holds_everything_changes_nothing(tiny: Engine) -> None:
    wide = [value_of(tiny, "windowed_attention", window=n, max_tokens=24)["text"] for n in (1000, 2000)]
    assert wide[0] == wide[1] != value_of(tiny, "windowed_attention", window=4, sinks=1, max_tokens=24)["text"]


def test_guidance_of_one_is_argmax(tiny: Engine) -> None:
    assert value_of(tiny, "guidance", scale=1.0, max_tokens=8)
    assert value_of(tiny, "guidance", scale=3.0, max_tokens=8)


def test_jacobi_decoding_gives_what_single_steps_give_in_fewer_passes(tiny: Engine) -> None:
    wide, narrow = (value_of(tiny, "jacobi_decoding", width=width, max_tokens=24) for width in (6, 1))
    assert wide["tokens"] == narrow["tokens"]
    assert len(wide["tokens"]) == 24
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
