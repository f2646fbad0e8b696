"""P15, its half on grammars: documents under a schema, and the steps of programs beside others under schemas."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from benchmarks.harness import ROOT, ROUNDS, SEED, Figure, Goal, Row, in_turns, save, show
from pie.config import ModelConfig
from pie.engine import Engine
from pie.events import Event
from pie.programs import load_program

PROGRAM = ROOT / "asv_benchmarks/programs/constrained.js"
PROMPT = [1, 5, 7, 9, 11, 300, 301, 302]
N_DOCUMENTS = 12
N_PROGRAMS = 32
N_TOKENS = 120
MAX_TOKENS = 1000
DOCUMENT, BATCH = "a document under a schema", f"a step of {N_PROGRAMS} programs, half of them under schemas"
CASES = [DOCUMENT, BATCH]
COLORS = ["red", "green", "blue", "black", "white", "yellow"]
ORDER = {
    "type": "object",
    "properties": {
        "order_number": {"type": "integer", "minimum": 1, "maximum": 99_999},
        "customer_name": {"type": "string", "maxLength": 24},
        "delivery_address": {
            "type": "object",
            "properties": {
                "street_and_number": {"type": "string", "maxLength": 24},
                "postal_code": {"type": "string", "pattern": "^[0-9]{5}$"},
                "country": {"enum": ["Germany", "France", "Italy", "Spain"]},
            },
            "required": ["street_and_number", "postal_code", "country"],
            "additionalProperties": False,
        },
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "description": {"type": "string", "maxLength": 16},
                    "color": {"enum": COLORS},
                    "quantity": {"type": "integer", "minimum": 1, "maximum": 20},
                },
                "required": ["description", "color", "quantity"],
                "additionalProperties": False,
            },
            "minItems": 1,
            "maxItems": 3,
        },
        "payment_method": {"enum": ["invoice", "credit card", "advance payment"]},
        "is_gift": {"type": "boolean"},
    },
    "required": ["order_number", "customer_name", "delivery_address", "items", "payment_method", "is_gift"],
    "additionalProperties": False,
}
"""What an extraction asks for: names that are known, and short values that are not."""

ROW = Row(
    name="P15-grammars",
    title="Generation under JSON schemas: the text that they force is taken without a step of its own",
    driver="cpu, pie-tiny, all cores",
    path="the first token -> generation -> driver -> the last token, in programs of one engine",
    peer="as many tokens without a schema, in the same engine; the same programs, none of them under a schema",
)


def endless(salt: int) -> dict[str, Any]:
    """A schema of its own, whose documents are longer than a program generates."""
    return {"type": "array", "items": {"type": "string", "minLength": 8 + salt, "maxLength": 400}, "minItems": 200}


def run(engine: Engine, works: list[dict[str, Any]]) -> tuple[float, list[Any]]:
    """Seconds from when the last of the programs had begun until all ended, and what they returned."""
    launched = [engine.launch(load_program(PROGRAM), input=work, seed=SEED) for work in works]
    for process in launched:
        begun = process.next_event(60.0)
        if begun != Event.Stdout("begun"):
            raise RuntimeError(f"a program said {begun}")
    start_s = time.perf_counter()
    ends = [process.next_event(120.0) for process in launched]
    took_s = time.perf_counter() - start_s
    values = []
    for end in ends:
        if not isinstance(end, Event.Return):
            raise RuntimeError(f"a program ended with {end}")
        values.append(json.loads(end.text))
    return took_s, values


def documents(engine: Engine) -> tuple[Callable[[], float], Callable[[], float], str]:
    """Milliseconds a document, under the schema and of as many tokens without."""
    given = [{"prompt": PROMPT, "seed": seed, "tokens": MAX_TOKENS} for seed in range(N_DOCUMENTS)]
    ends = [run(engine, [work | {"schema": ORDER}])[1][0] for work in given]
    if any(reason != "constraint" for _, reason in ends):
        raise RuntimeError(f"documents ended otherwise than whole: {ends}")

    def ours() -> float:
        return sum(run(engine, [work | {"schema": ORDER}])[0] for work in given) * 1e3 / N_DOCUMENTS

    def peer() -> float:
        plain = [work | {"tokens": n_tokens + 1} for work, (n_tokens, _) in zip(given, ends, strict=True)]
        return sum(run(engine, [work])[0] for work in plain) * 1e3 / N_DOCUMENTS

    return ours, peer, f"{sum(n_tokens for n_tokens, _ in ends) / N_DOCUMENTS:.0f} tokens a document"


def batches(engine: Engine, n_batches: Callable[[], int]) -> tuple[Callable[[], float], Callable[[], float], str]:
    """Milliseconds of a token of each, with half of the programs under schemas and with none."""
    plain = [{"prompt": PROMPT, "seed": seed, "tokens": N_TOKENS} for seed in range(N_PROGRAMS)]
    half = [work | ({"schema": endless(salt)} if salt % 2 else {}) for salt, work in enumerate(plain)]

    counts: dict[bool, int] = {}

    def step_ms(works: list[dict[str, Any]]) -> float:
        before = n_batches()
        took_s, _ = run(engine, works)
        counts[works is half] = n_batches() - before
        # All programs generate as many tokens, whoever shares a batch with whom.
        return took_s * 1e3 / N_TOKENS

    step_ms(half)
    step_ms(plain)
    note = f"{N_TOKENS} tokens each, in {counts[True]} batches, and in {counts[False]} without schemas"
    return lambda: step_ms(half), lambda: step_ms(plain), note


def measure() -> Iterator[Figure]:
    """Both cases."""
    with Engine() as engine:
        model = engine.add_model(options=ModelConfig(driver="cpu", name="default"))
        engine.start()
        made = {DOCUMENT: (documents(engine), 0.85), BATCH: (batches(engine, lambda: model.stats()["n_batches"]), 1.05)}
        for case, ((ours, peer, note), goal) in made.items():
            figure = Figure(case, "ms", *in_turns(ours, peer, ROUNDS), goals=[Goal("ratio", goal)], note=note)
            show(f"P15-grammars: {case}: {figure.median('ours'):.2f} ms, {figure.median('ratio'):.3f} of without, {note}")
            yield figure


class Constrained:
    """(Time under schemas) / (time without)."""

    params: ClassVar[list[str]] = CASES
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 900
    unit = "of the time without a schema"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures both cases once."""
        return save(ROW, measure())

    def track_ratio(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ratio")
