"""`pie chat`, and the example that it runs."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pie.config import EMBEDDED_FOLDER
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


def test_a_model_of_a_folder_is_talked_to(tmp_path: Path) -> None:
    folder = tmp_path / "parrot"
    shutil.copytree(EMBEDDED_FOLDER, folder)
    options = ("--seed", "3", "--max-tokens", "12")
    said = f"{HELLO}\n/save talk.json\n"
    done = pie("chat", "--model", str(folder), *options, stdin=said, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # The same model says the same, whatever it is called by.
    assert done.stdout.strip()
    assert done.stdout == pie("chat", *options, stdin=said.replace("talk", "again"), cwd=tmp_path).stdout
    answer = json.loads((tmp_path / "talk.json").read_text())[-1]
    assert answer["role"] == "assistant"
    assert answer["content"].strip() in done.stdout
    with on_terminal(tmp_path, "chat", "--model", "parrot", *options) as terminal:
        terminal.until(b"parrot: ")
        terminal.until(b"> ")
        terminal.say(HELLO)
        terminal.until(answer["content"].split()[0].encode())
        terminal.until(b"\n> ")
        terminal.leave()
    missing = pie("chat", "--model", str(tmp_path / "nowhere"), stdin="", cwd=tmp_path)
    assert missing.returncode == 1
    assert "nowhere" in missing.stderr


def test_on_a_terminal_ctrl_c_stops_an_answer_and_ctrl_d_ends(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "chat", "--dummy", "--max-tokens", "100000") as terminal:
        terminal.until(b"Ctrl-D ends")
        terminal.until(b"> ")
        terminal.say("say something")
        # What follows is of the answer.
        terminal.read_words()
        terminal.running.send_signal(signal.SIGINT)
        terminal.until(b"\n> ")
        terminal.running.send_signal(signal.SIGINT)
        # Python's readline looks for a signal once it waits: one that comes just before is seen with the next.
        while not select.select([terminal.primary], [], [], 1.0)[0]:
            terminal.running.send_signal(signal.SIGINT)
        terminal.until(b"Ctrl-D or /quit ends")
        terminal.until(b"> ")
        terminal.leave()


@dataclass
class Terminal:
    """A command on a terminal."""

    running: subprocess.Popen[bytes]
    primary: int
    """What a user reads and writes."""
    seen: bytes = b""
    """What was written and not looked at."""

    def until(self, words: bytes) -> None:
        """Reads up to these words."""
        while words not in self.seen:
            self.seen += os.read(self.primary, 1024)
        _, _, self.seen = self.seen.partition(words)

    def say(self, line: str) -> None:
        """Writes a line, which the terminal shows."""
        os.write(self.primary, f"{line}\n".encode())
        self.until(line.rpartition(" ")[2].encode() + b"\r\n")

    def read_words(self) -> None:
        """Reads until there is something that is not blank."""
        while not self.seen.strip():
            self.seen += os.read(self.primary, 1024)

    def leave(self) -> None:
        """Presses Ctrl-D, which ends the command."""
        os.write(self.primary, b"\x04")
        assert self.running.wait(PATIENCE_S) == 0


@contextmanager
def on_terminal(folder: Path, *arguments: str) -> Iterator[Terminal]:
    """A command of `pie` on a terminal of its own, within the `with`."""
    primary, secondary = pty.openpty()
    running = subprocess.Popen(
        command(arguments),
        cwd=folder,
        env=environment() | {"TERM": "dumb"},
        stdin=secondary,
        stdout=secondary,
        stderr=secondary,
        start_new_session=True,
    )
    os.close(secondary)
    # Where nothing comes any more, the test must not hang.
    patience = threading.Timer(PATIENCE_S, running.kill)
    patience.start()
    try:
        yield Terminal(running, primary)
    finally:
        patience.cancel()
        running.kill()
        running.wait()
        os.close(primary)
