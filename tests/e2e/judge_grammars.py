"""Compares what the engine makes of schemas, regular expressions and grammars with what others make of them.

    python tests/e2e/judge_grammars.py --schemas 300 --samples 20

A model that knows nothing writes under each: documents are judged by `jsonschema`, texts by Python's `re` and by
`lark`, and texts that those know are given to matchers. Prints a table; the exit code is 1 where anybody disagrees.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import string
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import lark
from jsonschema import Draft202012Validator

from oracle import grammars, schemas
from pie.engine import Engine
from support.engines import started
from support.launching import python_source, run

PROGRAM = python_source("""
from inferlet import Context, Ebnf, Grammar, InferletError, JsonSchema, Matcher, Model, Regex, Sampler, brle

SCHEMAS = {"json-schema": JsonSchema, "regex": Regex, "ebnf": Ebnf}
GRAMMARS = {"json-schema": Grammar.from_json_schema, "regex": Grammar.from_regex, "ebnf": Grammar.from_ebnf}


async def write(model, job):
    tokenizer, texts, n_tokens = model.tokenizer(), [], 0
    for seed in job["seeds"]:
        ctx = Context(model)
        # Another prompt has other rows: what one never draws, others do.
        ctx.append([41, 42 + seed])
        sampler = Sampler.multinomial(1.5, 1)
        g = ctx.generate(sampler, max_tokens=job["max_tokens"], seed=seed, constrain=SCHEMAS[job["kind"]](job["source"]))
        tokens = await g.collect_tokens()
        n_tokens += len(tokens)
        shown = tokens[:-1] if g.finish_reason == "stop" else tokens
        texts.append(None if g.finish_reason == "length" else tokenizer.decode(shown))
        ctx.release()
    return {"texts": texts, "n_tokens": n_tokens}


def judge(model, job):
    tokenizer = model.tokenizer()
    stop = set(tokenizer.special_tokens()[0])
    matcher = Matcher(GRAMMARS[job["kind"]](job["source"]), tokenizer)

    def accepts(text):
        matcher.reset()
        try:
            matcher.accept_tokens(tokenizer.encode(text))
            return matcher.is_terminated or any(token in stop for token in brle.allowed(matcher.next_token_logit_mask(), tokenizer.vocab_size()))
        except InferletError as error:
            if error.code != "grammar-mismatch":
                raise
            return False

    return [accepts(text) for text in job["given"]]


async def main(jobs):
    model = Model.load("default")
    answers = []
    for job in jobs:
        try:
            answers.append(judge(model, job) if "given" in job else await write(model, job))
        except InferletError as error:
            answers.append({"error": error.code, "message": error.message})
    return answers
""")

N_JOBS = 25
"""How many jobs one process has."""


@dataclass
class Figures:
    """What was seen of one kind of grammar."""

    name: str
    n_sources: int = 0
    n_written: int = 0
    n_unfinished: int = 0
    n_given: int = 0
    n_refused: int = 0
    n_tokens: int = 0
    n_rows: int = 0
    """Tokens that the model computed."""
    n_in_vain: int = 0
    """Those of them that ran ahead of the program, which then had no use for them: none is computed twice."""
    n_prompts: int = 0
    """Tokens of the prompts."""
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        parts = [f"{self.n_sources} sources", f"{self.n_written} texts written, {self.n_unfinished} unfinished", f"{self.n_given} given"]
        parts += [
            f"{self.n_refused} refused",
            f"{self.n_rows} rows, {self.n_in_vain} ahead in vain, for {self.n_tokens} tokens and {self.n_prompts} of prompts",
        ]
        return f"{self.name}: {'; '.join(parts)}; {len(self.faults)} faults"


@contextmanager
def dummy() -> Iterator[Engine]:
    """An engine of a model that knows nothing."""
    engine = Engine()
    engine.add_model(dummy=True)
    with started(engine):
        yield engine


def n_computed(engine: Engine) -> tuple[int, int]:
    """How many tokens its model computed, and how many of these ahead in vain."""
    stats = engine.models[0].stats()
    return stats["n_tokens"], stats["n_ahead_dropped"]


def answers(engine: Engine, jobs: list[dict[str, Any]]) -> list[Any]:
    """What programs answer to jobs."""
    found: list[Any] = []
    for start in range(0, len(jobs), N_JOBS):
        outcome = run(engine, PROGRAM, jobs[start : start + N_JOBS])
        assert outcome.code is None, outcome.message
        found += outcome.value
    return found


def written(engine: Engine, figures: Figures, kind: str, sources: list[str], *, n_samples: int, most: int) -> list[list[str] | None]:
    """The texts that are written under each source; None where it is refused."""
    n_rows, n_in_vain = n_computed(engine)
    seeds = list(range(n_samples))
    jobs = [{"kind": kind, "source": source, "seeds": seeds, "max_tokens": most} for source in sources]
    found: list[list[str] | None] = []
    for source, answer in zip(sources, answers(engine, jobs), strict=True):
        figures.n_sources += 1
        if "error" in answer:
            figures.n_refused += 1
            if "no finite document" not in answer["message"]:
                figures.faults.append(f"{source} is refused: {answer['message']}")
            found.append(None)
            continue
        ended = [text for text in answer["texts"] if text is not None]
        figures.n_written += len(ended)
        figures.n_unfinished += len(seeds) - len(ended)
        figures.n_tokens += answer["n_tokens"]
        figures.n_prompts += 2 * len(seeds)
        found.append(ended)
    after = n_computed(engine)
    figures.n_rows += after[0] - n_rows
    figures.n_in_vain += after[1] - n_in_vain
    if figures.n_rows - figures.n_in_vain > figures.n_tokens + figures.n_prompts:
        figures.faults.append(
            f"{figures.n_rows} tokens were computed, {figures.n_in_vain} of them in vain, for {figures.n_tokens} and {figures.n_prompts} of prompts"
        )
    return found


def judged(engine: Engine, figures: Figures, kind: str, source: str, *, is_one: Callable[[str], bool], texts: list[str]) -> None:
    """Has matchers and another judge the same texts."""
    (answer,) = answers(engine, [{"kind": kind, "source": source, "given": texts}])
    figures.n_given += len(texts)
    for text, accepted in zip(texts, answer, strict=True):
        if accepted != is_one(text):
            figures.faults.append(f"{source!r}: {text!r} is {'accepted' if accepted else 'refused'}")


def unchecked_formats() -> list[str]:
    """The formats of random schemas that `jsonschema` would let anything be, as a package of its own is missing."""
    return [name for name in schemas.FORMATS if name not in Draft202012Validator.FORMAT_CHECKER.checkers]


def documents(engine: Engine, n_schemas: int, n_samples: int) -> Figures:
    """Documents under random schemas fit them."""
    figures = Figures("schemas")
    assert not unchecked_formats(), f"jsonschema checks no {', '.join(unchecked_formats())}: install requirements/test.txt"
    wanted = [schemas.schema(Random(seed)) for seed in range(n_schemas)]
    sources = [json.dumps(schema) for schema in wanted]
    texts = written(engine, figures, "json-schema", sources, n_samples=n_samples, most=400)
    for schema, found in zip(wanted, texts, strict=True):
        validator = Draft202012Validator(schemas.in_the_standard(schema), format_checker=Draft202012Validator.FORMAT_CHECKER)
        for text in found or []:
            fault = next(validator.iter_errors(json.loads(text)), None)
            if fault is not None:
                figures.faults.append(f"{json.dumps(schema)}: {text}: {fault.message}")
    return figures


def formats(engine: Engine, n_samples: int) -> Figures:
    """Texts of every format are ones."""
    figures = Figures("formats")
    sources = [json.dumps({"type": "string", "format": name}) for name in schemas.FORMATS]
    texts = written(engine, figures, "json-schema", sources, n_samples=n_samples, most=400)
    for name, found in zip(schemas.FORMATS, texts, strict=True):
        for text in found or []:
            if not Draft202012Validator.FORMAT_CHECKER.conforms(json.loads(text), name):
                figures.faults.append(f"{text} is not a {name}")
    return figures


def values(engine: Engine, n_schemas: int, n_samples: int = 120) -> Figures:
    """All values of small schemas are written, and no others."""
    figures = Figures("all values")
    chosen = grammars.FINITE[:n_schemas]
    sources = [json.dumps(schema) for schema, _ in chosen]
    texts = written(engine, figures, "json-schema", sources, n_samples=n_samples, most=100)
    for (schema, every), found in zip(chosen, texts, strict=True):
        wanted = {json.dumps(value, separators=(",", ":")) for value in every}
        if wanted != set(found or []):
            figures.faults.append(f"{json.dumps(schema)}: {sorted(wanted ^ set(found or []))} of {sorted(wanted)}")
    return figures


def refusals(engine: Engine) -> tuple[Figures, dict[str, str]]:
    """What cannot be enforced is refused by its name and place."""
    figures = Figures("keywords", n_sources=len(grammars.REFUSED))
    jobs = [
        {"kind": "json-schema", "source": json.dumps({"properties": {"a": schema}}), "given": []} for schema in grammars.REFUSED.values()
    ]
    messages = {}
    for keyword, answer in zip(grammars.REFUSED, answers(engine, jobs), strict=True):
        messages[keyword] = answer["message"] if isinstance(answer, dict) else ""
        if keyword not in messages[keyword] or "#/properties/a" not in messages[keyword]:
            figures.faults.append(f"{keyword}: {messages[keyword]!r}")
    figures.n_refused = len(messages)
    return figures, messages


def regexes(engine: Engine, n_regexes: int, n_samples: int) -> Figures:
    """Texts under regular expressions are matched by Python's, and those that it matches are accepted."""
    figures = Figures("regexes")
    sources = list(grammars.REGEXES[:n_regexes])
    texts = written(engine, figures, "regex", sources, n_samples=n_samples, most=60)
    for number, (source, found) in enumerate(zip(sources, texts, strict=True)):
        pattern = re.compile(source, re.ASCII)
        for text in found or []:
            if pattern.fullmatch(text) is None:
                figures.faults.append(f"{source!r}: {text!r} was written")
        given = mutated(Random(number), found or [""], 20)

        def matches(text: str, pattern: re.Pattern[str] = pattern) -> bool:
            return pattern.fullmatch(text) is not None

        judged(engine, figures, "regex", source, is_one=matches, texts=given)
    return figures


def ebnf(engine: Engine, n_grammars: int, n_samples: int) -> Figures:
    """Texts under grammars of both dialects are parsed by `lark`, and those that it parses are accepted."""
    figures = Figures("grammars")
    for number, source in enumerate(list(grammars.GRAMMARS.values())[:n_grammars]):
        in_lark = grammars.as_lark(source)
        parser = lark.Lark(in_lark, parser="earley", lexer="dynamic_complete")

        def parses(text: str, parser: lark.Lark = parser) -> bool:
            try:
                parser.parse(text)
            except lark.exceptions.LarkError:
                return False
            return True

        for dialect in (source, in_lark):
            (found,) = written(engine, figures, "ebnf", [dialect], n_samples=n_samples, most=60)
            short = [text for text in found or [] if len(text) < 60]
            for text in short:
                if not parses(text):
                    figures.faults.append(f"{dialect!r}: {text!r} was written")
            judged(engine, figures, "ebnf", dialect, is_one=parses, texts=mutated(Random(number), short or [""], 16))
    return figures


def mutated(random: Random, texts: list[str], n: int) -> list[str]:
    """Texts like those given, with characters changed, left out, doubled and added; some as they are."""
    alphabet = "".join(sorted({character for text in texts for character in text})) or string.ascii_lowercase
    found = list(dict.fromkeys(texts))[: n // 3]
    while len(found) < n:
        text = random.choice(texts)[:40]
        at = random.randint(0, len(text))
        more = random.choice(alphabet + "a0-")
        found.append(
            random.choice([text[:at] + more + text[at:], text[:at] + text[at + 1 :], text[:at] + more + text[at + 1 :], text[:at]])
        )
    return found


def main() -> int:
    """Judges all; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--schemas", type=int, default=300, help="random schemas")
    parser.add_argument("--samples", type=int, default=20, help="documents of each of them")
    asked = parser.parse_args()
    n_faults = 0
    with dummy() as engine:
        kept: dict[str, str] = {}

        def refused() -> Figures:
            figures, messages = refusals(engine)
            kept.update(messages)
            return figures

        rounds: list[Callable[[], Figures]] = [
            lambda: documents(engine, asked.schemas, asked.samples),
            lambda: formats(engine, 10 * asked.samples),
            lambda: values(engine, len(grammars.FINITE)),
            refused,
            lambda: regexes(engine, len(grammars.REGEXES), asked.samples),
            lambda: ebnf(engine, len(grammars.GRAMMARS), asked.samples),
        ]
        for judge in rounds:
            began_s = time.monotonic()
            figures = judge()
            print(f"{figures}; {time.monotonic() - began_s:.0f} s", flush=True)
            for fault in figures.faults:
                print(f"  {fault}")
            n_faults += len(figures.faults)
    for keyword, message in kept.items():
        print(f"{keyword}: {message}")
    print(f"load {os.getloadavg()[0]:.1f}")
    return int(n_faults > 0)


if __name__ == "__main__":
    sys.exit(main())
