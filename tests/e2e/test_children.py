"""Programs that start others: which, with what, and how both end. Vectors have what is the same in every language."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pie.cli.arguments import parse_arguments
from pie.config import EngineConfig, ModelConfig
from pie.engine import Engine, Program
from pie.events import Event
from pie.programs import Source, load_program
from support.command import pie
from support.engines import started
from support.launching import LANGUAGES, PATIENCE_S, ROOT, Outcome, example, finish, load_interpreter, python_source, run, typescript_source

COUNT = python_source("def main(input):\n    return len(input['text'].split())\n", "count.py")
SPAWNS = {
    "python": python_source(
        "from inferlet import runtime\nasync def main(input):\n    return await runtime.spawn(input['program'], input['input'])\n"
    ),
    "typescript": typescript_source(
        "import { runtime } from 'inferlet';\n"
        "export async function main(input: any) { return await runtime.spawn(input.program, input.input); }\n"
    ),
}
FILL = """
from inferlet import Context, Model, Sampler, messaging, runtime, session

async def main(input):
    ctx = Context(Model.load("default"))
    ctx.append(list(range(5, 5 + input["tokens"])))
    await ctx.flush()
    if input.get("child"):
        return await runtime.spawn(".", input["child"])
    if input.get("talks"):
        messaging.push("ready", "")
        await messaging.pull("never")
    return ctx.seq_len
"""


@pytest.fixture
def quiet() -> Iterator[Engine]:
    """An engine in which nothing else runs."""
    engine = Engine()
    engine.add_model(options=ModelConfig(driver="dummy"))
    with started(engine):
        yield engine


def project(**files: str) -> Source:
    """A Python project of these files; a double underscore stands for a slash."""
    contents = {name.replace("__", "/").replace("_py", ".py").replace("_ts", ".ts"): text for name, text in files.items()}
    return Source("python", tuple((name, text.encode()) for name, text in contents.items()), "main.py")


def alone(engine: Engine, program: Program, program_input: Any = None, **options: Any) -> Outcome:
    """The end of a program beside which nothing else is launched."""
    return finish(engine.launch(program, input=program_input or {}, alone=True, username="alone", **options))


def assert_nothing_is_left(engine: Engine) -> None:
    """No process, no page in use and nothing that a user holds."""
    assert engine.memory() == {}
    stats = engine.models[0].stats()
    assert (stats["n_pages_used"], stats["n_contexts"]) == (0, 0)


@pytest.mark.rows("RS-231")
def test_rust_starts_children_by_the_names_of_the_crate(dummy: Engine) -> None:
    given = {"do": "children", "program": "count", "texts": ["one two", "one two three"]}
    parent = load_program(ROOT / "build/programs/messaging.wasm")
    outcome = finish(dummy.launch(parent, input=given, programs={"count": COUNT}))
    assert outcome.value in ([2, 3, 0, "unknown-program"], [2, 3, "cancelled", "unknown-program"]), outcome.message


@pytest.mark.parametrize("language", ["python", "typescript"])
def test_programs_that_the_launch_names_may_be_in_any_language(dummy: Engine, language: str) -> None:
    for other in LANGUAGES:
        programs = {"other": load_interpreter(other)}
        given = {"program": "other", "input": {"ops": [{"op": "models"}]}}
        outcome = finish(dummy.launch(SPAWNS[language], input=given, programs=programs))
        assert outcome.value == [["pie-tiny"]], outcome.message


def test_a_program_starts_files_and_folders_of_its_own(dummy: Engine) -> None:
    program = project(
        main_py="from inferlet import runtime\nasync def main(input):\n    return [await runtime.spawn(name) for name in input]\n",
        worker_py="import shared\ndef main(input):\n    return shared.NAME\n",
        shared_py="NAME = 'all files are there'\n",
        deep__check_ts="export function main() { return 'another language'; }\n",
        part__src__main_py="import own\ndef main(input):\n    return own.NAME\n",
        part__src__own_py="NAME = 'those beside the entry'\n",
    )
    names = ["worker.py", "./worker.py", "deep/check.ts", "part", "./part/"]
    outcome = run(dummy, program, names)
    expected = ["all files are there"] * 2 + ["another language"] + ["those beside the entry"] * 2
    assert outcome.value == expected, outcome.message


def test_a_program_that_is_not_there_is_named_with_what_is(dummy: Engine) -> None:
    outcome = finish(dummy.launch(SPAWNS["python"], input={"program": "nobody", "input": None}, programs={"count": COUNT}))
    assert outcome.code == "unknown-program"
    for part in ('"nobody"', "names count", "--program NAME=FILE"):
        assert part in (outcome.message or "")


def test_the_error_of_one_of_several_children_names_it_and_its_traceback_is_told_once(dummy: Engine) -> None:
    text = """
import asyncio
from inferlet import runtime

async def main(input):
    if input == "parent":
        return await asyncio.gather(*(runtime.spawn(".", word) for word in ("good", "bad")))
    if input == "bad":
        raise ValueError("no such word")
    return input
"""
    outcome = run(dummy, python_source(text), "parent")
    told = "".join(outcome.stderr)
    assert outcome.code == "program-error"
    assert told.count("ValueError: no such word") == 1
    assert told.count("InferletError: no such word\nraised by the child '.', process ") == 1
    assert told.count("Traceback") == 2


def test_a_child_that_asks_its_client_is_told_that_it_has_none(dummy: Engine) -> None:
    text = """
from inferlet import SessionClosed, runtime, session

async def main(input):
    if input == "parent":
        return await runtime.spawn(".", "child")
    try:
        await session.receive()
    except SessionClosed as error:
        return [error.code, error.message]
"""
    code, message = run(dummy, python_source(text), "parent").value
    assert code == "session-closed"
    for part in ("was started by another one and has no client", "its input", "`messaging.pull` takes what the parent pushes"):
        assert part in message


def test_what_json_cannot_hold_is_refused_before_anything_starts(dummy: Engine) -> None:
    text = """
from inferlet import InferletError, runtime

def main(input):
    codes = []
    for value in (float("nan"), {1, 2}, "\\ud800", b"bytes"):
        try:
            runtime.spawn(".", value)
        except InferletError as error:
            codes.append(error.code)
    return codes
"""
    assert run(dummy, python_source(text)).value == ["invalid-argument"] * 4


def test_a_name_that_cannot_be_one_is_refused_at_the_launch(dummy: Engine) -> None:
    for name in ("", "UPPER", "a/b", "x" * 65):
        with pytest.raises(Exception, match=r"\[a-z0-9\]") as refused:
            dummy.launch(COUNT, programs={name: COUNT})
        assert refused.value.code == "invalid-name"  # type: ignore[attr-defined]


ARGUMENTS = ["poem", "--max-tokens", "5", "--word=--", "-v", "--offset", "-3", "--list", "[1, 2]", "--none", "null", "2"]
READS_ARGUMENTS = {
    "python": python_source(
        "from inferlet import runtime\nasync def main(input):\n    if input is None or runtime.args():\n"
        "        return [input, runtime.args()]\n"
        "    return [await runtime.spawn('.', argv=input), await runtime.spawn('.', 1, argv=input), await runtime.spawn('.')]\n"
    ),
    "typescript": typescript_source(
        "import { runtime } from 'inferlet';\nexport async function main(input: any): Promise<any> {\n"
        "  if (input === null || runtime.args().length > 0) return [input, runtime.args()];\n"
        "  const [args, spawn] = [input, runtime.spawn];\n"
        "  return [await spawn('.', undefined, { args }), await spawn('.', 1, { args }), await spawn('.')];\n}\n"
    ),
}


@pytest.mark.parametrize("language", READS_ARGUMENTS)
def test_arguments_without_an_input_are_the_input_as_on_the_command_line(dummy: Engine, language: str) -> None:
    outcome = run(dummy, READS_ARGUMENTS[language], ARGUMENTS)
    assert outcome.value == [[parse_arguments(ARGUMENTS), ARGUMENTS], [1, ARGUMENTS], [None, []]], outcome.message


FAILURES = {
    "an exception": ("raise ValueError('no')", "program-error", "ValueError"),
    "a stack without end": ("f = lambda f: f(f)\n    f(f)", "limit-stack", None),
    "a loop without end": ("while True: pass", "limit-cpu", None),
    "too much memory": ("x = bytearray(1 << 30)", "limit-memory", None),
    "a value that is not JSON": ("return {1, 2}", "invalid-output", None),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_child_that_fails_raises_its_error_and_its_parent_goes_on(dummy: Engine, name: str) -> None:
    body, code, kind = FAILURES[name]
    text = f"""
from inferlet import InferletError, runtime

async def main(input):
    if input == "fail":
        return fail()
    child = runtime.spawn(".", "fail")
    try:
        await child
    except InferletError as error:
        return [error.code, error.details["kind"], error.details["pid"] == child.pid]

def fail():
    {body}
"""
    outcome = finish(dummy.launch(python_source(text), input="begin", limits={"cpu_s": 1.0}))
    given_code, given_kind, is_named = outcome.value
    assert (given_code, is_named) == (code, True)
    assert kind in {None, given_kind}


def test_a_child_that_traps_raises_its_error(dummy: Engine) -> None:
    programs = {"mistakes": load_program(ROOT / "build/programs/mistakes.wasm")}
    given = {"program": "mistakes", "input": {"panic": {"index": 7}}}
    outcome = finish(dummy.launch(SPAWNS["python"], input=given, programs=programs))
    assert outcome.code == "trap", outcome.message
    assert outcome.message is not None
    assert outcome.message.startswith("the program panicked at ")
    assert "src/lib.rs:" in outcome.message


def test_output_of_a_child_is_that_of_its_parent_where_it_is_asked_for(dummy: Engine) -> None:
    text = """
import sys
from inferlet import runtime, session

async def main(input):
    if isinstance(input, str):
        print(f"printed by {input}")
        session.send(f"sent by {input}")
        session.send_file(input.encode())
        print(f"error of {input}", file=sys.stderr)
        return None
    print("before")
    await runtime.spawn(".", "seen", output=True)
    await runtime.spawn(".", "unseen")
    print("after")
"""
    outcome = run(dummy, python_source(text))
    assert outcome.sent == ["before\n", "printed by seen\n", "sent by seen", b"seen", "after\n"], outcome.message
    assert "".join(outcome.stderr) == "error of seen\nerror of unseen\n"


def test_a_child_that_spawns_itself_meets_the_limit_on_depth(dummy: Engine) -> None:
    text = """
from inferlet import InferletError, runtime

async def main(input):
    try:
        return await runtime.spawn(".", input + 1)
    except InferletError as error:
        return [input, error.code, error.details]
"""
    for depth, limits in ((4, None), (2, {"child_depth": 2}), (0, {"child_depth": 0})):
        outcome = finish(dummy.launch(python_source(text), input=0, limits=limits))
        assert outcome.value == [depth, "limit-child-depth", {"depth": depth + 1, "limit": depth}], outcome.message


BOMB = """
from inferlet import InferletError, messaging, runtime

async def main(input):
    if input == "wait":
        return await messaging.pull("never")
    if input == "end":
        return None
    children = []
    try:
        while True:
            child = runtime.spawn(".", input["child"])
            if input["child"] == "end":
                await child
            children.append(child)
    except InferletError as error:
        return [len(children), error.code]
"""


def test_a_storm_of_children_meets_the_limits_and_is_gone_with_its_parent(quiet: Engine) -> None:
    limits = {"children": 5, "spawns": 20}
    for child, expected in (("wait", [5, "limit-children"]), ("end", [20, "limit-spawns"])):
        outcome = finish(quiet.launch(python_source(BOMB), input={"child": child}, limits=limits))
        assert outcome.value == expected, outcome.message
        assert_nothing_is_left(quiet)


@pytest.mark.parametrize("how", ["cancelled", "limit-calls", "returned"])
def test_children_end_with_their_parent_and_free_what_they_hold(quiet: Engine, how: str) -> None:
    text = """
from inferlet import Context, Model, messaging, runtime, session

async def main(input):
    ctx = Context(Model.load("default"))
    ctx.append(list(range(5, 105)))
    await ctx.flush()
    if input["depth"]:
        for _ in range(2):
            runtime.spawn(".", {"depth": input["depth"] - 1, "how": "waits"})
    messaging.push("ready", "")
    if input["how"] == "waits":
        await messaging.pull("never")
    for _ in range(7):
        await messaging.pull("ready")
    session.send("ready")
    while input["how"] == "limit-calls":
        runtime.version()
    if input["how"] == "cancelled":
        await messaging.pull("never")
"""
    limits = {"calls": 5000} if how == "limit-calls" else None
    process = quiet.launch(python_source(text), input={"depth": 2, "how": how}, limits=limits)
    assert process.next_event(PATIENCE_S) == Event.Stdout("ready")
    if how == "cancelled":
        process.cancel()
    outcome = finish(process)
    assert outcome.code == (None if how == "returned" else how), outcome.message
    assert_nothing_is_left(quiet)


def test_children_of_a_parent_without_time_end_wherever_they_are(quiet: Engine) -> None:
    text = """
from inferlet import messaging, runtime

async def main(input):
    for _ in range(input):
        runtime.spawn(".", input - 1)
    await messaging.pull("never")
"""
    # How far they come by then depends on the machine, and what is left of them does not.
    outcome = finish(quiet.launch(python_source(text), input=3, limits={"wall_s": 1.0}))
    assert outcome.code == "limit-wall", outcome.message
    assert_nothing_is_left(quiet)


def test_a_parent_that_waits_gives_up_its_pages_to_its_child() -> None:
    engine = Engine()
    engine.add_model(options=ModelConfig(driver="dummy", n_pages=16, page_size=16))
    given: dict[str, Any] = {"tokens": 160}
    for _ in range(4):
        given = {"tokens": 160, "child": given}
    with started(engine):
        outcome = run(engine, python_source(FILL), given)
        assert outcome.value == 160, outcome.message


def test_a_parent_that_waits_holds_no_turn_that_the_child_needs() -> None:
    engine = Engine(EngineConfig(worker_threads=1, max_compilations=1))
    engine.add_model(options=ModelConfig(driver="dummy"))
    with started(engine):
        nested = {"op": "models"}
        for language in ("rust", "typescript", "python"):
            given = {"program": language, "input": {"ops": [nested]}}
            programs = {name: load_interpreter(name) for name in LANGUAGES}
            outcome = finish(engine.launch(SPAWNS["typescript"], input=given, programs=programs))
            assert outcome.value == [["pie-tiny"]], outcome.message


def test_children_share_the_token_budget_of_their_parent(dummy: Engine) -> None:
    given = {"tokens": 10, "child": {"tokens": 10, "child": {"tokens": 10}}}
    for budget, code in ((30, None), (29, "token-budget")):
        outcome = finish(dummy.launch(python_source(FILL), input=given, token_budget=budget))
        assert outcome.code == code, outcome.message


def test_a_launch_seed_repeats_the_whole_family(tiny: Engine) -> None:
    text = """
import asyncio
from inferlet import Context, Model, Sampler, runtime

async def main(input):
    if input:
        ctx = Context(Model.load("default")).user("Name an animal.")
        return await ctx.generate(Sampler.multinomial(1.0), max_tokens=12).collect_tokens()
    return await asyncio.gather(*(runtime.spawn(".", 1) for _ in range(3)))
"""
    first, again, other = (run(tiny, python_source(text), seed=seed).value for seed in (3, 3, 4))
    assert first == again != other
    assert len({tuple(tokens) for tokens in first}) == 3


@pytest.mark.parametrize("language", ["python", "typescript"])
def test_map_reduce(tiny: Engine, language: str) -> None:
    given = {"text": "Rain fell all night. The sun came out. The river rose.", "parts": 3}
    outcome = run(tiny, example("map_reduce", language), given, seed=1)
    assert outcome.code is None, outcome.message
    assert len(outcome.value["parts"]) == 3
    assert outcome.value == run(tiny, example("map_reduce", "python"), given, seed=2).value


WAITS = """
from inferlet import InferletError, messaging, runtime

async def main(input):
    if input == "pull":
        return await messaging.pull("jobs")
    if input == "next":
        with messaging.subscribe("news") as news:
            return await news.next()
    try:
        return await runtime.spawn(".", input["child"])
    except InferletError as error:
        return [error.code, error.message]
"""


def test_who_waits_for_whom_is_told_where_nothing_can_wake_them(quiet: Engine) -> None:
    for child, awaited in (("pull", 'a message of the topic "jobs"'), ("next", 'a broadcast of the topic "news"')):
        outcome = alone(quiet, python_source(WAITS), {"child": child})
        code, message = outcome.value
        assert code == "deadlock"
        assert "waits for the end of process" in message
        assert awaited in message


FAILS = """
from inferlet import messaging, runtime

async def main(input):
    if input == "fail":
        raise ValueError("no results")
    child = runtime.spawn(".", "fail")
    return await messaging.pull("done")
"""


def test_who_waits_for_what_a_child_that_has_failed_would_have_sent_is_told_of_its_error(quiet: Engine) -> None:
    outcome = alone(quiet, python_source(FAILS), {})
    assert outcome.code == "deadlock"
    assert "these ended with an error: process" in (outcome.message or "")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_that_waits_for_itself_is_told_in_every_language(quiet: Engine, language: str) -> None:
    pull = {"op": "pull", "topic": "jobs"}
    both = [[pull], [{"op": "spawn", "as": "a", "program": ".", "input": {"ops": [pull]}}, {"op": "wait", "child": "a"}]]
    ops = [{"op": "all", "ops": both}, pull]
    outcome = alone(quiet, load_interpreter(language), {"ops": ops})
    # Its child is told first. Then nobody is left but itself.
    assert outcome.code == "deadlock", outcome.message
    assert "process" in (outcome.message or "")


def test_what_can_still_be_woken_is_not_told(quiet: Engine) -> None:
    text = """
import asyncio
from inferlet import messaging, runtime, session

async def main(input):
    if input == "later":
        await asyncio.sleep(0.1)
        messaging.push("jobs", "done")
    elif input == "pull":
        return await messaging.pull("jobs")
    elif input == "client":
        session.send("ready")
        messaging.push("jobs", await session.receive())
    else:
        waits = runtime.spawn(".", "pull")
        await runtime.spawn(".", "later")
        first = await waits
        try:
            await asyncio.wait_for(messaging.pull("jobs"), 0.1)
        except TimeoutError:
            pass
        waits = runtime.spawn(".", "pull")
        session.send("ready")
        messaging.push("jobs", await session.receive())
        return [first, await waits]
"""
    process = quiet.launch(python_source(text), input={}, alone=True)
    assert process.next_event(PATIENCE_S) == Event.Stdout("ready")
    process.send("by the client")
    assert finish(process).value == ["done", "by the client"]


def test_many_families_that_talk_are_never_told_by_mistake(quiet: Engine) -> None:
    text = """
import asyncio
from inferlet import messaging, runtime

async def main(input):
    if input:
        total = 0
        for _ in range(50):
            n = int(await messaging.pull(f"to-{input}"))
            messaging.push(f"from-{input}", str(n + 1))
            total = n
        return total
    children = [runtime.spawn(".", number) for number in range(1, 5)]
    for n in range(50):
        for number in range(1, 5):
            messaging.push(f"to-{number}", str(n))
        for number in range(1, 5):
            assert await messaging.pull(f"from-{number}") == str(n + 1)
    return await asyncio.gather(*children)
"""
    outcome = alone(quiet, python_source(text))
    assert outcome.value == [49] * 4, outcome.message


def test_the_command_names_programs(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(
        "from inferlet import runtime\nasync def main(input):\n    return await runtime.spawn('count', {'text': 'a b'})\n"
    )
    (tmp_path / "count.py").write_text(COUNT.files[0][1].decode())
    done = pie("run", "main.py", "--dummy", "--program", "count=count.py", cwd=tmp_path)
    assert done.stdout == "2\n", done.stderr
    for option, part in (("count", "NAME=FILE"), ("=count.py", "NAME=FILE"), ("count=", "NAME=FILE"), ("count=none.py", "none.py")):
        done = pie("run", "main.py", "--dummy", "--program", option, cwd=tmp_path)
        assert done.returncode != 0
        assert part in done.stderr
    twice = pie("run", "main.py", "--dummy", "--program", "a=count.py", "--program", "a=main.py", cwd=tmp_path)
    assert "twice" in twice.stderr


def test_the_command_tells_who_waits_for_whom(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(WAITS)
    done = pie("run", "main.py", "--dummy", "--input", '"pull"', cwd=tmp_path)
    assert done.returncode == 1
    assert 'process 1 waits for a message of the topic "jobs"' in done.stderr
