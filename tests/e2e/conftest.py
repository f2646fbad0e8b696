"""Engines for end-to-end tests; programs run on driver threads, as they do in a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pie.engine import Engine


@pytest.fixture(scope="session")
def tiny() -> Iterator[Engine]:
    """The embedded model on the `cpu` back end."""
    with Engine() as engine:
        model = engine.add_model()
        engine.start()
        yield engine
        model.check()
        assert model.stats()["n_pages_used"] == 0


@pytest.fixture(scope="session")
def dummy() -> Iterator[Engine]:
    """The dummy driver with the embedded tokenizer."""
    with Engine() as engine:
        model = engine.add_model(dummy=True)
        engine.start()
        yield engine
        model.check()
        assert model.stats()["n_pages_used"] == 0
