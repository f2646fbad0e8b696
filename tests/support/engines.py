"""Engines whose programs run on driver threads, as they do in a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pie.engine import Engine


@contextmanager
def started(engine: Engine) -> Iterator[Engine]:
    """Drives the engine while the body runs; at the end its models are sound and hold no pages."""
    with engine:
        engine.start()
        yield engine
        for model in engine.models:
            model.check()
            assert model.stats()["n_pages_used"] == 0
