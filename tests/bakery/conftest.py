"""Folders to build in, and an engine that runs what was built."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pie.engine import Engine


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with Engine() as engine:
        engine.add_model(dummy=True)
        engine.start()
        yield engine
