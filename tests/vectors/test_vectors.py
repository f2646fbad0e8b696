"""Every vector gives its transcript, in every language, on the dummy driver."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from e2e.test_http_in import door
from pie.backends.dummy import DummyDriver
from pie.batch import Batch
from pie.config import EngineConfig
from pie.engine import Engine
from support.engines import started
from support.isolated import VOCAB_SIZE, Doing
from support.launching import INTERPRETERS, LANGUAGES, finish, load_interpreter

FOLDER = Path(__file__).resolve().parent
VECTORS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json")) if path.stem != "tsconfig"}
RUNS = [(name, language) for name, vector in VECTORS.items() for language in vector.get("languages", LANGUAGES)]
GIVEN_UP = ("given_up",)  # what these give up is not to be at its end before: their device takes its time


def of(*, is_asked: bool) -> pytest.MarkDecorator:
    """The vectors that are launched, or those that are asked by HTTP, in each of their languages."""
    runs = [(name, language) for name, language in RUNS if ("asked" in VECTORS[name]) == is_asked]
    return pytest.mark.parametrize(("name", "language"), runs, ids=[f"{name}-{language}" for name, language in runs])


class Leisurely(Doing):
    """A driver that takes its time, so that what is to be given up is not at its end before."""

    def run(self, batch: Batch) -> Any:
        """The rows, after a while."""
        time.sleep(0.001)
        return super().run(batch)


def add_leisurely(engine: Engine) -> None:
    """Gives `engine` the dummy driver, with a device that takes a millisecond for a batch."""
    engine.add_model(driver=Leisurely(DummyDriver("pie-tiny", vocab_size=VOCAB_SIZE, n_pages=8192), 0, bool))


@pytest.fixture(scope="module")
def leisurely(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine whose device takes its time."""
    engine = Engine(EngineConfig(data_dir=tmp_path_factory.mktemp("leisurely")))
    add_leisurely(engine)
    with started(engine):
        yield engine


@of(is_asked=False)
def test_vector(request: pytest.FixtureRequest, name: str, language: str) -> None:
    check_vector(request.getfixturevalue("leisurely" if name in GIVEN_UP else "dummy"), name, language)


def check_vector(engine: Engine, name: str, language: str) -> None:
    """Runs vector `name` on `engine`, and compares what it gives with its rows."""
    vector = VECTORS[name]
    ops = [op for op, _ in vector["rows"]]
    username = f"{name}-{language}"  # who runs nothing else finds nothing computed but by this run
    named = {"{name}-{language}": username}
    process = engine.launch(load_interpreter(language), input={"ops": ops}, seed=vector["launch_seed"], username=username)
    for message in vector.get("messages", []):
        process.send(message)
    for file in vector.get("files", []):
        process.send_file(bytes(file))
    process.close_input()
    outcome = finish(process)
    assert outcome.code is None, outcome.message
    rows = [(op, named.get(expected, expected) if isinstance(expected, str) else expected) for op, expected in vector["rows"]]
    differences = [(op, expected, given) for (op, expected), given in zip(rows, outcome.value, strict=True) if not same(expected, given)]
    assert differences == [], short(differences)
    assert outcome.messages == vector.get("beside", [])
    if "events" in vector:
        assert [sent if isinstance(sent, str) else list(sent) for sent in outcome.sent] == vector["events"]


@of(is_asked=True)
def test_vector_over_http(tmp_path: Path, name: str, language: str) -> None:
    vector = VECTORS[name]
    asked, rows = vector["asked"], vector["rows"]
    launch = {"input": {"ops": []}, "seed": vector["launch_seed"]}
    with door(tmp_path, INTERPRETERS[language], shared=False, options=launch) as opened, closing(opened.connect()) as connection:
        body = json.dumps({"ops": [op for op, _ in rows]})
        connection.request(asked["method"], asked["path"], body=body, headers={"X-A": asked["header"]})
        response = connection.getresponse()
        assert response.status == 200
        for index, (op, expected) in enumerate(rows):
            given = json.loads(response.readline())
            assert same(expected, given), short([(op, expected, given)])
            if ops := vector["meanwhile"].get(str(index)):
                assert opened.ask("/", "POST", json.dumps({"ops": ops})).status == 200
        assert response.read() == b""


def same(expected: Any, given: Any) -> bool:
    """Whether two answers are equal; numbers that are not whole may differ by the rounding of sums."""
    if isinstance(expected, float) and isinstance(given, int | float) and not isinstance(given, bool):
        return math.isclose(expected, given, rel_tol=1e-6)
    if isinstance(expected, list) and isinstance(given, list):
        return len(expected) == len(given) and all(map(same, expected, given))
    if isinstance(expected, dict) and isinstance(given, dict):
        return expected.keys() == given.keys() and all(same(expected[key], given[key]) for key in expected)
    return bool(expected == given)


def short(differences: list[Any]) -> str:
    """The first difference, for a reader."""
    op, expected, given = differences[0]
    return f"{len(differences)} differ; the first: {json.dumps(op)} must answer {json.dumps(expected)} and answered {json.dumps(given)}"


def test_vectors_are_in_step_with_the_oracle() -> None:
    done = subprocess.run([sys.executable, str(FOLDER / "write.py"), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
