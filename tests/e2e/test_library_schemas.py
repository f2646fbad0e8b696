"""Schemas as libraries write them, of pydantic and of zod: the compiler takes them, and the libraries take what is
written under them.
"""

from __future__ import annotations

import enum
import json
import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, Literal

import pydantic
import pytest

from e2e import judge_grammars
from pie.engine import Engine

N_SAMPLES = 10


class Strict(pydantic.BaseModel):
    """Without it an object may have anything besides, which is long."""

    model_config = pydantic.ConfigDict(extra="forbid")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Circle(Strict):
    kind: Literal["circle"]
    radius: float = pydantic.Field(ge=0, lt=10)


class Square(Strict):
    kind: Literal["square"]
    side: int = pydantic.Field(ge=1, le=9)


class Node(Strict):
    name: str = pydantic.Field(max_length=5)
    children: list[Node] = pydantic.Field(default=[], max_length=2)


class Order(Strict):
    """What somebody wants."""

    shape: Circle | Square = pydantic.Field(discriminator="kind")
    tree: Node
    color: Color = Color.RED
    note: str | None = pydantic.Field(default=None, max_length=6, description="What is to be known.", examples=["soon"])
    when: date | None = None
    pair: tuple[bool, Literal[1, 2]]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with judge_grammars.dummy() as engine:
        yield engine


def texts_under(engine: Engine, schema: dict[str, Any]) -> list[str]:
    """Documents that a model that knows nothing writes under a schema."""
    figures = judge_grammars.Figures("a library")
    (found,) = judge_grammars.written(engine, figures, "json-schema", [json.dumps(schema)], n_samples=N_SAMPLES, most=600)
    assert (figures.faults, figures.n_refused) == ([], 0)
    assert found, "no document ended"
    return found


@pytest.mark.rows("PY-069")
def test_pydantic_reads_what_is_written_under_its_schema(engine: Engine) -> None:
    schema = Order.model_json_schema()
    # It is one of those that are asked about: definitions, unions with null, defaults and a discriminator.
    assert {"Node", "Color", "Circle"} <= schema["$defs"].keys()
    assert {"anyOf", "default", "examples"} <= schema["properties"]["note"].keys()
    assert "discriminator" in schema["properties"]["shape"]
    for text in texts_under(engine, schema):
        order = Order.model_validate_json(text)
        assert isinstance(order.shape, Circle | Square)


def zod(what: str, given: object = None) -> Any:
    """What the script of zod says."""
    script = Path(__file__).with_name("library_schemas.mjs")
    done = subprocess.run(["node", str(script), what], input=json.dumps(given), check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


@pytest.mark.rows("JS-072")
@pytest.mark.parametrize("name", ["order", "address"])
def test_zod_reads_what_is_written_under_its_schema(engine: Engine, name: str) -> None:
    texts = texts_under(engine, zod("schemas")[name])
    assert zod("check", [[name, text] for text in texts]) == [None] * len(texts)
