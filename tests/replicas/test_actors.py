"""Replicas as actors, on a stand-in of Ray: what is said and done where they are lost."""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pie.errors import PieError
from pie.isolation.supervisor import Restarts
from pie.replicas import actors
from pie.replicas.actors import Actors
from support.replicated import config

PATIENCE_S = 60.0


class LostError(Exception):
    """What Ray raises for an actor whose process has died."""


class Call:
    """A method of an actor: what it answers is what the test says, in order; without that it waits for the end."""

    def __init__(self, name: str, ray: StandinRay) -> None:
        self._name, self._ray, self._retries = name, ray, 0

    def options(self, *, max_task_retries: int) -> Call:
        self._retries = max_task_retries
        return self

    def remote(self, *_: object) -> tuple[str, int]:
        return self._name, self._retries


class StandinRay:
    """Ray with one actor, whose `open` and `wait` end as the test says."""

    exceptions = SimpleNamespace(RayError=LostError)

    def __init__(self) -> None:
        self.opens: deque[Any] = deque()
        self.waits: deque[Any] = deque()
        self.calls: list[tuple[str, int]] = []
        self.ended = threading.Event()

    def init(self, **_: object) -> None:
        """Starts nothing."""

    def cluster_resources(self) -> dict[str, int]:
        return {}

    def shutdown(self) -> None:
        self.ended.set()

    def remote(self, **_: object) -> Any:
        names = ("begin", "open", "wait", "end")
        return lambda _: SimpleNamespace(remote=lambda _: SimpleNamespace(**{name: Call(name, self) for name in names}))

    def get(self, call: tuple[str, int]) -> Any:
        self.calls.append(call)
        answers = {"open": self.opens, "wait": self.waits}.get(call[0])
        if answers is None:
            return None
        if not answers:
            assert call[0] == "wait", "it is opened more often than the test says"
            self.ended.wait(PATIENCE_S)
            return None
        answer = answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> StandinRay:
    made = StandinRay()
    monkeypatch.setattr(actors, "load_ray", lambda: made)
    return made


def test_a_replica_that_dies_of_being_opened_is_told_and_not_opened_for_ever(ray: StandinRay, tmp_path: Path) -> None:
    ray.opens.append(LostError("The actor died\nmore"))
    replicas = Actors([config(tmp_path)], lambda *_: None, lambda *_: None)
    with pytest.raises(PieError, match=r"replica 0 was lost while it opened \(The actor died\)") as caught:
        replicas.start()
    replicas.close()
    assert caught.value.code == "driver-lost"
    # Ray starts its process again, which opens nothing by itself.
    assert ray.calls == [("begin", -1), ("open", 0)]


def test_a_replica_that_cannot_be_started_again_is_tried_again_later(
    ray: StandinRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []
    wait_s = Restarts.wait_s
    monkeypatch.setattr(Restarts, "wait_s", lambda restarts, now_s: delays.append(wait_s(restarts, now_s)) or 0.0)
    ray.opens += [(1, None), (0, ("invalid-argument", "no memory yet")), (0, ("invalid-argument", "nor now")), LostError("died"), (2, None)]
    ray.waits.append(LostError("killed"))
    said: list[object] = []
    serves = threading.Event()

    def up(index: int, port: int) -> None:
        said.append(port)
        if port == 2:
            serves.set()

    replicas = Actors([config(tmp_path)], up, lambda index, reason: said.append(reason))
    replicas.start()
    assert serves.wait(PATIENCE_S)
    replicas.close()
    print(said)
    assert said == [
        1,
        "it was lost (killed) and is started again",
        "it cannot be started again (invalid-argument), and is tried later",
        "it cannot be started again (driver-lost), and is tried later",
        2,
    ]
    assert delays == [0.0, 0.1, 0.2, 0.4]
