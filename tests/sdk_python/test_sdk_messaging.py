"""Messages between programs: what crosses to the engine, and how subscriptions are read and ended."""

import asyncio

import pytest
from componentize_py_types import Err
from wit_world.imports import messaging as host
from wit_world.imports import types

from inferlet import InferletError, messaging
from inferlet._wait import EventLoop
from sdk_python.fakes import Clock


class Raw:
    """A subscription of the engine: what it holds, and then that it has ended."""

    def __init__(self, clock, *held):
        self.clock, self.held, self.n_ended = clock, list(held), 0

    def next(self):
        return self.clock.future("next", 5, self.held.pop(0) if self.held else None)

    def get(self):
        return self.held.pop(0) if self.held else None

    def lagged(self):
        return 3

    def unsubscribe(self):
        self.n_ended += 1


@pytest.fixture
def clock(monkeypatch):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(EventLoop, "time", lambda self: clock.now_ns * 1e-9)
    return clock


def run(coroutine):
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        return runner.run(coroutine)


def subscription(monkeypatch, clock, *held):
    raw = Raw(clock, *held)
    monkeypatch.setattr(host, "subscribe", lambda topic: raw)
    return messaging.subscribe("news"), raw


@pytest.mark.rows("PY-179 PY-181")
def test_texts_are_sent_as_they_are_and_anything_else_as_json(monkeypatch):
    sent = []
    for name in ("push", "broadcast"):
        monkeypatch.setattr(host, name, lambda topic, message, name=name: sent.append((name, topic, message)))
    messaging.push("jobs", "text")
    messaging.push("jobs", {"a": [1, None]})
    messaging.broadcast("news", 1.5)
    assert sent == [("push", "jobs", "text"), ("push", "jobs", '{"a":[1,null]}'), ("broadcast", "news", "1.5")]


def test_a_queue_that_stays_full_is_an_error(monkeypatch):
    def push(topic, message):
        raise Err(types.Error("queue-full", "the queue is full", '{"messages": 3}'))

    monkeypatch.setattr(host, "push", push)
    with pytest.raises(InferletError, match="the queue is full") as raised:
        messaging.push("jobs", "x")
    assert (raised.value.code, raised.value.details) == ("queue-full", {"messages": 3})


@pytest.mark.parametrize("call", [messaging.pull, messaging.subscribe, lambda topic: messaging.push(topic, "x")])
@pytest.mark.parametrize("topic", [1, None, b"jobs", "\ud800"])
def test_what_is_not_a_topic_is_refused_before_the_engine_is_asked(call, topic):
    with pytest.raises(InferletError) as raised:
        call(topic)
    assert raised.value.code == "invalid-argument"


@pytest.mark.rows("PY-182 OLD-086")
def test_a_pull_blocks_outside_of_a_loop_and_is_awaited_inside(monkeypatch, clock):
    monkeypatch.setattr(host, "pull", lambda topic: clock.future(topic, 5, f"of {topic}"))
    assert messaging.pull("jobs") == "of jobs"

    async def inside():
        return await messaging.pull("jobs")

    assert run(inside()) == "of jobs"


@pytest.mark.rows("PY-183..185")
def test_a_subscription_is_awaited_one_by_one_and_by_a_loop(monkeypatch, clock):
    sub, raw = subscription(monkeypatch, clock, "a", "b", "c")

    async def inside():
        return [await sub.next(), [message async for message in sub], await sub.next()]

    assert run(inside()) == ["a", ["b", "c"], None]
    sub.unsubscribe()
    assert (raw.n_ended, sub.lagged) == (1, 3)


@pytest.mark.rows("OLD-088..089")
def test_a_subscription_blocks_in_an_older_program_and_ends_with_its_block(monkeypatch, clock):
    sub, raw = subscription(monkeypatch, clock, "a", "b", "c", "d")
    with sub as entered:
        assert entered is sub
        assert (sub.next(), sub.try_next()) == ("a", "b")
        for message in sub:
            assert message == "c"
            break
    assert raw.n_ended == 1
    assert list(sub) == ["d"]
