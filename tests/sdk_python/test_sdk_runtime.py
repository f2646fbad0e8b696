"""The language runtime: loading of a program from its files, `main`, output in order, and what is told of a failure."""

import json
import sys

import pytest
from wit_world.imports import session

import inferlet
from inferlet._runtime import report, stdio
from inferlet._runtime.bundle import Bundle
from inferlet._runtime.program import run_program
from sdk_python.fakes import Clock


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


@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        ("main = 5", "invalid-program", "main in 'main.py' is of type int; it must be a function"),
        ("def main(): return {'a': [set()]}", "invalid-output", "what main returned at a[0] is of type set"),
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
