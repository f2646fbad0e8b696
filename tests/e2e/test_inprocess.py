"""Programs that Python runs in an engine of its own process: `pie.run`, `pie.Engine`, with and without asyncio."""

from __future__ import annotations

import asyncio
import gc
import inspect
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

import pie
from pie.config import EMBEDDED, EngineConfig
from pie.engine import Engine as RawEngine
from pie.inprocess.engine import EngineOptions, LaunchOptions, RunOptions, _close
from support.command import PATIENCE_S, environment
from support.launching import ROOT
from support.serving import ECHO, SPIN

GUIDE = (ROOT / "docs/guide/embedding.md").read_text(encoding="utf-8")
DOUBLE = pie.source("def main(input):\n    return input * 2")
TALK = pie.source(
    """
    import sys
    from inferlet import session

    def main(input):
        print("printed", end="")
        session.send({"a": 1})
        session.message("beside")
        session.send_file(b"data")
        print("told", file=sys.stderr)
        return None
    """
)
GENERATE = pie.source(
    """
    from inferlet import Context, Model, Sampler

    async def main(input):
        return await Context(Model.load("default")).user(input).generate(Sampler.top_p(0.9, 0.95), max_tokens=12).collect_text()
    """
)


@pytest.fixture(scope="module")
def engine() -> Iterator[pie.Engine]:
    with pie.Engine(dummy=True) as opened:
        yield opened


def ignore(_event: pie.AnyEvent) -> None:
    """Shows nothing of an event."""


def test_run_and_run_async_take_the_same() -> None:
    waiting, awaited = (inspect.signature(function) for function in (pie.run, pie.run_async))
    assert waiting.parameters == awaited.parameters
    opening = inspect.signature(pie.Engine).parameters.keys()
    assert EngineOptions.__optional_keys__ == frozenset(opening)
    assert RunOptions.__optional_keys__ == EngineOptions.__optional_keys__ | LaunchOptions.__optional_keys__


def test_an_unknown_argument_of_a_run_is_refused() -> None:
    with pytest.raises(TypeError, match=r"run\(\) has no option 'riddle'; its options are args, .*run\(program, \{'riddle': \.\.\.\}\)"):
        pie.run(DOUBLE, 2, dummy=True, riddle=1)
    with pie.Engine(dummy=True) as engine, pytest.raises(TypeError, match=r"^run\(\) has no option 'sed'; did you mean 'seed'\?"):
        engine.run(DOUBLE, 2, sed=1)
    with pie.Engine(dummy=True) as engine:
        for callee in ("run", "launch"):
            with pytest.raises(TypeError, match=rf"^{callee}\(\) has no option 'inputs'; did you mean 'input'\?"):
                getattr(engine, callee)(DOUBLE, inputs=2)


def test_a_program_runs_in_one_call(tmp_path: Path) -> None:
    (tmp_path / "double.py").write_text("def main(input):\n    return input * 2\n")
    assert pie.run(str(tmp_path / "double.py"), 21, dummy=True) == 42
    assert pie.run(tmp_path / "double.py", [1], dummy=True) == [1, 1]
    assert (
        pie.run(pie.source("export function main(input: number): number { return input * 2; }", language="typescript"), 4, dummy=True) == 8
    )


DEEP = {
    "python": "def main(n):\n    x = 1\n    for _ in range(n): x = [x]\n    return x\n",
    "typescript": "export function main(n: number) { let x: unknown = 1; for (let i = 0; i < n; i++) x = [x]; return x; }",
}


@pytest.mark.parametrize("language", DEEP)
def test_what_a_program_may_return_is_given_back_however_deep_it_nests(engine: pie.Engine, language: Any) -> None:
    program = pie.source(DEEP[language], language=language)
    value, n_levels = engine.run(program, 500, on_event=ignore), 0
    while isinstance(value, list):
        (value,), n_levels = value, n_levels + 1
    assert (value, n_levels) == (1, 500)
    with pytest.raises(pie.PieError, match="is nested more than 500 deep") as caught:
        engine.run(program, 501, on_event=ignore)
    assert caught.value.code == "invalid-output"


def test_without_a_model_the_embedded_one_answers_and_a_seed_repeats_it() -> None:
    with pie.Engine(EMBEDDED) as engine:
        assert engine.models == [EMBEDDED]
        first = engine.run(GENERATE, "Hello", seed=7)
        assert first
        assert engine.run(GENERATE, "Hello", seed=7) == first
        assert set(engine.stats()) == {EMBEDDED}
    assert pie.run(GENERATE, "Hello", seed=7, model=EMBEDDED) == first


def test_what_a_program_writes_is_printed_as_it_comes(engine: pie.Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert engine.run(TALK) is None
    printed = capsys.readouterr()
    assert printed.out == 'printed\n{"a":1}\n'
    assert "told\n" in printed.err
    assert "the program sent a file of 4 bytes" in printed.err


def test_a_function_takes_the_events_in_the_place_of_the_terminal(engine: pie.Engine, capsys: pytest.CaptureFixture[str]) -> None:
    events: list[pie.AnyEvent] = []
    engine.run(TALK, on_event=events.append)
    assert capsys.readouterr() == ("", "")
    kinds = [type(event) for event in events]
    assert {pie.Event.Stdout, pie.Event.Stderr, pie.Event.Message, pie.Event.File} <= set(kinds)
    assert kinds[-1] is pie.Event.Return
    assert [event.value for event in events if isinstance(event, pie.Event.Stdout) and event.form] == [{"a": 1}]


def test_messages_reach_the_program_and_then_the_session_ends(engine: pie.Engine) -> None:
    sent: list[pie.AnyEvent] = []
    assert engine.run(pie.source(ECHO), messages=["a", "file", b"xyz"], on_event=sent.append) == 2
    assert [event.text for event in sent if isinstance(event, pie.Event.Stdout)] == ["ready", "<a>"]
    assert [event.data for event in sent if isinstance(event, pie.Event.File)] == [b"zyx"]
    # More than its queue holds, which it never reads.
    assert engine.run(DOUBLE, 2, messages=["x"] * 5000, on_event=ignore) == 4


def test_a_process_is_talked_to_and_its_events_are_read_in_one_place(engine: pie.Engine) -> None:
    process = engine.launch(pie.source(ECHO), seed=7)
    assert process.launch_seed == 7
    events = process.events()
    assert next(events) == pie.Event.Stdout("ready")
    process.send("hey")
    assert next(events) == pie.Event.Stdout("<hey>")
    process.close_input()
    assert not process.ended
    assert list(process.events()) == [pie.Event.Return("1")]
    assert process.ended
    assert process.result() == process.result() == 1


def test_the_first_loop_keeps_all_events_and_a_second_is_told_so(engine: pie.Engine) -> None:
    process = engine.launch(pie.source(ECHO))
    begun, goes_on = threading.Event(), threading.Event()
    read: list[pie.AnyEvent] = []

    def loop() -> None:
        for event in process.events():
            read.append(event)
            begun.set()
            assert goes_on.wait(PATIENCE_S)

    reading = threading.Thread(target=loop)
    reading.start()
    assert begun.wait(PATIENCE_S)
    with pytest.raises(pie.PieError, match="are read already") as caught:
        process.events()
    assert caught.value.code == "future-taken"
    process.close_input()
    goes_on.set()
    reading.join(PATIENCE_S)
    assert read == [pie.Event.Stdout("ready"), pie.Event.Return("0")]
    assert process.result() == 0


@pytest.mark.parametrize(
    ("text", "code", "kind"),
    [
        ("def main(input):\n    raise KeyError('x')", "program-error", "KeyError"),
        ("def main(input):\n    return {1, 2}", "invalid-output", None),
        ("def main(input:\n", "invalid-program", None),
    ],
)
def test_an_error_of_the_program_is_raised_with_its_code(engine: pie.Engine, text: str, code: str, kind: str | None) -> None:
    with pytest.raises(pie.PieError) as caught:
        engine.run(pie.source(text), on_event=ignore)
    assert caught.value.code == code
    if kind is not None:
        assert caught.value.details["kind"] == kind
        assert any("KeyError: 'x'" in note for note in caught.value.__notes__)


def test_one_who_waits_for_what_never_comes_is_told() -> None:
    waits = pie.source("import asyncio\nasync def main(input):\n    await asyncio.Queue().get()")
    with pytest.raises(pie.PieError) as caught:
        pie.run(waits, dummy=True, on_event=ignore)
    assert caught.value.code == "deadlock"


@pytest.mark.parametrize(
    ("call", "code", "told"),
    [
        (lambda engine: engine.run("nowhere.py"), "unknown-program", "nowhere.py"),
        (lambda engine: engine.run(5), "invalid-argument", r"program is 5 \(int\); give the path"),
        (lambda engine: engine.run(DOUBLE, {1, 2}), "invalid-argument", r"input is \{1, 2\} \(set\); give JSON"),
        (lambda engine: engine.run(DOUBLE, {1: 2}), "invalid-argument", r"a key in input is 1 \(int\)"),
        (
            lambda engine: engine.run(DOUBLE, MappingProxyType({"a": 1})),
            "invalid-argument",
            "cannot be written as JSON: Object of type mappingproxy",
        ),
        (lambda engine: engine.run(DOUBLE, float("nan")), "invalid-argument", "give a finite number"),
        (lambda engine: engine.run(DOUBLE, "\ud800"), "invalid-argument", "half of a character"),
        (lambda engine: engine.run(DOUBLE, 1, seed=-1), "invalid-argument", "seed is -1"),
        (lambda engine: engine.run(DOUBLE, 1, seed=True), "invalid-argument", "seed is True"),
        (lambda engine: engine.run(DOUBLE, 1, args="abc"), "invalid-argument", "args is 'abc'"),
        (lambda engine: engine.run(DOUBLE, 1, args=[1]), "invalid-argument", r"args\[0\] is 1"),
        (lambda engine: engine.run(DOUBLE, 1, username=5), "invalid-argument", "username is 5"),
        (lambda engine: engine.run(DOUBLE, 1, token_budget=0.5), "invalid-argument", "token_budget is 0.5"),
        (lambda engine: engine.run(DOUBLE, 1, limits=[1]), "invalid-argument", r"limits is \[1\]"),
        (lambda engine: engine.run(DOUBLE, 1, programs=["a.py"]), "invalid-argument", "programs is "),
        (lambda engine: engine.run(DOUBLE, 1, messages="abc"), "invalid-argument", "messages is 'abc'"),
        (lambda engine: engine.run(DOUBLE, 1, messages=[1]), "invalid-argument", r"messages\[0\] is 1"),
        (lambda engine: engine.run(DOUBLE, 1, on_event=5), "invalid-argument", r"on_event is 5 \(int\); give a function that takes"),
        (lambda engine: engine.launch(pie.source(ECHO)).send(5), "invalid-argument", r"text is 5 \(int\); give a str"),
        (lambda engine: engine.launch(pie.source(ECHO)).send("a", "soon"), "invalid-argument", r"timeout_s is 'soon' \(str\)"),
        (lambda engine: engine.launch(pie.source(ECHO)).send_file("a"), "invalid-argument", r"data is 'a' \(str\); give bytes"),
        (lambda engine: engine.run(DOUBLE, 1, limits={"speed": 1}), "invalid-argument", "speed"),
        (lambda engine: engine.run(DOUBLE, 1, limits={"walls": 3}), "invalid-argument", "no limit 'walls'; did you mean 'wall_s'?"),
        (lambda engine: engine.run("def main(input): return 3"), "invalid-argument", r"write pie.source\(text\)"),
        (lambda engine: engine.run("\nimport json\n" * 1000), "invalid-argument", r"write pie.source\(text\)"),
        (lambda _: pie.Engine("nowhere"), "invalid-model", "model 'nowhere' is neither"),
        (lambda _: pie.Engine(5), "invalid-argument", r"model is 5 \(int\)"),
        (lambda _: pie.Engine(settings={"limits.cpu": 5}), "invalid-config", "settings: there is no setting 'limits.cpu'; did you mean"),
        (lambda _: pie.Engine(settings={"limits.cpu_s": -5}), "invalid-config", "settings: limits.cpu_s = -5 is not possible"),
        (lambda _: pie.Engine(config="nowhere.toml"), "invalid-config", "nowhere.toml"),
        (lambda _: pie.source("", language="cobol"), "invalid-argument", "language is 'cobol'"),
        (lambda _: pie.source("a\ud800"), "invalid-argument", "half of a character that stands at 1"),
        (lambda _: pie.source(b"a"), "invalid-argument", "text is b'a'"),
    ],
)
def test_mistakes_of_the_caller_are_named(engine: pie.Engine, call: Any, code: str, told: str) -> None:
    with pytest.raises(pie.PieError, match=told) as caught:
        call(engine)
    assert caught.value.code == code


def test_a_launch_lowers_limits_and_settings_go_before_the_configuration(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[limits]\ncpu_s = 100\n")
    spin = pie.source(SPIN)
    with pie.Engine(dummy=True, config=config, settings={"limits.cpu_s": 0.2}) as engine:
        with pytest.raises(pie.PieError, match=re.escape("0.2")) as caught:
            engine.run(spin, on_event=ignore)
        assert caught.value.code == "limit-cpu"
        with pytest.raises(pie.PieError, match=re.escape("0.1")):
            engine.run(spin, limits={"cpu_s": 0.1}, on_event=ignore)


def test_an_exception_of_the_function_ends_the_program_and_so_does_the_end_of_the_engine() -> None:
    def give_up(_event: pie.AnyEvent) -> None:
        raise OSError("no room")

    with pie.Engine(dummy=True) as engine:
        with pytest.raises(OSError, match="no room"):
            engine.run(pie.source(SPIN), on_event=give_up)
        process = engine.launch(pie.source(SPIN))
        assert next(process.events()) == pie.Event.Stdout("spinning\n")
    with pytest.raises(pie.PieError) as caught:
        process.result()
    assert caught.value.code == "engine-stopped"
    engine.close()
    with pytest.raises(pie.PieError, match="this engine is closed; open another one") as caught:
        engine.launch(DOUBLE, 1)
    assert caught.value.code == "engine-stopped"


def test_an_engine_lives_as_long_as_a_process_of_it_is_held() -> None:
    process = pie.Engine(dummy=True).launch(DOUBLE, 4)
    gc.collect()
    assert process.result() == 8


@pytest.mark.parametrize("is_here", [False, True])
def test_a_collector_on_a_thread_that_the_engine_waits_for_closes_it_on_another(is_here: bool) -> None:
    closing: SimpleQueue[threading.Thread] = SimpleQueue()
    engine = SimpleNamespace(is_driven_here=is_here, close=lambda: closing.put(threading.current_thread()))
    _close(engine)  # type: ignore[arg-type]
    assert (closing.get(timeout=PATIENCE_S) is threading.current_thread()) is not is_here


def test_an_engine_knows_the_threads_that_it_waits_for(tmp_path: Path) -> None:
    seen: list[bool] = []
    raw = RawEngine(EngineConfig(data_dir=tmp_path))
    raw.add_model(observe=lambda _batch, _logits: seen.append(raw.is_driven_here))
    with pie.Engine.of(raw) as engine:
        engine.run(GENERATE, "Hello", on_event=ignore)
        assert seen
        assert all(seen)
        assert not raw.is_driven_here


def test_programs_of_several_threads_share_an_engine(engine: pie.Engine) -> None:
    answers: dict[int, Any] = {}

    def ask(number: int) -> None:
        answers[number] = engine.run(DOUBLE, number, on_event=ignore)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: 2 * number for number in range(8)}


def test_it_is_awaited_and_blocks_where_a_loop_runs(engine: pie.Engine) -> None:
    async def main() -> None:
        # As in a cell of a notebook.
        assert engine.run(DOUBLE, 1, on_event=ignore) == 2
        assert await asyncio.gather(*(engine.run_async(DOUBLE, n, on_event=ignore) for n in range(20))) == [2 * n for n in range(20)]
        assert await pie.run_async(DOUBLE, 4, dummy=True, on_event=ignore) == 8
        process = engine.launch(pie.source(ECHO))
        events = process.events()
        assert await anext(events) == pie.Event.Stdout("ready")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(events), 0.01)
        # What came after the wait was given up is not lost, whoever reads it.
        process.send("a")
        assert next(events) == pie.Event.Stdout("<a>")
        process.close_input()
        assert await process.result_async() == 1
        assert [event async for event in process.events()] == []

    asyncio.run(main())


def test_a_task_that_is_cancelled_ends_its_program(engine: pie.Engine) -> None:
    async def main() -> None:
        events: asyncio.Queue[pie.AnyEvent] = asyncio.Queue()
        task = asyncio.create_task(engine.run_async(pie.source(SPIN), on_event=events.put_nowait))
        assert await events.get() == pie.Event.Stdout("spinning\n")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    # Its place is free again: the engine ends with nothing running.
    assert engine.run(DOUBLE, 3, on_event=ignore) == 6


def test_who_drops_a_process_ends_its_program(engine: pie.Engine) -> None:
    async def begin() -> pie.Process:
        process = engine.launch(pie.source(SPIN))
        async for _ in process.events():
            break
        return process

    process = asyncio.run(begin())
    threads = [thread for thread in threading.enumerate() if thread.name == f"pie-events-{process.pid}"]
    assert len(threads) == 1
    del process
    gc.collect()
    threads[0].join(PATIENCE_S)
    assert not threads[0].is_alive()


INTERRUPTED = """
import os, signal, sys, threading
import pie

def interrupt(event):
    if isinstance(event, pie.Event.Stdout):
        os.kill(os.getpid(), signal.SIGINT)

try:
    with pie.Engine(dummy=True) as engine:
        engine.run(pie.source(sys.argv[1]), on_event=interrupt)
except KeyboardInterrupt:
    print("interrupted")
"""
FORGOTTEN = """
import sys
import pie

engine = pie.Engine()
process = engine.launch(pie.source(sys.argv[1]))
print(next(process.events()).text, end="")
"""


@pytest.mark.parametrize(("script", "printed"), [(INTERRUPTED, "interrupted\n"), (FORGOTTEN, "spinning\n")])
def test_ctrl_c_ends_a_run_and_who_forgets_to_close_still_ends(script: str, printed: str) -> None:
    command = [sys.executable, "-c", script, SPIN]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment(), check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


def test_importing_pie_imports_no_engine() -> None:
    script = "import sys, pie\nprint(sorted(name for name in sys.modules if name.startswith('pie')), 'typing' in sys.modules, dir(pie))"
    done = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, check=False, cwd=ROOT / "python")
    assert done.stdout.startswith("['pie'] False ["), done.stderr
    assert "'run'" in done.stdout


def test_the_snippets_of_the_guide_run(tmp_path: Path) -> None:
    program, *snippets = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    assert program.startswith("# poet.py\n")
    assert len(snippets) == 6
    (tmp_path / "poet.py").write_text(program)
    (tmp_path / "guide.py").write_text("\n".join(snippets))
    done = subprocess.run(
        [sys.executable, "guide.py"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, env=environment(), check=False
    )
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.isupper() and line.isalpha()] == ["RAIN", "RAIN", "SNOW"]
