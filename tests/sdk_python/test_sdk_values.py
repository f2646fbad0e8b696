"""What crosses to the engine: JSON, samplers and arguments, each refused with one message that names what is wrong."""

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from wit_world.imports import sampling

from inferlet import ArgumentTypeError, Distribution, InvalidArgumentError, Logits, Logprob, Logprobs, Sampler, _arguments, _json, chat
from inferlet.errors import InferletError, new_error
from inferlet.probe import Probe

RECURSIVE: list = []
RECURSIVE.append(RECURSIVE)


class Mood(Enum):
    GLAD = "glad"


@dataclass
class City:
    name: str
    mood: Mood | None = None
    near: Any = None


class Dumped:
    """As a model of pydantic."""

    def model_dump(self, *, mode):
        return {"mode": mode, "city": City("Bern")}


ROUND = City("Rome")
ROUND.near = [ROUND]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ({"b": [1, 2.5, True], "a": "é\n"}, '{"b":[1,2.5,true],"a":"é\\n"}'),
        ((1, (2,)), "[1,[2]]"),
        ({1: "x"}, '{"1":"x"}'),
        (2**70, "1180591620717411303424"),
        (City("Rome", Mood.GLAD, [City("Ostia")]), '{"name":"Rome","mood":"glad","near":[{"name":"Ostia","mood":null,"near":null}]}'),
        ({"mood": Mood.GLAD}, '{"mood":"glad"}'),
        ([Dumped()], '[{"mode":"json","city":{"name":"Bern","mood":null,"near":null}}]'),
    ],
)
def test_json_is_compact_and_ordered(value, text):
    assert _json.dumps(value, "answer", "invalid-output") == text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "answer is the number nan"),
        ({"a": [1, {"b": float("inf")}]}, "answer.a[1].b is the number inf"),
        ({"a b": {1, 2}}, "answer['a b'] is of type set"),
        ([object()], "answer[0] is of type object"),
        ({(1, 2): 3}, "answer is a dict with a key of type tuple"),
        (["\ud800"], "answer[0] is text with a lone surrogate"),
        ({"a": RECURSIVE}, "answer.a[0] is a list that contains itself"),
        (ROUND, "answer.near[0] is a City that contains itself"),
        ([City("Rome", near={1})], "answer[0].near is of type set"),
        (City, "answer is of type type"),
    ],
)
def test_what_is_not_json_is_refused_by_its_place(value, message):
    with pytest.raises(InferletError) as caught:
        _json.dumps(value, "answer", "invalid-output")
    assert caught.value.code == "invalid-output"
    assert caught.value.message.startswith(message + "; JSON holds")


def test_a_number_of_too_many_digits_is_refused_by_its_place():
    with pytest.raises(InferletError) as caught:
        _json.dumps({"n": [1, -(10**5000)]}, "answer", "invalid-output")
    assert (
        caught.value.message
        == "answer.n[1] is a number of more than 4300 digits, which Python does not write; give it as a text, as by hex()"
    )


def nested(n_levels, inner, key=None):
    """A value with so many lists around it, or dicts with a key."""
    for _ in range(n_levels):
        inner = [inner] if key is None else {key: inner}
    return inner


@pytest.mark.parametrize("key", [None, 'a]"\\{'])
@pytest.mark.parametrize("inner", [1, "[" * 2000, [], {}])
def test_values_nest_as_deep_as_clients_can_hold(key, inner):
    value = nested(500, inner, key)
    assert json.loads(_json.dumps(value, "answer", "invalid-output")) == value
    with pytest.raises(InferletError, match=r"^answer is nested more than 500 deep; give it flatter$") as caught:
        _json.dumps(nested(501, inner, key), "answer", "invalid-output")
    assert caught.value.code == "invalid-output"


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        ({1: "a", "1": "b"}, "1 and '1'"),
        ([[0], {"a": ({None: 1, "null": 2},)}], "None and 'null'"),
        ({True: 1, "true": 2}, "True and 'true'"),
        ([{"1.5": 2, 1.5: 1}], "1.5 and '1.5'"),
    ],
)
def test_keys_that_json_writes_alike_are_refused(value, keys):
    with pytest.raises(InferletError, match=f"^answer has a dict with {keys}, which are one key in JSON; give one of them$") as caught:
        _json.dumps(value, "answer", "invalid-output")
    assert caught.value.code == "invalid-output"


def test_what_is_not_json_far_within_is_told_without_its_place():
    with pytest.raises(InferletError, match=r"answer is not JSON more than 100 levels within \(a value of type set is not JSON\)"):
        _json.dumps(nested(200, {1}), "answer", "invalid-output")
    assert _json.dumps([[1]] * 2000, "answer", "invalid-output").count("[") == 2001


@pytest.mark.rows("PY-097..102 OLD-008 OLD-055..060")
@pytest.mark.parametrize(
    ("sampler", "record"),
    [
        (Sampler.argmax(), (0.0, None, None, None, 1, None)),
        (Sampler.greedy(), (0.0, None, None, None, 1, None)),
        (Sampler.top_p(), (0.6, None, 0.95, None, 1, None)),
        (Sampler.top_p(1, 0.5, seed=0), (1.0, None, 0.5, None, 1, 0)),
        (Sampler.top_p(temperature=0.7, top_p=0.9), (0.7, None, 0.9, None, 1, None)),
        (Sampler.top_k(), (0.6, 50, None, None, 1, None)),
        (Sampler.top_k(0.8, 10), (0.8, 10, None, None, 1, None)),
        (Sampler.top_k(top_k=7), (0.6, 7, None, None, 1, None)),
        (Sampler.min_p(), (0.6, None, None, 0.1, 1, None)),
        (Sampler.min_p(0.5, min_p=0.2), (0.5, None, None, 0.2, 1, None)),
        (Sampler.top_k_top_p(), (0.6, 50, 0.95, None, 1, None)),
        (Sampler.top_k_top_p(0.6, 50, 0.95), (0.6, 50, 0.95, None, 1, None)),
        (Sampler.top_k_top_p(top_k=5, top_p=0.5), (0.6, 5, 0.5, None, 1, None)),
        (Sampler.multinomial(0.9, 3), (0.9, None, None, None, 3, None)),
        (Sampler.multinomial(temperature=1.0, seed=0), (1.0, None, None, None, 1, None)),
        (Sampler.multinomial(seed=9), (1.0, None, None, None, 1, 9)),
    ],
)
def test_samplers_take_both_spellings(sampler, record):
    assert sampler._raw == sampling.Sampler(*record)


@pytest.mark.rows("PY-098..099 PY-102")
@pytest.mark.parametrize(
    ("make", "code", "message"),
    [
        (lambda: Sampler.top_p(0.6, 0.9, top_p=0.8), "invalid-argument", "p = 0.9 and top_p = 0.8 are two names of one parameter"),
        (lambda: Sampler.top_k(0.6, -1), "invalid-sampler", "k is -1; it must lie in 0..4294967295"),
        (lambda: Sampler.top_k(0.6, 1.5), "invalid-argument", "k is 1.5 of type float; it must be an int"),
        (lambda: Sampler.top_p("hot"), "invalid-argument", "temperature is 'hot' of type str; it must be a number"),
        (lambda: Sampler.top_p(seed=2**64), "invalid-argument", "seed is 18446744073709551616; it must lie in"),
        (lambda: Sampler.multinomial(seed=False), "invalid-argument", "seed is False of type bool; it must be an int"),
        (lambda: Sampler.multinomial(seed=""), "invalid-argument", "seed is '' of type str; it must be an int"),
        (lambda: Sampler.multinomial(seed=0.0), "invalid-argument", "seed is 0.0 of type float; it must be an int"),
        (lambda: Sampler.multinomial(seed=[]), "invalid-argument", "seed is [] of type list; it must be an int"),
        (lambda: _arguments.tokens("tokens", [1, -2]), "invalid-token", "tokens[1] is -2; token ids lie in 0..4294967295"),
        (lambda: _arguments.tokens("tokens", "ab"), "invalid-argument", "tokens[0] is 'a' of type str; it must be an int"),
        (lambda: _arguments.tokens("tokens", 5), "invalid-argument", "tokens is 5 of type int; it must be a list of token ids"),
        (
            lambda: _arguments.stops("stop", 5),
            "invalid-argument",
            "stop is 5 of type int; it must be a text, or a list of token ids and texts",
        ),
        (lambda: _arguments.stops("stop", b"x"), "invalid-argument", "stop is b'x' of type bytes; it must be a text, or a list"),
        (lambda: _arguments.stops("stop", ["a", 1.5]), "invalid-argument", "stop[1] is 1.5 of type float; it must be an int"),
        (lambda: _arguments.stops("stop", [None]), "invalid-argument", "stop[0] is None of type NoneType; it must be an int or a text"),
        (
            lambda: _arguments.of_type("probe", Logits, Probe),
            "invalid-argument",
            "probe is <class 'inferlet.probe.Logits'> of type type; it must be a Probe; write `()` behind the name",
        ),
        (lambda: _arguments.runs("step()", {1}), "invalid-argument", "step() is {1} of type set; it must be a mask: a list of run lengths"),
        (lambda: _arguments.stops("stop", ["a", -1]), "invalid-token", "stop[1] is -1; it must lie in 0..4294967295"),
        (lambda: _arguments.stops("stop", [3, "a\udc80"]), "invalid-argument", "stop[1] holds the lone surrogate U+DC80 at index 1"),
        (lambda: _arguments.text("text", b"x"), "invalid-argument", "text is b'x' of type bytes; it must be a str"),
        (lambda: _arguments.text("text", "a\udc80"), "invalid-argument", "text holds the lone surrogate U+DC80 at index 1"),
        (lambda: _arguments.count("n", True), "invalid-argument", "n is True of type bool; it must be an int"),
    ],
)
def test_arguments_that_cannot_cross_are_named(make, code, message):
    with pytest.raises(ArgumentTypeError if "of type" in message else InvalidArgumentError) as caught:
        make()
    assert caught.value.code == code
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("given", "tokens", "texts"),
    [("ab", [], ["ab"]), (["ab", 7, "", 8], [7, 8], ["ab", ""]), ((7, 8), [7, 8], []), (iter(["a"]), [], ["a"]), ([], [], [])],
)
def test_stops_are_tokens_and_texts(given, tokens, texts):
    assert _arguments.stops("stop", given) == (tokens, texts)


def test_an_unknown_code_is_still_an_error():
    error = new_error("of-a-newer-engine", "text", {"a": 1})
    assert (type(error), error.code, str(error), error.details) == (InferletError, "of-a-newer-engine", "text", {"a": 1})


@pytest.mark.rows("PY-149 PY-155 PY-157..159")
@pytest.mark.parametrize("call", [chat.cue, chat.seal, chat.stop_tokens, lambda it: chat.user(it, "u"), chat.Decoder])
def test_what_is_no_model_is_refused(call):
    with pytest.raises(ArgumentTypeError, match="it must be a Model"):
        call("tiny")


@pytest.mark.rows("PY-150..151")
def test_events_are_values():
    event = chat.Event.Delta("a")
    assert {event: 1}[chat.Event.Delta("a")] == 1
    assert event != chat.Event.Done("a")
    with pytest.raises(AttributeError):
        event.text = "b"


@pytest.mark.rows("PY-105..107")
def test_probes_are_values():
    assert Distribution(0.5, 3) == Distribution(0.5, 3) != Distribution(0.5, 4)
    assert hash(Logprob(7)) == hash(Logprob(7))
    assert Logprob(7) != Logprobs([7])
    assert [repr(probe) for probe in (Logprob(7), Logprobs([1, 2]))] == ["Logprob(token=7)", "Logprobs(tokens=(1, 2))"]
