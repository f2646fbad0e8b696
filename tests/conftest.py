"""The engines that most tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from pie.config import EngineConfig, ModelConfig, RuntimeConfig
from pie.engine import Engine
from support.engines import mcp_server, started


def pytest_configure() -> None:
    """Ctrl-C reaches what tests start also where they run in the background of a script, in which it is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The embedded model on the `cpu` back end, and an MCP server."""
    runtime = RuntimeConfig(allow_net=("127.0.0.1",))
    engine = Engine(EngineConfig(data_dir=tmp_path_factory.mktemp("tiny")), runtime=runtime, mcp={"prices": mcp_server("price_server.py")})
    engine.add_model()
    with started(engine):
        yield engine


@pytest.fixture(scope="session")
def dummy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The dummy driver with the embedded tokenizer, and an MCP server."""
    engine = Engine(EngineConfig(data_dir=tmp_path_factory.mktemp("dummy")), mcp={"tests": mcp_server("mcp_server.py")})
    engine.add_model(options=ModelConfig(driver="dummy"))
    with started(engine):
        yield engine
