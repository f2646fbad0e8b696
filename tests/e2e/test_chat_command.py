"""`pie chat`, and the example that it runs."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import threading
from pathlib import Path

from pie.engine import Engine
from support.command import PATIENCE_S, command, environment, pie
from support.launching import example, finish

HELLO = "Hello, who are you?"


def test_lines_are_answered_in_their_order(tmp_path: Path) -> None:
    said = f"{HELLO}\n/system\n/system Be brief.\n\n{HELLO}\n/save talk.json\n/reset\n/dance\n/quit\nnever said\n"
    done = pie("chat", "--seed", "3", "--max-tokens", "12", stdin=said, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    notes = [line for line in done.stderr.splitlines() if line.startswith(("there is", "a new", "saved", "the commands"))]
    assert [note.split()[0] for note in notes] == ["there", "a", "saved", "a", "the"]
    messages = json.loads((tmp_path / "talk.json").read_text())
    assert [message["role"] for message in messages] == ["system", "user", "assistant"]
    assert [message["content"] for message in messages[:2]] == ["Be brief.", HELLO]
    assert messages[2]["content"].strip() in done.stdout
    assert pie("chat", "--seed", "3", "--max-tokens", "12", stdin=said.replace("talk", "again"), cwd=tmp_path).stdout == done.stdout


def test_an_answer_is_stopped_and_the_conversation_goes_on(dummy: Engine) -> None:
    """The dummy driver ends no turn by itself: what ends the first answer is `/stop`."""
    process = dummy.launch(example("conversation", "python"), input={"events": True, "max_tokens": 4000}, seed=1)
    told: list[dict[str, object]] = []

    def until(kind: str) -> None:
        while not told or told[-1]["event"] != kind:
            event = process.next_event(PATIENCE_S)
            assert event is not None
            told.extend(json.loads(line) for line in event.text.splitlines())
        told.append({"event": "looked"})

    until("ready")
    process.send("one")
    until("text")
    process.send("/stop")
    until("done")
    until("ready")
    process.send("/save x")
    until("file")
    saved = process.next_event(PATIENCE_S)
    assert saved is not None
    one, answer = json.loads(saved.data)
    assert one == {"role": "user", "content": "one"}
    assert answer["content"] == "".join(str(event["text"]) for event in told if event["event"] == "text")
    process.close_input()
    until("ready")
    assert finish(process).value == {"messages": 1}


def test_a_message_that_cannot_be_answered_was_never_said(dummy: Engine) -> None:
    process = dummy.launch(example("conversation", "python"), input={"max_tokens": 4, "temperature": 1}, seed=1)
    for line in ("word " * 100_000, "hi", "/save x"):
        process.send(line)
    process.close_input()
    outcome = finish(process)
    assert outcome.code is None, outcome.message
    assert "was not said" in outcome.text
    (saved,) = [json.loads(sent) for sent in outcome.sent if isinstance(sent, bytes)]
    assert [message["role"] for message in saved] == ["user", "assistant"]
    assert saved[0]["content"] == "hi"


def test_on_a_terminal_ctrl_c_stops_an_answer_and_ctrl_d_ends(tmp_path: Path) -> None:
    primary, secondary = pty.openpty()
    running = subprocess.Popen(
        command(["chat", "--dummy", "--max-tokens", "100000"]),
        cwd=tmp_path,
        env=environment() | {"TERM": "dumb"},
        stdin=secondary,
        stdout=secondary,
        stderr=secondary,
        start_new_session=True,
    )
    os.close(secondary)
    seen = b""
    # Where nothing comes any more, the test must not hang.
    patience = threading.Timer(PATIENCE_S, running.kill)
    patience.start()

    def until(words: bytes) -> None:
        nonlocal seen
        while words not in seen:
            seen += os.read(primary, 1024)
        _, _, seen = seen.partition(words)

    try:
        until(b"Ctrl-D ends")
        until(b"> ")
        os.write(primary, b"say something\n")
        until(b"something\r\n")
        # What follows is of the answer.
        while not seen.strip():
            seen += os.read(primary, 1024)
        running.send_signal(signal.SIGINT)
        until(b"\n> ")
        running.send_signal(signal.SIGINT)
        # Python's readline looks for a signal once it waits: one that comes just before is seen with the next.
        while not select.select([primary], [], [], 1.0)[0]:
            running.send_signal(signal.SIGINT)
        until(b"Ctrl-D or /quit ends")
        until(b"> ")
        os.write(primary, b"\x04")
        assert running.wait(PATIENCE_S) == 0
    finally:
        patience.cancel()
        running.kill()
        running.wait()
        os.close(primary)
