"""Decoders, tools and grammars: what crosses to the engine, and what is made of its answers, on faked bindings."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Sequence
from typing import Any, Literal

import pytest
from wit_world.imports import chat as raw_chat
from wit_world.imports import generation as raw_generation
from wit_world.imports import grammar as raw_grammar
from wit_world.imports import reasoning as raw_reasoning
from wit_world.imports import tools as raw_tools

from inferlet import (
    AnyJson,
    ArgumentTypeError,
    Ebnf,
    Grammar,
    GrammarConstraint,
    InferletError,
    InvalidArgumentError,
    JsonSchema,
    Matcher,
    Model,
    Regex,
    Tokenizer,
    chat,
    reasoning,
    tools,
)
from inferlet.output import FinishReason, Output


class FakedDecoder:
    """Answers with events in turn, and logs what it was fed."""

    def __init__(self, log: list[Any], events: Sequence[Any], idle: Any) -> None:
        self.log, self.events, self.idle = log, list(events), idle

    def _next(self, *call: Any) -> Any:
        self.log.append(call)
        return self.events.pop(0) if self.events else self.idle

    def feed(self, tokens: list[int]) -> Any:
        return self._next("feed", tokens)

    def feed_output(self, tokens: list[int], finish: Any) -> Any:
        return self._next("feed_output", tokens, finish)

    def finish(self) -> Any:
        return self._next("finish")

    def reset(self) -> None:
        self.log.append(("reset",))


def a_model() -> Model:
    model = Model.__new__(Model)
    model._raw = "raw model"
    return model


KINDS = {
    "chat": (
        chat,
        (raw_chat.Decoder, "Decoder"),
        raw_chat.Event_Idle(),
        [
            (raw_chat.Event_Delta("a"), chat.Event.Delta("a")),
            (raw_chat.Event_Done("ab"), chat.Event.Done("ab")),
            (raw_chat.Event_Interrupt(7), chat.Event.Interrupt(7)),
        ],
    ),
    "reasoning": (
        reasoning,
        (raw_reasoning.ReasoningDecoder, "ReasoningDecoder"),
        raw_reasoning.ReasoningEvent_Idle(),
        [
            (raw_reasoning.ReasoningEvent_Start(), reasoning.Event.Start()),
            (raw_reasoning.ReasoningEvent_Delta("a"), reasoning.Event.Delta("a")),
            (raw_reasoning.ReasoningEvent_End("ab"), reasoning.Event.End("ab")),
        ],
    ),
    "tools": (
        tools,
        (raw_tools.ToolDecoder, "ToolDecoder"),
        raw_tools.ToolEvent_Idle(),
        [
            (raw_tools.ToolEvent_Start(), tools.Event.Start()),
            (raw_tools.ToolEvent_Call(raw_tools.ToolCall("f", "{}", None)), tools.Event.Call("f", "{}")),
            (raw_tools.ToolEvent_Call(raw_tools.ToolCall("f", '{"a":1}', "3")), tools.Event.Call("f", '{"a":1}', id="3")),
            (raw_tools.ToolEvent_Malformed("<x>"), tools.Event.Malformed("<x>")),
        ],
    ),
}


@pytest.mark.rows("PY-148..153 PY-160..167 OLD-022")
@pytest.mark.parametrize("kind", KINDS)
def test_a_decoder_gives_the_events_of_the_engine_one_a_feed_or_all_of_them(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    module, (raw, _), idle, events = KINDS[kind]
    log: list[Any] = []
    made = FakedDecoder(log, [event for event, _ in events], idle)
    monkeypatch.setattr(raw, "create", classmethod(lambda cls, *given: log.append(("create", *given)) or made))
    decoder = module.Decoder(a_model())
    first, *rest = [event for _, event in events]
    assert decoder.feed((1, 2)) == first
    assert list(itertools.islice(decoder.events([3]), 9)) == rest
    assert decoder.feed([]) == module.Event.Idle()
    # Each that is queued is drained by a feed of nothing, and so is the end.
    assert log == [("create", "raw model"), ("feed", [1, 2]), ("feed", [3]), *[("feed", [])] * len(rest), ("feed", [])]
    del log[:]
    made.events = [event for event, _ in events]
    output = Output([4, 5], FinishReason.STOP)
    assert decoder.feed_output(output) == first
    assert list(itertools.islice(decoder.events(output), 9)) == rest
    assert decoder.finish() == module.Event.Idle()
    decoder.reset()
    fed = ("feed_output", [4, 5], raw_generation.FinishReason.STOP)
    assert log == [fed, fed, *[("feed", [])] * len(rest), ("finish",), ("reset",)]
    # Events are values.
    every = [module.Event.Idle(), first, *rest]
    assert len(set(every)) == len(every)
    for event in every:
        with pytest.raises(dataclasses.FrozenInstanceError):
            event.text = "b"
    with pytest.raises(ArgumentTypeError, match="it must be a Model"):
        module.Decoder("tiny")
    with pytest.raises(ArgumentTypeError, match="it must be an Output"):
        decoder.feed_output([1])


@pytest.mark.rows("PY-149")
@pytest.mark.parametrize(
    ("options", "made"),
    [
        ({}, ("plain",)),
        ({"hide_thoughts": False, "hide_calls": False}, ("plain",)),
        ({"hide_thoughts": True}, ("hiding", True, False)),
        ({"hide_calls": True}, ("hiding", False, True)),
    ],
)
def test_a_chat_decoder_hides_what_it_is_told_to(monkeypatch: pytest.MonkeyPatch, options: dict[str, bool], made: tuple[Any, ...]) -> None:
    log: list[Any] = []
    monkeypatch.setattr(raw_chat.Decoder, "create", classmethod(lambda cls, model: log.append(("plain",))))
    monkeypatch.setattr(raw_chat.Decoder, "create_hiding", classmethod(lambda cls, model, *given: log.append(("hiding", *given))))
    chat.Decoder(a_model(), **options)
    assert log == [made]


def search(query: str, n: int = 3, kind: Literal["new", "old"] = "new", *, tags: list[str] | None = None, scale: float = 1.0) -> list[Any]:
    """Finds pages."""
    return [query, n, kind, tags, scale]


SEARCH = {
    "name": "search",
    "description": "Finds pages.",
    "parameters": {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "n": {"type": "integer"},
            "kind": {"enum": ["new", "old"]},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            "scale": {"type": "number"},
        },
        "required": ["query"],
    },
}


@pytest.mark.rows("PY-168 OLD-071")
def test_a_function_is_a_tool_by_its_name_documentation_and_hints() -> None:
    tool = tools.tool(search)
    assert (tool.name, tool.schema) == ("search", SEARCH)
    assert tool("a", 2) == ["a", 2, "new", None, 1.0]
    assert tool.call('{"query": "a", "tags": ["x"], "scale": 2}') == ["a", 3, "new", ["x"], 2]
    forms = [tool, SEARCH, json.dumps(SEARCH)]
    assert [json.loads(text) for text in tools.schema_texts(forms)] == [SEARCH] * 3

    def bare(a, b: dict[str, int], c: Sequence[bool], d: Any, e: None):
        pass

    properties = tools.tool(bare).schema["parameters"]["properties"]
    assert properties == {
        "a": {},
        "b": {"type": "object", "additionalProperties": {"type": "integer"}},
        "c": {"type": "array", "items": {"type": "boolean"}},
        "d": {},
        "e": {"type": "null"},
    }
    assert tools.tool(bare).schema["description"] == ""


@pytest.mark.rows("PY-167..168")
@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("{", "the call of search: the arguments are not JSON"),
        ("[1]", "the call of search: the arguments are not an object"),
        ('{"query": "a", "m": 1}', "the call of search: there is no argument 'm'"),
        ('{"n": 1}', "the call of search: the argument 'query' is missing"),
        ('{"query": 1}', "the call of search: the argument 'query' is not of the type"),
        ('{"query": "a", "n": true}', "the call of search: the argument 'n' is not of the type"),
        ('{"query": "a", "n": 1.5}', "the call of search: the argument 'n' is not of the type"),
        ('{"query": "a", "kind": "newest"}', "the call of search: the argument 'kind' is not of the type"),
        ('{"query": "a", "tags": [1]}', "the call of search: the argument 'tags' is not of the type"),
        ('{"query": "a", "tags": "x"}', "the call of search: the argument 'tags' is not of the type"),
        ('{"query": "a", "scale": true}', "the call of search: the argument 'scale' is not of the type"),
        ('{"query": "a", "scale": "1"}', "the call of search: the argument 'scale' is not of the type"),
    ],
)
def test_a_call_that_does_not_fit_its_tool_is_refused(args: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        tools.tool(search).call(args)
    assert (caught.value.code, caught.value.message[: len(message)]) == ("invalid-argument", message)


@pytest.mark.rows("PY-168")
def test_what_cannot_be_a_tool_is_refused() -> None:
    def many(*names: str) -> None:
        pass

    def odd(a: bytes) -> None:
        pass

    def positional(a: int, /) -> None:
        pass

    for function, message in [
        (many, "the parameter names of many has no name that a model could give"),
        (positional, "the parameter a of positional has no name"),
        (odd, "the parameter a of odd has the type <class 'bytes'>, which has no JSON schema here"),
    ]:
        with pytest.raises(InvalidArgumentError) as caught:
            tools.tool(function)
        assert caught.value.message.startswith(message)
    for call in (
        lambda: tools.tool(5),
        lambda: tools.schema_texts("one"),
        lambda: tools.schema_texts({"name": "one"}),
        lambda: tools.schema_texts([5]),
    ):
        with pytest.raises(ArgumentTypeError) as refused:
            call()
        assert refused.value.code == "invalid-argument"


@pytest.mark.rows("PY-168..169 OLD-073")
def test_what_is_said_to_the_model_of_tools_crosses_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[Any] = []
    for name, value in (("equip_tokens", (1, 2)), ("answer_tokens", (3,)), ("parse_call", raw_tools.ToolCall("f", "{}", "7"))):
        monkeypatch.setattr(raw_tools, name, lambda *given, name=name, value=value: log.append((name, *given)) or value)
    model = a_model()
    assert tools.equip_prefix(model, [{"name": "f"}, '{"name": "g"}']) == [1, 2]
    assert tools.answer_prefix(model, "f", {"a": [1, "é"]}) == tools.answer_prefix(model, "f", "plain", id="7") == [3]
    assert tools.parse_call(model, "text") == tools.Event.Call("f", "{}", id="7")
    assert tools.parse_call(model, "text").arguments == "{}"
    monkeypatch.setattr(raw_tools, "parse_call", lambda *given: None)
    assert tools.parse_call(model, "text") is None
    for call in (
        lambda: tools.equip_prefix("tiny", []),
        lambda: tools.answer_prefix("tiny", "f", 1),
        lambda: tools.parse_call("tiny", "text"),
    ):
        with pytest.raises(ArgumentTypeError, match="it must be a Model"):
            call()
    assert log == [
        ("equip_tokens", "raw model", ['{"name":"f"}', '{"name": "g"}']),
        ("answer_tokens", "raw model", "f", '{"a":[1,"é"]}', None),
        ("answer_tokens", "raw model", "f", "plain", "7"),
        *[("parse_call", "raw model", "text")] * 2,
    ]


class FakedMatcher:
    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            self.log.append((name, *arguments))
            return {"mask": (1, 2), "forced": (5,), "is_terminated": True, "fork": FakedMatcher(self.log)}.get(name)

        return call


@pytest.mark.rows("PY-109..113 PY-118..132 PY-170 OLD-074..075")
def test_grammars_and_their_matchers_are_those_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[Any] = []

    class FakedGrammar:
        def matcher(self, tokenizer: Any) -> FakedMatcher:
            log.append(("matcher", tokenizer))
            return FakedMatcher(log)

    monkeypatch.setattr(raw_grammar.Grammar, "create", classmethod(lambda cls, source: log.append(source) or FakedGrammar()))
    tokenizer = Tokenizer.__new__(Tokenizer)
    tokenizer._raw = "raw tokenizer"
    model = a_model()
    monkeypatch.setattr(Model, "tokenizer", lambda self: tokenizer)
    schema = raw_grammar.Source_JsonSchema('{"const":"é"}')
    regex, ebnf, json_ = raw_grammar.Source_Regex("a+"), raw_grammar.Source_Ebnf("root ::= [0-9]"), raw_grammar.Source_AnyJson()
    made = [
        (lambda: Grammar.from_json_schema({"const": "é"}), schema),
        (lambda: Grammar.from_json_schema('{"const":"é"}'), schema),
        (lambda: Grammar.from_json_schema(True), raw_grammar.Source_JsonSchema("true")),
        (Grammar.json, json_),
        (lambda: Grammar.from_regex("a+"), regex),
        (lambda: Grammar.from_ebnf("root ::= [0-9]"), ebnf),
        (lambda: GrammarConstraint.from_json_schema({"const": "é"}, model), schema),
        (lambda: GrammarConstraint.json(model), json_),
        (lambda: GrammarConstraint.from_regex("a+", model), regex),
        (lambda: GrammarConstraint.from_ebnf("root ::= [0-9]", model), ebnf),
        (lambda: JsonSchema({"const": "é"}).build_constraint(model), schema),
        (lambda: AnyJson().build_constraint(model), json_),
        (lambda: Regex("a+").build_constraint(model), regex),
        (lambda: Ebnf("root ::= [0-9]").build_constraint(model), ebnf),
    ]
    for make, source in made:
        del log[:]
        walks = isinstance(make(), GrammarConstraint)
        assert log == [source, *[("matcher", "raw tokenizer")] * walks]
    for unwritten in ({"const": math.nan}, {"enum": [{1, 2}]}):
        with pytest.raises(InferletError) as caught:
            Grammar.from_json_schema(unwritten)
        assert caught.value.code == "invalid-argument"
    matcher = Matcher(Grammar.json(), tokenizer)
    del log[:]
    matcher.accept_tokens((1, 2))
    assert (matcher.next_token_logit_mask(), matcher.forced_tokens(), matcher.is_terminated) == ([1, 2], [5], True)
    copy = matcher.fork()
    assert isinstance(copy, Matcher)
    assert copy._raw is not matcher._raw
    matcher.reset()
    assert GrammarConstraint(matcher).step([7]) == [1, 2]
    assert [call[0] for call in log] == ["accept", "mask", "forced", "is_terminated", "fork", "reset", "accept", "mask"]
    assert (log[0], log[-2]) == (("accept", [1, 2]), ("accept", [7]))
    for call in (lambda: Matcher("g", tokenizer), lambda: Matcher(Grammar.json(), "t"), lambda: GrammarConstraint("m")):
        with pytest.raises(ArgumentTypeError):
            call()
