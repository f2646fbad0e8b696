"""What Pie brings for tests of programs: `pie.testing`, the plugin of pytest, and the module for Node."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from pie.bakery.new import new
from pie.testing import Engine, PieError, Runner, engine, source
from pie.testing.worker import work
from support.command import PATIENCE_S, environment
from support.launching import ROOT

GUIDE = (ROOT / "docs/guide/testing.md").read_text(encoding="utf-8")
MODULE = ROOT / "js/inferlet/testing.mjs"
POET = source(
    """
    from inferlet import Context, Model, Sampler

    async def main(input):
        ctx = Context(Model.load("default")).user(input["prompt"])
        return await ctx.generate(Sampler.top_p(0.9, 0.95), max_tokens=16).collect_text()
    """
)
TALK = source(
    """
    import sys
    from inferlet import Context, Model, session

    async def main(input):
        heard = [await session.receive()]
        session.send(heard[0])
        session.send({"n": 1})
        session.message("beside")
        session.send_file(b"data")
        print("told", file=sys.stderr)
        if input == "fail":
            raise KeyError("x")
        try:
            await session.receive()
        except session.SessionClosed:
            return heard
    """
)
KEEP = source(
    """
    from inferlet import Context, Model

    async def main(input):
        model = Model.load("default")
        if Context.open(model, "kept") is not None:
            return "found"
        Context(model).user("Hello").save("kept")
        return "kept"
    """
)


@pytest.fixture(scope="module")
def opened() -> Iterator[Engine]:
    with engine() as made:
        yield made


@pytest.fixture
def run(opened: Engine) -> Runner:
    return Runner(opened)


def test_a_run_tells_all_that_a_program_did(run: Runner) -> None:
    done = run(TALK, messages=["hey"])
    assert done.value == ["hey"]
    assert done.sent == ("hey", {"n": 1})
    assert done.stdout == 'hey{"n":1}'
    assert done.stderr == "told\n"
    assert (done.messages, done.files, done.launch_seed) == (("beside",), (b"data",), 0)


def test_an_error_holds_what_was_written_until_then(run: Runner) -> None:
    with pytest.raises(PieError) as caught:
        run(TALK, "fail", messages=["hey"])
    assert caught.value.code == "program-error"
    assert caught.value.details["kind"] == "KeyError"
    assert caught.value.details["stdout"] == 'hey{"n":1}'
    assert str(caught.value.details["stderr"]).startswith("told\n")


def test_an_error_has_the_warnings_for_notes(run: Runner) -> None:
    with pytest.raises(PieError, match="unsupported operand") as caught:
        run(source("async def main(n):\n    return n * n\n"), {"n": 4})
    assert any("has one parameter, which gets the whole input" in note for note in caught.value.__notes__)


def test_runs_repeat_and_a_seed_changes_them(run: Runner) -> None:
    first = run(POET, {"prompt": "rain"})
    assert run(POET, {"prompt": "rain"}) == first
    assert run(POET, {"prompt": "rain"}, seed=8).value != first.value


def test_the_model_says_what_a_test_wants() -> None:
    with engine(replies={"rain": "It falls.", "": "What?"}) as made:
        run = Runner(made)
        assert run(POET, {"prompt": "A verse about rain."}).value == "It falls."
        assert run(POET, {"prompt": "Hello"}).value == "What?"
    with pytest.raises(PieError, match="leave one of the two out") as caught, engine("pie-tiny", replies={"a": "b"}):
        pass
    assert caught.value.code == "invalid-argument"
    with pytest.raises(PieError, match="replies has 'a': 5"), engine(replies={"a": 5}):  # type: ignore[dict-item]
        pass


def test_a_model_answers_in_the_place_of_the_dummy_driver() -> None:
    with engine("pie-tiny") as made:
        assert made.models == ["pie-tiny"]
        assert Runner(made)(POET, {"prompt": "Hello"}).value


def test_a_program_that_waits_for_ever_ends(run: Runner) -> None:
    waits = source("import asyncio\nasync def main(input):\n    await asyncio.sleep(1e6)")
    with pytest.raises(PieError) as caught:
        run(waits, limits={"wall_s": 0.05})
    assert caught.value.code == "limit-wall"


def asked(*requests: dict[str, Any] | str) -> list[dict[str, Any]]:
    """What a worker answers."""
    lines = [request if isinstance(request, str) else json.dumps(request) for request in requests]
    answers = io.BytesIO()
    work([line.encode() + b"\n" for line in lines], answers)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


def test_a_worker_answers_each_request(tmp_path: Path) -> None:
    (tmp_path / "double.py").write_text("def main(input):\n    print('\\xe9\\u2028')\n    return input * 2\n")
    path = str(tmp_path / "double.py")
    answers = asked(
        {"id": 1, "program": path, "input": 4, "seed": str(2**64 - 1)},
        {"id": "b", "program": path},
        {"id": 3, "program": str(tmp_path / "nowhere.py")},
    )
    assert answers[0] == {
        "id": 1,
        "value": 8,
        "stdout": "é\u2028\n",
        "stderr": "",
        "sent": [],
        "messages": [],
        "files": [],
        "launch_seed": str(2**64 - 1),
    }
    assert answers[1]["error"]["code"] == "program-error"
    assert answers[1]["error"]["details"]["kind"] == "TypeError"
    assert (answers[2]["id"], answers[2]["error"]["code"]) == (3, "unknown-program")


@pytest.mark.parametrize(
    ("request_line", "told"),
    [
        ("nonsense", "a request is not JSON"),
        ("[]", "a request has no program"),
        ({"program": 5}, "a request has no program"),
        ({"program": "a.py", "sed": 1}, "a request has no field 'sed'; there are id, program"),
        ({"program": "a.py", "seed": "x"}, "seed is 'x'; give a whole number"),
        ({"program": "a.py", "seed": "9" * 5000}, "a request cannot be run: Exceeds the limit"),
        ({"program": "a.py", "args": "x"}, "args is of type str; give an array"),
        ({"program": "a.py", "limits": [1]}, "limits is of type list; give an object"),
        ({"program": "a.py", "messages": "x"}, "messages is of type str; give a list"),
    ],
)
def test_a_worker_names_what_is_wrong_with_a_request(request_line: dict[str, Any] | str, told: str) -> None:
    (answer,) = asked(request_line)
    assert answer["error"]["code"] == "invalid-argument"
    assert told in answer["error"]["message"]


def in_pytest(folder: Path, *arguments: str) -> str:
    """What pytest prints of the tests in a folder, which must pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_plugin_is_announced_to_pytest() -> None:
    (plugin,) = (entry for entry in entry_points(group="pytest11") if entry.name == "pie")
    assert plugin.value == "pie.pytest_plugin"


def test_the_tests_of_the_guide_pass(tmp_path: Path) -> None:
    tests, conftest = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    (tmp_path / "test_poet.py").write_text(tests)
    (tmp_path / "conftest.py").write_text(conftest)
    assert "2 passed" in in_pytest(tmp_path)


def test_each_test_is_a_user_of_its_own_and_a_model_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "keep.py").write_bytes(KEEP.files[0][1])
    (tmp_path / "test_keep.py").write_text(
        "import pytest\n\n"
        "@pytest.mark.parametrize('number', range(2))\n"
        "def test_keep(pie_run, pie_engine, number):\n"
        "    assert pie_run('keep.py').value == 'kept'\n"
        "    assert pie_run('keep.py').value == 'found'\n"
        "    assert pie_engine.models == ['pie-tiny']\n"
    )
    assert "2 passed" in in_pytest(tmp_path)
    assert "2 passed" in in_pytest(tmp_path, "--pie-model", "pie-tiny")


def test_a_session_that_runs_no_program_imports_no_engine(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text("import sys\n\ndef test_plain():\n    assert 'pie.engine' not in sys.modules\n")
    assert "1 passed" in in_pytest(tmp_path)


def in_node(folder: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a script of Node; `pie` is this one."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["node", *arguments, "--input-type=module", "-e", script.replace("MODULE", MODULE.as_uri())]
    return subprocess.run(
        command, cwd=folder, env={**environment(), "PATH": path}, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_node_runs_programs_and_ends_by_itself(tmp_path: Path) -> None:
    (tmp_path / "talk.py").write_bytes(TALK.files[0][1])
    (tmp_path / "poet.py").write_bytes(POET.files[0][1])
    done = in_node(
        tmp_path,
        """
        import { Engine, PieError, run } from 'MODULE';
        const { value, sent, stderr, files, launchSeed } = await run('talk.py', { messages: ['hey'], seed: 2n ** 64n - 1n });
        console.log(JSON.stringify([value, sent, stderr, files.length, String(launchSeed)]));
        console.log(String.fromCharCode(...files[0]));
        const both = await Promise.allSettled([run('talk.py', { input: 'fail', messages: ['hey'] }), run('nowhere.py'), run('talk.py', { sed: 1 })]);
        console.log(both.map(({ reason }) => `${reason instanceof PieError} ${reason.code ?? reason.message}`).join(', '));
        const engine = new Engine({ replies: { rain: 'It falls.' } });
        console.log((await engine.run('poet.py', { input: { prompt: 'rain' } })).value);
        engine.close();
        """,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f'[["hey"],["hey",{{"n":1}}],"told\\n",1,"{2**64 - 1}"]',
        "data",
        "true program-error, true unknown-program, false run() has no option 'sed'; its options are input, args, messages, seed, "
        "limits, tokenBudget, credits, programs",
        "It falls.",
    ]


def test_node_gives_programs_all_digits_of_a_bigint(tmp_path: Path) -> None:
    (tmp_path / "next.py").write_text("def main(input):\n    return str(input['n'] + input['all'][0])\n")
    done = in_node(
        tmp_path,
        """
        import { PieError, run } from 'MODULE';
        console.log((await run('next.py', { input: { n: 2n ** 64n, all: [-1n] } })).value);
        const cycle = {};
        cycle.self = cycle;
        await run('next.py', { input: cycle }).catch((error) => console.log(error instanceof PieError, error.code, error.message));
        """,
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.split("\n", 1)
    assert first == str(2**64 - 1)
    assert second.startswith("true invalid-argument what run() was given cannot be written as JSON: ")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("{ command: ['no-such-pie'] }", "there is no command 'no-such-pie'; install pie-engine"),
        ("{ model: 'nowhere' }", "model 'nowhere' is neither a folder nor a configured model"),
    ],
)
def test_node_is_told_why_there_is_no_engine(tmp_path: Path, options: str, told: str) -> None:
    done = in_node(
        tmp_path,
        f"import {{ Engine }} from 'MODULE';\nawait new Engine({options}).run('a.py').catch((error) => console.log(error.message));",
    )
    assert done.returncode == 0, done.stderr
    assert told in done.stdout


def test_the_javascript_of_the_guide_passes_in_a_clone_without_the_link(tmp_path: Path) -> None:
    project = new("mine", "typescript", tmp_path)
    (block,) = re.findall(r"^```js\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    (project / "tests/guide.test.mjs").write_text(block)
    (project / ".pie/sdk").unlink()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["npm", "test"], cwd=project, env={**environment(), "PATH": path}, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 3" in done.stdout
