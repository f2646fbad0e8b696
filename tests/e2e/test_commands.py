"""Commands to drivers: load, copy and drop an adapter, in this process and in one of their own."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pie.backends.base import AdapterName, Driver, LoadAdapter
from pie.config import ModelConfig
from pie.engine import Engine
from pie.errors import PieError
from pie.isolation.driver import IsolatedDriver
from support import isolated
from support.launching import finish, python_source

ADAPTER, COPY = (7, 0), (7, 1)
CREATES = python_source("""
from inferlet import Adapter, Model, runtime


async def main(input):
    Adapter.create(Model.load(runtime.models()[0]), "a")
""")


def fails(what: Callable[[], None]) -> str:
    with pytest.raises(PieError) as caught:
        what()
    return caught.value.code


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("follows", [False, True])
def test_the_dummy_driver_takes_commands(apart: bool, follows: bool) -> None:
    opening = partial(isolated.dummy, follows=follows)
    driver: Driver = IsolatedDriver(opening, isolated.VOCAB_SIZE) if apart else opening()
    with Engine() as engine:
        model = engine.add_model(driver=driver)
        engine.start()
        model.load_adapter(ADAPTER, "/adapters/one")
        model.copy_adapter(ADAPTER, COPY)
        model.drop_adapter(ADAPTER)
        assert fails(lambda: model.copy_adapter(ADAPTER, COPY)) == "driver-failed"
        model.drop_adapter(COPY)
        assert fails(lambda: model.drop_adapter(COPY)) == "driver-failed"
        assert fails(lambda: model.load_adapter((0, 0), "/adapters/one")) == "invalid-argument"
        assert fails(lambda: model.load_adapter(ADAPTER, "")) == "invalid-argument"
        stats = model.stats()
        assert (stats["n_commands"], stats["n_requests"], stats["n_stuck"]) == (6, 0, 0)
        model.check()


@pytest.mark.parametrize("isolate", [False, True])
def test_a_driver_without_adapters_says_so(isolate: bool) -> None:
    driver = IsolatedDriver(isolated.without_adapters, isolated.VOCAB_SIZE) if isolate else isolated.without_adapters()
    with Engine() as engine:
        model = engine.add_model(driver=driver)
        engine.start()
        with pytest.raises(PieError, match="no adapters on this driver") as caught:
            model.load_adapter(ADAPTER, "/adapters/one")
        assert caught.value.code == "unsupported"
        outcome = finish(engine.launch(CREATES, input={}))
        assert (outcome.code, "no adapters on this driver" in str(outcome.message)) == ("unsupported", True)


@pytest.mark.parametrize("isolate", [False, True])
def test_an_adapter_that_cannot_be_taken_is_told_by_its_code(tmp_path: Path, isolate: bool) -> None:
    """By the embedded model on the `cpu` driver, in this process and in one of its own."""
    with Engine() as engine:
        model = engine.add_model(options=ModelConfig(isolate=isolate, adapter_bytes=0))
        engine.start()
        with pytest.raises(PieError, match=r"there is no adapter_model\.safetensors") as caught:
            model.load_adapter(ADAPTER, str(tmp_path))
        assert caught.value.code == "invalid-adapter"
        outcome = finish(engine.launch(CREATES, input={}))
        assert (outcome.code, "raise adapter_bytes" in str(outcome.message)) == ("limit-adapters", True)


def test_a_process_says_that_its_driver_takes_no_commands() -> None:
    """Also where the driver has declared otherwise."""
    driver = IsolatedDriver(isolated.speechless, isolated.VOCAB_SIZE)
    with Engine() as engine:
        model = engine.add_model(driver=driver)
        engine.start()
        assert fails(lambda: model.load_adapter(ADAPTER, "/adapters/one")) == "unsupported"
        assert driver.pid is not None


def test_a_command_is_lost_with_the_process_of_its_driver(tmp_path: Path) -> None:
    driver = IsolatedDriver(partial(isolated.ends_at_a_command, tmp_path / "flag"), isolated.VOCAB_SIZE)
    with Engine() as engine:
        model = engine.add_model(driver=driver)
        engine.start()
        assert fails(lambda: model.load_adapter(ADAPTER, "/adapters/one")) == "driver-lost"
        model.load_adapter(ADAPTER, "/adapters/one")


LONGEST = ("\x01" * 4096, "é" * 2048, "語" * 1365, "🦀" * 1024)
"""Paths of as many bytes as one may have, which take more room the less of them is ASCII."""


@pytest.mark.parametrize("path", LONGEST, ids=[repr(path[0]) for path in LONGEST])
def test_the_longest_command_has_room_whatever_the_sizes_of_batches(path: str) -> None:
    driver = IsolatedDriver(isolated.refuses_all, isolated.VOCAB_SIZE)
    least = ModelConfig(max_batch_tokens=1, prefill_chunk=1, max_batch_seqs=1, max_batch_rows=1)
    with Engine() as engine:
        model = engine.add_model(driver=driver, options=least)
        engine.start()
        with pytest.raises(PieError) as caught:
            model.load_adapter(ADAPTER, path)
        asked = LoadAdapter(AdapterName(*ADAPTER), path)
        assert hashlib.sha256(repr(asked).encode()).hexdigest() in caught.value.message


def test_a_batch_that_a_driver_does_not_serve_fails_as_in_this_process() -> None:
    """It is an error of the driver, which has to serve batches."""
    messages = []
    for driver in (isolated.refuses_all(), IsolatedDriver(isolated.refuses_all, isolated.VOCAB_SIZE)):
        with Engine() as engine:
            engine.add_model(driver=driver)
            engine.start()
            outcome = finish(engine.launch(isolated.COLLECTING, input={"prompt": [5], "n": 1}))
            messages.append((outcome.code, outcome.message))
    assert messages[0] == messages[1]
    assert messages[0][0] == "driver-failed"
    assert "UnsupportedError: no batches on this driver" in messages[0][1]


def test_a_driver_that_is_started_again_has_its_adapters() -> None:
    driver = IsolatedDriver(isolated.dummy, isolated.VOCAB_SIZE)
    with Engine() as engine:
        model = engine.add_model(driver=driver)
        engine.start()
        model.load_adapter(ADAPTER, "/adapters/one")
        model.copy_adapter(ADAPTER, COPY)
        assert driver.pid is not None
        os.kill(driver.pid, signal.SIGKILL)
        isolated.wait_for(lambda: model.stats()["n_device_losses"] == 1 and model.state[0] == "serving", "a new driver")
        # The dummy driver drops what it has, and nothing else.
        model.drop_adapter(COPY)
        model.drop_adapter(ADAPTER)
        assert fails(lambda: model.drop_adapter(ADAPTER)) == "driver-failed"


def test_an_engine_that_stops_tells_who_waits_for_a_command() -> None:
    """Nobody drives the model."""
    engine = Engine()
    model = engine.add_model(driver=isolated.dummy())
    codes: list[str] = []
    asking = threading.Thread(target=lambda: codes.append(fails(lambda: model.load_adapter(ADAPTER, "/adapters/one"))))
    asking.start()
    engine.stop()
    asking.join(60.0)
    assert codes == ["engine-stopped"]
