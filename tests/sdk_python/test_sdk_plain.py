"""Programs do the same in a runtime whose snapshot is plain: what makes launches cheap changes nothing that they do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pie.engine
from pie.config import EngineConfig, ModelConfig
from pie.engine import Engine
from pie.programs import RUNTIMES
from support.engines import mcp_server, started
from support.launching import finish, python_source
from tools.artefact import BuildError
from tools.python_snapshot import mark_immortal
from vectors.test_vectors import GIVEN_UP, VECTORS, add_leisurely, check_vector

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "tools" / "build_python_runtime.py"
# Those that are asked by HTTP run in a server: tests/vectors has them.
NAMES = [name for name, vector in VECTORS.items() if "python" in vector.get("languages", ["python"]) and "asked" not in vector]
FAILING = """
import json, random
from inferlet import session

class Refused(Exception):
    pass

async def main(input):
    session.send(json.dumps([input, random.random()]))
    try:
        return 1 / 0
    except ZeroDivisionError as error:
        raise Refused("zero") from error
"""


@pytest.fixture(scope="module")
def runtimes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plain runtime, and those of other languages."""
    folder = tmp_path_factory.mktemp("runtimes")
    for path in RUNTIMES.glob("*.wasm"):
        shutil.copy(path, folder)
    done = subprocess.run([sys.executable, str(BUILD), "--plain", str(folder / "python.wasm")], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def plain(runtimes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine with that runtime, and the dummy driver."""
    engine = plain_engine(runtimes, tmp_path_factory.mktemp("plain"))
    engine.add_model(options=ModelConfig(driver="dummy"))
    with started(engine):
        yield engine


@pytest.fixture(scope="module")
def leisurely(runtimes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine with that runtime, whose device takes its time."""
    engine = plain_engine(runtimes, tmp_path_factory.mktemp("leisurely"))
    add_leisurely(engine)
    with started(engine):
        yield engine


def plain_engine(runtimes: Path, data: Path) -> Engine:
    """An engine without a model, with the runtimes of that folder, and with data that no other engine keeps."""
    # For this engine alone: one that others share may be made while it lives.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pie.engine, "RUNTIMES", runtimes)
        return Engine(EngineConfig(data_dir=data), mcp={"tests": mcp_server("mcp_server.py")})


@pytest.mark.parametrize("name", NAMES)
def test_vectors_are_the_same(request: pytest.FixtureRequest, name: str) -> None:
    check_vector(request.getfixturevalue("leisurely" if name in GIVEN_UP else "plain"), name, "python")


def test_failures_are_the_same(plain: Engine, dummy: Engine) -> None:
    outcomes = []
    for engine in (plain, dummy):
        source = python_source(FAILING)
        for _ in range(2):  # the second launch is not the one that did what is only done once
            outcome = finish(engine.launch(source, input={"a": 1}, seed=7))
            outcomes.append((outcome.kind, outcome.message, outcome.traceback, outcome.sent))
    assert outcomes[0][0]
    assert outcomes == [outcomes[0]] * 4


def test_its_snapshot_relies_on_nothing_inside_the_interpreter(runtimes: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(runtimes / "python.wasm", tmp_path))
    with pytest.raises(BuildError, match="0 lists of the objects that never die"):
        mark_immortal(copy)
    assert b"inferlet._runtime.hot_code" not in copy.read_bytes()
