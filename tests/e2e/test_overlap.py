"""What a program awaits together runs together, and a whole generation costs five calls."""

from __future__ import annotations

import pytest

from e2e.test_same_answer import wait_until
from pie.engine import Engine
from support.launching import LANGUAGES, Outcome, finish, load_interpreter
from support.observing import Recorder

TOGETHER = {
    "ops": [
        {"op": "context", "as": "a"},
        {"op": "context", "as": "b"},
        {"op": "append_text", "ctx": "a", "text": "one two three"},
        {"op": "append_text", "ctx": "b", "text": "four five six"},
        {"op": "generate", "ctx": "a", "as": "ga", "sampler": {"kind": "argmax"}, "max_tokens": 64},
        {"op": "generate", "ctx": "b", "as": "gb", "sampler": {"kind": "argmax"}, "max_tokens": 64},
        {"op": "ignore_eos", "gen": "ga", "value": True},
        {"op": "ignore_eos", "gen": "gb", "value": True},
        {"op": "all", "ops": [[{"op": "collect_tokens", "gen": "ga"}], [{"op": "collect_tokens", "gen": "gb"}]]},
    ]
}

WARM = {"kind": "top_p", "temperature": 1.0, "p": 0.95}
COLLECT = {
    "ops": [
        {"op": "context", "as": "c"},
        {"op": "user", "ctx": "c", "text": "Tell me a story."},
        {"op": "generate", "ctx": "c", "as": "g", "sampler": WARM, "max_tokens": 256},
        {"op": "ignore_eos", "gen": "g", "value": True},
    ]
}
COLLECTED = {"ops": [*COLLECT["ops"], {"op": "collect_text", "gen": "g"}, {"op": "tokens_generated", "gen": "g"}]}


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_generators_awaited_together_share_batches(language: str) -> None:
    recorder = Recorder()
    with Engine() as engine:
        model = engine.add_model(observe=recorder)
        process = engine.launch(load_interpreter(language), input=TOGETHER)
        # Nothing runs until both are asked for: otherwise a slow program asks for the second when the first is over.
        wait_until(lambda: model.stats()["n_requests"] == 2)
        engine.start()
        outcome = finish(process)
    assert outcome.code is None, outcome.message
    first, second = recorder.traces.values()
    shared = set(first.batch_ids) & set(second.batch_ids)
    print(f"{language}: both contexts in batches {sorted(shared)}")
    assert len(shared) >= 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_collector_makes_five_calls(tiny: Engine, language: str) -> None:
    """The calls of generate() and collect_text(): those of the whole program less those of the same program without the
    two.
    """
    program = load_interpreter(language)
    head, tail = COLLECTED["ops"][:2], COLLECTED["ops"][2:]
    before = finish(tiny.launch(program, input={"ops": head}))
    whole = finish(tiny.launch(program, input={"ops": [*head, tail[0], tail[2]]}))
    assert whole.code is None, whole.message
    n_calls = whole.n_calls - before.n_calls
    print(f"{language}: {n_calls} calls")
    # In Rust an option is a method of the builder, and a call of its own: here the cap.
    assert n_calls <= 5 + (language == "rust")


@pytest.mark.parametrize("collector", ["collect_text", "collect_tokens"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_collector_under_a_grammar_sleeps_until_its_end(tiny: Engine, language: str, collector: str) -> None:
    """However many tokens there are: the engine asks the grammar by itself. They are those of single steps."""
    program = load_interpreter(language)

    def collected(n: int, how: str = collector) -> Outcome:
        grammar = {"kind": "regex", "source": "([a-z]+ )*"}
        made = {"op": "generate", "ctx": "c", "as": "g", "sampler": WARM, "seed": 3, "max_tokens": n, "constrain": [grammar]}
        ops = [
            COLLECT["ops"][0],
            COLLECT["ops"][1],
            made,
            *([{"op": "step", "gen": "g"}] * n if how == "step" else [{"op": how, "gen": "g"}]),
        ]
        outcome = finish(tiny.launch(program, input={"ops": ops}))
        assert outcome.code is None, outcome.message
        return outcome

    few, many = collected(4), collected(60)
    print(f"{language}: {few.n_calls} and {many.n_calls} calls")
    assert few.n_calls == many.n_calls
    if collector == "collect_tokens":
        steps = collected(60, "step").value[3:]
        assert many.value[-1] == [token for step in steps if step is not None for token in step["tokens"]]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_collector_of_256_tokens_runs_to_its_end(tiny: Engine, language: str) -> None:
    outcome = finish(tiny.launch(load_interpreter(language), input=COLLECTED))
    assert outcome.value[-1] == 256
