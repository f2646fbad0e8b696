"""The ranges of the tree are those that the engine checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pie import _engine
from pie.config import EMBEDDED_FOLDER
from pie.config.settings import Setting, settings
from pie.errors import PieError

ENGINE = ("worker_threads", "worker_niceness", "background_niceness", "max_processes", "stack_bytes")
NOT_NUMBERS = (
    "host",
    "port",
    "auth",
    "allow_anonymous",
    "trusted_proxies",
    "user_header",
    "operators",
    "host_names",
    "audit_log",
    "allowed_origins",
    "log_level",
)
MODEL = (
    "page_size",
    "n_pages",
    "max_batch_tokens",
    "prefill_chunk",
    "max_batch_seqs",
    "max_batch_rows",
    "max_contexts",
    "max_process_contexts",
    "max_user_contexts",
    "max_snapshots",
    "max_user_snapshots",
    "max_waiting",
    "max_process_waiting",
    "max_user_waiting",
)


def make_engine(**values: Any) -> object:
    return _engine.Engine(**values)


def add_model(**values: Any) -> object:
    return _engine.Engine().add_model("m", EMBEDDED_FOLDER, vocab_size=4096, max_context=64, **values)


def serve(**values: Any) -> object:
    return _engine.Engine().serve("127.0.0.1", 0, data_dir="/nonexistent", options=values)


def disagreements(setting: Setting, use: Callable[..., object]) -> list[str]:
    """The values just outside the range of the tree that the engine takes, or refuses for another range."""
    low, high = setting.meta.ge or 0, int(setting.meta.le or 0)
    found = []
    # 0 has a meaning of the tree's own where it is allowed, and the engine never sees it.
    for value in [high + 1, *([low - 1 if isinstance(low, int) else low / 2] if low else [])]:
        try:
            use(**{setting.name: value})
        except PieError as error:
            if error.code == "invalid-config" and setting.name in error.message and f" to {high}" in error.message:
                continue
            found.append(error.message)
        else:
            found.append(f"{setting.name} = {value} is taken")
    return found


@pytest.mark.parametrize("name", ENGINE)
def test_of_the_engine(name: str) -> None:
    assert disagreements(settings()["engine"][name], make_engine) == []


@pytest.mark.parametrize("name", MODEL)
def test_of_a_model(name: str) -> None:
    assert disagreements(settings()["model"][name], add_model) == []


@pytest.mark.parametrize("name", [name for name in settings()["server"] if name not in NOT_NUMBERS])
def test_of_the_server(name: str) -> None:
    assert disagreements(settings()["server"][name], serve) == []
