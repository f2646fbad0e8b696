"""`pie serve` with two replicas on a Ray of this machine; `make ray` runs it, for Ray is not among what tests need."""

from __future__ import annotations

import asyncio
import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from pie.client import PieError, connect
from pie.engine import Engine
from pie.replicas.routing import order
from support.command import pie
from support.launching import PATIENCE_S, finish, python_source
from support.replicated import PROGRAM, config, tokens
from support.serving import Served, scenario, serving

MODEL = 'driver = "cpu"\nn_threads = 1\nkv_bytes = "16MiB"\nswap_bytes = "1MiB"\nisolate = false'
N_TOKENS, SEEDS = 16, range(3)


def prefixes() -> list[str]:
    """One whose sessions go to the first of two replicas, and one of the second."""
    found: dict[int, str] = {}
    for n in range(100):
        found.setdefault(order(f"prefix:{n}".encode(), 2)[0], str(n))
    return [found[0], found[1]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("server")
    config(folder, model=MODEL, drain_s=5.0)
    with serving(folder, "--config", str(folder / "config.toml")) as server:
        yield server


def descendants(pid: int) -> dict[int, str]:
    """The processes that a process started, and that those did, by what they are called."""
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        for task in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            for child in task.read_text().split():
                found[int(child)] = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                waiting.append(int(child))
    return found


def replicas(served: Served) -> list[int]:
    return sorted(pid for pid, name in descendants(served.process.pid).items() if name.startswith("ray::ReplicaActor"))


@scenario
async def test_two_workers_give_the_tokens_of_one_process(served: Served, tmp_path: Path) -> None:
    def alone() -> list[list[int]]:
        with Engine.from_config(config(tmp_path / "alone", model=MODEL)) as engine:
            engine.start()
            given = [{"prompt": [5, 6, seed], "n": N_TOKENS, "seed": seed} for seed in SEEDS]
            return [finish(engine.launch(python_source(PROGRAM), input=one)).value for one in given]

    expected = await asyncio.to_thread(alone)
    assert len(replicas(served)) == 2
    numbers = []
    for prefix in prefixes():
        async with connect(f"{served.url}/?prefix={prefix}") as client:
            found = [await tokens(client, tmp_path, N_TOKENS, seed) for seed in SEEDS]
            numbers.append({info.pid for info in await client.list(all=True)})
        print(f"prefix {prefix}: {found[0]}")
        assert found == expected
    assert len(numbers[0]) == len(numbers[1]) == len(SEEDS)
    assert not numbers[0] & numbers[1], "both sessions were on one replica"


@scenario
async def test_a_replica_that_dies_is_started_again_and_others_serve_meanwhile(served: Served, tmp_path: Path) -> None:
    before, expected = replicas(served), []
    async with connect(f"{served.url}/?prefix={prefixes()[1]}") as client:
        expected = await tokens(client, tmp_path, N_TOKENS, 1)
    # Which is which nobody says: both die, one after the other.
    for pid in before:
        os.kill(pid, signal.SIGKILL)
        for prefix in prefixes():
            while True:
                try:
                    async with connect(f"{served.url}/?prefix={prefix}") as client:
                        assert await tokens(client, tmp_path, N_TOKENS, 1) == expected
                    break
                except PieError as error:
                    # The connection of the moment breaks; the next one goes to a replica that lives.
                    if error.code not in {"connection-failed", "model-unavailable"}:
                        raise
        while len([one for one in replicas(served) if one != pid]) < 2:
            await asyncio.to_thread(os.sched_yield)
    after = replicas(served)
    assert len(after) == 2
    assert not set(after) & set(before)


def test_sigterm_ends_all_of_it(served: Served) -> None:
    started = descendants(served.process.pid)
    served.signal(signal.SIGTERM)
    assert served.wait() == 0, served.stderr
    print(served.stderr)
    # Ray has ended what it started, or is about to.
    for pid in started:
        try:
            watched = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        poll = select.poll()
        poll.register(watched, select.POLLIN)
        assert poll.poll(int(1000 * PATIENCE_S)), started[pid]
        os.close(watched)


def test_a_model_that_cannot_be_opened_is_told_with_its_replica(tmp_path: Path) -> None:
    config(tmp_path, model=f'path = "{tmp_path}/nothing"')
    ended = pie("serve", "--config", str(tmp_path / "config.toml"))
    print(ended.stderr)
    assert ended.returncode == 1
    assert "nothing" in ended.stderr
