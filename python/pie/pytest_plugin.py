"""The plugin of pytest: fixtures that run programs. It imports the engine when a test wants one.

`pie_run(program, input)` runs a program in the engine `pie_engine`, which the tests of a session share. A project whose
tests want the model to say something certain defines the fixture `pie_replies`; `--pie-model NAME` takes a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pie.testing import Engine, Runner

_runners = count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--pie-model`."""
    parser.getgroup("pie").addoption(
        "--pie-model",
        metavar="NAME|DIR",
        help="The model of the fixtures pie_engine and pie_run, as pie-tiny; the dummy driver if not given.",
    )


@pytest.fixture(scope="session")
def pie_replies() -> Mapping[str, str]:
    """What the dummy driver says where the text that it sees holds a key. A project overrides it in its conftest.py."""
    return {}


@pytest.fixture(scope="session")
def pie_engine(pytestconfig: pytest.Config, pie_replies: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The engine of the session: the dummy driver, or the model of `--pie-model`, which gives no replies."""
    from pie.testing import engine  # noqa: PLC0415  # most runs of pytest need no engine

    model: str | None = pytestconfig.getoption("--pie-model")
    with engine(model, replies=pie_replies if model is None else None, data_dir=tmp_path_factory.mktemp("pie")) as opened:
        yield opened


@pytest.fixture
def pie_run(pie_engine: Engine) -> Runner:
    """Runs a program as a user of this test alone: `pie_run(program, input).value` is what it returned."""
    from pie.testing import Runner  # noqa: PLC0415  # as above

    return Runner(pie_engine, username=f"test-{next(_runners)}")
