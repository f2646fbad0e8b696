"""A replica is ended once, whoever asks for it, and nothing serves behind an end."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from pie.errors import PieError
from pie.replicas.replica import Replica
from support.replicated import config

PATIENCE_S = 60.0


class Served:
    """An engine and its server, which say what is asked of them."""

    address = "127.0.0.1:4711"

    def __init__(self, n_live: int = 0) -> None:
        self.n_live = n_live
        self.calls: list[str] = []
        self.drains = threading.Event()

    def begin_drain(self) -> None:
        self.calls.append("drain")
        self.drains.set()

    def stop(self) -> None:
        self.calls.append("stop")

    def close(self) -> None:
        self.calls.append("close")


def replica(folder: Path, monkeypatch: pytest.MonkeyPatch, opening: Any) -> Replica:
    made = Replica(config(folder))
    monkeypatch.setattr(made, "_open", opening)
    return made


def started(body: Any) -> threading.Thread:
    thread = threading.Thread(target=body)
    thread.start()
    return thread


def test_whoever_ends_it_beside_another_hurries_it_and_returns_when_it_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served(n_live=1)
    made = replica(tmp_path, monkeypatch, lambda: (served, served))
    assert made.open() == 4711
    assert made.open() == 4711
    seen: list[list[str]] = []

    def ending(drain_s: float) -> None:
        made.end(drain_s)
        seen.append(list(served.calls))

    first = started(lambda: ending(1e6))
    assert served.drains.wait(PATIENCE_S)
    others = [started(lambda: ending(0.0)) for _ in range(3)]
    for thread in (first, *others):
        thread.join(PATIENCE_S)
    made.wait()
    # Nobody was told that it has ended before it had, and it ended once.
    assert seen == [["drain", "stop", "close"]] * 4


def test_what_opens_while_it_is_ended_serves_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, opens, goes_on = Served(), threading.Event(), threading.Event()

    def opening() -> tuple[Served, Served]:
        opens.set()
        assert goes_on.wait(PATIENCE_S)
        return served, served

    made, codes = replica(tmp_path, monkeypatch, opening), []

    def open_it() -> None:
        with pytest.raises(PieError) as caught:
            made.open()
        codes.append(caught.value.code)

    thread = started(open_it)
    assert opens.wait(PATIENCE_S)
    made.end(0.0)  # which does not wait for what opens
    assert served.calls == []
    goes_on.set()
    thread.join(PATIENCE_S)
    assert (codes, served.calls) == (["engine-stopped"], ["stop", "close"])


def test_what_was_ended_is_not_opened(tmp_path: Path) -> None:
    made = Replica(config(tmp_path))
    made.end(0.0)
    made.end(0.0)
    with pytest.raises(PieError, match="the replica was told to end") as caught:
        made.open()
    assert caught.value.code == "engine-stopped"
