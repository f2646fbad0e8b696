"""P19: messages from program to program."""

from __future__ import annotations

import shutil
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from benchmarks.harness import ROOT, ROUNDS, Figure, Goal, Row, in_turns, save, show
from pie._engine import Process
from pie.config import EngineConfig, ModelConfig
from pie.engine import Engine
from pie.events import Event
from pie.programs import Component

N_BYTES = 128
"""Bytes of each message."""
N_PINGS, N_MESSAGES, N_BROADCASTS, N_LISTENERS = 5_000, 200_000, 2_000, 256
CASES = {
    "one to one": [Goal("ratio", 10.0, at_least=True)],
    f"one to {N_LISTENERS}": [Goal("ratio", 10.0, at_least=True)],
    "there, median": [Goal("ours", 5.0)],
}

ROW = Row(
    name="P19",
    title="Messages from program to program, of 128 bytes",
    driver="none",
    path="push or broadcast of a Rust program -> pull or subscription of another",
    peer="nats-server on loopback; its clients send bytes made before, and count the bytes that they get",
)


def measure() -> Iterator[Figure]:
    """Messages a second, and microseconds on the way; without a peer where there is no nats-server."""
    config = EngineConfig(max_processes=N_LISTENERS + 8, bus_subscription_messages=N_BROADCASTS + 1)
    engine = Engine(config)
    engine.add_model(options=ModelConfig(driver="dummy"))
    with engine, _nats() as port:
        for case, ours, peer in (
            ("one to one", _queue, _nats_queue),
            (f"one to {N_LISTENERS}", _fan_out, _nats_fan_out),
            ("there, median", _ping, _nats_ping),
        ):
            unit = "us" if case == "there, median" else "messages/s"
            yield _figure(case, unit, lambda ours=ours: ours(engine), None if port is None else lambda peer=peer: peer(port))


def _figure(case: str, unit: str, ours: Callable[[], float], peer: Callable[[], float] | None) -> Figure:
    ours()
    if peer is None:
        figure = Figure(case, unit, [ours() for _ in range(ROUNDS)], note="nats-server is not installed: not run")
        figure.goals.extend(goal for goal in CASES[case] if goal.measure == "ours")
    else:
        figure = Figure(case, unit, *in_turns(ours, peer), goals=CASES[case])
    show(f"messages: {case}: {figure.median('ours'):.4g} {unit}")
    return figure


def _launch(engine: Engine, work: str, **options: int) -> Process:
    return engine.launch(Component(ROOT / "build/programs/messages.wasm"), input={work: options}, username="bench")


def _ready(process: Process) -> Process:
    assert process.next_event(60.0) == Event.Stdout("ready")
    return process


def _value(process: Process) -> int:
    event = process.next_event(300.0)
    assert isinstance(event, Event.Return), event
    return int(event.value)


def _queue(engine: Engine) -> float:
    consumer = _ready(_launch(engine, "consume", n=N_MESSAGES))
    _value(_launch(engine, "produce", n=N_MESSAGES, bytes=N_BYTES))
    return N_MESSAGES / _value(consumer) * 1e9


def _fan_out(engine: Engine) -> float:
    listeners = [_ready(_launch(engine, "listen", n=N_BROADCASTS)) for _ in range(N_LISTENERS)]
    _value(_launch(engine, "broadcast", n=N_BROADCASTS, bytes=N_BYTES))
    return N_LISTENERS * N_BROADCASTS / max(_value(listener) for listener in listeners) * 1e9


def _ping(engine: Engine) -> float:
    pong = _launch(engine, "pong", n=N_PINGS)
    half_ns = _value(_launch(engine, "ping", n=N_PINGS, bytes=N_BYTES))
    _value(pong)
    return half_ns / 1e3


@contextmanager
def _nats() -> Iterator[int | None]:
    """The port of a nats-server; none where it is not installed."""
    command = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")
    if command is None:
        yield None
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    server = subprocess.Popen([command, "-a", "127.0.0.1", "-p", str(port)], stderr=subprocess.DEVNULL)
    try:
        yield port
    finally:
        server.terminate()
        server.wait()


def _connected(port: int) -> socket.socket:
    """A client that the server knows."""
    for _ in range(200):
        try:
            client = socket.create_connection(("127.0.0.1", port))
            break
        except ConnectionRefusedError:
            time.sleep(0.02)
    else:
        raise RuntimeError(f"nats-server does not listen on port {port}")
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.recv(1 << 16)
    client.sendall(b'CONNECT {"verbose":false,"pedantic":false}\r\nPING\r\n')
    _expect(client, len(b"PONG\r\n"))
    return client


def _expect(client: socket.socket, n_bytes: int) -> None:
    """Reads so many bytes."""
    buffer = bytearray(1 << 20)
    while n_bytes > 0:
        n_read = client.recv_into(buffer, min(len(buffer), n_bytes))
        if n_read == 0:
            raise RuntimeError("nats-server has closed the connection")
        n_bytes -= n_read


def _message(topic: str) -> bytes:
    return f"PUB {topic} {N_BYTES}\r\n".encode() + b"x" * N_BYTES + b"\r\n"


def _n_delivered(topic: str, sid: int) -> int:
    """Bytes of a message as it arrives."""
    return len(f"MSG {topic} {sid} {N_BYTES}\r\n") + N_BYTES + len(b"\r\n")


def _timed(port: int, sids: list[int], n_messages: int) -> float:
    """Messages delivered a second, to as many subscriptions of one client as there are numbers."""
    with _connected(port) as reader, _connected(port) as writer:
        reader.sendall(b"".join(f"SUB t {sid}\r\n".encode() for sid in sids) + b"PING\r\n")
        _expect(reader, len(b"PONG\r\n"))
        n_bytes = n_messages * sum(_n_delivered("t", sid) for sid in sids)
        batch, n_batches = _message("t") * 100, n_messages // 100
        began = time.perf_counter()
        sending = threading.Thread(target=lambda: [writer.sendall(batch) for _ in range(n_batches)])
        sending.start()
        _expect(reader, n_bytes)
        elapsed_s = time.perf_counter() - began
        sending.join()
        return len(sids) * n_messages / elapsed_s


def _nats_queue(port: int) -> float:
    return _timed(port, [1], N_MESSAGES)


def _nats_fan_out(port: int) -> float:
    return _timed(port, list(range(1, N_LISTENERS + 1)), N_BROADCASTS)


def _nats_ping(port: int) -> float:
    with _connected(port) as one, _connected(port) as other:
        for client, topic in ((one, "pong"), (other, "ping")):
            client.sendall(f"SUB {topic} 1\r\nPING\r\n".encode())
            _expect(client, len(b"PONG\r\n"))
        n_bytes = _n_delivered("ping", 1)

        def answer() -> None:
            for _ in range(N_PINGS):
                _expect(other, n_bytes)
                other.sendall(_message("pong"))

        answering = threading.Thread(target=answer)
        answering.start()
        halves = []
        for _ in range(N_PINGS):
            sent = time.perf_counter()
            one.sendall(_message("ping"))
            _expect(one, n_bytes)
            halves.append((time.perf_counter() - sent) / 2)
        answering.join()
        return 1e6 * statistics.median(halves)


class Messages:
    """Messages a second, and the way of one."""

    params: ClassVar[list[str]] = list(CASES)
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 600

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_messages(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ours")
