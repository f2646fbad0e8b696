"""Vectors of thoughts, tools and calls. Their transcripts are written by hand: texts by the words of the template, as
jinja2 renders them, and events by the rules of the decoders.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.vectors.ops import MODEL, WARM, Op, generate, op

Pair = tuple[Op, Any]

SCHEMA = {
    "name": "get_price",
    "description": "Get the price of an item.",
    "parameters": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
}
OTHER = {"name": "now", "parameters": {"type": "object", "properties": {}}}
ARGS = '{"item": "violin"}'
CALL = f'<tool_call>\n{{"name": "get_price", "arguments": {ARGS}}}\n</tool_call>'
START, IDLE = {"type": "start"}, {"type": "idle"}
CALLED = {"type": "call", "name": "get_price", "args": ARGS, "arguments": ARGS, "id": None}


def ids(text: str) -> list[int]:
    """Token ids, control tokens parsed."""
    return MODEL.chat.encode(text)


def wrapped(tool: dict[str, Any]) -> dict[str, Any]:
    """The form in which templates take tools."""
    return {"type": "function", "function": tool}


def rendered(messages: list[dict[str, Any]], *tools: dict[str, Any], cue: bool = False) -> list[int]:
    """The whole of a conversation."""
    return ids(MODEL.chat.render(messages, cue=cue, tools=[wrapped(tool) for tool in tools] or None))


def tools() -> list[Pair]:
    """Built piece by piece, tools, calls and answers are what the template makes of the whole."""
    schemas = [json.dumps(SCHEMA), json.dumps({"type": "function", "function": OTHER})]
    mcp = json.dumps({"name": "now", "inputSchema": OTHER["parameters"], "annotations": {}})
    said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How much?"}]
    call = wrapped({"name": "get_price", "arguments": json.loads(ARGS)})
    called = {"role": "assistant", "content": "", "tool_calls": [call]}
    answer = {"role": "tool", "content": "340 <|im_end|>"}
    plain = ids("<|im_end|>")
    whole = rendered([*said, called, answer | {"content": "340"}], SCHEMA, OTHER, cue=True)
    pairs: list[Pair] = [
        (op("context", as_="c"), None),
        (op("equip", ctx="c", schemas=[schemas[0], mcp]), None),
        (op("buffer", ctx="c"), []),
        (op("system", ctx="c", text="Be brief."), None),
        (op("user", ctx="c", text="How much?"), None),
        (op("buffer", ctx="c"), rendered(said, SCHEMA, OTHER)),
        (op("cue", ctx="c"), None),
        (op("append_text", ctx="c", text=CALL), None),
        (op("answer", ctx="c", name="get_price", value="340"), None),
        (op("cue", ctx="c"), None),
        (op("buffer", ctx="c"), whole),
        (op("seal", ctx="c"), None),
        (op("user", ctx="c", text="And?"), None),
        (op("buffer", ctx="c"), [*whole, *ids("<|im_end|>\n<|im_start|>user\nAnd?<|im_end|>\n")]),
    ]
    # Two answers stand in one turn, and what the model wrote of the end of its turn is not written again.
    two = [said[1], called | {"tool_calls": [call, call]}, answer | {"content": "1"}, answer | {"content": "2"}]
    pairs += [
        (op("context", as_="t"), None),
        (op("user", ctx="t", text="How much?"), None),
        (op("cue", ctx="t"), None),
        (op("append_text", ctx="t", text=f"{CALL}\n{CALL}<|im_end|>"), None),
        (op("answer", ctx="t", name="get_price", value="1"), None),
        (op("answer", ctx="t", name="get_price", value="2", id="call00001"), None),
        (op("cue", ctx="t"), None),
        (op("buffer", ctx="t"), rendered(two, cue=True)),
    ]
    # The tokens alone; an answer that is appended raw counts as one, so that generating cues.
    alone = rendered(said[1:], SCHEMA)[: -len(rendered(said[1:]))]
    raw = ids("<|im_end|>\n<|im_start|>user\n<tool_response>\n340\n</tool_response><|im_end|>\n")
    pairs += [
        (op("equip_tokens", schemas=schemas[:1]), alone),
        (op("answer_tokens", name="get_price", value="340"), raw),
        (op("context", as_="r"), None),
        (op("append", ctx="r", tokens=alone), None),
        (op("user", ctx="r", text="How much?"), None),
        (op("cue", ctx="r"), None),
        (op("append_text", ctx="r", text=CALL), None),
        (op("append", ctx="r", tokens=raw), None),
        (op("cue", ctx="r"), None),
        (op("buffer", ctx="r"), rendered([said[1], called, answer | {"content": "340"}], SCHEMA, cue=True)),
    ]
    # An answer never becomes a control token: those that are there are the template's.
    content = MODEL.chat.encode_content("<tool_response>\n", "340 <|im_end|>", "\n</tool_response>")
    assert plain[0] not in content
    pairs += [
        (
            op("answer_tokens", name="get_price", value="340 <|im_end|>"),
            [*ids("<|im_end|>\n<|im_start|>user\n"), *content, *ids("<|im_end|>\n")],
        )
    ]
    return pairs


def bad_tools() -> list[Pair]:
    """What is not a tool, and what is not the name of one, is refused, and nothing is appended."""
    refused = {"error": "invalid-argument"}
    bad = [[], ["{"], ["[1]"], ["{}"], ['{"name": 5}'], [json.dumps(SCHEMA)] * 2, ['{"name": "a", "parameters": {"type": "string"}}']]
    bad += [[json.dumps({"name": name})] for name in ("", "a b", 'a"b', "a\nb", "<|im_end|>", "é", "x" * 129)]
    bad += [[json.dumps({"name": "a", "description": "\U000f003c"})]]
    pairs: list[Pair] = [(op("context", as_="c"), None), (op("user", ctx="c", text="x"), None)]
    for schemas in bad:
        pairs += [(op("equip", ctx="c", schemas=schemas), refused), (op("equip_tokens", schemas=schemas), refused)]
    pairs += [
        (op("answer", ctx="c", name="a b", value="x"), refused),
        (op("answer", ctx="c", name="a", value="x", id="<|im_end|>"), refused),
    ]
    return [*pairs, (op("buffer", ctx="c"), rendered([{"role": "user", "content": "x"}]))]


def chunkings(tokens: list[int]) -> Iterator[tuple[str, list[list[int]]]]:
    """Tokens in pieces of one size each, all at once, and in random pieces of 1 to 5."""
    random = Random(len(tokens))
    sizes = {str(size): [size] * len(tokens) for size in (1, 2, 3, 4, 5, 1000)}
    sizes |= {f"random {n}": random.choices(range(1, 6), k=len(tokens)) for n in range(4)}
    for name, each in sizes.items():
        rest = iter(tokens)
        pieces = [list(itertools.islice(rest, size)) for size in each]
        yield name, [piece for piece in pieces if piece]


def fed(name: str, decoder: str, tokens: list[int], expected: list[Any]) -> list[Pair]:
    """However tokens are split, each event is due with the piece that completes it, or behind it."""
    return [(op(f"{decoder}_all", as_=f"{name}/{how}", pieces=pieces), expected) for how, pieces in chunkings(tokens)]


def calls() -> list[Pair]:
    """Calls are the same however their tokens are split, and what is none is given back as it was written."""
    bad = '<tool_call>{"name": "get_price", "arguments": [1]}</tool_call>'
    cases = {
        "one": (CALL, [START, CALLED]),
        "two": (f"Both: {CALL}\n{CALL}", [START, CALLED, START, CALLED]),
        "thought": (f"<think>I call {CALL}</think>", [START, CALLED]),
        "bad": (bad, [START, {"type": "malformed", "text": bad}]),
        "torn": ('<tool_call>{"name"', [START, {"type": "malformed", "text": '<tool_call>{"name"'}]),
        "none": ('{"name": "get_price"}', []),
    }
    pairs = []
    for name, (text, expected) in cases.items():
        pairs += fed(name, "calls", ids(text), expected)
    tokens = ids(f"{CALL}{CALL}")
    pairs += [
        (op("calls_feed", as_="d", tokens=tokens), START),
        (op("calls_feed", as_="d", tokens=[]), CALLED),
        (op("calls_feed", as_="d", tokens=[]), START),
        (op("calls_feed", as_="d", tokens=[4_000_000]), {"error": "invalid-token"}),
        (op("calls_feed", as_="d", tokens=[]), CALLED),
        (op("calls_feed", as_="d", tokens=[]), IDLE),
        (op("calls_finish", as_="d"), IDLE),
        (op("calls_feed", as_="d", tokens=ids("<tool_call>")), START),
        (op("calls_reset", as_="d"), None),
        (op("calls_finish", as_="d"), IDLE),
        (op("calls_feed", as_="d", tokens=ids("<tool_call>x")), START),
        (op("calls_finish", as_="d"), {"type": "malformed", "text": "<tool_call>x"}),
        (op("parse_call", text=f"Well: {CALL}"), {key: value for key, value in CALLED.items() if key != "type"}),
        (op("parse_call", text=bad), None),
    ]
    return pairs


def thoughts() -> list[Pair]:
    """Thoughts are the same however their tokens are split, and end with their turn."""

    def thought(text: str) -> list[Op]:
        return [START, {"type": "delta", "text": text}, {"type": "end", "text": text}]

    cases = {
        "one": ("<think>\nhm é\n</think>\n\n4.", thought("\nhm é\n")),
        "two": ("<think>a</think>b<think>c</think>", [*thought("a"), *thought("c")]),
        "open": ("<think>a", thought("a")),
        "ended": ("<think>a<|im_end|>b", thought("a")),
        "empty": ("<think></think>", [START, {"type": "end", "text": ""}]),
        "none": ("4.</think>", []),
    }
    pairs = []
    for name, (text, expected) in cases.items():
        pairs += fed(name, "thoughts", ids(text), expected)
    pairs += [
        (op("thoughts_feed", as_="d", tokens=ids("<think>a</think>")), START),
        (op("thoughts_feed", as_="d", tokens=[4_000_000]), {"error": "invalid-token"}),
        (op("thoughts_feed", as_="d", tokens=[]), {"type": "delta", "text": "a"}),
        (op("thoughts_feed", as_="d", tokens=[]), {"type": "end", "text": "a"}),
        (op("thoughts_feed", as_="d", tokens=[]), IDLE),
        (op("thoughts_feed", as_="d", tokens=ids("<think>")), START),
        (op("thoughts_finish", as_="d"), {"type": "end", "text": ""}),
        (op("thoughts_feed", as_="d", tokens=ids("<think>")), START),
        (op("thoughts_reset", as_="d"), None),
        (op("thoughts_finish", as_="d"), IDLE),
    ]
    visible = f"<think>hm</think>4, or {CALL}5.<tool_call>x</tool_call><|im_end|>"
    shown = "4, or 5.<tool_call>x</tool_call>"
    return [*pairs, (op("visible", tokens=ids(visible)), [{"type": "delta", "text": shown}, {"type": "done", "text": shown}])]


def shown() -> list[Pair]:
    """What is shown is the same however the tokens are split: no character is torn, and none is lost."""

    def letters(text: str | bytes) -> list[int]:
        content = text.encode() if isinstance(text, str) else text
        return [MODEL.vocabulary.token(bytes([byte])) for byte in content]

    def turn(text: str) -> list[Op]:
        return [{"type": "delta", "text": text}, {"type": "done", "text": text}]

    (start,), (end, *_) = ids("<|im_start|>"), MODEL.chat.closing()
    torn = letters("ö")[:1]
    interrupt = {"type": "interrupt", "token": start}
    cases: dict[str, tuple[list[int], list[Any]]] = {
        "words": (ids("Hello, wörld: 漢字 🦊!"), turn("Hello, wörld: 漢字 🦊!")),
        "bytes": (letters("é漢🦊."), turn("é漢🦊.")),
        "turns": ([*letters("ö"), end, *letters("a🦊"), end], [*turn("ö"), *turn("a🦊")]),
        "torn": ([*letters("a"), *torn, end], turn("a\ufffd")),
        "open": ([*letters("a"), *torn], turn("a\ufffd")),
        "invalid": (letters(b"a\xffb\xf0\x9f"), turn("a\ufffdb\ufffd")),
        "interrupted": (
            [*letters("a"), start, *torn, start, *letters("b")],
            [turn("a")[0], interrupt, turn("\ufffd")[0], interrupt, {"type": "delta", "text": "b"}, {"type": "done", "text": "a\ufffdb"}],
        ),
        "empty": ([end], [{"type": "done", "text": ""}]),
    }
    return [pair for name, (tokens, expected) in cases.items() for pair in fed(name, "chat", tokens, expected)]


def talks() -> list[Pair]:
    """What a generator accepts is decoded step by step, and ends with its last step."""
    said = ids(f"<think>hm</think>{CALL}<|im_end|>")
    masks = [[token, 1] for token in said]
    pieces = [MODEL.chat.tokenizer.decode([token]) for token in ids("hm")]
    thought = [START, *({"type": "delta", "text": piece} for piece in pieces), {"type": "end", "text": "hm"}]
    pairs: list[Pair] = []
    for name, events in (("thoughts", thought), ("calls", [START, CALLED])):
        pairs += [
            (op("context", as_=name), None),
            (op("user", ctx=name, text="x"), None),
            (generate(name, name, n=None, constrain=[{"masks": masks}]), None),
            (op(f"{name}_stream", gen=name), events),
            (op("finish_reason", gen=name), "stop"),
        ]
    pairs += [
        (op("context", as_="cut"), None),
        (op("user", ctx="cut", text="x"), None),
        (generate("cut", "cut", n=2, constrain=[{"masks": masks}]), None),
        (
            op("thoughts_stream", gen="cut"),
            thought if len(ids("hm")) == 1 else [START, {"type": "delta", "text": "h"}, {"type": "end", "text": "h"}],
        ),
    ]
    return pairs


def native_grammars() -> list[Pair]:
    """A call under a native grammar is one of the tools, written as the template writes it, and ends the turn."""
    schemas = [json.dumps(SCHEMA), json.dumps(OTHER)]

    def call(name: str, arguments: str) -> str:
        return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'

    price, now, end = call("get_price", ARGS), call("now", "{}"), "<|im_end|>"
    both = f"{price}\n{now}"
    called = [price + end, now + end, both + end, f"<think>hm</think>\n\n{price}{end}"]
    said = ["Hello." + end, f"I look: {price}{end}", end]
    bad = [
        price,
        call("get_prices", ARGS) + end,
        call("get_price", "{}") + end,
        call("get_price", '{"item": 5}') + end,
        call("get_price", '{"item": "violin", "n": 1}') + end,
        call("get_price", '{"item":"violin"}') + end,
        call("get_price", '{"item": "</tool_call>"}') + end,
        f"<tool_call>{end}",
        f"{price}Hello.{end}",
    ]
    choices: list[tuple[Any, list[bool], list[bool]]] = [
        ("auto", [True] * 4, [True] * 3),
        ("none", [False] * 4, [True, False, True]),
        ("required", [True] * 4, [False] * 3),
        ({"name": "now"}, [False, True, False, False], [False] * 3),
        ({"name": "get_price"}, [True, False, False, True], [False] * 3),
    ]
    pairs: list[Pair] = [
        (op("native_grammar", schemas=schemas, choice=choice, texts=[*called, *said, *bad]), [*calls, *words, *[False] * len(bad)])
        for choice, calls, words in choices
    ]
    wild = json.dumps({"name": "wild", "parameters": {"type": "object", "properties": {"x": {"uniqueItems": True}}}})
    return [
        *pairs,
        (op("native_grammar", schemas=schemas, choice={"name": "gone"}, texts=[]), {"error": "invalid-argument"}),
        (op("native_grammar", schemas=[], choice="auto", texts=[]), {"error": "invalid-argument"}),
        (op("native_grammar", schemas=[wild], choice="auto", texts=[]), {"error": "invalid-grammar"}),
        (op("native_grammar", schemas=[wild], choice="none", texts=["Hello." + end]), [True]),
    ]


def tool_choices() -> list[Pair]:
    """A generation with a choice calls a tool that its context was given last, in forks too, and stops behind it."""
    now = START, {"type": "call", "name": "now", "args": "{}", "arguments": "{}", "id": None}
    refused = {"error": "invalid-argument"}
    # Everything but a thought.
    (thought,) = ids("<think>")
    silent = [0, thought, 1, MODEL.vocab_size - thought - 1]
    pairs: list[Pair] = [
        (op("context", as_="bare"), None),
        (op("user", ctx="bare", text="x"), None),
        (generate("bare", "none", tool_choice="required"), refused),
        (generate("bare", "none", tool_choice={"name": "now"}), refused),
        (generate("bare", "free", tool_choice="auto"), None),
        (op("context", as_="c"), None),
        (op("equip", ctx="c", schemas=[json.dumps(SCHEMA)]), None),
        (op("user", ctx="c", text="x"), None),
        (op("equip", ctx="c", schemas=[json.dumps(OTHER)]), None),
        (op("user", ctx="c", text="y"), None),
        (op("fork", ctx="c", as_="f"), None),
        (generate("c", "none", tool_choice={"name": "get_price"}), refused),
    ]
    for ctx, choice in (("c", {"name": "now"}), ("f", {"name": "now"})):
        pairs += [
            (generate(ctx, f"g{ctx}", WARM, None, seed=3, tool_choice=choice, logit_mask=silent), None),
            (op("calls_stream", gen=f"g{ctx}"), list(now)),
            (op("finish_reason", gen=f"g{ctx}"), "stop"),
        ]
    return pairs


VECTORS = {
    name: ([each for each, _ in pairs], {"expect": [answer for _, answer in pairs]})
    for name, pairs in (
        ("tools", tools()),
        ("bad_tools", bad_tools()),
        ("calls", calls()),
        ("thoughts", thoughts()),
        ("shown", shown()),
        ("talks", talks()),
        ("native_grammars", native_grammars()),
        ("tool_choices", tool_choices()),
    )
}

SHOWS = {
    "tools": "JS-176..177 PY-168..169 RS-182..183",
    "calls": "JS-155 JS-173..175 PY-148 PY-165..167 RS-168 RS-179..181 RS-184 RS-188",
    "native_grammars": "JS-179 PY-171 RS-185 RS-187",
    "shown": "JS-155 PY-148 RS-168",
    "thoughts": "JS-155 JS-168..172 PY-148 PY-160..164 RS-168 RS-174..178 RS-188",
}

DOCS = {
    function.__name__: " ".join((function.__doc__ or "").split())
    for function in (tools, bad_tools, calls, thoughts, shown, talks, native_grammars, tool_choices)
}
