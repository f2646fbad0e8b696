"""The language runtime: loading of a program from its files, `main`, output in order, and what is told of a failure."""

import asyncio
import json
import sys
import warnings

import pytest
from componentize_py_types import Err, Ok
from wit_world.imports import files, messaging, session, types

import inferlet
from inferlet import _absent, _wait
from inferlet._runtime import leftovers, report, stdio
from inferlet._runtime.bundle import Bundle
from inferlet._runtime.program import run_program
from sdk_python.fakes import Clock, Future
from support import private_names


@pytest.fixture
def launch(monkeypatch):
    """Runs files as a program and returns the parsed JSON; modules and streams are as before afterwards."""
    before, streams = dict(sys.modules), (sys.stdout, sys.stderr)
    bundles = []

    def run(files, entry="main.py", value=None):
        contents = {"main.py": files} if isinstance(files, str) else files
        bundle = Bundle({path: text.encode() for path, text in contents.items()}, entry)
        bundles.append(bundle)
        bundle.install()
        return json.loads(run_program(bundle, json.dumps(value)))

    yield run
    for bundle in bundles:
        bundle.remove()
    for name in set(sys.modules) - set(before):
        del sys.modules[name]
    sys.modules.update(before)
    sys.stdout, sys.stderr = streams
    monkeypatch.setattr(inferlet, "input", None)


@pytest.mark.rows("PY-001..003 OLD-003 OLD-095")
@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("async def main(input): return {'got': input}", {"got": [1, "x"]}),
        ("async def main(): return 'plain'", "plain"),
        ("def main(input): return input", [1, "x"]),
        ("def main(*inputs): return len(inputs)", 1),
        ("class Main:\n    async def __call__(self, input): return 5\nmain = Main()", 5),
        ("import functools\ndef f(a, b): return a + b['n'] if isinstance(b, dict) else a\nmain = functools.partial(f, 3)", 3),
        ("def main(): return __name__", "main"),
        ("x = 1", None),
        (";".join(f"n{i} = {i}" for i in range(300)) + "\ndef main(): return __name__", "main"),
        ("from inferlet import input\nassert input == [1, 'x'] and __name__ == '__main__'", None),
        ("import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    return 1", 1),
    ],
)
def test_what_main_may_be(launch, source, answer):
    assert launch(source, value=[1, "x"]) == answer


NAMED = {
    "by name": ("def main(name, n=2): return [name, n]", {"name": "Ada"}, ["Ada", 2]),
    "a default is replaced": ("def main(name, n=2): return [name, n]", {"n": 3, "name": "Ada"}, ["Ada", 3]),
    "keywords alone": ("async def main(*, name): return name", {"name": "Ada"}, "Ada"),
    "the rest": ("def main(name, **rest): return [name, rest]", {"name": "Ada", "n": 3}, ["Ada", {"n": 3}]),
    "everything": ("def main(**all): return all", {"n": 3}, {"n": 3}),
    "by position too": ("def main(name, /, n): return [name, n]", {"name": "Ada", "n": 3}, ["Ada", 3]),
    "nothing": ("def main(name='you', n=2): return [name, n]", None, ["you", 2]),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_main_with_several_parameters_is_bound_by_name(launch, name):
    source, value, answer = NAMED[name]
    assert launch(source, value=value) == answer


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "the input lacks 'name', which main in 'main.py' takes by name; it is empty. Give it, as by `-- --name VALUE`"),
        ({"n": 3}, "the input lacks 'name', which main in 'main.py' takes by name; it has 'n'"),
        ({"nmae": "Ada"}, "the input has the key 'nmae', and main in 'main.py' takes 'name', 'n' by name; did you mean 'name'?"),
        ({"name": "Ada", "zzz": 1}, "the input has the key 'zzz', and main in 'main.py' takes 'name', 'n' by name; leave it out"),
        (
            {"_positional": ["Ada"]},
            "the argument 'Ada' has no name, and main in 'main.py' takes 'name', 'n' by name; write it as `-- --name",
        ),
        ([1], "main in 'main.py' takes 'name', 'n' by name, and the input is of type list"),
    ],
)
def test_an_input_that_does_not_fit_the_parameters_is_refused(launch, value, message):
    with pytest.raises(inferlet.InferletError) as caught:
        launch("def main(name, n=2): return name", value=value)
    assert caught.value.code == "invalid-input"
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        ("main = 5", "invalid-program", "main in 'main.py' is of type int; it must be a function"),
        (
            "class main:\n    def __init__(self, input): pass",
            "invalid-output",
            "main in 'main.py' is a class: to call it makes an object of it",
        ),
        ("def main(): return {'a': [set()]}", "invalid-output", "what main returned at a[0] is of type set"),
        (
            "from inferlet import runtime\ndef main(): runtime.spawn('p', {'what': set()})",
            "invalid-argument",
            "args.what is of type set",
        ),
    ],
)
def test_a_main_that_cannot_be(launch, source, code, message):
    with pytest.raises(inferlet.InferletError) as caught:
        launch(source)
    assert caught.value.code == code
    assert caught.value.message.startswith(message)


def test_an_entry_that_is_missing_is_named():
    with pytest.raises(inferlet.InferletError, match=r"the entry 'x.py' is not among the 1 files") as caught:
        Bundle({"main.py": b""}, "x.py")
    assert caught.value.code == "invalid-program"


def test_packages_relative_imports_and_resources(launch):
    files = {
        "app/__init__.py": "",
        "app/main.py": (
            "from importlib.resources import files\nfrom .util import double\nimport app.deep.er, lib\n"
            "def main(input):\n"
            "    data = files('app') / 'data' / 'words.txt'\n"
            "    names = sorted(item.name for item in files('app').iterdir())\n"
            "    return [double(input), app.deep.er.N, lib.N, data.read_text(), names, __name__]\n"
        ),
        "app/util.py": "def double(x): return 2 * x\n",
        "app/deep/er.py": "N = 3\n",
        "app/data/words.txt": "some words",
        "lib.py": "N = 4\n",
    }
    names = ["__init__.py", "data", "deep", "main.py", "util.py"]
    assert launch(files, "app/main.py", 2) == [4, 3, 4, "some words", names, "app.main"]


def test_a_file_of_the_program_hides_a_loaded_module_of_its_name(launch):
    assert "colorsys" in sys.modules or __import__("colorsys")
    assert launch({"main.py": "import colorsys\ndef main(): return colorsys.OWN", "colorsys.py": "OWN = 1"}) == 1


def test_other_modules_import_the_entry_once(launch):
    files = {
        "main.py": "import other\nVALUE = []\ndef main(): return other.same(VALUE)",
        "other.py": "def same(v):\n    import main\n    return main.VALUE is v",
    }
    assert launch(files) is True


def failure_of(source, files=("main.py",)):
    bundle = Bundle({"main.py": source.encode()}, "main.py")
    bundle.remember_lines()
    try:
        run_program(bundle, "null")
    except BaseException as error:
        return report.describe(error, set(files))
    raise AssertionError("the program did not fail")


def test_a_traceback_shows_the_programs_own_lines_only():
    told = failure_of(
        "import json\n\ndef inner(x):\n    return json.loads(x)\n\ndef main():\n    try:\n        inner('{')\n    except ValueError as e:\n        raise LookupError('lost') from e\n"
    )
    assert (told.kind, told.message, told.code) == ("LookupError", "lost", None)
    lines = told.traceback.splitlines()
    assert [line.strip() for line in lines if "File" in line] == [
        'File "main.py", line 8, in main',
        'File "main.py", line 4, in inner',
        'File "main.py", line 10, in main',
    ]
    assert "    return json.loads(x)" in lines
    assert lines[-1] == "LookupError: lost"


def test_a_frozen_exception_is_trimmed_too():
    source = (
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass E(Exception):\n    n: int\n"
        "try:\n    raise E(1)\nexcept E:\n    raise ValueError('after')\n"
    )
    told = failure_of(source)
    assert told.traceback.count('File "main.py"') == 2


@pytest.mark.rows("PY-004")
@pytest.mark.parametrize(
    ("source", "kind", "message", "code"),
    [
        ("def main(:\n", "SyntaxError", "invalid syntax (main.py, line 1)", "invalid-program"),
        ("def f(): return f()\nf()", "RecursionError", "maximum recursion depth exceeded", "limit-stack"),
        ("raise MemoryError", "MemoryError", "the program asked for more memory than it may have", "limit-memory"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", "the program was interrupted", None),
        ("import sys; sys.exit(3)", "SystemExit", "the program ended with exit code 3", None),
        ("import sys; sys.exit('why')", "SystemExit", "why", None),
        (
            "from inferlet import InferletError\nraise InferletError('context-full', 'too long')",
            "InferletError",
            "too long",
            "context-full",
        ),
        ("class E(Exception):\n    def __str__(self): raise KeyError\nraise E", "E", "its message could not be formatted: KeyError", None),
    ],
)
def test_what_is_told_of_a_failure(source, kind, message, code):
    told = failure_of(source)
    assert (told.kind, told.code) == (kind, code)
    assert told.message.startswith(message)
    assert told.traceback.count("\n") < 200


@pytest.mark.rows("SES-041", language="python")
def test_printing_keeps_its_order_with_sending(monkeypatch):
    sent = []
    for name in ("send", "send_json", "print"):
        monkeypatch.setattr(session, name, sent.append)
    monkeypatch.setattr(sys, "stdout", stdio.TextOut(session.print, "<stdout>"))
    print("a", 1)
    print("b\nc", end="")
    inferlet.session.send("d")
    inferlet.session.send({"e": [1, "é"]})
    print("\udfff")
    print("x" * 70_000, end="")
    sys.stdout.flush()
    assert sent == ["a 1\n", "b\n", "c", "d", '{"e":[1,"é"]}', "?\n", "x" * 65_536, "x" * 4_464]


def test_what_was_printed_goes_out_before_a_wait(monkeypatch):
    clock, sent = Clock(monkeypatch), []
    monkeypatch.setattr(session, "receive", lambda: clock.future("message", 5, "hi"))
    monkeypatch.setattr(sys, "stdout", stdio.TextOut(sent.append, "<stdout>"))
    print("name? ", end="")
    assert inferlet.session.receive() == "hi"
    assert sent == ["name? "]


def silent(monkeypatch):
    """Streams that nothing was written to, and what goes to standard error beside them."""
    told = []
    monkeypatch.setattr(stdio, "_write_stderr", told.append)
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, stdio.TextOut(lambda text: None, f"<{name}>"))
    return told


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("async def mian(input): return 1", "did you mean `main` by `mian`?"),
        ("class A:\n    async def main(self, input): return 1", "`main` of the class `A` is a method, which the engine does not call"),
        ("def ask(): pass\ndef tell(): ask()", "called none of `ask`, `tell`; call one of them at the end of the file"),
    ],
)
def test_a_script_that_does_nothing_that_anybody_sees_is_told_of(launch, monkeypatch, source, words):
    told = silent(monkeypatch)
    assert launch(source) is None
    assert "".join(told).startswith("warning: main.py defines no `main`")
    assert words in "".join(told)


@pytest.mark.parametrize(
    "source",
    [
        "x = 1",
        "def ask(): pass\nask()",
        "def ask(): return 1\nprint(1)",
        "def ask(): return 1\nclass A:\n    x = ask()",
        "def ask(): return 1\nsum(ask() for _ in range(2))",
        "def ask(): return 1\nif __name__ == '__main__': ask()",
        "class A:\n    def main(self): pass\nA().main()",
    ],
)
def test_a_script_that_does_something_is_not_told_of(launch, monkeypatch, source):
    told = silent(monkeypatch)
    launch(source)
    assert told == []


@pytest.mark.parametrize(
    ("source", "value", "words"),
    [
        ("def main(input): return input.get('name')", {"nmae": 1}, "reads the argument --nmae; did you mean --name?"),
        ("def main(input): return 'n' in input", {"_positional": ["Ada"]}, None),
        ("def main(): return 1", {"n": 1}, "reads the argument --n"),
        ("def main(input): return input['name']", {"name": 1}, None),
        ("def main(input): return input", {"n": 1}, None),
        ("import sys\ndef main(): return sys.argv", {"n": 1}, None),
    ],
)
def test_arguments_that_nothing_reads_are_told_of(launch, monkeypatch, source, value, words):
    told = silent(monkeypatch)
    monkeypatch.setattr(sys, "argv", ["main.py", *(f"--{name}=1" for name in value if name != "_positional"), "Ada"])
    launch(source, value=value)
    assert [words in text for text in told] == ([] if words is None else [True])


def test_a_default_of_the_manifest_is_not_an_argument_that_nothing_reads(launch, monkeypatch):
    told = silent(monkeypatch)
    monkeypatch.setattr(sys, "argv", ["main.py", "--name", "Ada"])
    assert launch("def main(input): return input['name']", value={"name": "Ada", "n_words": 3}) == "Ada"
    assert told == []


@pytest.mark.parametrize(
    ("last", "answer"),
    [
        ("asyncio.run(main())", 1),
        ("with asyncio.Runner() as runner:\n    runner.run(main())", 1),
        ("try:\n    asyncio.run(main())\nfinally:\n    runs.append('end')", 1),
        ("given = asyncio.run(main())", None),
        ("try:\n    asyncio.run(main(fails=True))\nexcept ValueError:\n    pass", None),
        ("# main()\ntext = 'main()'", 1),
        ("print(asyncio.run(main()))", None),
        ("if __name__ == '__main__':\n    asyncio.run(main())", 1),
        ("def start():\n    asyncio.run(main())", 1),
        ("def start():\n    asyncio.run(main())\nstart()", None),
        ("async def start():\n    return await main()\nasyncio.run(start())", None),
        ("async def start():\n    return await asyncio.wait_for(main(), 1)\nasyncio.run(start())", None),
    ],
)
def test_a_main_that_the_module_runs_itself_runs_once(launch, monkeypatch, last, answer):
    monkeypatch.setattr(inferlet, "runs", [], raising=False)
    source = "import asyncio\nfrom inferlet import runs\n"
    source += "async def main(*, fails=False):\n    runs.append('main')\n    if fails:\n        raise ValueError\n    return 1\n"
    assert launch(f"{source}{last}\n") == answer
    assert inferlet.runs.count("main") == 1


def test_a_plain_main_that_the_module_calls_runs_once(launch, monkeypatch):
    monkeypatch.setattr(inferlet, "runs", [], raising=False)
    assert launch("from inferlet import runs\ndef main(n=2):\n    runs.append(n)\n    return n\nmain(3)\n", value={}) == 3
    assert inferlet.runs == [3]


def test_a_plain_main_that_the_module_prints_runs_once(launch, monkeypatch):
    monkeypatch.setattr(inferlet, "runs", [], raising=False)
    assert launch("from inferlet import runs\ndef main():\n    runs.append(1)\n    return 1\nprint(main())\n") is None
    assert inferlet.runs == [1]


def test_a_module_that_is_too_deep_to_be_looked_through_still_runs(launch):
    assert launch(f"def main(n=3): return n\nx = {'+'.join(['1'] * 1500)}\nmain()\n", value=5) == 5


def test_a_main_that_computes_something_for_its_module_is_called_by_the_engine_too(launch):
    assert launch("def main(n): return n * 2\nFOUR = main(2)\n", value=5) == 10


def test_an_input_that_a_main_which_runs_itself_does_not_get_is_told_of(launch, monkeypatch):
    told = silent(monkeypatch)
    launch("import asyncio\nasync def main():\n    return 1\nasyncio.run(main())\n", value={"name": "Ada"})
    assert ["main.py:4 calls `main` itself" in text for text in told] == [True]


@pytest.mark.parametrize(
    ("source", "told_as"),
    [
        ("async def main(topic: str = 'x'): return topic", "async def main(*, topic: str = 'x')"),
        ("def main(n: int | None): return n", "def main(*, n: int | None)"),
        ("from __future__ import annotations\ndef main(n: float): return n", "def main(*, n: float)"),
        ("def main(topic): return topic", "has the key 'topic'; write `def main(*, topic)`"),
        ("def main(name='Ada'): return name", "the default 'Ada', which is never used; write `def main(*, name='Ada')`"),
        ("def main(options=None): return options", None),
        ("def main(topic): return {'topic': topic['topic']}", None),
        (
            "from dataclasses import dataclass\n@dataclass\nclass C:\n    topic: str\ndef main(c: C): return c",
            "annotated as C; make one of it: `C(**c)`",
        ),
        ("def main(topic: dict): return topic", None),
        ("def main(topic: str | dict): return topic", None),
        ("def main(topic: Absent): return topic", None),
    ],
)
def test_a_parameter_that_the_whole_input_does_not_fit_is_told_of(launch, monkeypatch, source, told_as):
    told = silent(monkeypatch)
    if "Absent" in source and sys.version_info < (3, 14):
        source = f"from __future__ import annotations\n{source}"
    assert launch(source, value={"topic": "y"}) == {"topic": "y"}
    assert [told_as in text for text in told] == ([] if told_as is None else [True])


@pytest.mark.parametrize(
    ("source", "value", "words"),
    [
        ("def main(*, n: int): return n", {"n": "three"}, "annotated as int and gets 'three' of type str"),
        ("def main(n: int, m: float = 1): return n", {"n": 3, "m": 2}, None),
        ("def main(*, n: int | None): return n", {"n": None}, None),
        ("def main(*, n: int): return n", {"n": True}, "annotated as int and gets True of type bool"),
        ("def main(n, **rest: str): return n", {"n": 1, "m": 2}, None),
        (
            "from dataclasses import dataclass\n@dataclass\nclass C:\n    a: int\ndef main(*, c: C): return c",
            {"c": {"a": 1}},
            "make one of it: `C(**c)`",
        ),
    ],
)
def test_an_argument_that_its_annotation_does_not_fit_is_told_of(launch, monkeypatch, source, value, words):
    told = silent(monkeypatch)
    launch(source, value=value)
    assert [words in text for text in told] == ([] if words is None else [True])


def test_a_parameter_behind_a_star_is_bound_by_its_name(launch):
    assert launch("async def main(*, topic: str = 'x'): return topic", value={"topic": "y"}) == "y"
    assert launch("async def main(*, topic: str = 'x'): return topic", value={}) == "x"


@pytest.fixture
def leftover():
    """Nothing is left over from another program, before and afterwards."""
    leftovers.forget()
    yield
    leftovers.forget()


def test_cpython_is_as_what_finds_leftovers_takes_it_to_be():
    other = private_names.main()
    assert other == [], "this is not so any more; find what takes its place, and have inferlet._runtime.leftovers use that"


def test_an_exception_that_nothing_took_is_that_of_the_program(launch, leftover):
    source = (
        "import asyncio\nasync def work(): raise ValueError('lost')\n"
        "async def main():\n    asyncio.create_task(work())\n    await asyncio.sleep(0)\n    await asyncio.sleep(0)\n    return 1"
    )
    with pytest.raises(ValueError, match="lost"):
        launch(source)


@pytest.fixture
def ending(leftover, monkeypatch):
    """Loops that end hand over their tasks, as in the component."""
    Clock(monkeypatch)
    monkeypatch.setattr(asyncio.runners, "_cancel_all_tasks", leftovers._noting_tasks(asyncio.runners._cancel_all_tasks))
    monkeypatch.setattr(asyncio, "wait", leftovers._noting_waits(asyncio.wait))
    monkeypatch.setattr(asyncio, "as_completed", leftovers._noting_completions(asyncio.as_completed))
    monkeypatch.setattr(asyncio, "shield", leftovers._noting_shields(asyncio.shield))


class FutureString(Future):
    """A message, as the engine calls it."""


@pytest.fixture
def jobs(ending, monkeypatch):
    """A topic with a message that comes after so many milliseconds, in a runtime that tells of what nothing awaits."""
    clock = Clock(monkeypatch)
    monkeypatch.setitem(vars(warnings), "_warn_unawaited_coroutine", leftovers.note)
    monkeypatch.setattr(_wait, "kept_unawaited", leftovers.kept_unawaited)
    monkeypatch.setattr(_wait, "before_sleep", leftovers.tell_before_sleep)
    pull_after = {"ms": 5}

    def pull(topic):
        return FutureString(clock, topic, clock.now_ns + pull_after["ms"] * 1_000_000, f"of {topic}", None)

    monkeypatch.setattr(messaging, "pull", pull)
    return pull_after


def test_a_deadlock_names_what_was_called_without_await(launch, jobs):
    source = (
        "import asyncio\nfrom inferlet import messaging\nasync def produce(event): event.set()\nasync def main():\n"
        "    done = [messaging.pull('done') for _ in range(9)]\n    for one in done: await one\n"
        "    job = messaging.pull('jobs')\n    event = asyncio.Event()\n    produce(event)\n    kept = produce(event)\n    await event.wait()"
    )
    with pytest.raises(inferlet.DeadlockError) as caught:
        launch(source)
    told = str(caught.value)
    assert told.startswith("nothing can wake this program: 1 task waits (main.py:11 in main); ")
    assert "main.py:9: produce() was never awaited, so that nothing came of it; write `await` before the call" in told
    assert "main.py:10: produce() was called without `await`" in told
    # Those that were awaited leave it its room.
    assert "`messaging.pull(...)` was called without `await` at main.py:7" in told


def test_what_was_to_send_a_message_and_was_never_awaited_is_told_before_the_wait(launch, jobs, capsys):
    source = (
        "from inferlet import messaging\nasync def produce(): messaging.push('jobs', 1)\nasync def main():\n"
        "    produce()\n    return [await messaging.pull('jobs'), await messaging.pull('jobs')]"
    )
    with pytest.raises(RuntimeError, match=r"main\.py:4: produce\(\) was never awaited"):
        launch(source)
    assert capsys.readouterr().err.count("warning: main.py:4: produce() was never awaited") == 1


@pytest.mark.parametrize("after_ms", [5, 0])
def test_a_value_that_is_used_without_await_is_told_of(launch, jobs, capsys, after_ms):
    jobs["ms"] = after_ms
    source = "from inferlet import messaging\nasync def main():\n    job = messaging.pull('jobs')\n    return job.upper() + job"
    assert launch(source) == "OF JOBSof jobs"
    words = "warning: `messaging.pull(...)` was called without `await` at main.py:3, and is used as a value"
    assert capsys.readouterr().err.count(words) == 1


@pytest.mark.parametrize("use", ["job == 'of jobs'", "f'{job}' == 'of jobs'", "str(job) == 'of jobs'"])
def test_a_value_that_is_there_already_is_told_of_where_it_is_compared_or_written(launch, jobs, capsys, use):
    source = f"from inferlet import messaging\nasync def main():\n    job = messaging.pull('jobs')\n    return {use}"
    assert launch(source) is True
    assert "warning: `messaging.pull(...)` was called without `await` at main.py:3, and is used as a value" in capsys.readouterr().err


@pytest.mark.parametrize("use", ["json.loads(job)", "int(job)"])
def test_a_value_that_a_function_refuses_for_want_of_await_is_told_with_its_line(jobs, use):
    source = f"import json\nfrom inferlet import messaging\nasync def main():\n    job = messaging.pull('jobs')\n    return {use}"
    told = failure_of(source).message
    assert "Deferred" in told
    assert "did you forget `await`? `messaging.pull(...)` was called without `await` at main.py:4" in told


def test_a_call_of_the_sdk_that_is_dropped_is_told_by_its_name(launch, jobs):
    with pytest.raises(RuntimeError, match=r"^main\.py:3: messaging\.pull\(\.\.\.\) was never awaited, so that nothing came of it"):
        launch("from inferlet import messaging\nasync def main():\n    messaging.pull('jobs')")


WORK = "import asyncio\nasync def work(): await asyncio.sleep(60)\nheld = set()\nasync def main():\n"


@pytest.mark.parametrize(
    "body",
    [
        "    asyncio.create_task(work())",
        "    held.add(asyncio.create_task(work()))",
        "    asyncio.create_task(work()).add_done_callback(held.discard)",
        "    asyncio.gather(work(), work())",
    ],
)
def test_a_task_that_nothing_awaited_and_that_is_not_done_is_an_error(launch, ending, body):
    message = r"^main.py:5: the program ended before work\(\) was done, and nothing awaited its task; write `await`[^;]*$"
    with pytest.raises(RuntimeError, match=message):
        launch(f"{WORK}{body}\n    await asyncio.sleep(0)\n    return 1")


@pytest.mark.parametrize(
    "body",
    [
        "    task = asyncio.create_task(work())\n    await asyncio.sleep(0)\n    task.cancel()",
        "    await asyncio.wait([asyncio.create_task(work()), asyncio.create_task(asyncio.sleep(0))], return_when='FIRST_COMPLETED')",
        "    asyncio.create_task(asyncio.sleep(0))\n    await asyncio.sleep(0)\n    await asyncio.sleep(0)",
        "    try:\n        await asyncio.wait_for(work(), 0.001)\n    except TimeoutError:\n        pass",
        "    try:\n        await asyncio.wait_for(asyncio.shield(work()), 0.001)\n    except TimeoutError:\n        pass",
        "    try:\n        for one in asyncio.as_completed([work()], timeout=0.001): await one\n    except TimeoutError:\n        pass",
        "    async def fail(): raise ValueError\n    try:\n        await asyncio.gather(fail(), work())\n    except ValueError:\n        pass",
        "    queue = asyncio.Queue()\n    listening = asyncio.create_task(queue.get())\n    await asyncio.sleep(0)",
    ],
)
def test_a_task_that_was_cancelled_or_raced_or_listens_or_is_done_is_none(launch, ending, body):
    assert launch(f"{WORK}{body}\n    return 1") == 1


def test_a_task_that_a_run_which_failed_has_left_is_none(launch, ending):
    start = "async def start():\n    held.add(asyncio.create_task(work()))\n    raise ValueError\n"
    end = "try:\n    asyncio.run(start())\nexcept ValueError:\n    pass\n"
    assert launch(WORK.removesuffix("async def main():\n") + start + end) is None


def test_a_main_that_the_module_calls_and_nothing_awaits_says_that_the_engine_calls_it(launch, leftover, monkeypatch):
    monkeypatch.setitem(vars(warnings), "_warn_unawaited_coroutine", leftovers.note)
    with pytest.raises(RuntimeError, match=r"main.py:2: main\(\) was never awaited.*; delete this line, since the engine calls `main`"):
        launch("async def main(): return 1\nmain()")


def test_an_exception_that_was_taken_is_not(launch, leftover):
    source = (
        "import asyncio\nasync def work(): raise ValueError('taken')\n"
        "async def main():\n    return [str(e) for e in await asyncio.gather(work(), return_exceptions=True)]"
    )
    assert launch(source) == ["taken"]


def test_a_handler_of_the_program_takes_what_nothing_took(leftover):
    loop, seen = _wait.EventLoop(), []
    loop.set_exception_handler(lambda loop, context: seen.append(context["exception"]))
    error = ValueError("seen")
    loop.call_exception_handler({"message": "a task failed", "exception": error})
    loop.close()
    assert seen == [error]
    assert _wait.lost_errors == []


def test_a_coroutine_that_nothing_awaited_is_an_error_with_its_name(leftover):
    async def ask():
        return 1

    coroutine = ask()
    leftovers.note(coroutine)
    coroutine.close()
    with pytest.raises(RuntimeError, match=r"ask\(\) was never awaited, so that nothing came of it; write `await` before the call"):
        leftovers.check()


def test_a_coroutine_that_a_variable_held_is_told_of_with_the_lines_of_its_calls(leftover):
    async def ask():
        return 1

    source = b"async def main():\n    answer = ask()\n    print(f'{answer}')\n    await ask()\n    go(ask())\n    ask()\n"
    bundle = Bundle({"p.py": source}, "p.py")
    bundle.install()
    try:
        # As where no frame of the program is left: those of this test are of an absolute path.
        coroutine = ask()
        leftovers.note(coroutine)
        coroutine.close()
    finally:
        bundle.remove()
    with pytest.raises(RuntimeError, match=r"^p\.py:2: .*ask\(\) was never awaited"):
        leftovers.check()


def test_a_call_of_the_sdk_that_a_variable_held_is_looked_for_among_methods(leftover):
    async def failed():
        return 1

    failed.__qualname__ = "failed"
    source = b"import sys\nasync def main(ctx):\n    line = next(iter('x'))\n    sys.stdout.flush()\n    kept = ctx.flush()\n"
    bundle = Bundle({"p.py": source}, "p.py")
    bundle.install()
    try:
        coroutine = failed()
        leftovers.note(coroutine)
        coroutine.close()
    finally:
        bundle.remove()
    with pytest.raises(RuntimeError, match=r"^p\.py:5: a call of the SDK was never awaited"):
        leftovers.check()


def test_a_flood_of_coroutines_has_the_files_looked_through_once(leftover, monkeypatch):
    looked = []
    monkeypatch.setattr(leftovers, "_files", lambda: looked.append(1) or {})

    async def ask():
        return 1

    for _ in range(100):
        coroutine = ask()
        leftovers.note(coroutine)
        coroutine.close()
    assert looked == [1]


HINTS = {
    "a class that was not imported": ("Model.load('x')", "write `from inferlet import Model`"),
    "a package": ("import slugify_no_such", "neither in the standard library nor among the files"),
    "the environment": ("import os; os.environ['NO_SUCH_NAME']", "a program has no environment; give values by the input"),
    "a file": ("open('no-such-file.txt')", "a program has no files of the machine"),
    "a coroutine as a text": ("async def f(): pass\nc = f()\nc.close()\n'a' + c", "did you forget `await`?"),
    "await in a function that is not asynchronous": ("def main():\n    await f()", "write `async def` in place of the `def` around it"),
    "a function of the SDK with too many arguments": ("from inferlet import session\nsession.send(1, 2)", "session.send takes one value"),
    "a plain loop over what comes asynchronously": ("async def g(): yield 1\nfor one in g(): pass", "write `async for` in place of `for`"),
    "an asynchronous loop over a list": (
        "import asyncio\nasync def f():\n    async for one in [1]: pass\nasyncio.run(f())",
        "a list is there at once: write `for` in place of `async for`",
    ),
    "a plain with": ("import asyncio\nwith asyncio.Lock(): pass", "async with"),
    "a plain loop over steps": ("[1, 2].execute()", "write `async for step in g`"),
    "a number that is awaited": ("async def main(input): await len('x')", "this call gives its value at once: leave `await` out"),
    "an adapter that is awaited": (
        "from inferlet import Adapter\nasync def main(input): await Adapter('raw')",
        "this call gives the adapter at once: leave `await` out",
    ),
    "a child that is awaited twice": (
        "from inferlet import runtime\nruntime.awaited.append('count')\n'three'.wait()",
        "`await runtime.spawn('count')` gives what the child returned; leave the first `await` out",
    ),
    "a method of an adapter that the class is asked for": (
        "from inferlet import Adapter\nAdapter.load(object(), 'adapters/zebra')",
        "load is a method of an adapter: `Adapter.create(model, name).load(folder)`",
    ),
    "an adapter that is to destroy itself": (
        "from inferlet import Adapter\nAdapter('raw').destroy()",
        "`Adapter.delete(model, name)` deletes an adapter",
    ),
    "a snapshot that is to be loaded": ("from inferlet import Context\nContext.load", "`Context.open(model, name)` opens a snapshot"),
    "a snapshot without its model": ("from inferlet import Context\nContext.open('notes')", "the model comes first, also where"),
    "a program that is to be called": ("from inferlet import runtime\nruntime.call", "`child = runtime.spawn(program, args)` starts"),
    "an attribute of a coroutine": ("async def f(): pass\nc = f()\nc.close()\nc.tokens", "did you forget `await`?"),
}


@pytest.mark.parametrize("name", HINTS)
def test_a_common_mistake_is_told_with_what_to_do(monkeypatch, name):
    monkeypatch.setattr(files, "check", lambda: Ok(None))
    source, words = HINTS[name]
    assert words in failure_of(source).message


@pytest.mark.parametrize("names", ["'/scratch/deep/x'", "b'/scratch'", "'scratch/x'", "'/'", "'/data/x', None, '/scratch/x'"])
def test_where_there_is_no_scratch_the_reason_stands_alone(monkeypatch, names):
    def off():
        raise Err(types.Error("files-off", "programs have no /scratch here: set engine.data_dir", "{}"))

    monkeypatch.setattr(files, "check", off)
    told = failure_of(f"raise OSError(2, 'No such file', {names})")
    assert told.code == "files-off"
    assert told.message.endswith(": programs have no /scratch here: set engine.data_dir")
    elsewhere = failure_of("open('no-such-file.txt')")
    assert elsewhere.code is None
    assert "a program has no files of the machine" in elsewhere.message
    assert "/scratch" not in elsewhere.message


def test_a_failure_of_a_handler_is_told_in_one_line_with_what_to_do():
    bundle = Bundle({"main.py": b"async def f(): pass\nc = f()\nc.close()\n'a' + c"}, "main.py")
    bundle.remember_lines()
    with pytest.raises(TypeError) as caught:
        run_program(bundle, "null")
    told = report.told(caught.value, {"main.py"})
    assert told.count("TypeError: ") == 1
    assert told.splitlines()[-1].startswith('TypeError: can only concatenate str (not "coroutine") to str: did you forget `await`?')


def test_none_that_open_gave_is_told_of_with_its_call(leftover):
    uses = ("None.user('hi')", "lost = None\nwith lost: pass", "None.seq_len")
    assert not any("found nothing" in failure_of(use).message for use in uses)
    opened = "from inferlet import _absent\n_absent.note('Context.open', 'notes')\n"
    for use in uses:
        told = failure_of(opened + use).message
        assert '`Context.open(model, "notes")` found nothing of that name and gave None; test it by `is None`' in told
    # What a context does not have is asked of another None.
    assert "found nothing" not in failure_of(f"{opened}None.strip()").message


@pytest.mark.parametrize(
    ("names", "end"),
    [
        (["b", "notes"], '; did you mean "notes"? The snapshots of this user are "b", "notes"'),
        (["b"], '. The snapshots of this user are "b"'),
        ([f"b{number}" for number in range(5000)], '"b7" and 4992 more'),
        (
            [],
            ". This user has no snapshots of this model; those of an engine that has ended, as of an earlier `pie run`, are kept"
            ' where snapshots.durability = "disk"',
        ),
    ],
)
def test_none_that_open_gave_is_told_of_with_the_names_that_there_are(leftover, names, end):
    told = failure_of(f"from inferlet import _absent\n_absent.note('Context.open', 'nots', lambda: {names})\nNone.user('hi')").message
    assert "make what is missing" in told
    assert told.endswith(end)


def test_whoever_generates_without_the_adapter_that_was_not_found_is_told_once(leftover, capsys):
    _absent.tell_of_no_adapter()
    _absent.note("Context.open", "notes")
    _absent.tell_of_no_adapter()
    assert capsys.readouterr().err == ""
    _absent.note("Adapter.open", "poet")
    for _ in range(2):
        _absent.tell_of_no_adapter()
    told = capsys.readouterr().err
    assert told.startswith('warning: `Adapter.open(model, "poet")` found nothing of that name, and `adapter=None` computes without')
    assert told.count("\n") == 1


def test_names_that_were_looked_for_are_kept_up_to_a_bound(leftover):
    for number in [*range(100), 95]:
        _absent.note("Context.open", str(number))
    assert _absent.found_nothing == [f'Context.open(model, "{number}")' for number in (92, 93, 94, 96, 97, 98, 99, 95)]
    _absent.note("Adapter.open", "x" * 1_000_000)
    assert len(_absent.found_nothing[-1]) < 100


def test_a_function_of_the_program_that_is_called_as_one_of_the_sdk_is_told_as_it_is():
    for source in ("def send(text): pass\nsend(1, 2)", "class Response:\n    def __init__(self): pass\nResponse(1)"):
        assert failure_of(source).message.endswith("given")


def test_a_file_of_the_program_itself_is_named_with_its_loader():
    told = failure_of("open('words.txt')", ("main.py", "words.txt"))
    assert "__loader__.get_data('words.txt') gives the bytes of this one" in told.message


def test_whoever_reads_standard_input_is_told_where_the_lines_are(monkeypatch):
    monkeypatch.setattr(sys, "stdin", stdio.NoInput())
    for read in (input, sys.stdin.read, lambda: list(sys.stdin)):
        with pytest.raises(EOFError, match=r"await inferlet\.session\.receive\(\)"):
            read()
    assert not hasattr(sys.stdin, "buffer")
