"""What a program and its client say to each other: the snippets of the reference documents, in three languages."""

from __future__ import annotations

import json

import pytest

from pie._engine import Process
from pie.engine import Engine
from pie.programs import Component, Source, load_program
from support.launching import LANGUAGES, PATIENCE_S, ROOT, finish, python_source, run

PDF = b"%PDF-1.7\n\xff"
EVERY_BYTE = bytes(range(256))


def program(language: str) -> Component | Source:
    """The program that holds the snippets of that language."""
    folder = ROOT / "tests/e2e/session"
    paths = {"python": folder / "session.py", "typescript": folder / "session.ts", "rust": ROOT / "build/programs/session.wasm"}
    return load_program(paths[language])


def launched(engine: Engine, language: str, snippet: str) -> Process:
    return engine.launch(program(language), input=snippet, seed=7)


@pytest.mark.rows("JS-181..182 PY-173..174 RS-204..205 OLD-009 OLD-077 OLD-079 SES-002..010")
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_sends_texts_values_and_files(dummy: Engine, language: str) -> None:
    sent = finish(launched(dummy, language, "send")).sent
    values = [] if language == "rust" else ['{"event":"tick","n":3}']
    assert sent == ["hello", *values, PDF]


@pytest.mark.rows("SES-007 SES-041")
@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_sent_is_marked_and_what_is_printed_is_not(dummy: Engine, language: str) -> None:
    outcome = finish(launched(dummy, language, "forms"))
    assert outcome.stdout == ["text", '{"n":3}', "printed\n", "7"]
    assert outcome.forms == ["text", "json", None, "json"]
    assert outcome.messages == ["beside"]


@pytest.mark.rows("SES-041", language="rust")
def test_what_a_rust_program_prints_without_a_line_s_end_keeps_its_place(dummy: Engine) -> None:
    assert finish(launched(dummy, "rust", "print")).sent == ["a", "b", "c", b"d", "e"]


@pytest.mark.rows("JS-183 PY-175 RS-206 RS-208 SES-014..016 SES-018")
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_receives_a_text(dummy: Engine, language: str) -> None:
    process = launched(dummy, language, "receive")
    process.send("grüezi")
    assert finish(process).value == "grüezi"


@pytest.mark.rows("JS-047 PY-042 RS-063 RS-111 RS-201 SES-022..025")
def test_each_token_is_sent_as_it_is_decoded_and_the_same_in_every_language(tiny: Engine) -> None:
    outcomes = [finish(launched(tiny, language, "stream")) for language in LANGUAGES]
    assert outcomes[0].value == outcomes[1].value == outcomes[2].value
    assert outcomes[0].sent == outcomes[1].sent == outcomes[2].sent
    assert len(outcomes[0].sent) > 1


@pytest.mark.rows("SES-027..030")
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_structured_event_is_one_json_text(dummy: Engine, language: str) -> None:
    (text,) = finish(launched(dummy, language, "structured")).stdout
    assert json.loads(text) == {"channel": "progress", "step": 3, "of": 10}


@pytest.mark.rows("JS-184 PY-176 RS-207 SES-017 SES-019 SES-032..034")
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_file_comes_and_goes_unchanged(dummy: Engine, language: str) -> None:
    for data in (EVERY_BYTE, b"", bytes(2 << 20)):
        process = launched(dummy, language, "files")
        process.send_file(data)
        assert finish(process).sent == [data]


@pytest.mark.rows("JS-185 PY-177 RS-202 SES-037..038 SES-040")
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_signal_is_a_message(dummy: Engine, language: str) -> None:
    for texts, answer in ((["stop"], "stopped"), (["other", "go on"], "go on")):
        process = launched(dummy, language, "signals")
        for text in texts:
            process.send(text)
        assert finish(process).value == answer


@pytest.mark.rows("SES-020")
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_wait_that_is_given_up_loses_no_file_and_a_disconnect_ends_the_next(dummy: Engine, language: str) -> None:
    process = launched(dummy, language, "patience")
    event = process.next_event(PATIENCE_S)
    assert event is not None
    assert event.text == "waiting"
    process.send_file(b"kept")
    process.close_input()
    assert finish(process).value == [True, list(b"kept"), None]


@pytest.mark.rows("JS-011 PY-008 RS-023")
def test_the_instance_is_the_engine_not_the_process(dummy: Engine, tiny: Engine) -> None:
    here, elsewhere = ({finish(launched(engine, language, "instance")).value for language in LANGUAGES} for engine in (dummy, tiny))
    assert len(here) == len(elsewhere) == 1
    assert here != elsewhere


@pytest.mark.rows("OLD-080")
def test_a_script_blocks_for_a_file_outside_of_a_loop(dummy: Engine) -> None:
    script = (
        "from inferlet import SessionClosed, session\nfile = session.receive_file()\nsession.send_file(bytearray(file) + b'!')\n"
        "try:\n    session.receive_file()\nexcept SessionClosed as error:\n    print(error.code)\n"
    )
    process = dummy.launch(python_source(script))
    process.send_file(b"\x00\xff")
    process.close_input()
    assert finish(process).sent == [b"\x00\xff!", "session-closed\n"]


def test_a_file_over_the_limit_is_refused_by_name(dummy: Engine) -> None:
    process = launched(dummy, "python", "files")
    with pytest.raises(Exception, match=r"a file of 8388609 bytes is longer than message_bytes = 8388608") as refused:
        process.send_file(bytes((8 << 20) + 1))
    assert getattr(refused.value, "code", None) == "limit-message"
    process.send_file(b"x")
    assert finish(process).sent == [b"x"]


def test_a_file_that_is_more_than_a_call_may_carry_ends_the_program(dummy: Engine) -> None:
    outcome = run(dummy, python_source("from inferlet import session\nsession.send_file(bytes(9 << 20))\n"))
    assert outcome.code == "limit-message", outcome.message
    assert outcome.sent == []


def test_what_is_no_bytes_is_refused_by_name(dummy: Engine) -> None:
    outcome = run(dummy, python_source("from inferlet import session\nsession.send_file('text')\n"))
    assert outcome.code == "invalid-argument"
    assert outcome.message is not None
    assert "data is 'text' of type str; it must be bytes" in outcome.message
