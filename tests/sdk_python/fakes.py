"""A faked engine: futures that are ready when a test says so, and a log of every call."""

from __future__ import annotations

from componentize_py_types import Err, Ok
from wit_world.imports import monotonic_clock, poll, types


class Clock:
    """Futures and timers on a virtual time that only `poll` and `block` move on."""

    def __init__(self, monkeypatch):
        self.now_ns = 0
        self.calls = []
        self.dropped = []
        monkeypatch.setattr(poll, "poll", self.poll)
        monkeypatch.setattr(monotonic_clock, "subscribe_duration", self.subscribe_duration)

    def future(self, name, after_ms=0, value=None, error=None):
        return Future(self, name, self.now_ns + after_ms * 1_000_000, value, error)

    def subscribe_duration(self, duration_ns):
        return Pollable(self, "timer", self.now_ns + duration_ns)

    def poll(self, pollables):
        self.calls.append("poll")
        self.now_ns = max(self.now_ns, min(pollable.at_ns for pollable in pollables))
        ready = [index for index, pollable in enumerate(pollables) if pollable.at_ns <= self.now_ns]
        return ready[::-1]


class Pollable:
    def __init__(self, clock, name, at_ns):
        self.clock, self.name, self.at_ns = clock, name, at_ns

    def ready(self):
        self.clock.calls.append("ready")
        return self.at_ns <= self.clock.now_ns

    def block(self):
        self.clock.calls.append("block")
        self.clock.now_ns = max(self.clock.now_ns, self.at_ns)

    def __exit__(self, *_):
        self.clock.dropped.append(f"pollable {self.name}")


class Future:
    def __init__(self, clock, name, at_ns, value, error):
        self.clock, self.name, self.at_ns, self.value, self.error = clock, name, at_ns, value, error

    def pollable(self):
        self.clock.calls.append("pollable")
        return Pollable(self.clock, self.name, self.at_ns)

    def get(self):
        self.clock.calls.append("get")
        if self.at_ns > self.clock.now_ns:
            return None
        return Ok(self.value) if self.error is None else Err(types.Error(self.error, f"{self.error} happened", '{"n": 3}'))

    def __exit__(self, *_):
        self.clock.dropped.append(f"future {self.name}")
