"""Documents of the embedded model as values of types: each kind in each language, and what goes wrong."""

from __future__ import annotations

from typing import Any

import pytest

from pie.engine import Engine
from pie.programs import load_program
from support.launching import ROOT, python_source, run, typescript_source

SEEDS = (1, 2, 3)

PYTHON = """
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict
import asyncio
import json

from inferlet import Context, InferletError, JsonCutError, JsonSchema, Model, Sampler

# Each of its tokens is drawn in a step of its own: what may follow is never one text.
LONG = {"type": "string", "pattern": "^[ab]{200}$"}

class Color(Enum):
    RED = "red"
    BLUE = "blue"

class Level(int, Enum):
    LOW = 1
    HIGH = 2

class Point(TypedDict):
    x: Literal[-1, 0, 1]
    y: bool
    label: NotRequired[Literal["a", "b"]]

@dataclass
class Node:
    color: Color
    point: Point
    next: Optional["Node"] = None

@dataclass(frozen=True)
class Circle:
    kind: Literal["circle"]
    radius: Level

@dataclass(frozen=True)
class Square:
    kind: Literal["square"]
    side: Level

@dataclass
class Drawing:
    shapes: tuple[Circle | Square, Circle | Square]
    background: Color | None
    level: Level = Level.LOW

class Model_:
    # As classes of pydantic are.
    def __init__(self, name):
        self.name = name

    @classmethod
    def model_json_schema(cls):
        return {"type": "object", "properties": {"name": {"enum": ["Ada", "Bob"]}}, "required": ["name"], "additionalProperties": False}

    @classmethod
    def model_validate_json(cls, text):
        return cls(json.loads(text)["name"])

def point(value):
    assert set(value) - {"label"} == {"x", "y"} and value["x"] in (-1, 0, 1) and type(value["y"]) is bool, value
    assert value.get("label", "a") in ("a", "b"), value

def node(value):
    n = 0
    while value is not None:
        assert type(value) is Node and isinstance(value.color, Color), value
        point(value.point)
        value, n = value.next, n + 1
    assert n >= 1

def drawing(value):
    assert type(value) is Drawing and type(value.shapes) is tuple and len(value.shapes) == 2, value
    for shape in value.shapes:
        assert (type(shape), shape.kind) in ((Circle, "circle"), (Square, "square")), shape
        assert isinstance(shape.radius if shape.kind == "circle" else shape.side, Level)
    assert value.background is None or isinstance(value.background, Color)
    assert isinstance(value.level, Level)

def one_of(*values):
    return lambda value: [each for each in values if type(each) is type(value) and each == value][0]

KINDS = {
    "dataclass": (Node, node),
    "nested": (Drawing, drawing),
    "TypedDict": (Point, point),
    "Enum": (Color, one_of(*Color)),
    "Literal": (Literal[1, "one", True, None], one_of(1, "one", True, None)),
    "Optional": (Optional[Level], one_of(None, *Level)),
    "list": (list[Literal[1, 2]], lambda value: [one_of(1, 2)(each) for each in value]),
    "dict": (dict[str, Any], lambda value: one_of(dict)(type(value))),
    "Annotated": (Annotated[Color, "a note"], one_of(*Color)),
    "pydantic": (Model_, lambda value: one_of("Ada", "Bob")(value.name) and one_of(Model_)(type(value))),
    "object": ({"enum": [[1], {"a": None}]}, one_of([1], {"a": None})),
    "text": ('{"const": "x y"}', one_of("x y")),
}

async def main(input):
    model = Model.load("default")
    def generator(**options):
        ctx = Context(model)
        ctx.user("Answer in JSON.")
        return ctx.generate(Sampler.top_p(1.0, 0.95), **({"seed": input["seed"], "max_tokens": 400} | options))
    if input["kind"] == "parse":
        return await generator().collect_json(schema='{"const": {"k": [1]}}', parse=str.upper)
    if input["kind"] == "again":
        g, beside = generator(), generator(max_tokens=9, ignore_eos=True)
        given_up = asyncio.ensure_future(g.collect_json(schema=LONG))
        # Steps of another generation pass meanwhile.
        async for step in beside:
            await step.execute()
        assert given_up.cancel()
        try:
            await given_up
        except asyncio.CancelledError:
            assert (g.tokens_generated, g.is_done) == (0, False)
        return await g.collect_json(schema=LONG)
    if input["kind"] == "uncaught":
        return await generator(max_tokens=3).collect_json(schema=Node)
    if input["kind"] == "uncaught mistake":
        return await generator().collect_json(schema={"uniqueItems": True})
    if input["kind"] == "cut":
        try:
            await generator(max_tokens=3).collect_json(schema=Node)
        except JsonCutError as error:
            return {"error": error.code, "message": error.message, "text": error.text}
    if input["kind"] == "refused":
        try:
            await generator().collect_json(schema={"uniqueItems": True})
        except InferletError as error:
            return {"error": error.code, "message": error.message}
    if input["kind"] == "no type":
        try:
            await generator().collect_json(schema=set)
        except InferletError as error:
            return {"error": error.code, "message": error.message}
    if input["kind"] == "two types":
        g = generator(constrain=Literal["blue"])
        color = await g.collect_json(schema=Color)
        return {"value": color.value, "finish": str(g.finish_reason)}
    wanted, check = KINDS[input["kind"]]
    # Beside what constrains already: a list and a dict have bounds there.
    bounds = {"list": {"type": "array", "maxItems": 3}, "dict": {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "null"}}}
    g = generator(constrain=JsonSchema(bounds[input["kind"]]) if input["kind"] in bounds else None)
    check(await g.collect_json(schema=wanted))
    return str(g.finish_reason)
"""

TYPESCRIPT = """
import { Context, InferletError, JsonCutError, Model, regex, Sampler } from 'inferlet';

const COLOR = { enum: ['red', 'blue'] };
const NODE = {
  $ref: '#/$defs/node',
  $defs: {
    node: {
      type: 'object',
      properties: { color: COLOR, next: { $ref: '#/$defs/node' } },
      required: ['color'],
      additionalProperties: false,
    },
  },
};

const isColor = (value: any): boolean => value === 'red' || value === 'blue';
const isNode = (value: any): boolean => isColor(value.color) && (value.next === undefined || isNode(value.next));

// A library's own, which makes a Map of what its schema allows.
const library = {
  toJSONSchema: () => ({ type: 'object', properties: { a: { enum: [1, 2] } }, required: ['a'], additionalProperties: false }),
};
const standard = (validate: (value: any) => any) => ({
  '~standard': { version: 1, vendor: 'tests', validate, jsonSchema: { input: ({ target }: any) => (target === 'draft-2020-12' ? COLOR : false) } },
});

const KINDS: Record<string, [any, (value: any) => boolean]> = {
  object: [COLOR, isColor],
  text: [JSON.stringify(COLOR), isColor],
  recursive: [NODE, isNode],
  toJSONSchema: [library, ({ a }) => a === 1 || a === 2],
  standard: [standard((value) => ({ value: new Set([value]) })), (value) => value instanceof Set && isColor([...value][0])],
  'standard, later': [standard(async (value) => ({ value: [value] })), ([value]) => isColor(value)],
};

export async function main(input: { kind: string; seed: number }) {
  const model = Model.load('default');
  const ctx = new Context(model);
  ctx.user('Answer in JSON.');
  const options = { seed: input.seed, maxTokens: 400 };
  const generator = (more = {}) => ctx.generate(Sampler.topP(1.0, 0.95), { ...options, ...more });
  const failure = async (wanted: Promise<unknown>) => {
    try {
      return await wanted;
    } catch (error: any) {
      if (!(error instanceof InferletError)) throw error;
      return { error: error.code, message: error.message, ...(error instanceof JsonCutError ? { text: error.text } : {}) };
    }
  };
  if (input.kind === 'parse') return generator().collectJson({ schema: COLOR, parse: (value) => value.length });
  if (input.kind === 'both') return generator({ constrain: regex('[4-6]0{1,3}') }).collectJson({ schema: { type: 'integer', maximum: 255 } });
  if (input.kind === 'cut') return failure(generator({ maxTokens: 3 }).collectJson({ schema: NODE }));
  if (input.kind === 'uncaught') return generator({ maxTokens: 3 }).collectJson({ schema: NODE });
  if (input.kind === 'uncaught mistake') return generator().collectJson({ schema: { uniqueItems: true } });
  if (input.kind === 'refused') return failure(generator().collectJson({ schema: { uniqueItems: true } }));
  if (input.kind === 'narrow') return failure(generator().collectJson({ schema: standard(() => ({ issues: [{ message: 'none fits' }] })) }));
  if (input.kind === 'two types') {
    const g = generator({ constrain: { toJSONSchema: () => ({ const: 'blue' }) } });
    return { value: await g.collectJson({ schema: COLOR }), finish: g.finishReason };
  }
  const [schema, check] = KINDS[input.kind];
  const g = generator();
  const value = await g.collectJson({ schema });
  return check(value) ? g.finishReason : value;
}
"""
SOURCES = {"python": python_source(PYTHON), "typescript": typescript_source(TYPESCRIPT)}
PYTHON_KINDS = [
    "dataclass",
    "nested",
    "TypedDict",
    "Enum",
    "Literal",
    "Optional",
    "list",
    "dict",
    "Annotated",
    "pydantic",
    "object",
    "text",
]
TYPESCRIPT_KINDS = ["object", "text", "recursive", "toJSONSchema", "standard", "standard, later"]
RUST_KINDS = ["struct", "enum", "recursive", "tagged", "external", "option", "nested", "any", "both"]


def source_of(language: str) -> Any:
    """The program in one language."""
    return SOURCES.get(language) or load_program(ROOT / "build/programs/typed.wasm")


def value_of(engine: Engine, language: str, kind: str, seed: int = 1) -> Any:
    """What a program makes of a document of one kind."""
    outcome = run(engine, source_of(language), {"kind": kind, "seed": seed})
    assert outcome.code is None, outcome.message
    return outcome.value


@pytest.mark.rows("PY-069")
@pytest.mark.parametrize("kind", PYTHON_KINDS)
def test_python_reads_a_value_of_each_kind(tiny: Engine, kind: str) -> None:
    assert {value_of(tiny, "python", kind, seed) for seed in SEEDS} <= {"constraint", "stop"}


@pytest.mark.rows("JS-072..073")
@pytest.mark.parametrize("kind", TYPESCRIPT_KINDS)
def test_typescript_reads_a_value_of_each_kind(tiny: Engine, kind: str) -> None:
    assert {value_of(tiny, "typescript", kind, seed) for seed in SEEDS} <= {"constraint", "stop"}


@pytest.mark.rows("RS-067")
@pytest.mark.parametrize("kind", RUST_KINDS)
def test_rust_reads_a_value_of_each_kind(tiny: Engine, kind: str) -> None:
    for seed in SEEDS:
        read = value_of(tiny, "rust", kind, seed)
        assert read["finish"] in ("constraint", "stop"), read
        assert CHECKS[kind](read["value"]), read


def is_point(value: Any) -> bool:
    """Whether it is one of the points of the Rust program."""
    return value.keys() == {"x", "y"} and abs(value["x"]) < 1 << 31 and -9 <= value["y"] <= 9


def is_node(value: Any) -> bool:
    """Whether it is one of its lists."""
    return value["color"] in ("red", "blue") and is_point(value["point"]) and ("next" not in value or is_node(value["next"]))


CHECKS: dict[str, Any] = {
    "struct": is_point,
    "enum": lambda value: value in ("red", "blue"),
    "recursive": is_node,
    "tagged": lambda value: value["shape"] in ("dot", "circle", "nothing"),
    "external": lambda value: value == "Stop" or value.keys() in ({"Go"}, {"Turn"}),
    "option": lambda value: value in (None, "red", "blue"),
    "nested": lambda value: value.keys() == {"items", "price", "notes", "x", "y"} and len(value["items"]) <= 3 and len(value["notes"]) <= 1,
    "any": lambda value: value in ([1], None, "x"),
    "both": lambda value: value in (40, 50, 60),
}


@pytest.mark.rows("JS-074")
def test_what_is_parsed_is_the_text_in_python_and_the_value_in_javascript(tiny: Engine) -> None:
    assert value_of(tiny, "python", "parse") == '{"K":[1]}'
    assert value_of(tiny, "typescript", "parse") in (3, 4)


def test_a_schema_stands_beside_what_constrains_already(tiny: Engine) -> None:
    assert {value_of(tiny, "typescript", "both", seed) for seed in SEEDS} <= {40, 50, 60}


@pytest.mark.rows("PY-048 JS-051 RS-135")
@pytest.mark.parametrize("language", ["python", "typescript", "rust"])
def test_a_type_constrains_as_a_schema_does(tiny: Engine, language: str) -> None:
    """What is read has the colours of one type, and what constrains already leaves of them the blue one."""
    read = value_of(tiny, language, "two types")
    assert read["value"] == "blue", read
    assert read["finish"] in ("constraint", "stop")


def test_a_type_that_cannot_be_enforced_is_refused_where_it_constrains(tiny: Engine) -> None:
    error = value_of(tiny, "rust", "refused type")
    assert error["error"] == "invalid-grammar"
    assert "uniqueItems" in error["message"]


@pytest.mark.rows("RS-067")
@pytest.mark.parametrize("language", ["python", "typescript", "rust"])
def test_a_document_that_is_cut_is_an_error_with_its_text(tiny: Engine, language: str) -> None:
    error = value_of(tiny, language, "cut")
    assert error["error"] == "json-cut"
    message, _, behind = error["message"].partition("\n")
    assert "after 3 tokens" in message
    text = behind if language == "rust" else error["text"]
    assert text.startswith('{"color"') or '{"color"'.startswith(text)
    assert text


@pytest.mark.parametrize("language", ["python", "typescript", "rust"])
def test_an_error_that_nobody_catches_keeps_its_code(tiny: Engine, language: str) -> None:
    for kind, code, why in (("uncaught", "json-cut", "after 3 tokens"), ("uncaught mistake", "invalid-grammar", "uniqueItems")):
        outcome = run(tiny, source_of(language), {"kind": kind, "seed": 1})
        assert outcome.code == code, outcome.message
        assert why in outcome.message


@pytest.mark.parametrize("language", ["python", "rust"])
def test_a_document_that_was_given_up_begins_anew_where_it_is_asked_for_again(tiny: Engine, language: str) -> None:
    text = value_of(tiny, language, "again")
    assert (len(text), set(text)) == (200, {"a", "b"})


@pytest.mark.parametrize("language", ["python", "typescript", "rust"])
def test_a_schema_that_cannot_be_enforced_names_the_keyword(tiny: Engine, language: str) -> None:
    error = value_of(tiny, language, "refused")
    assert error["error"] == "invalid-grammar"
    assert "uniqueItems" in error["message"]


@pytest.mark.parametrize("language", ["typescript", "rust"])
def test_a_type_that_takes_less_than_its_schema_says_why(tiny: Engine, language: str) -> None:
    error = value_of(tiny, language, "narrow")
    assert error["error"] == "grammar-mismatch"
    assert {"typescript": "none fits", "rust": "is not one of no numbers"}[language] in error["message"]


def test_what_is_not_a_type_with_a_schema_is_refused(tiny: Engine) -> None:
    error = value_of(tiny, "python", "no type")
    assert error["error"] == "invalid-argument"
    assert "dataclass" in error["message"]


def test_an_error_that_was_kept_comes_first(tiny: Engine) -> None:
    error = value_of(tiny, "rust", "kept")
    assert error["error"] == "invalid-token"
