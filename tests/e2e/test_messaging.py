"""Programs that talk to each other: in one language and in several, of one user and of two, within bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pie._engine import Process
from pie.config import EngineConfig, ModelConfig
from pie.engine import Engine
from pie.events import Event
from pie.programs import Component, Source, load_program
from support.bad_lines import Others
from support.launching import LANGUAGES, PATIENCE_S, ROOT, finish, python_source

OTHERS = {"python": "typescript", "typescript": "rust", "rust": "python"}


def program(language: str) -> Component | Source:
    folder = ROOT / "tests/e2e/messaging"
    paths = {"python": folder / "messaging.py", "typescript": folder / "messaging.ts", "rust": ROOT / "build/programs/messaging.wasm"}
    return load_program(paths[language])


def launched(engine: Engine, language: str, task: str, user: str = "ada", **arguments: Any) -> Process:
    return engine.launch(program(language), input={"do": task} | arguments, seed=7, username=user)


def ready(process: Process) -> Process:
    """The process once it has said so."""
    assert process.next_event(PATIENCE_S) == Event.Stdout("ready")
    return process


@pytest.mark.rows("JS-186..194 PY-178..185 RS-209 RS-211..214 RS-216..218 OLD-028")
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_reference_as_it_is_printed(dummy: Engine, language: str) -> None:
    outcome = finish(launched(dummy, language, "reference", user=f"reference-{language}"))
    assert outcome.value == ["message", "message", "another", None], outcome.message


@pytest.mark.rows("OLD-085..089")
def test_older_programs_block(dummy: Engine) -> None:
    text = """
from inferlet import messaging

messaging.push("topic", "message")        # queue push
msg = messaging.pull("topic")             # queue pull (blocking)
print(msg)

with messaging.subscribe("topic") as sub:
    messaging.broadcast("topic", "message")   # broadcast
    messaging.broadcast("topic", "unread")
    for msg in sub:                       # infinite iterator
        print(msg)
        break
print(sub.next(), list(sub))
"""
    outcome = finish(dummy.launch(python_source(text), username="older"))
    assert outcome.text == "message\nmessage\nNone []\n", outcome.message


@pytest.mark.rows("RS-215")
def test_a_pollable_is_ready_where_there_is_something_to_get(dummy: Engine) -> None:
    process = ready(launched(dummy, "rust", "raw", topic="raw"))
    finish(launched(dummy, "python", "broadcast", topic="raw", messages=["hello"]))
    assert finish(process).value == ["hello", False, True, None, 0]


def test_a_task_that_always_finds_a_message_lets_the_others_run(dummy: Engine) -> None:
    outcome = finish(launched(dummy, "rust", "turns", user="turns", topic="turns", n=1000))
    assert 1 <= outcome.value < 200, outcome.message


@pytest.mark.parametrize("language", ["python", "typescript"])
def test_what_is_not_a_text_is_sent_as_json(dummy: Engine, language: str) -> None:
    outcome = finish(launched(dummy, language, "values", user=f"values-{language}"))
    assert outcome.value == ['{"ü":[1,null]}', "[1.5]", None], outcome.message


@pytest.mark.rows("RS-210")
@pytest.mark.parametrize("language", LANGUAGES)
def test_programs_of_two_languages_talk_and_those_of_another_user_hear_nothing(dummy: Engine, language: str) -> None:
    other, topic = OTHERS[language], f"crossing-{language}"
    listeners = [ready(launched(dummy, name, "listen", topic=topic, n=2)) for name in (language, other)]
    stranger = ready(launched(dummy, language, "listen", user="eve", topic=topic, n=1))
    finish(launched(dummy, language, "push", topic=topic, messages=["a", "b"]))
    finish(launched(dummy, other, "broadcast", topic=topic, messages=["x", "y"]))
    pulled = finish(launched(dummy, other, "pull", topic=topic, n=2))
    assert pulled.value == ["a", "b"], pulled.message
    assert [finish(listener).value for listener in listeners] == [["x", "y"], ["x", "y"]]
    finish(launched(dummy, other, "broadcast", user="eve", topic=topic, messages=["own"]))
    assert finish(stranger).value == ["own"]


def test_each_message_goes_to_one_of_those_who_pull(dummy: Engine) -> None:
    pullers = [ready(launched(dummy, language, "forward", topic="jobs")) for language in LANGUAGES * 2]
    jobs = [str(n) for n in range(60)]
    assert finish(launched(dummy, "typescript", "push", topic="jobs", messages=jobs)).code is None
    done: list[str] = []
    while len(done) < len(jobs):
        for puller in pullers:
            while isinstance(event := puller.next_event(0.01), Event.Stdout):
                done.append(event.text)
    assert sorted(done, key=int) == jobs
    for puller in pullers:
        puller.cancel()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_pull_that_is_given_up_takes_no_message(dummy: Engine, language: str) -> None:
    process = ready(launched(dummy, language, "give_up", topic=f"given-up-{language}"))
    finish(launched(dummy, language, "push", topic=f"given-up-{language}", messages=["kept"]))
    assert finish(process).value == "kept"


@pytest.mark.parametrize("language", LANGUAGES)
def test_pullers_that_die_take_no_message(dummy: Engine, language: str) -> None:
    topic = f"dying-{language}"
    others = Others(dummy)
    dying = [ready(launched(dummy, language, "forward", topic=topic)) for _ in range(4)]
    for process in dying:
        process.cancel()
        assert finish(process).code == "cancelled"
    finish(launched(dummy, language, "push", topic=topic, messages=["a", "b", "c"]))
    assert finish(launched(dummy, language, "pull", topic=topic, n=3)).value == ["a", "b", "c"]
    assert others.serves_others()


@pytest.fixture(scope="module")
def small() -> Iterator[Engine]:
    """An engine with little room for messages."""
    engine = Engine(EngineConfig(bus_queue_messages=1000, bus_push_s=0.05, bus_message_bytes=4096))
    engine.add_model(options=ModelConfig(driver="dummy"))
    with engine:
        yield engine


@pytest.mark.parametrize("language", LANGUAGES)
def test_messages_that_nobody_pulls_are_refused_once_the_queue_is_full(small: Engine, language: str) -> None:
    outcome = finish(launched(small, language, "fill", user=f"flood-{language}", topic="flood", n=1_000_000, size=1))
    n_pushed, code, message = outcome.value
    assert (n_pushed, code) == (1000, "queue-full"), message
    for part in ('"flood"', "engine.bus_queue_messages = 1000", "engine.bus_push_s = 0.05", "pull faster"):
        assert part in message
    counted = small.messages()
    assert counted["n_refused"] >= 1
    assert counted["n_pushed"] == counted["n_pulled"] + counted["n_queued"]
    # What was taken up is still there for whoever comes.
    pulled = finish(launched(small, language, "pull", user=f"flood-{language}", topic="flood", n=1000))
    assert pulled.value == ["x"] * 1000


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_message_that_is_too_long_is_an_error(small: Engine, language: str) -> None:
    n_pushed, code, message = finish(launched(small, language, "fill", topic="long", n=1, size=4097)).value
    assert (n_pushed, code) == (0, "limit-message")
    assert "a message of 4097 bytes is longer than engine.bus_message_bytes = 4096" in message


HUGE = {
    # What no program holds, which is told where it is made; and what one holds, and no call carries.
    1_000_000_000: ("limit-memory", "more than limits.memory_bytes = 268435456; hold less at once, or raise the limit"),
    10_000_000: (
        "limit-message",
        "a call carried more than limits.message_bytes = 8388608 bytes; send less in one call, or raise the limit",
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("size", HUGE)
def test_a_message_that_is_larger_than_any_call_may_be_ends_its_program_alone(dummy: Engine, size: int, language: str) -> None:
    code, message = HUGE[size]
    outcome = finish(launched(dummy, language, "fill", topic="huge", n=1, size=size))
    assert outcome.code == code, outcome
    assert outcome.message is not None
    assert outcome.message.endswith(message)
    assert finish(launched(dummy, language, "reference", user=f"after-{language}")).code is None


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_name_of_a_topic_holds_no_nul(dummy: Engine, language: str) -> None:
    _, code, message = finish(launched(dummy, language, "fill", topic="a\0b", n=1, size=1)).value
    assert code == "invalid-argument"
    assert '"a\\0b" of 3 bytes is not a name' in message
