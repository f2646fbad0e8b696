"""A device that is lost ends the process of its driver; in the process of the engine it ends what drives the model."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from functools import partial

import pytest

from pie.backends.base import DriverLostError
from pie.engine import Engine
from pie.errors import PieError
from pie.isolation import wire
from pie.isolation.driver import IsolatedDriver
from pie.isolation.process import DriverProcess
from pie.isolation.worker import LOST
from support import isolated
from support.arenas import Feed, batch
from support.engines import started
from support.isolated import COLLECTING, STEPPING, VOCAB_SIZE
from support.launching import finish


def frame(content: bytes) -> bytes:
    """As the two processes send it."""
    return struct.pack("<I", len(content)) + content


ROW = batch([Feed([1, 2], [0], rows=[1])], page_size=16)


def test_the_process_of_a_driver_ends_with_its_device(capfd: pytest.CaptureFixture[str]) -> None:
    driver = IsolatedDriver(partial(isolated.losing, 2), VOCAB_SIZE)
    first = driver.run(ROW).copy()
    with pytest.raises(DriverLostError, match=rf"it ended with exit code {LOST} \(the device does not work any more\)"):
        driver.run(ROW)
    assert "the driver is lost: the device does not work any more" in capfd.readouterr().err
    driver.restart()
    assert (driver.run(ROW) == first).all()
    driver.close()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"", ""),
        (b"\x09", ""),
        (frame(b'{"lost": "the device'), ""),
        (frame(b"[" * 100_000), ""),
        (frame(b'["lost"]'), ""),
        (frame(b'{"lost": ["a"]}'), ""),
        (frame(b'{"lost": "first\\nsecond"}'), " (first)"),
        (frame(b'{"lost": "' + b"x" * 5000 + b'"}'), f" ({'x' * wire.MAX_REASON_CHARACTERS})"),
    ],
)
def test_what_a_process_says_at_its_end_is_a_reason_or_nothing(said: bytes, told: str) -> None:
    """Whatever it is: the process of a driver runs code of others."""
    process = DriverProcess.__new__(DriverProcess)
    process._reason, (process._connection, theirs) = "", socket.socketpair()
    process._popen = subprocess.Popen([sys.executable, "-c", f"raise SystemExit({LOST})"])
    process._popen.wait()
    theirs.sendall(said)
    theirs.close()
    assert process.ending() == f"ended with exit code {LOST}{told}"
    process._connection.close()


def test_programs_go_on_where_the_driver_has_a_process() -> None:
    engine = Engine()
    engine.add_model(driver=IsolatedDriver(partial(isolated.losing, 5), VOCAB_SIZE))
    with started(engine):
        outcome = finish(engine.launch(STEPPING, input={"prompt": [5, 6, 7], "n": 6}))
    assert outcome.code is None, outcome.message
    tokens, codes = outcome.value
    assert len(tokens) == 6
    assert set(codes) == {"driver-lost"}


def test_without_one_the_engine_says_so_and_refuses(capfd: pytest.CaptureFixture[str]) -> None:
    engine = Engine()
    model = engine.add_model(driver=isolated.losing(1))
    with started(engine):
        outcome = finish(engine.launch(STEPPING, input={"prompt": [5, 6, 7], "n": 6}))
        assert outcome.code == "model-unavailable", outcome.message
        assert "its driver was lost: the device does not work any more" in str(outcome.message)
        refused = finish(engine.launch(COLLECTING, input={"prompt": [5, 6, 7], "n": 6}))
        assert refused.code == "model-unavailable"
    expected = f"the driver of {model.name} was lost: the device does not work any more; start the engine again"
    assert f"error[driver-lost]: {expected}" in capfd.readouterr().err


def test_what_drives_the_first_model_ends_with_an_error() -> None:
    with Engine() as engine:
        engine.add_model(driver=isolated.losing(1))
        process = engine.launch(COLLECTING, input={"prompt": [5, 6, 7], "n": 6})
        with pytest.raises(PieError, match="was lost: the device does not work any more; start the engine again") as caught:
            engine.drive()
        assert caught.value.code == "driver-lost"
        assert finish(process).code == "model-unavailable"
