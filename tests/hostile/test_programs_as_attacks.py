"""Programs whose mere reading is an attack: only the worker that reads them notices."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hostile import binaries
from hostile.running import NEIGHBOUR, SEED
from pie.compiler import COMMAND
from pie.config import EngineConfig, ModelConfig
from pie.engine import Engine
from pie.errors import PieError
from pie.programs import Component, Source
from support.engines import started
from support.launching import finish, typescript_source

END = "\nexport function main() { return 1 }\n"
HIDING = {
    "a property that is none": "1.\nif(1)/`/.x\n",
    "a hashbang after a byte order mark": "\ufeff#!`\n",
    "nothing": "",
}
"""What stands before a nest, so that whoever counts brackets without parsing does not see it."""
NESTS = {
    "parentheses": "(" * 250_000,
    "lists": "[" * 100_000,
    "functions": "f(()=>{" * 30_000,
    "generics": "let x: " + "A<" * 100_000,
    "templates": "`${" * 100_000,
    "negations": "!" * 200_000,
    "conditions": "a?b:" * 100_000,
    "arrows": "a=>" * 100_000,
    "object types": "type T = " + "{a:" * 50_000,
    "expressions after a slash": "a = b\n/(" + "[(" * 50_000,
}
GREAT_S = 60.0
"""Longer than anything here takes on a busy machine."""
MAX_GROWTH_BYTES = 96 << 20
"""What the engine may grow by while workers end over programs: their sources, and what they answered."""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """The dummy driver, and time enough to read what can be read."""
    engine = Engine()
    engine.add_model(options=ModelConfig(driver="dummy"))
    with started(engine):
        yield engine


@pytest.fixture(scope="module")
def hasty() -> Iterator[Engine]:
    """The dummy driver, and little time for each program to be read in."""
    engine = Engine(limits={"compile_s": 1.0})
    engine.add_model(options=ModelConfig(driver="dummy"))
    with started(engine):
        yield engine


@pytest.fixture(scope="module")
def alone(engine: Engine) -> list[int]:
    """What the neighbour says when nobody else runs."""
    tokens: list[int] = finish(engine.launch(NEIGHBOUR, seed=SEED)).value
    return tokens


def bomb(number: int = 0, depth: int = 60) -> Source:
    """A short program that takes twice the time to read for each level."""
    return typescript_source(f"// {number}\nlet x = {'<T>(' * depth}1{')' * depth};{END}", "bomb.ts")


def wait_until(is_so: Callable[[], bool]) -> None:
    """Waits for something that comes without an event."""
    deadline = time.monotonic() + GREAT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def workers() -> list[int]:
    """The workers of this process that live."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            command = (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == os.getpid() and COMMAND[-1].encode() in command:
            found.append(int(status.parent.name))
    return found


def n_threads() -> int:
    return sum(1 for _ in Path("/proc/self/task").iterdir())


def rss_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise RuntimeError("/proc/self/status has no VmRSS")


@pytest.mark.parametrize("hiding", HIDING)
@pytest.mark.parametrize("ending", ["ts", "js"])
def test_a_nest_that_is_hidden_ends_its_worker_and_is_named(engine: Engine, alone: list[int], hiding: str, ending: str) -> None:
    name = f"nest.{ending}"
    neighbour = engine.launch(NEIGHBOUR, seed=SEED)
    outcome = finish(engine.launch(typescript_source(HIDING[hiding] + NESTS["parentheses"] + END, name)))
    assert outcome.code == "invalid-program"
    assert (outcome.message or "").startswith(f"{name}: it nests too deeply")
    assert finish(neighbour).value == alone


def test_whatever_nests_ends_by_name_and_the_engine_does_not_grow(engine: Engine, alone: list[int]) -> None:
    before = rss_bytes()
    neighbour = engine.launch(NEIGHBOUR, seed=SEED)
    for name, nest in NESTS.items():
        outcome = finish(engine.launch(typescript_source(nest + END)))
        assert outcome.code == "invalid-program", (name, outcome)
        assert (outcome.message or "").startswith("main.ts"), name
    assert finish(neighbour).value == alone
    assert rss_bytes() - before < MAX_GROWTH_BYTES


def test_long_flat_programs_are_read_one_after_the_other(engine: Engine, alone: list[int]) -> None:
    before = rss_bytes()
    text = "export const a: number[] = [" + "1," * 100_000 + "];" + END
    processes = [engine.launch(typescript_source(f"// {number}\n{text}"), limits={"wall_s": GREAT_S}) for number in range(6)]
    counts = []
    all_ended = threading.Event()

    def sample() -> None:
        while not all_ended.wait(0.01):
            counts.append(len(workers()))

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        outcomes = [finish(process) for process in processes]
    finally:
        all_ended.set()
        sampler.join()
    assert [outcome.value for outcome in outcomes] == [1] * 6
    # Two run at once, and one user has at most one of them.
    assert max(counts) == 1
    assert finish(engine.launch(NEIGHBOUR, seed=SEED)).value == alone
    assert rss_bytes() - before < MAX_GROWTH_BYTES


def test_a_program_that_takes_for_ever_to_read_is_ended_by_name_and_remembered(hasty: Engine) -> None:
    # Where others had the processor meanwhile, it is told to try again.
    while (first := finish(hasty.launch(bomb()))).code == "limit-queue":
        pass
    assert first.code == "limit-compile"
    assert first.message == "bomb.ts: removing its types took longer than limits.compile_s = 1 s; make it smaller, or raise the limit"
    again = finish(hasty.launch(bomb()))
    assert again.code == "limit-compile"
    assert (again.message or "").startswith(first.message + " (as was found before; ")


def test_bombs_leave_no_thread_and_no_worker_behind(engine: Engine, alone: list[int]) -> None:
    before = n_threads()
    processes = [engine.launch(bomb(number), limits={"wall_s": 0.2}) for number in range(1, 21)]
    assert {finish(process).code for process in processes} == {"limit-wall"}
    wait_until(lambda: not workers())
    # The pool of blocking threads keeps its idle ones for ten seconds.
    wait_until(lambda: n_threads() <= before)
    assert finish(engine.launch(NEIGHBOUR, seed=SEED)).value == alone


def test_bombs_of_two_users_do_not_keep_a_third_from_compiling(tmp_path: Path) -> None:
    def component(name: str, *modules: bytes) -> Component:
        path = tmp_path / name
        path.write_bytes(binaries.component(*modules))
        return Component(path)

    with Engine(limits={"compile_s": 600.0}) as engine:
        processes = [
            engine.launch(component(f"{user}{number}.wasm", binaries.loops(50_000, number)), username=user)
            for number, user in enumerate(["mallory", "mallory", "trudy", "trudy"])
        ]
        wait_until(lambda: len(workers()) == 2)
        for number in range(3):
            small = component(f"small{number}.wasm", binaries.module(n_functions=number))
            outcome = finish(engine.launch(small, username="ada"))
            # It was compiled, and is no program.
            assert "does not fit the world" in (outcome.message or ""), outcome
        source = finish(engine.launch(typescript_source(f"let x: number = 1;{END}"), username="grace"))
        assert source.value == 1
        assert not any(process.ended for process in processes)
    wait_until(lambda: not workers())


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("a long sum", "export function main() { return " + "1+" * 1500 + "1 }", 1501),
        ("a long text", "export function main() { return (" + "'a' +\n" * 1200 + "'').length }", 1200),
        ("many branches", "export function main(input: any) { let n = 0;\n" + "if (n) {} else " * 1100 + "n = 7; return n }", 7),
        ("a slash after a brace", "export function main() { let a = {b: 8}; { } /x/.test('x'); return a.b /2/ 2 }", 2),
        ("a slash after a postfix", "export function main() { let a = 8, g = 2; return a++\n/2/g }", 2),
        ("a nest of lists", "export function main() { return [" + "[" * 1100 + "]" * 1100 + "].length }", 1),
    ],
)
def test_what_is_legal_runs(engine: Engine, name: str, text: str, value: object) -> None:
    outcome = finish(engine.launch(typescript_source(text)))
    assert (outcome.value, outcome.message) == (value, None), name


def large(number: int, n_bytes: int = 8 << 20) -> Source:
    """A program with much that it does not look at, which waits for a message."""
    text = 'import { session } from "inferlet";\nexport async function main() { session.send("idle"); await session.receive(); }\n'
    files = (("data.bin", bytes([number]) * n_bytes), ("main.js", text.encode()))
    return Source("javascript", files, "main.js")


def test_a_large_program_is_held_by_its_process_and_its_instance_alone() -> None:
    n_bytes = 8 << 20
    with Engine() as engine:
        launched = []
        grown = []
        for number in range(4):
            before = rss_bytes()
            process = engine.launch(large(number, n_bytes))
            event = process.next_event(GREAT_S)
            assert event is not None
            assert event.text == "idle"
            launched.append(process)
            grown.append(rss_bytes() - before)
        # The first one loads the runtime. The process keeps the program, which it may start again as a child. A copy is
        # in the memory of the instance.
        assert min(grown[1:]) < 2.5 * n_bytes, grown


def test_a_program_beyond_the_budget_of_its_user_is_refused() -> None:
    with Engine(EngineConfig(memory_bytes=128 << 20, user_memory_bytes=24 << 20)) as engine:
        with pytest.raises(PieError) as caught:
            engine.launch(large(1, 16 << 20), username="mallory")
        assert caught.value.code == "limit-engine-memory"
        assert "programs" in caught.value.message
        event = engine.launch(large(2, 1 << 20), username="ada").next_event(GREAT_S)
        assert event is not None
        assert event.text == "idle"


def test_a_worker_has_nothing_but_its_streams() -> None:
    secret = {"PIE_SECRET": "not for workers", "PATH": os.environ["PATH"]}
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=secret) as worker:
        assert worker.stdin is not None
        try:
            order = b'{"work":"Strip","cpu_s":60,"memory_bytes":268435456}'
            worker.stdin.write(struct.pack("<I", len(order)) + order)
            worker.stdin.flush()
            process = Path(f"/proc/{worker.pid}")

            def status() -> dict[str, str]:
                lines = (process / "status").read_text().splitlines()
                return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}

            # Filtered, it waits for what the user supplied.
            wait_until(lambda: status()["Seccomp"] == "2")
            assert status()["NoNewPrivs"] == "1"
            if os.geteuid() == 0:
                assert status()["Uid"].split() == ["65534"] * 4
                assert status()["Gid"].split() == ["65534"] * 4
                assert status()["Groups"] == ""
                assert int(status()["CapEff"], 16) == 0
                assert sorted(stream.name for stream in (process / "fd").iterdir()) == ["0", "1", "2"]
                limits = (process / "limits").read_text()
                for name in ("Max file size", "Max processes", "Max core file size"):
                    line = next(line for line in limits.splitlines() if line.startswith(name))
                    assert line.removeprefix(name).split()[:2] == ["0", "0"]
        finally:
            worker.kill()
        assert worker.wait() == -signal.SIGKILL
