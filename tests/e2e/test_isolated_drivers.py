"""A driver in a process of its own: where that is lost, the requests that it ran fail, and everything else goes on."""

from __future__ import annotations

import gc
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oracle.sampler import Sampler
from pie._engine import Model, Process
from pie.backends import open_driver
from pie.backends.base import Drawn, Driver, DriverError, DriverLostError, DriverOptions
from pie.batch import Batch
from pie.config import EMBEDDED_FOLDER, ModelConfig
from pie.engine import Engine
from pie.errors import PieError
from pie.isolation import driver as isolated_driver
from pie.isolation import process as isolation
from pie.isolation.driver import IsolatedDriver
from pie.isolation.process import DriverProcess
from pie.memory import driver_bytes
from support import isolated
from support.arenas import Draw, Feed, batch
from support.engines import started
from support.isolated import COLLECTING, STEPPING, VOCAB_SIZE, wait_for
from support.launching import PATIENCE_S, Outcome, finish, python_source, run

N_PROGRAMS = 32
N_TOKENS = 40

KEEPING = python_source("""
from inferlet import Context, Model, Sampler, session


async def main(input):
    ctx = Context(Model.load("default"))
    ctx.append(input["prompt"])
    if input["opens"]:
        ctx = Context.open(Model.load("default"), "kept")
        return await ctx.generate(Sampler.argmax(), max_tokens=8).collect_tokens()
    await ctx.flush()
    ctx.save("kept")
    session.send("saved")
    assert await session.receive() == "go on"
    return await ctx.generate(Sampler.argmax(), max_tokens=8).collect_tokens()
""")


@contextmanager
def serving(
    opening: Callable[[], Driver], *, timeout_s: float = 0.0, restarts: int = 1000
) -> Iterator[tuple[Engine, Model, IsolatedDriver]]:
    """An engine that runs on the driver in a process of its own."""
    driver = IsolatedDriver(opening, VOCAB_SIZE, timeout_s=timeout_s)
    engine = Engine()
    model = engine.add_model(driver=driver, options=ModelConfig(restarts_per_minute=restarts))
    with started(engine):
        yield engine, model, driver


def inputs(n: int) -> list[dict[str, Any]]:
    return [{"prompt": [5, 6, 7 + idx], "n": N_TOKENS, "seed": idx} for idx in range(n)]


def launch(engine: Engine, n: int = N_PROGRAMS) -> list[Process]:
    """Programs that step and programs that leave it to the engine, by turns."""
    return [engine.launch((STEPPING, COLLECTING)[idx % 2], input=given) for idx, given in enumerate(inputs(n))]


def outcomes(processes: list[Process]) -> list[Outcome]:
    ends = [finish(process) for process in processes]
    assert [end.code for end in ends] == [None] * len(ends), [end.message for end in ends if end.code]
    return ends


@pytest.fixture(scope="module")
def expected() -> list[list[int]]:
    """The tokens of the programs on the same driver in this process."""
    engine = Engine()
    engine.add_model(driver=isolated.dummy())
    with started(engine):
        return [end.value[0] for end in outcomes(launch(engine))]


def batches_from(model: Model, n: int) -> Callable[[], bool]:
    """Whether so many batches more were planned since."""
    since = model.stats()["n_batches"]
    return lambda: model.stats()["n_batches"] >= since + n


def test_tokens_are_those_of_a_driver_in_this_process(expected: list[list[int]]) -> None:
    for follows in (False, True):
        with serving(partial(isolated.dummy, follows=follows)) as (engine, model, _):
            assert [end.value for end in outcomes(launch(engine))] == [[tokens, []] for tokens in expected]
            assert follows == (model.stats()["n_followers"] > 0)


def test_one_that_draws_and_does_not_follow_gives_the_same_tokens(expected: list[list[int]]) -> None:
    with serving(isolated.draws) as (engine, _, _):
        assert [end.value for end in outcomes(launch(engine))] == [[tokens, []] for tokens in expected]


N_DRAWS = 65_536
"""As many as may be drawn from a row, which take more room than the channel begins with."""


def kept_and_drawn_from() -> Batch:
    """A batch of which every row is wanted, and drawn from many times."""
    drawn = Draw(Sampler(temperature=1.0), seed=3)
    plain = batch([Feed([5, 6, 7], [page], rows=[1, 2], draws=[drawn, drawn]) for page in (0, 1)], page_size=16)
    words = plain.words.copy()
    Batch(words).row_keep[:] = 1
    Batch(words).row_draws[:] = N_DRAWS
    return Batch(words)


def test_no_token_is_cut_that_a_driver_draws() -> None:
    opening = partial(isolated.draws, vocab_size=64)
    driver = IsolatedDriver(opening, 64)
    try:
        found, here = driver.run(kept_and_drawn_from()), opening().run(kept_and_drawn_from())
        assert isinstance(found, Drawn)
        assert isinstance(here, Drawn)
        assert len(found.tokens) == 4 * N_DRAWS
        assert np.array_equal(found.tokens, here.tokens)
        assert np.array_equal(found.logits, here.logits)
    finally:
        driver.close()


def test_a_driver_that_draws_more_than_it_should_is_told_so() -> None:
    driver = IsolatedDriver(partial(isolated.draws, vocab_size=64, n_more=1 << 20), 64)
    try:
        with pytest.raises(DriverError, match=r"^ValueError: 1310720 tokens were drawn, and \d+ have room"):
            driver.run(kept_and_drawn_from())
    finally:
        driver.close()


def test_a_real_model_gives_the_same_tokens(tiny: Engine) -> None:
    opening = partial(open_driver, "cpu", EMBEDDED_FOLDER, DriverOptions(kv_bytes=16 << 20))
    given = {"prompt": list(range(5, 100)), "n": 12}
    with serving(opening) as (engine, _, _):
        assert run(engine, STEPPING, given).value == run(tiny, STEPPING, given).value


@pytest.mark.parametrize("follows", [False, True])
def test_killed_in_the_middle_of_many_programs(expected: list[list[int]], follows: bool) -> None:
    """Killed five times: what a program sees is `driver-lost`, and a retry gets the same tokens."""
    with serving(partial(isolated.dummy, follows=follows)) as (engine, model, driver):
        processes = launch(engine)
        for n_lost in range(1, 6):
            wait_for(batches_from(model, 4), "batches run")
            pid = driver.pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda n_lost=n_lost: model.stats()["n_device_losses"] == n_lost, "the loss is noticed")
            wait_for(lambda: model.state[0] == "serving" and driver.pid is not None, "the driver serves again")
            assert driver.pid != pid
        ends = outcomes(processes)
        assert [end.value[0] for end in ends] == expected
        assert any(end.value[1] for end in ends)
        model.check()


def test_stopped_it_is_killed_and_started_again(expected: list[list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "STOPPED_S", 0.1)
    with serving(isolated.dummy) as (engine, model, driver):
        processes = launch(engine)
        wait_for(batches_from(model, 4), "batches run")
        assert driver.pid is not None
        os.kill(driver.pid, signal.SIGSTOP)
        ends = outcomes(processes)
        assert [end.value[0] for end in ends] == expected
        assert any(end.value[1] for end in ends)
        assert model.stats()["n_device_losses"] == 1


ENDINGS: list[tuple[str, Callable[..., Driver], str]] = [
    ("ends", isolated.ends_once, r"it ended with exit code 7"),
    ("hangs", isolated.hangs_once, r"it did not answer the batch within 0.5 s, engine.driver_timeout_s, and was killed"),
]


@pytest.mark.parametrize(("how", "opening", "says"), ENDINGS, ids=[how for how, _, _ in ENDINGS])
def test_a_driver_that_breaks_off_says_how(tmp_path: Path, how: str, opening: Callable[..., Driver], says: str) -> None:
    asking = python_source("""
from inferlet import Context, Model, Sampler


async def main(input):
    ctx = Context(Model.load("default"))
    ctx.append([5, 6, 7])
    return await ctx.generate(Sampler.argmax(), max_tokens=20).collect_tokens()
""")
    with serving(partial(opening, tmp_path / "flag", 5), timeout_s=0.5) as (engine, _, _):
        failed = run(engine, asking)
        assert failed.code == "driver-lost", failed.message
        assert re.search(says, failed.message or ""), failed.message
        assert len(run(engine, asking).value) == 20


def test_one_that_is_killed_while_nothing_runs_is_started_again_unseen(expected: list[list[int]]) -> None:
    with serving(isolated.dummy) as (engine, model, driver):
        assert driver.pid is not None
        os.kill(driver.pid, signal.SIGKILL)
        wait_for(lambda: model.stats()["n_device_losses"] == 1, "the loss is noticed")
        assert [end.value for end in outcomes(launch(engine, 4))] == [[tokens, []] for tokens in expected[:4]]


def test_what_is_kept_as_tokens_outlives_the_driver() -> None:
    """A snapshot, a process that waits for its client, and what it was sent."""
    with serving(isolated.dummy) as (engine, model, driver):
        keeping = engine.launch(KEEPING, input={"prompt": list(range(40)), "opens": False})
        saved = keeping.next_event(PATIENCE_S)
        assert saved is not None
        assert saved.text == "saved"
        assert driver.pid is not None
        os.kill(driver.pid, signal.SIGKILL)
        wait_for(lambda: model.stats()["n_device_losses"] == 1, "the loss is noticed")
        assert model.stats()["n_pages_used"] + model.stats()["n_pages_cached"] == 0
        opened = run(engine, KEEPING, {"prompt": [1], "opens": True})
        keeping.send("go on")
        assert finish(keeping).value == opened.value
        assert len(opened.value) == 8


def test_one_that_ends_again_and_again_is_given_up_with_an_error() -> None:
    with serving(partial(isolated.ends_always, 2), restarts=2) as (engine, model, _):
        first = run(engine, COLLECTING, {"prompt": [5], "n": 50, "each": 50})
        assert first.code == "model-unavailable", first.message
        assert model.state[0] == "failed"
        refused = run(engine, COLLECTING, {"prompt": [5], "n": 50})
        assert refused.code == "model-unavailable"
        for part in ["the process of its driver was lost: it ended with exit code 7", "restarts_per_minute", "try again later"]:
            assert part in (refused.message or ""), refused.message


def test_one_that_cannot_be_started_again_tells_nothing_of_this_machine(tmp_path: Path) -> None:
    with serving(partial(isolated.opens_once, tmp_path / "flag"), restarts=1) as (engine, model, _):
        failed = run(engine, COLLECTING, {"prompt": [5], "n": 50, "each": 50})
        assert failed.code == "model-unavailable"
        assert "its driver cannot be started again (invalid-model)" in (failed.message or "")
        assert str(tmp_path) not in (failed.message or "") + model.state[1]


OPENINGS: list[tuple[Callable[[], Driver], str, str]] = [
    (isolated.refuses, "invalid-model", "^the weights are of another model$"),
    (isolated.breaks, "internal", "^the driver cannot be opened: ZeroDivisionError: a bug of the driver$"),
    (
        isolated.stops,
        "driver-lost",
        r"^the process of the driver was stopped \(SIGSTOP\) for 2 s, and was killed while the driver was opened$",
    ),
    (isolated.dies, "driver-lost", "^the process of the driver ended with exit code 9 while the driver was opened$"),
    (partial(isolated.dummy, vocab_size=4000), "invalid-config", "answers rows of 4000 logits, and 4096 are expected"),
]


@pytest.mark.parametrize(("opening", "code", "says"), OPENINGS, ids=["refuses", "breaks", "stops", "dies", "another vocabulary"])
def test_a_driver_that_cannot_be_opened_says_why(opening: Callable[[], Driver], code: str, says: str) -> None:
    with pytest.raises(PieError, match=says) as caught:
        IsolatedDriver(opening, VOCAB_SIZE)
    assert caught.value.code == code


def test_one_that_says_a_byte_at_a_time_is_late_too() -> None:
    driver, worker = socket.socketpair()
    with driver, worker:
        process: Any = DriverProcess.__new__(DriverProcess)
        process._connection, process._popen = driver, SimpleNamespace(pid=os.getpid())
        stop = threading.Event()

        def speak() -> None:
            with suppress(OSError):
                worker.sendall((1000).to_bytes(4, "little"))
                while not stop.wait(0.01):
                    worker.sendall(b" ")

        speaking = threading.Thread(target=speak)
        speaking.start()
        try:
            with pytest.raises(PieError, match=r"did not open it within 0\.3 s"):
                process.capabilities(lambda: True, 0.3)
        finally:
            stop.set()
            speaking.join()


def test_one_that_does_not_open_is_killed_at_the_start_and_at_a_restart(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    says = r"did not open it within 0\.2 s, engine\.driver_open_timeout_s, and was killed; raise that"
    driver = IsolatedDriver(partial(isolated.opens_late, flag), VOCAB_SIZE)
    try:
        flag.touch()
        with pytest.raises(PieError, match=says):
            IsolatedDriver(partial(isolated.opens_late, flag), VOCAB_SIZE, opening_timeout_s=0.2)
        driver._opening_timeout_s = 0.2
        with pytest.raises(PieError, match=says) as caught:
            driver.restart()
        assert caught.value.code == "driver-lost"
        assert (driver.pid, children()) == (None, [])
        # It is started as soon as it opens again.
        flag.unlink()
        driver._opening_timeout_s = 0.0
        driver.restart()
        assert children() == [str(driver.pid)]
    finally:
        driver.close()


def held() -> tuple[list[str], list[str], list[str]]:
    """The descriptors, the processes of drivers, and the threads that keep such a process."""
    gc.collect()
    descriptors = sorted(str(entry.readlink()) for entry in opened(Path("/proc/self/fd")))
    return descriptors, children(), [thread.name for thread in threading.enumerate() if "keeper" in thread.name]


def opened(folder: Path) -> list[Path]:
    """The descriptors of a process, without that of the folder itself."""
    return [entry for entry in folder.iterdir() if entry.exists() or entry.is_symlink()]


FAILURES: list[Callable[[], Driver]] = [isolated.refuses, isolated.dies, partial(isolated.dummy, vocab_size=4000)]


@pytest.mark.parametrize("opening", FAILURES, ids=["refuses", "dies", "another vocabulary"])
def test_one_that_cannot_be_opened_leaves_nothing_behind(opening: Callable[[], Driver]) -> None:
    def fail() -> None:
        with pytest.raises(PieError):
            IsolatedDriver(opening, VOCAB_SIZE)

    fail()  # what is opened once for all is open
    before = held()
    fail()
    assert held() == before


def test_one_whose_start_is_interrupted_leaves_nothing_behind() -> None:
    class Interrupted(ThreadPoolExecutor):
        """Whoever waits for what it starts is interrupted."""

        def submit(self, *arguments: Any, **options: Any) -> Future[Any]:
            future = super().submit(*arguments, **options)
            interrupt = Future[Any]()
            interrupt.set_exception(KeyboardInterrupt())
            interrupt.add_done_callback = future.add_done_callback  # type: ignore[method-assign]
            return interrupt

    def fail() -> None:
        with Interrupted(1, "pie-driver-keeper") as keeper, pytest.raises(KeyboardInterrupt):
            DriverProcess(keeper, VOCAB_SIZE, isolated.dummy)

    fail()
    before = held()
    fail()
    assert held() == before
    assert children() == []


def test_what_cannot_be_told_to_the_process_starts_none() -> None:
    with pytest.raises((AttributeError, pickle.PicklingError)):
        IsolatedDriver(lambda: isolated.dummy(), VOCAB_SIZE)  # noqa: PLW0108  # a function that cannot be pickled
    assert children() == []


def test_an_error_between_a_batch_and_its_answer_loses_the_process(expected: list[list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The next answer would be taken for that of another batch."""
    breaks = iter([None] * 3)

    def reasons(process: DriverProcess) -> isolation.Stopping:
        if next(breaks, "over") is None:
            raise ValueError("a bug of the engine")
        return isolation.Stopping(process)

    monkeypatch.setattr(isolated_driver, "Stopping", reasons)
    with serving(isolated.dummy) as (engine, model, _):
        assert [end.value[0] for end in outcomes(launch(engine))] == expected
        assert model.stats()["n_device_losses"] == 3


def test_an_interrupt_between_a_batch_and_its_answer_loses_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an error does: the next answer would be that of the batch that was interrupted."""
    driver = IsolatedDriver(isolated.dummy, VOCAB_SIZE)
    page_size = driver.capabilities.page_size
    first, second = (batch([Feed(tokens=[token], pages=[0], rows=[0])], page_size=page_size) for token in (1, 2))
    expected = isolated.dummy().run(second)

    def interrupts(_: DriverProcess) -> isolation.Stopping:
        raise KeyboardInterrupt

    try:
        with monkeypatch.context() as patch:
            patch.setattr(isolated_driver, "Stopping", interrupts)
            with pytest.raises(KeyboardInterrupt):
                driver.run(first)
        assert driver.pid is None
        with pytest.raises(DriverLostError):
            driver.run(second)
        driver.restart()
        assert np.array_equal(driver.run(second), expected)
    finally:
        driver.close()


def children() -> list[str]:
    """The processes of drivers that this one has."""
    tasks = Path("/proc/self/task").glob("*/children")
    found = [pid for task in tasks for pid in task.read_text(encoding="ascii").split()]
    return [pid for pid in found if b"pie.isolation.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_a_setting_that_is_refused_is_refused_the_same() -> None:
    errors = []
    for isolate in (False, True):
        with Engine() as engine, pytest.raises(PieError) as caught:
            engine.add_model(options=ModelConfig(kv_bytes=1 << 10, isolate=isolate))
        errors.append((caught.value.code, caught.value.message, dict(caught.value.details)))
    assert errors[0] == errors[1]


def test_the_process_has_nothing_of_the_engine_but_the_channel() -> None:
    listener = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(listener, True)
    try:
        with serving(isolated.dummy) as (_, _, driver):
            folder = Path(f"/proc/{driver.pid}/fd")
            opened = [str(entry.readlink()) for entry in folder.iterdir() if int(entry.name) > 2]
            known = re.compile(r"/memfd:pie-channel \(deleted\)|anon_inode:\[?eventfd\]?|socket:\[\d+\]|.*\.so(\.\d+)*")
            assert [path for path in opened if not known.fullmatch(path)] == []
            assert sum(path.startswith("socket:") for path in opened) == 1
    finally:
        os.close(listener)


def test_the_process_takes_no_more_than_is_counted_for_it() -> None:
    with serving(isolated.dummy) as (engine, _, driver):
        outcomes(launch(engine))
        lines = Path(f"/proc/{driver.pid}/status").read_text(encoding="ascii").splitlines()
    sizes = {name: value for name, _, value in (line.partition(":") for line in lines)}
    own = sum(int(sizes[name].split()[0]) << 10 for name in ("RssAnon", "RssShmem"))
    assert own <= driver_bytes(ModelConfig(driver="dummy", isolate=True))


def test_it_leaves_signals_to_the_engine_and_ends_with_it() -> None:
    with serving(isolated.dummy) as (engine, model, driver):
        pid = driver.pid
        assert pid is not None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(pid, number)
        assert run(engine, COLLECTING, {"prompt": [5], "n": 5}).code is None
        assert model.stats()["n_device_losses"] == 0
    assert not Path(f"/proc/{pid}").exists()


PARENT = """
import sys, time
from functools import partial
from pie.isolation.driver import IsolatedDriver
from pie.isolation.process import DriverProcess
from support import isolated

driver = IsolatedDriver(isolated.dummy, 4096)
print(driver.pid, flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("stopped", [False, True])
def test_it_is_killed_with_the_engine(stopped: bool) -> None:
    """Also while it is stopped and could not notice."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    if stopped:
        os.kill(pid, signal.SIGSTOP)
    parent.kill()
    parent.communicate()
    wait_for(lambda: is_gone(pid), "the process of the driver ends")


def is_gone(pid: int) -> bool:
    """Ended, whether or not whoever inherited it has waited for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
