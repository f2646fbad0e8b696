"""Engines, models and processes as Python sees them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from host.programs import PATIENCE_S, ROOT, TINY, VOCAB_SIZE, events, failed, launch, returned
from pie import _engine
from pie.errors import PieError
from pie.events import Event
from pie.launch import Launch


def test_settings_out_of_range_are_named() -> None:
    with pytest.raises(PieError, match="max_processes = 0 is outside 1 to") as error:
        _engine.Engine(settings={"max_processes": 0})
    assert error.value.code == "invalid-config"
    with pytest.raises(PieError, match=r'no setting "speed" in \[limits\]'):
        _engine.Engine(limits={"speed": 1})
    with pytest.raises(PieError, match="cpu_s"):
        _engine.Engine(limits={"cpu_s": -1.0})


def test_what_a_limit_is_can_be_asked_and_every_limit_can_be_set() -> None:
    settings = {setting.name: setting for setting in _engine.settings()["limits"]}
    memory = settings["memory_bytes"]
    assert (memory.default, memory.low, memory.high, memory.optional) == (256 << 20, 64 << 10, 4 << 30, False)
    assert settings["wall_s"].default is None
    assert settings["wall_s"].optional
    assert all(setting.description.endswith(".") for setting in settings.values())
    _engine.Engine(limits={name: setting.high for name, setting in settings.items()})
    for name, setting in settings.items():
        with pytest.raises(PieError, match=name):
            _engine.Engine(limits={name: setting.high * 2})


@pytest.mark.parametrize("value", [True, "1", -1, [1]])
def test_a_limit_that_is_no_number_is_named(value: object) -> None:
    with pytest.raises(PieError, match=r"limits\.resources = ") as error:
        _engine.Engine(limits={"resources": value})  # type: ignore[dict-item]
    assert error.value.code == "invalid-config"


def test_a_model_folder_that_cannot_be_served_is_named(engine: _engine.Engine, tmp_path: Path) -> None:
    with pytest.raises(PieError, match=r"tokenizer\.json") as error:
        engine.add_model("empty", tmp_path, capabilities={"vocab_size": 10, "max_positions": 10})
    assert error.value.code == "invalid-model"
    with pytest.raises(PieError, match="page_size = 0") as error:
        engine.add_model("tiny", TINY, capabilities={"vocab_size": VOCAB_SIZE, "max_positions": 10, "page_size": 0})
    assert error.value.code == "invalid-config"
    with pytest.raises(PieError, match=r"driver\.host_pages = 16777217 is outside 0 to 16777216; give"):
        engine.add_model("tiny", TINY, capabilities={"vocab_size": VOCAB_SIZE, "max_positions": 10, "host_pages": (1 << 24) + 1})


def test_names_of_models_are_unique_and_in_order(engine: _engine.Engine) -> None:
    for name in ("one", "two"):
        engine.add_model(name, TINY, capabilities={"vocab_size": VOCAB_SIZE, "max_positions": 64})
    assert engine.models == ["one", "two"]
    with pytest.raises(PieError, match='a model named "one" already') as error:
        engine.add_model("one", TINY, capabilities={"vocab_size": VOCAB_SIZE, "max_positions": 64})
    assert error.value.code == "invalid-config"


def test_an_unknown_model_lists_those_that_there_are(engine: _engine.Engine) -> None:
    engine.add_model("one", TINY, capabilities={"vocab_size": VOCAB_SIZE, "max_positions": 64})
    error = failed(launch(engine, "from inferlet import Model\nasync def main(input):\n    Model.load('huge')\n"))
    assert error.code == "unknown-model"
    assert '"huge"' in error.message
    assert "one" in error.message


def test_an_error_of_a_program_carries_its_own_lines(engine: _engine.Engine) -> None:
    error = failed(launch(engine, "async def main(input):\n    raise KeyError('lost')\n"))
    assert (error.code, error.kind) == ("program-error", "KeyError")
    assert 'File "main.py", line 2' in error.traceback


def test_a_launch_is_repeated_by_its_seed(engine: _engine.Engine) -> None:
    source = "import random, os\nfrom inferlet import runtime\nasync def main(input):\n    return [random.random(), os.urandom(8).hex()]\n"
    first, again, other = (returned(launch(engine, source, seed=seed)) for seed in (7, 7, 8))
    assert first == again
    assert first != other
    process = launch(engine, source, seed=None)
    assert returned(process) == returned(launch(engine, source, seed=process.launch_seed))


def test_messages_go_both_ways(engine: _engine.Engine) -> None:
    source = """
from inferlet import session

async def main(input):
    while (text := await session.receive()) != "end":
        session.send(text.upper())
    return "done"
"""
    process = launch(engine, source)
    for text in ("one", "two", "end"):
        process.send(text)
    told = events(process)
    assert told == [Event.Stdout("ONE"), Event.Stdout("TWO"), Event.Return('"done"')]
    assert [event.seq for event in told] == [1, 2, 3]
    with pytest.raises(PieError) as error:
        process.send("late")
    assert error.value.code == "session-closed"


def test_an_event_that_could_not_be_made_is_read_again(engine: _engine.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_arguments: object, **_named: object) -> None:
        raise KeyboardInterrupt

    process = launch(engine, "async def main(input):\n    return 1\n")
    with monkeypatch.context() as patch:
        patch.setattr(Event, "Return", interrupted)
        with pytest.raises(KeyboardInterrupt):
            process.next_event(PATIENCE_S)
    assert not process.ended
    last = process.next_event(PATIENCE_S)
    assert (last, last and last.seq, process.ended) == (Event.Return("1"), 1, True)


def test_cancelling_ends_a_program(engine: _engine.Engine) -> None:
    process = launch(engine, "async def main(input):\n    print('up')\n    while True:\n        pass\n")
    first = process.next_event(PATIENCE_S)
    assert first is not None
    assert first.text.strip() == "up"
    process.cancel()
    assert failed(process).code == "cancelled"
    assert process.cpu_s > 0.0
    assert process.launch_s is not None


def test_a_language_without_a_runtime_is_named(engine: _engine.Engine) -> None:
    with pytest.raises(PieError, match="ruby") as error:
        engine.launch(("ruby", {}, "main.rb"), Launch())  # type: ignore[arg-type]
    assert error.value.code == "invalid-argument"


def test_what_is_no_component_is_named(engine: _engine.Engine) -> None:
    assert failed(engine.launch(b"\0asm\x01\0\0\0", Launch())).code == "invalid-program"
    with pytest.raises(PieError, match="not WebAssembly") as error:
        engine.prepare(b"hello")
    assert error.value.code == "invalid-program"
    assert error.value.details == {}
    assert not engine.is_prepared(b"hello")


def test_after_the_stop_launches_are_refused(engine: _engine.Engine) -> None:
    engine.stop()
    with pytest.raises(PieError) as error:
        launch(engine, "async def main(input): pass")
    assert error.value.code == "engine-stopped"


def test_two_engines_in_one_process(engine: _engine.Engine, cache_dir: Path) -> None:
    second = _engine.Engine(cache_dir=cache_dir, runtimes_dir=ROOT / "python" / "pie" / "runtimes", instance_id="second")
    source = "from inferlet import runtime\nasync def main(input):\n    return runtime.instance_id()\n"
    assert returned(launch(second, source)) == "second"
    second.stop()
    assert returned(launch(engine, source)) == engine.instance_id


def test_ctrl_c_ends_a_wait() -> None:
    script = f"""
        import sys
        sys.path.insert(0, {str(ROOT / "python")!r})
        from pie import _engine
        engine = _engine.Engine()
        model = engine.add_model("tiny", {str(TINY)!r}, capabilities={{"vocab_size": {VOCAB_SIZE}, "max_positions": 64}})
        try:
            print("waiting", flush=True)
            model.next_work(60.0)
        except KeyboardInterrupt:
            sys.exit(7)
    """
    waiting = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "waiting\n"
    os.kill(waiting.pid, signal.SIGINT)
    assert waiting.wait(PATIENCE_S) == 7


def test_ctrl_c_ends_the_wait_for_a_compilation() -> None:
    script = f"""
        import sys
        sys.path.insert(0, {str(ROOT / "python")!r})
        from pie import _engine
        engine = _engine.Engine(runtimes_dir={str(ROOT / "python" / "pie" / "runtimes")!r})
        try:
            print("preparing", flush=True)
            engine.prepare("python")
        except KeyboardInterrupt:
            sys.exit(3 if engine.is_prepared("python") else 7)
    """
    preparing = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    assert preparing.stdout is not None
    assert preparing.stdout.readline() == "preparing\n"
    os.kill(preparing.pid, signal.SIGINT)
    assert preparing.wait(PATIENCE_S) == 7
