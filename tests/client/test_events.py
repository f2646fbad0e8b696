"""Events in order, within their windows; one process that nobody reads holds up no other and no reply."""

from __future__ import annotations

import asyncio

import pytest

from client.fake import WINDOW_BYTES, Peer, fake_server, scenario
from pie.client import Event, PieError, connect, connection

TEXT = "x" * 512


@scenario
async def test_a_loop_that_does_not_await_says_how_events_are_read() -> None:
    async def script(peer: Peer) -> None:
        launch = await peer.expect("launch")
        assert launch["input"] == {"a": 1}
        await peer.answer(launch, pid=5, launch_seed=1)
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("p@1", {"a": 1})
        with pytest.raises(TypeError, match=r"write `async for event in process\.events"):
            list(process.events())


@pytest.mark.rows("SES-011..012 SES-026 SES-042")
@scenario
async def test_events_come_in_order_and_end_with_the_return() -> None:
    async def script(peer: Peer) -> None:
        launch = await peer.expect("launch")
        assert launch["program"] == "p@1"
        assert launch["input"] == {"n": 2**64 - 1}
        await peer.answer(launch, pid=5, launch_seed=2**64 - 1)
        for number in range(64):
            await peer.event(5, "stdout", text=f"{number} ")
        await peer.event(5, "stderr", text="e")
        await peer.event(5, "message", text="m")
        await peer.event(5, "notice", text="n")
        await peer.event(5, "file", data=b"\x00\xff")
        seq = await peer.event(5, "return", value='{"a":[1.5,null]}')
        reading = asyncio.create_task(peer.serve_forever())
        await peer.acked(5, seq)
        reading.cancel()

    async with fake_server(script) as address, connect(address, user="alice") as client:
        assert client.user == "alice"
        process = await client.launch("p@1", input={"n": 2**64 - 1})
        assert (process.pid, process.launch_seed) == (5, 2**64 - 1)
        events = [event async for event in process.events()]
        assert events[:64] == [Event.Stdout(f"{number} ") for number in range(64)]
        said = [Event.Stderr("e"), Event.Message("m"), Event.Notice("n")]
        assert events[64:] == [*said, Event.File(b"\x00\xff"), Event.Return('{"a":[1.5,null]}')]
        assert [event.seq for event in events] == list(range(1, 70))
        match events[-1]:
            case Event.Return(value):
                assert value == {"a": [1.5, None]}
        assert await process.result() == {"a": [1.5, None]}
        assert [event async for event in process.events()] == []


@scenario
async def test_an_error_ends_the_events_and_is_raised_by_result() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        await peer.event(1, "error", code="program-error", message="'x'", error_kind="KeyError", traceback="main.py, line 1")
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("p@1")
        expected = Event.Error("program-error", "'x'", "KeyError", "main.py, line 1")
        assert [event async for event in process.events()] == [expected]
        with pytest.raises(PieError) as caught:
            await process.result()
        assert caught.value.code == "program-error"
        assert str(caught.value) == caught.value.message == "KeyError: 'x'"
        assert caught.value.details == {"kind": "KeyError", "message": "'x'", "traceback": "main.py, line 1", "pid": 1}


@scenario
async def test_what_a_server_waits_for_is_acked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Acks may wait for company, but not that of a quarter of the window, nor that of the last event."""
    monkeypatch.setattr(connection, "_ACK_DELAY_S", 3600.0)

    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        reading = asyncio.create_task(peer.serve_forever())
        await peer.acked(1, await peer.event(1, "stdout", text="x" * (WINDOW_BYTES // 4)))
        await peer.acked(1, await peer.event(1, "return", value="1"))
        reading.cancel()

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("p@1")
        assert len([event async for event in process.events()]) == 2


@scenario
async def test_a_process_that_nobody_reads_holds_up_no_other_and_no_reply() -> None:
    n_events = 40  # several windows
    n_sent = {1: 0, 2: 0}

    async def stream(peer: Peer, pid: int) -> None:
        for number in range(1, n_events + 1):
            await peer.acked(pid, number - WINDOW_BYTES // len(TEXT))
            n_sent[pid] = number
            await peer.event(pid, "stdout", text=TEXT)
        await peer.event(pid, "return", value=str(pid))

    async def script(peer: Peer) -> None:
        for pid in (1, 2):
            await peer.answer(await peer.expect("launch"), pid=pid, launch_seed=0)
        async with asyncio.TaskGroup() as group:
            streams = [group.create_task(stream(peer, pid)) for pid in (1, 2)]
            reading = group.create_task(peer.serve_forever())
            await asyncio.wait(streams)
            await peer.acked(1, n_events + 1)
            await peer.acked(2, n_events + 1)
            reading.cancel()

    async with fake_server(script) as address, connect(address) as client:
        unread, read = await client.launch("p@1"), await client.launch("p@1")
        assert [event async for event in read.events()] == [Event.Stdout(TEXT)] * n_events + [Event.Return("2")]
        await client.ping()
        assert n_sent == {1: WINDOW_BYTES // len(TEXT), 2: n_events}  # what nobody took was not acked
        assert [event async for event in unread.events()] == [Event.Stdout(TEXT)] * n_events + [Event.Return("1")]


@scenario
async def test_a_server_that_ignores_the_window_is_cut_off() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        while True:
            await peer.event(1, "stdout", text=TEXT)

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("p@1")
        with pytest.raises(PieError, match="window") as caught:
            await client.ping()  # the answer that never comes
        assert caught.value.code == "protocol-error"
        with pytest.raises(PieError) as caught:
            await process.result()
        assert caught.value.code == "protocol-error"


@scenario
async def test_result_leaves_the_events_to_a_loop_that_reads_them() -> None:
    read_one = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        await peer.event(1, "stdout", text="0")
        await peer.expect("ping")  # the first was read
        for number in range(1, 50):
            await peer.event(1, "stdout", text=str(number))
        await peer.event(1, "return", value="true")
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("p@1")
        seen = []

        async def read() -> None:
            async for event in process.events():
                seen.append(event)
                read_one.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(read())
            result = group.create_task(process.result())
            await read_one.wait()
            asking = group.create_task(client.ping())
            assert await result is True
            asking.cancel()
        assert seen == [*(Event.Stdout(str(number)) for number in range(50)), Event.Return("true")]


async def one_event_then_the_end(peer: Peer) -> None:
    """An event at the launch, and the end after a ping."""
    await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
    await peer.event(1, "stdout", text="0")
    await peer.answer(await peer.expect("ping"))
    await peer.event(1, "return", value="1")
    await peer.serve_forever()


async def five_events_and_the_end(peer: Peer) -> None:
    """Five events and the end, after a ping."""
    await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
    await peer.answer(await peer.expect("ping"))
    for number in range(5):
        await peer.event(1, "stdout", text=str(number))
    await peer.event(1, "return", value="1")
    await peer.serve_forever()


@scenario
async def test_result_takes_over_from_a_loop_that_was_left() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        await peer.event(1, "stdout", text="0")
        await peer.answer(await peer.expect("ping"))
        await peer.event(1, "stdout", text="1")
        await peer.event(1, "return", value="1")
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("p@1")
        async for event in process.events():
            assert event == Event.Stdout("0")
            break
        await client.ping()
        assert await process.result() == 1


@scenario
async def test_result_takes_over_from_events_that_are_merely_kept() -> None:
    async with fake_server(one_event_then_the_end) as address, connect(address) as client:
        process = await client.launch("p@1")
        never_read, left = process.events(), process.events()
        async for _ in left:
            break
        await client.ping()
        assert await process.result() == 1
        assert [event async for event in left] == [event async for event in never_read] == []


@scenario
async def test_result_takes_over_from_an_iterator_in_which_nobody_waits() -> None:
    async with fake_server(one_event_then_the_end) as address, connect(address) as client:
        process = await client.launch("p@1")
        events = process.events()
        assert await anext(events) == Event.Stdout("0")
        # In another task, as `asyncio.wait_for` runs what it waits for, while the one that has read lives on.
        result = asyncio.create_task(process.result())
        await client.ping()
        assert await result == 1
        assert [event async for event in events] == []


@scenario
async def test_result_takes_over_from_a_wait_that_was_given_up() -> None:
    async with fake_server(one_event_then_the_end) as address, connect(address) as client:
        process = await client.launch("p@1")
        events = process.events()
        assert await anext(events) == Event.Stdout("0")
        waiting = asyncio.create_task(anext(events))
        await asyncio.sleep(0)
        result = asyncio.create_task(process.result())
        await asyncio.sleep(0)  # both wait
        waiting.cancel()
        await client.ping()
        assert await result == 1
        assert waiting.cancelled()


@scenario
async def test_result_takes_over_from_a_loop_that_was_left_while_its_events_are_held() -> None:
    async with fake_server(one_event_then_the_end) as address, connect(address) as client:
        process = await client.launch("p@1")
        events, may_leave = process.events(), asyncio.Event()

        async def read_one() -> None:
            async for event in events:
                assert event == Event.Stdout("0")
                await may_leave.wait()
                break
            await asyncio.Event().wait()

        reading = asyncio.create_task(read_one())
        await asyncio.sleep(0)
        result = asyncio.create_task(process.result())
        await client.ping()
        await client.ping()
        assert not result.done()
        may_leave.set()
        assert await result == 1
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading


@scenario
async def test_result_takes_nothing_from_a_loop_that_begins_later() -> None:
    async with fake_server(five_events_and_the_end) as address, connect(address) as client:
        process = await client.launch("p@1")
        results = [asyncio.create_task(process.result()) for _ in range(2)]
        await asyncio.sleep(0)  # they wait

        async def read() -> list[object]:
            return [event async for event in process.events()]

        reading = asyncio.create_task(read())
        await client.ping()
        assert await reading == [*(Event.Stdout(str(number)) for number in range(5)), Event.Return("1")]
        assert [await result for result in results] == [1, 1]


@scenario
async def test_the_end_is_told_to_everybody_who_waits() -> None:
    async with fake_server(five_events_and_the_end) as address, connect(address) as client:
        process = await client.launch("p@1")
        waiting = [asyncio.create_task(process.next_event()) for _ in range(7)]
        results = [asyncio.create_task(process.result()) for _ in range(3)]
        await client.ping()
        given = [event for event in await asyncio.gather(*waiting) if event is not None]
        assert sorted(event.text for event in given) == ["0", "1", "1", "2", "3", "4"]
        assert await asyncio.gather(*results) == [1, 1, 1]


@scenario
async def test_the_first_loop_keeps_all_events_and_a_second_is_told_so() -> None:
    async with fake_server(five_events_and_the_end) as address, connect(address) as client:
        process = await client.launch("p@1")
        made_before = process.events()

        async def read() -> list[str]:
            return [event.text async for event in process.events()]

        reading = asyncio.create_task(read())
        await asyncio.sleep(0)  # it waits
        with pytest.raises(PieError, match="the events of process 1 are read already") as caught:
            await anext(made_before)
        assert caught.value.code == "future-taken"
        with pytest.raises(PieError, match="are read already"):
            process.events()
        await client.ping()
        assert await reading == ["0", "1", "2", "3", "4", "1"]
        assert [event async for event in process.events()] == []


@scenario
async def test_many_small_events_within_the_window_are_kept() -> None:
    n_events = (1 << 18) + 10

    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        ping = await peer.expect("ping")
        for seq in range(1, n_events):
            await peer.socket.send(f'{{"type":"event","pid":1,"seq":{seq},"kind":"stdout","text":""}}')
        await peer.socket.send(f'{{"type":"event","pid":1,"seq":{n_events},"kind":"return","value":"1"}}')
        await peer.answer(ping)
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("p@1")
        await client.ping()
        assert await process.result() == 1


@scenario
async def test_a_server_whose_messages_may_be_large_may_send_them() -> None:
    data = bytes(80 << 20)

    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        await peer.event(1, "file", data=data)
        await peer.serve_forever()

    async with fake_server(script, limits={"message_bytes": len(data)}) as address, connect(address) as client:
        process = await client.launch("p@1")
        assert await anext(process.events()) == Event.File(data)


@scenario
async def test_a_value_that_python_cannot_hold_can_be_read_as_text() -> None:
    text = "[" * 100_000 + "]" * 100_000

    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        await peer.event(1, "return", value=text)
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("p@1")
        with pytest.raises(PieError, match="text") as caught:
            await process.result()
        assert caught.value.code == "invalid-argument"
        await client.ping()


@scenario
async def test_events_that_were_read_before_a_break_are_passed_over() -> None:
    async def script(peer: Peer) -> None:
        attach = await peer.expect("attach")
        assert (attach["pid"], attach["after_seq"]) == (3, 2)
        await peer.answer(attach, pid=3, next_seq=1)
        for number in range(4):
            await peer.event(3, "stdout", text=str(number))
        await peer.event(3, "return", value="null")
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        process = await client.attach(3, after_seq=2)
        assert process.launch_seed is None
        assert [event async for event in process.events()] == [Event.Stdout("2"), Event.Stdout("3"), Event.Return("null")]


@scenario
async def test_what_was_read_is_acked_before_detaching() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        for _ in range(3):
            await peer.event(1, "stdout", text="t")
        await peer.answer(await peer.expect("detach"))
        assert peer.acks == {1: 2}
        await peer.event(1, "stdout", text="on its way when the client detached")
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("p@1", detached=True)
        events = process.events()
        assert [await anext(events), await anext(events)] == [Event.Stdout("t")] * 2
        await process.detach()
        with pytest.raises(PieError) as caught:
            await anext(events)
        assert caught.value.code == "session-closed"
        await client.ping()


@scenario
async def test_what_a_client_sends_arrives_in_order() -> None:
    seen = []

    async def script(peer: Peer) -> None:
        await peer.answer(await peer.expect("launch"), pid=1, launch_seed=0)
        for _ in range(5):
            message = await peer.receive()
            seen.append((message["type"], message["pid"], message.get("text", message.get("payload"))))
            await peer.answer(message)
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("p@1")
        await process.send("a ü")
        await process.signal("stop")
        await process.transfer_file(bytes(range(256)))
        await process.close_input()
        await process.terminate()
    assert seen == [
        ("send", 1, "a ü"),
        ("signal", 1, "stop"),
        ("file", 1, bytes(range(256))),
        ("close_input", 1, None),
        ("terminate", 1, None),
    ]


@scenario
async def test_what_is_too_large_is_refused_here_and_nothing_else_suffers() -> None:
    async def script(peer: Peer) -> None:
        await peer.serve_forever()

    async with fake_server(script) as address, connect(address) as client:
        process = await client.launch("p@1")
        for call in (process.send("x" * (1 << 20)), process.transfer_file(bytes(100 << 20)), client.launch("p@1", input="x" * (1 << 21))):
            with pytest.raises(PieError, match="1048576") as caught:
                await call
            assert caught.value.code == "limit-message"
        for value in ({1, 2, object()}, float("nan"), {"a": [1.5, (float("inf"),)]}, {-float("inf")}):
            with pytest.raises(PieError) as caught:
                await client.launch("p@1", input=value)
            assert caught.value.code == "invalid-argument"
        await client.ping()
