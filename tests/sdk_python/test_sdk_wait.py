"""The event loop over pollables: overlap, timers, cancellation, dead-lock, and what order handles are dropped in."""

import asyncio

import pytest

from inferlet import DeadlockError, InferletError, SessionClosed
from inferlet._wait import EventLoop, block_on, resolve, resolve_or_block
from sdk_python.fakes import Clock


@pytest.fixture
def clock(monkeypatch):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(EventLoop, "time", lambda self: clock.now_ns * 1e-9)
    return clock


def run(coroutine):
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        return runner.run(coroutine)


def test_one_wait_costs_three_calls(clock):
    assert run(resolve(clock.future("a", 5, "value"))) == "value"
    assert clock.calls == ["pollable", "block", "get"]
    assert clock.dropped == ["pollable a", "future a"]


def test_waits_overlap(clock):
    async def main():
        return await asyncio.gather(*(resolve(clock.future(name, 100, name)) for name in "abc"))

    assert run(main()) == ["a", "b", "c"]
    assert clock.now_ns == 100_000_000
    assert clock.calls.count("poll") == 1


def test_a_future_that_was_not_ready_is_waited_for_again(clock):
    future = clock.future("late", 5, 1)
    real_get, answers = future.get, [None]
    future.get = lambda: answers.pop() if answers else real_get()
    assert run(resolve(future)) == 1
    assert clock.calls.count("pollable") == 2


def test_timers_run_beside_futures(clock):
    async def main():
        order = []

        async def note(name, awaitable):
            await awaitable
            order.append(name)

        await asyncio.gather(note("30", asyncio.sleep(0.03)), note("20", resolve(clock.future("x", 20))), note("10", asyncio.sleep(0.01)))
        return order

    assert run(main()) == ["10", "20", "30"]


def test_a_timeout_drops_what_it_waited_for(clock):
    async def main():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(resolve(clock.future("slow", 1000)), 0.01)
        return clock.now_ns

    assert run(main()) == pytest.approx(10_000_000, rel=0.01)
    assert clock.dropped[-2:] == ["pollable slow", "future slow"]


def test_a_busy_task_does_not_starve_futures(clock):
    async def main():
        ready = asyncio.ensure_future(resolve(clock.future("now")))
        for _ in range(10):
            await asyncio.sleep(0)
            if ready.done():
                return True
        return False

    assert run(main())


def test_threads_run_inline(clock):
    assert run(asyncio.to_thread(lambda: 5)) == 5
    with pytest.raises(ZeroDivisionError):
        run(asyncio.to_thread(lambda: 1 // 0))


def test_nothing_that_could_wake_is_a_deadlock(clock):
    async def stuck(event):
        await event.wait()

    async def main():
        event = asyncio.Event()
        await asyncio.gather(stuck(event), stuck(event))

    with pytest.raises(DeadlockError, match=r"nothing can wake this program: 3 tasks wait \(Task-") as caught:
        run(main())
    assert caught.value.code == "deadlock"
    assert len(caught.value.details["tasks"]) == 3


def test_waiting_for_a_client_is_no_deadlock(clock):
    assert run(resolve(clock.future("message", 3_600_000, "hi"))) == "hi"


@pytest.mark.parametrize(("code", "kind"), [("session-closed", SessionClosed), ("driver-failed", InferletError)])
@pytest.mark.parametrize("wait", [block_on, lambda future: run(resolve(future))], ids=["blocking", "awaiting"])
def test_errors_of_the_engine_are_exceptions(clock, wait, code, kind):
    with pytest.raises(kind, match=f"^{code} happened$") as caught:
        wait(clock.future("bad", error=code))
    assert (caught.value.code, caught.value.details) == (code, {"n": 3})
    assert type(caught.value) is kind


@pytest.mark.rows("OLD-091")
def test_the_colour_follows_the_loop(clock):
    async def main():
        pending = resolve_or_block(clock.future("inside", 5, "inside"))
        assert asyncio.iscoroutine(pending)
        return await asyncio.create_task(pending)

    assert run(main()) == "inside"
    assert resolve_or_block(clock.future("outside", 5, "outside")) == "outside"


def test_older_code_inside_a_loop_uses_what_it_did_not_await(clock):
    uses = {
        "equal": lambda text: text == "stop",
        "other": lambda text: text != "go",
        "printed": lambda text: (str(text), f"<{text}>", text + "!", "so " + text) == ("stop", "<stop>", "stop!", "so stop"),
        "read": lambda text: (len(text), list(text), "to" in text, text[0], text.upper()) == (4, list("stop"), True, "s", "STOP"),
    }

    async def main():
        for name, use in uses.items():
            assert use(resolve_or_block(clock.future(name, 5, "stop"))), name
        data = resolve_or_block(clock.future("data", 5, b"ab"))
        assert bytes(data) == b"ab"
        # It can still be awaited, and two at once.
        assert await data == b"ab"
        pair = [resolve_or_block(clock.future(name, 5, name)) for name in "ab"]
        assert await asyncio.gather(*pair) == ["a", "b"]

    run(main())


def test_what_is_under_way_is_awaited_and_what_is_forgotten_is_told(clock):
    async def main():
        pending = resolve_or_block(clock.future("pending", 5, "text"))
        task = asyncio.ensure_future(pending)
        assert "value of the engine" in repr(pending)
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="awaited already"):
            pending.upper()
        assert await task == "text"
        with pytest.warns(RuntimeWarning, match="never awaited"):
            resolve_or_block(clock.future("forgotten", 5, "x"))
        given_up = resolve_or_block(clock.future("given up", 5, "x"))
        given_up.close()
        assert clock.dropped[-1] == "future given up"

    run(main())


def test_another_loop_cannot_wait_for_the_engine(clock):
    with pytest.raises(RuntimeError, match="cannot wait for the engine"):
        asyncio.run(resolve(clock.future("x")))
