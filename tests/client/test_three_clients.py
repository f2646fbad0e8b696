"""The clients of the three languages against one server: the same verbs have the same answers, event by event."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pie._engine import pack_program
from pie.programs import Source, load_program
from support.command import PATIENCE_S, environment
from support.launching import ROOT
from support.serving import Served, serving

FOLDER = Path(__file__).resolve().parent / "three"
MCP_SERVER = (sys.executable, str(ROOT / "tests/support/mcp_server.py"))
# Node of this release has a WebSocket without being asked.
NODE_WITH_WEBSOCKET = 22


def commands() -> dict[str, list[str]]:
    """How the script of each client is run."""
    version = subprocess.run(["node", "--version"], check=True, capture_output=True, text=True).stdout
    asked = [] if int(version.removeprefix("v").partition(".")[0]) >= NODE_WITH_WEBSOCKET else ["--experimental-websocket"]
    return {
        "python": [sys.executable, str(FOLDER / "script.py")],
        "javascript": ["node", *asked, str(FOLDER / "script.mjs")],
        "rust": [str(ROOT / "build/programs/client-script")],
    }


def transcript(command: list[str], served: Served, program: Path, *more: str) -> list[Any]:
    """What a script wrote, line by line."""
    done = subprocess.run(
        [*command, served.url, str(program), *more],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.rows("RS-203 SES-011..012 SES-026 SES-031 SES-035..036")
def test_the_clients_of_three_languages_say_the_same(tmp_path: Path) -> None:
    program = tmp_path / "three.pie"
    source = (FOLDER / "program.py").read_bytes()
    program.write_bytes(pack_program("python", {"main.py": source}, "main.py", None))
    with serving(tmp_path / "server") as served:
        transcripts = {language: transcript(command, served, program, *MCP_SERVER) for language, command in commands().items()}
    first = transcripts["python"]
    for language, lines in transcripts.items():
        differences = [(mine, other) for mine, other in zip(first, lines, strict=False) if mine != other]
        assert differences == [], f"{language} says something else; the first: {differences[0]}"
        assert len(lines) == len(first), f"{language} says {len(lines)} lines of {len(first)}"
    check(first)


@pytest.mark.rows("SES-039")
def test_a_typescript_program_compares_the_signal_of_a_javascript_client(tmp_path: Path) -> None:
    source = load_program(ROOT / "tests/e2e/session/session.ts")
    assert isinstance(source, Source)
    program = tmp_path / "session.pie"
    program.write_bytes(pack_program(source.language, dict(source.files), source.entry, None))
    with serving(tmp_path / "server") as served:
        command = [*commands()["javascript"][:-1], str(FOLDER / "signal.mjs")]
        assert transcript(command, served, program) == ["stopped"]


def test_a_page_of_a_browser_uses_the_built_javascript_client(tmp_path: Path) -> None:
    program = tmp_path / "three.pie"
    source = (FOLDER / "program.py").read_bytes()
    program.write_bytes(pack_program("python", {"main.py": source}, "main.py", None))
    with serving(tmp_path / "server") as served:
        node = commands()["javascript"][:-1]
        command = [*node, "--experimental-vm-modules", "--no-warnings", str(FOLDER / "browser.mjs")]
        told = transcript(command, served, program)
    assert told == [
        ["of Node", []],
        ["user", "ada"],
        ["first", ["ready", told[2][1][1], "printed", "to stderr", "beside"]],
        ["message", "<hello>"],
        ["file", [3, 2, 1]],
        ["tool", "tools/call 3"],
        ["no tool", "unknown-mcp-server"],
        ["result", [True, str(2**64 - 1)]],
        ["refused", "unknown-program"],
    ]
    assert json.loads(told[2][1][1]) == {"input": {"from": "page"}}


def check(lines: list[dict[str, Any]]) -> None:
    """What they say is what happened, too."""
    answers: dict[str, list[Any]] = {}
    for line in lines:
        answers.setdefault(line["verb"], []).append(line.get("answer", line.get("code")))
    assert answers["resolve_version"] == ["three@1.10", "unknown-program"]
    assert answers["check_program"] == [False, True, True, False, False]
    assert answers["list"][0] == [
        ["three@1.10", "ended", "return", False],
        ["three@1.9", "ended", "program-error", False],
        [next(line["digest"] for line in lines if line["verb"] == "upload"), "ended", "return", False],
        ["three@1.10", "ended", "cancelled", False],
        ["three@1.10", "ended", "cancelled", False],
        ["three@1.10", "ended", "return", False],
    ]
    assert answers["launch"][-2:] == ["unknown-program", "invalid-argument"]
    assert answers["attach"] == ["invalid-argument", None, "unknown-process"]
    assert answers["connections"] == answers["disconnect"] == ["not-permitted"]
    assert answers["detach"] == answers["send"][-1:] == ["session-closed"]
    assert answers["ping"] == ["connection-failed"]
    assert answers["launch_daemon"] == [True, "invalid-argument"]
    assert answers["register_mcp_server"][-1] == "invalid-name"
    assert answers["unregister_mcp_server"][-1] == "unknown-mcp-server"
    said_of_tools = [line["events"][0]["text"] for line in lines if line["verb"].endswith("register_mcp_server") and "events" in line]
    assert said_of_tools == ["3", "unknown-mcp-server"]
    [said] = [line["events"] for line in lines if line["verb"] == "events"][:1]
    assert [(event["type"], event.get("form")) for event in said] == [
        ("stdout", "text"),
        ("stdout", "json"),
        ("stdout", None),
        ("stderr", None),
        ("message", None),
    ]
    [file] = next(line["events"] for line in lines if line["verb"] == "transfer_file")
    assert file["data"] == list(reversed(range(256)))
    [failed] = [line["events"][-1] for line in lines if line["verb"] == "fail"]
    assert (failed["code"], failed["kind"], failed["message"]) == ("program-error", "KeyError", "'greeting'")
