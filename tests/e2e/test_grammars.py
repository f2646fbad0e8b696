"""Grammars through programs: what a model that knows nothing writes under them, and how generations end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from e2e import judge_grammars
from oracle.grammars import REFUSED
from pie.engine import Engine
from pie.programs import Source
from support.engines import started
from support.launching import python_source, run, typescript_source

PYTHON = """
from inferlet import AnyJson, Context, Ebnf, Grammar, GrammarConstraint, InferletError, JsonSchema, Matcher, Model, Regex, Sampler

KINDS = {"json-schema": JsonSchema, "regex": Regex, "ebnf": Ebnf}

async def one(model, job):
    ctx = Context(model)
    ctx.append(job.get("prompt", [41, 42]))
    schema = KINDS[job["kind"]](job["source"]) if job["kind"] in KINDS else AnyJson()
    sampler = Sampler.multinomial(job.get("temperature", 1.5), 1)
    try:
        g = ctx.generate(sampler, max_tokens=job.get("max_tokens", 400), seed=job["seed"], constrain=schema)
        if job.get("twice"):
            g.constrain(schema)
        tokens = await g.collect_tokens()
        return {"tokens": tokens, "text": await text_of(model, tokens, g), "finish": str(g.finish_reason)}
    except InferletError as error:
        return {"error": error.code, "message": error.message}

async def text_of(model, tokens, g):
    shown = tokens[:-1] if g.finish_reason == "stop" else tokens
    return model.tokenizer().decode(shown)

async def main(jobs):
    model = Model.load("default")
    return [await one(model, job) for job in jobs]
"""

TYPESCRIPT = """
import { anyJson, Context, ebnf, InferletError, jsonSchema, Model, regex, Sampler } from 'inferlet';

const KINDS: any = { 'json-schema': jsonSchema, regex, ebnf };

async function one(model: any, job: any) {
  const ctx = new Context(model);
  ctx.append(job.prompt ?? [41, 42]);
  const schema = job.kind in KINDS ? KINDS[job.kind](job.source) : anyJson();
  const sampler = Sampler.multinomial(job.temperature ?? 1.5, 1);
  try {
    const g = ctx.generate(sampler, { maxTokens: job.max_tokens ?? 400, seed: job.seed, constrain: schema });
    if (job.twice) g.constrain(schema);
    const tokens = Array.from(await g.collectTokens());
    const shown = g.finishReason === 'stop' ? tokens.slice(0, -1) : tokens;
    return { tokens, text: model.tokenizer().decode(shown), finish: g.finishReason };
  } catch (error: any) {
    if (!(error instanceof InferletError)) throw error;
    return { error: error.code, message: error.message };
  }
}

export async function main(jobs: any) {
  const model = Model.load('default');
  const all = [];
  for (const job of jobs) all.push(await one(model, job));
  return all;
}
"""

PROGRAMS: dict[str, Source] = {"python": python_source(PYTHON), "typescript": typescript_source(TYPESCRIPT)}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "kind": {"const": "person"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "kind", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """The dummy driver: a model that knows nothing."""
    engine = Engine()
    engine.add_model(dummy=True)
    with started(engine):
        yield engine


def written(engine: Engine, jobs: list[dict[str, Any]], language: str = "python") -> list[dict[str, Any]]:
    """What programs wrote."""
    outcome = run(engine, PROGRAMS[language], jobs)
    assert outcome.code is None, outcome.message
    answers: list[dict[str, Any]] = outcome.value
    return answers


def job(kind: str, source: Any = "", seed: int = 0, **rest: Any) -> dict[str, Any]:
    """A generation under a grammar."""
    return {"kind": kind, "source": source if isinstance(source, str) else json.dumps(source), "seed": seed, **rest}


@pytest.mark.rows("PY-048 PY-060 PY-109..114")
def test_documents_fit_their_schemas(engine: Engine) -> None:
    """Whatever is drawn, every document that ends fits the schema, by a package that knows nothing of grammars."""
    figures = judge_grammars.documents(engine, 60, 2)
    assert figures.faults == []
    assert figures.n_written > 70


def test_every_format_is_judged_and_kept(engine: Engine) -> None:
    """No format is let through for want of the package that knows it."""
    assert judge_grammars.unchecked_formats() == []
    figures = judge_grammars.formats(engine, 12)
    assert figures.faults == []
    assert figures.n_refused == 0


def test_all_values_of_a_small_schema_are_written(engine: Engine) -> None:
    figures = judge_grammars.values(engine, 8, 60)
    assert figures.faults == []


def test_what_cannot_be_enforced_is_refused_by_its_name(engine: Engine) -> None:
    figures, messages = judge_grammars.refusals(engine)
    assert figures.faults == []
    assert messages.keys() == REFUSED.keys()


def test_regular_expressions_mean_what_they_mean_in_python(engine: Engine) -> None:
    figures = judge_grammars.regexes(engine, 50, 2)
    assert figures.faults == []
    assert figures.n_given == 50 * 20


def test_grammars_mean_what_another_parser_reads(engine: Engine) -> None:
    figures = judge_grammars.ebnf(engine, 10, 2)
    assert figures.faults == []


@pytest.mark.parametrize("language", PROGRAMS)
def test_languages_write_the_same(engine: Engine, language: str) -> None:
    jobs = [job("json-schema", PERSON, 5), job("regex", "[a-c]{2,5}-[0-9]+", 6), job("ebnf", 'root ::= "a" root "b" | "ab"', 7)]
    jobs.append(job("any-json", "", 8, max_tokens=60))
    answers = written(engine, jobs, language)
    assert answers == written(engine, jobs)
    person = json.loads(answers[0]["text"])
    Draft202012Validator(PERSON).validate(person)
    assert answers[0]["finish"] == "constraint"
    assert re.fullmatch("[a-c]{2,5}-[0-9]+", answers[1]["text"])
    assert re.fullmatch("a+b+", answers[2]["text"])
    assert len(answers[2]["text"]) % 2 == 0


def test_forced_text_is_the_same_with_and_without_a_jump(engine: Engine) -> None:
    """Two equal grammars are walked one token a step: nothing is jumped over, and the tokens are the same."""
    jobs = [job("json-schema", PERSON, seed) for seed in range(5)]
    stepped = [one | {"twice": True} for one in jobs]
    assert written(engine, jobs) == written(engine, stepped)


@pytest.mark.parametrize("language", PROGRAMS)
@pytest.mark.parametrize(
    ("kind", "source", "wanted"),
    [
        ("json-schema", {"properties": {"a": {"uniqueItems": True}}}, "`uniqueItems` at #/properties/a/uniqueItems"),
        ("json-schema", "{", "not JSON"),
        ("regex", "(a)\\1", "a back reference"),
        ("ebnf", "start: start", "no text follows"),
        ("ebnf", "start: x", '"x" is not a rule'),
    ],
)
def test_what_cannot_be_enforced_is_an_error(engine: Engine, language: str, kind: str, source: Any, wanted: str) -> None:
    answer = written(engine, [job(kind, source)], language)[0]
    assert answer["error"] == "invalid-grammar"
    assert wanted in answer["message"]


MATCHER = """
import inferlet
from inferlet import Grammar, GrammarConstraint, InferletError, Matcher, Model, brle

def main(input):
    model = Model.load("default")
    tokenizer = model.tokenizer()
    m = Matcher(Grammar.from_regex("ab?"), tokenizer)
    first = brle.allowed(m.next_token_logit_mask(), tokenizer.vocab_size())
    m.accept_tokens(tokenizer.encode("a"))
    seen = [tokenizer.decode([t]) for t in first], m.is_terminated
    copy = m.fork()
    m.accept_tokens(tokenizer.encode("b"))
    try:
        m.accept_tokens(tokenizer.encode("b"))
    except InferletError as error:
        code = error.code
    ended = m.is_terminated
    m.reset()
    return [*seen, ended, m.is_terminated, copy.is_terminated, code]
"""


STOPPED = """
from inferlet import Context, Model, Regex, Sampler

async def main(stop):
    model = Model.load("default")
    ends = []
    for seed in range(12):
        ctx = Context(model).append([41, 42])
        g = ctx.generate(Sampler.multinomial(1.5, 1), max_tokens=200, seed=seed, constrain=Regex("[a-c]{1,400}")).stop([stop])
        tokens = await g.collect_tokens()
        ends.append([str(g.finish_reason), tokens[-1] == stop, model.tokenizer().decode(tokens[:-1])])
    return ends
"""


@pytest.mark.rows("PY-048 PY-058 PY-112")
def test_a_text_under_a_grammar_ends_by_the_stop_tokens_of_its_generator(engine: Engine) -> None:
    """One that the program named stands beside that of the model."""
    outcome = run(engine, python_source(STOPPED), 1234)
    assert outcome.code is None, outcome.message
    ends = outcome.value
    assert all(re.fullmatch("[a-c]*", text) for _, _, text in ends)
    by = [is_named for finish, is_named, _ in ends if finish == "stop"]
    assert len(by) > 6
    assert set(by) == {True, False}


@pytest.mark.rows("PY-118 PY-121 PY-128..132 OLD-024 OLD-075")
def test_a_matcher_walks_a_text(engine: Engine) -> None:
    outcome = run(engine, python_source(MATCHER))
    assert outcome.code is None, outcome.message
    first, begun, ended, again, copied, code = outcome.value
    assert set(first) == {"a", "ab"} & set(first)
    assert "a" in first
    assert (begun, ended, again, copied, code) == (False, True, False, False, "grammar-mismatch")


TYPED = """
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Optional, TypedDict

from inferlet import Context, JsonCutError, Model, Sampler

class Color(Enum):
    RED = "red"
    BLUE = "blue"

class Point(TypedDict):
    x: int
    label: Literal["a", "b"]

@dataclass
class Node:
    color: Color
    point: Point
    next: Optional["Node"] = None

async def main(input):
    model = Model.load("default")
    ctx = Context(model)
    ctx.append([41, 42])
    g = ctx.generate(Sampler.multinomial(1.0, 1), max_tokens=200, seed=3)
    node = await g.collect_json(schema=Node)
    assert isinstance(node, Node) and isinstance(node.color, Color) and node.point["label"] in ("a", "b"), node
    ctx.append([43])
    text = await ctx.generate(Sampler.multinomial(1.0, 1), seed=4).collect_json(schema='{"const": {"k": [1]}}', parse=str.upper)
    ctx.append([43])
    try:
        await ctx.generate(Sampler.multinomial(1.0, 1), seed=4, max_tokens=2).collect_json(schema={"type": "string", "minLength": 50})
    except JsonCutError as error:
        return [text, error.code, error.text]
"""


@pytest.mark.rows("PY-069")
def test_a_document_becomes_a_value_of_its_type(engine: Engine) -> None:
    outcome = run(engine, python_source(TYPED))
    assert outcome.code is None, outcome.message
    text, code, cut = outcome.value
    assert (text, code) == ('{"K":[1]}', "json-cut")
    assert cut.startswith('"')


FACES = """
import {
  anyJson, Context, ebnf, Grammar, grammar, GrammarConstraint, InferletError, jsonSchema, Matcher, Model, regex, Sampler,
} from 'inferlet';

const SCHEMA = { type: 'object', properties: { a: { type: 'integer', minimum: 0, maximum: 9 } }, required: ['a'], additionalProperties: false };
const TEXT = JSON.stringify(SCHEMA);

export async function main() {
  const model = Model.load('default');
  const tokenizer = model.tokenizer();
  const generate = (constrain?: any, maxTokens = 60) => {
    const ctx = new Context(model);
    ctx.append([41, 42]);
    return ctx.generate(Sampler.multinomial(1.5, 1), { seed: 5, maxTokens, constrain });
  };
  const written = async (constrain: any) => tokenizer.decode(await generate(constrain).collectTokens());
  const word = Grammar.fromRegex('[a-c]{3}');
  const own = { buildConstraint: (given: Model) => GrammarConstraint.fromRegex('[a-c]{3}', given) };
  const texts = [];
  for (const constrain of [
    jsonSchema(TEXT), GrammarConstraint.fromJsonSchema(TEXT, model), grammar(Grammar.fromJsonSchema(TEXT)),
    regex('[a-c]{3}'), GrammarConstraint.fromRegex('[a-c]{3}', model), GrammarConstraint.fromGrammar(word, model), own,
    new GrammarConstraint(new Matcher(word, tokenizer)),
    ebnf('root ::= [0-9]'), GrammarConstraint.fromEbnf('start: /[0-9]/', model), grammar(Grammar.fromEbnf('root ::= [0-9]')),
  ]) texts.push(await written(constrain));
  const anything = [await written(anyJson()), await written(GrammarConstraint.json(model)), await written(grammar(Grammar.json()))];

  const m = new Matcher(Grammar.fromRegex('ab?'), tokenizer);
  const first = m.nextTokenLogitMask().length > 0;
  m.acceptTokens(tokenizer.encode('a'));
  const begun = m.isTerminated();
  const copy = m.fork();
  m.acceptTokens(tokenizer.encode('b'));
  let code;
  try { m.acceptTokens(tokenizer.encode('b')); } catch (error: any) { code = error.code; }
  const ended = m.isTerminated();
  m.reset();

  const values = [
    await generate().collectJson({ schema: TEXT }),
    await generate().collectJson({ schema: SCHEMA, parse: (value: any) => value.a >= 0 }),
    await generate().collectJson({ schema: { toJSONSchema: () => ({ const: [1] }) } }),
    await generate().collectJson({ schema: { '~standard': { validate: (value: any) => ({ value: [value] }), jsonSchema: { input: () => ({ const: 2 }) } } } }),
  ];
  let cut;
  try { await generate(undefined, 2).collectJson({ schema: { type: 'string', minLength: 50 } }); }
  catch (error: any) { cut = [error instanceof InferletError, error.code, error.text[0]]; }
  return { texts, anything: new Set(anything).size, matcher: [first, begun, code, ended, m.isTerminated(), copy.isTerminated()], values, cut };
}
"""


@pytest.mark.rows("JS-072..074 JS-114..121 JS-126..140 JS-178")
def test_javascript_has_the_same_faces(engine: Engine) -> None:
    outcome = run(engine, typescript_source(FACES))
    assert outcome.code is None, outcome.message
    told = outcome.value
    documents, words, digits = told["texts"][:3], told["texts"][3:8], told["texts"][8:]
    assert all(re.fullmatch(r'\{"a":[0-9]\}', text) for text in documents)
    assert all(re.fullmatch("[a-c]{3}", text) for text in words)
    assert all(re.fullmatch("[0-9]", text) for text in digits)
    # By one seed the same grammar gives the same text, however it was made.
    assert len(set(documents)) == len(set(words)) == told["anything"] == 1
    assert told["matcher"] == [True, False, "grammar-mismatch", True, False, False]
    assert told["values"][1:] == [True, [1], [2]]
    assert set(told["values"][0]) == {"a"}
    assert told["cut"] == [True, "json-cut", '"']


PYTHON_FACES = """
from inferlet import AnyJson, Context, Ebnf, Grammar, GrammarConstraint, JsonSchema, Matcher, Model, Regex, Sampler

SCHEMA = '{"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["a"], "additionalProperties": false}'

class Own:
    def build_constraint(self, model):
        return GrammarConstraint.from_regex("[a-c]{3}", model)

class Wrapped:
    def __init__(self, matcher):
        self.matcher = matcher

    def step(self, accepted):
        self.matcher.accept_tokens(accepted)
        return self.matcher.next_token_logit_mask()

async def main(input):
    model = Model.load("default")
    tokenizer = model.tokenizer()
    async def written(constrain, **options):
        ctx = Context(model)
        ctx.append([41, 42])
        g = ctx.generate(Sampler.multinomial(1.5, 1), seed=5, constrain=constrain, **({"max_tokens": 60} | options))
        return tokenizer.decode(await g.collect_tokens())
    word, object_ = Grammar.from_regex("[a-c]{3}"), Grammar.from_json_schema(SCHEMA)
    texts = [await written(one) for one in [
        JsonSchema(SCHEMA), JsonSchema(schema=SCHEMA), GrammarConstraint.from_json_schema(SCHEMA, model), GrammarConstraint.from_grammar(object_, model),
        Regex("[a-c]{3}"), Regex(pattern="[a-c]{3}"), GrammarConstraint.from_regex("[a-c]{3}", model), Own(), GrammarConstraint(Matcher(word, tokenizer)),
        Ebnf("root ::= [0-9]"), Ebnf(source="start: /[0-9]/"), GrammarConstraint.from_ebnf("root ::= [0-9]", model),
        GrammarConstraint.from_grammar(Grammar.from_ebnf("root ::= [0-9]"), model),
    ]]
    anything = {await written(AnyJson()), await written(GrammarConstraint.json(model)), await written(GrammarConstraint.from_grammar(Grammar.json(), model))}
    # A loop by hand, its mask given as an option.
    m, ctx = Matcher(word, tokenizer), Context(model)
    ctx.append([41, 42])
    by_hand = []
    while not m.is_terminated:
        tokens = await ctx.generate(Sampler.argmax(), max_tokens=1, logit_mask=m.next_token_logit_mask()).collect_tokens()
        m.accept_tokens(tokens)
        by_hand += tokens
    wrapped = await written(Wrapped(Matcher(word, tokenizer)), max_tokens=1)
    return [texts, len(anything), tokenizer.decode(by_hand), wrapped]
"""


@pytest.mark.rows("PY-115 PY-119..120 PY-122..127 PY-170 OLD-074 OLD-076")
def test_python_has_every_way_to_make_a_grammar(engine: Engine) -> None:
    outcome = run(engine, python_source(PYTHON_FACES))
    assert outcome.code is None, outcome.message
    texts, n_anything, by_hand, wrapped = outcome.value
    documents, words, digits = texts[:4], texts[4:9], texts[9:]
    assert all(re.fullmatch(r'\{"a":[0-9]\}', text) for text in documents)
    assert all(re.fullmatch("[a-c]{3}", text) for text in [*words, by_hand])
    assert all(re.fullmatch("[0-9]", text) for text in digits)
    assert len(set(documents)) == len(set(words)) == n_anything == 1
    assert re.fullmatch("[a-c]{1,3}", wrapped)
