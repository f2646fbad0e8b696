"""Engines as the native module makes them, with a driver in the test's own hands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from host.programs import ROOT, TINY, VOCAB_SIZE
from pie import _engine


@pytest.fixture(scope="session")
def cache_dir() -> Path:
    """Compiled programs, kept between runs of the tests."""
    return ROOT / "build" / "cache"


@pytest.fixture
def engine(cache_dir: Path) -> Iterator[_engine.Engine]:
    """An engine without models."""
    engine = _engine.Engine(cache_dir=cache_dir, runtimes_dir=ROOT / "python" / "pie" / "runtimes")
    yield engine
    engine.stop()


@pytest.fixture
def model(engine: _engine.Engine) -> Iterator[_engine.Model]:
    """A model of the engine that nobody drives; at the end it holds nothing."""
    model = engine.add_model("tiny", TINY, capabilities={"vocab_size": VOCAB_SIZE, "max_positions": 2048, "n_pages": 64})
    yield model
    engine.stop()
    model.check()
    stats = model.stats()
    assert (stats["n_pages_used"], stats["n_contexts"], stats["n_generators"], stats["n_requests"]) == (0, 0, 0, 0)
