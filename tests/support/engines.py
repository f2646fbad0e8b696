"""Engines whose programs run on driver threads, as they do in a server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pie.config import McpServerConfig
from pie.engine import Engine
from support.launching import ROOT


def mcp_server(name: str) -> McpServerConfig:
    """An MCP server of the tests, by its file."""
    return McpServerConfig(command=(sys.executable, str(ROOT / "tests/support" / name)))


@contextmanager
def started(engine: Engine) -> Iterator[Engine]:
    """Drives the engine while the body runs; at the end its models are sound and hold no pages."""
    with engine:
        engine.start()
        yield engine
        for model in engine.models:
            model.check()
            assert model.stats()["n_pages_used"] == 0
