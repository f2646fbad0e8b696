"""`pie run` as a user meets it: output, input lines, exit codes, seeds."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import PATIENCE_S, command, environment, pie, squeezed, start
from support.launching import LANGUAGES, ROOT

EXAMPLES = {
    "python": ROOT / "examples/python",
    "typescript": ROOT / "examples/typescript",
    "rust": ROOT / "build/programs",
}
SUFFIXES = {"python": ".py", "typescript": ".ts", "rust": ".wasm"}

ECHO = """
from inferlet import session


async def main(input):
    print("ready")
    while True:
        try:
            session.send("<" + await session.receive() + ">")
        except session.SessionClosed:
            return {"done": True}
"""


def example_path(name: str, language: str) -> str:
    return str(EXAMPLES[language] / (name + SUFFIXES[language]))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["hello", "chat", "branches", "agent"])
def test_every_example_runs_on_the_embedded_model(name: str, language: str) -> None:
    given = ("--name", "Ada") if name == "hello" else ("--max-tokens", "24")
    done = pie("run", example_path(name, language), "--seed", "7", "--", *given)
    assert done.returncode == 0, done.stderr
    assert any(letter.isalpha() for letter in done.stdout)
    assert done.stderr.strip() == "" or "once" in done.stderr


@pytest.mark.parametrize("name", ["hello", "chat", "branches", "agent"])
def test_an_example_prints_the_same_in_three_languages(name: str) -> None:
    outputs = {pie("run", example_path(name, language), "--seed", "11").stdout for language in LANGUAGES}
    assert len(outputs) == 1, outputs


def test_a_program_that_reads_lines_gets_the_json_that_is_sent_before_the_program_waits(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(
        "from inferlet import session\nasync def main():\n    session.send({'ready': True})\n    return await session.receive()\n"
    )
    with subprocess.Popen(
        command(["run", "p.py", "--dummy"]),
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stdout.readline() == '{"ready":true}\n'
        assert running.communicate("go on\n", timeout=PATIENCE_S)[0] == "go on\n"
    assert running.returncode == 0


def test_arguments_become_the_input(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("from inferlet import runtime\ndef main(input):\n    return [input, runtime.args()]\n")
    done = pie("run", "p.py", "--dummy", "--", "--max-tokens", "5", "--flag", "x y", "-n=1.5", cwd=tmp_path)
    value, args = json.loads(done.stdout)
    assert value == {"max_tokens": 5, "flag": "x y", "n": 1.5}
    assert args == ["--max-tokens", "5", "--flag", "x y", "-n=1.5"]


@pytest.mark.parametrize(
    ("returned", "printed"),
    [
        ("'a string'", "a string\n"),
        ("None", ""),
        ("{'b': 1, 'a': [1.5, True, None, 'ü']}", '{"b":1,"a":[1.5,true,null,"ü"]}\n'),
        ("''", "\n"),
    ],
)
def test_the_return_value_is_printed_last(tmp_path: Path, returned: str, printed: str) -> None:
    (tmp_path / "p.py").write_text(f"def main(input):\n    print('out', end='')\n    return {returned}\n")
    expected = "out" + ("\n" + printed if printed else "")
    assert pie("run", "p.py", "--dummy", cwd=tmp_path).stdout == expected


def test_lines_on_stdin_reach_the_program_and_their_end_is_a_disconnect(tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    done = pie("run", "echo.py", "--dummy", cwd=tmp_path, stdin="one\nzwei ü\n\nlast")
    assert done.returncode == 0, done.stderr
    assert done.stdout == 'ready\n<one><zwei ü><><last>\n{"done":true}\n'


def test_more_lines_than_a_queue_holds_wait_for_the_program(tmp_path: Path) -> None:
    (tmp_path / "count.py").write_text(
        "from inferlet import session\nasync def main(input):\n    n = 0\n    try:\n        while True:\n"
        "            await session.receive()\n            n += 1\n    except session.SessionClosed:\n        return n\n"
    )
    assert pie("run", "count.py", "--dummy", cwd=tmp_path, stdin="line\n" * 20_000).stdout == "20000\n"


def test_the_launch_seed_repeats_a_run() -> None:
    seeded = [pie("run", example_path("hello", "python"), "--seed", seed).stdout for seed in ("3", "3", "4")]
    assert seeded[0] == seeded[1]
    report = pie("run", example_path("hello", "python"), "--verbose").stderr
    assert json.loads(report)["launch_seed"] >= 0


def test_a_random_stream_comes_from_the_launch_seed(tmp_path: Path) -> None:
    (tmp_path / "r.py").write_text(
        "import random, os, uuid\ndef main(i):\n    return [random.random(), os.urandom(8).hex(), str(uuid.uuid4())]\n"
    )
    (tmp_path / "r.ts").write_text("export function main() { return [Math.random(), Math.random()]; }")
    for name in ("r.py", "r.ts"):
        outputs = [pie("run", name, "--dummy", "--seed", seed, cwd=tmp_path).stdout for seed in ("1", "1", "2")]
        assert outputs[0] == outputs[1] != outputs[2]


def test_ctrl_c_ends_with_130_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "spin.py").write_text("def main(input):\n    print('spinning')\n    while True:\n        pass\n")
    running = start(["run", "spin.py", "--dummy"], tmp_path)
    assert running.stdout is not None
    assert running.stdout.readline() == "spinning\n"
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130
    assert "Traceback" not in stderr


def test_ctrl_c_ends_a_run_whose_output_nobody_reads(tmp_path: Path) -> None:
    """The thread that prints waits for a reader then, and holds stdout."""
    (tmp_path / "flood.py").write_text("def main(input):\n    while True:\n        print('x' * 1000)\n")
    with start(["run", "flood.py", "--dummy"], tmp_path) as running:
        assert running.stdout is not None
        assert running.stdout.read(1) == "x"
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE_S) == 130


def test_a_reader_that_goes_away_ends_the_program(tmp_path: Path) -> None:
    (tmp_path / "flood.py").write_text("def main(input):\n    while True:\n        print('x' * 1000)\n")
    line = f"{sys.executable} -m pie run flood.py --dummy | head -c 100 > /dev/null; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_output_comes_as_it_is_sent(tmp_path: Path) -> None:
    (tmp_path / "ask.py").write_text(
        "from inferlet import session\nasync def main(i):\n    session.send('name? ')\n    return 'hi ' + await session.receive()\n"
    )
    primary, secondary = pty.openpty()
    running = subprocess.Popen(
        command(["run", "ask.py", "--dummy"]), cwd=tmp_path, env=environment(), stdin=subprocess.PIPE, stdout=secondary
    )
    os.close(secondary)
    seen = b""
    while b"name? " not in seen:
        seen += os.read(primary, 100)
    assert running.stdin is not None
    running.stdin.write(b"Bob\n")
    running.stdin.close()
    assert running.wait(PATIENCE_S) == 0
    os.close(primary)


def test_a_line_that_is_too_long_ends_the_input_and_not_the_program(tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    done = pie("run", "echo.py", "--dummy", cwd=tmp_path, stdin="short\n" + "x" * (5 << 20) + "\nlost\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout == 'ready\n<short>\n{"done":true}\n'
    assert "longer than" in done.stderr


def test_a_terminal_that_cannot_show_a_character_shows_another(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("def main(input):\n    print('ü')\n    return '🦊'\n")
    plain = environment() | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        command(["run", "p.py", "--dummy"]), cwd=tmp_path, env=plain, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"?\n?\n")


@pytest.mark.parametrize(("redirection", "exit_code"), [("> /dev/full", 1), (">&-", 1), ("2>&-", 0), ("<&-", 0)])
def test_streams_that_cannot_be_used(tmp_path: Path, redirection: str, exit_code: int) -> None:
    (tmp_path / "p.py").write_text("import sys\ndef main(input):\n    print('out')\n    print('err', file=sys.stderr)\n    return 1\n")
    line = f"{sys.executable} -m pie run p.py --dummy --seed 1 {redirection}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == exit_code, done.stderr
    assert "Traceback" not in done.stderr
    assert "stdin" not in done.stderr


def test_deep_and_large_answers_are_printed_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "deep.js").write_text("export function main() { let a = []; for (let i = 0; i < 500; i++) a = [a]; return a; }")
    assert pie("run", "deep.js", "--dummy", cwd=tmp_path).stdout == "[" * 501 + "]" * 501 + "\n"
    (tmp_path / "large.py").write_text("def main(input):\n    return 10 ** 4000\n")
    assert pie("run", "large.py", "--dummy", cwd=tmp_path).stdout == "1" + "0" * 4000 + "\n"


def test_a_random_launch_seed_is_reported(tmp_path: Path) -> None:
    (tmp_path / "r.py").write_text("import random\ndef main(input):\n    return random.random()\n")
    first = pie("run", "r.py", "--dummy", cwd=tmp_path)
    seed = first.stderr.split("launch seed ")[1].split()[0]
    assert pie("run", "r.py", "--dummy", "--seed", seed, cwd=tmp_path).stdout == first.stdout


def test_help_needs_neither_torch_nor_the_engine() -> None:
    code = "import sys; sys.argv = ['pie', '--help']\nfrom pie.cli.entry import run\nrun('pie')\n"
    code += "print([name for name in ('torch', 'numpy', 'pie._engine', 'cffi') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout.splitlines()[-1] == "[]"


def test_files_that_a_program_sends_are_saved_where_the_user_says(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("from inferlet import session\nprint('a', end='')\nsession.send_file(b'\\x00\\xff')\nprint('b')\n")
    saved = pie("run", "p.py", "--dummy", "--seed", "1", "--files", "out", cwd=tmp_path)
    assert (saved.returncode, saved.stdout) == (0, "a\nb\n"), saved.stderr
    assert (tmp_path / "out" / "file-1.bin").read_bytes() == b"\x00\xff"
    assert "a file of 2 bytes: out/file-1.bin" in saved.stderr
    told = pie("run", "p.py", "--dummy", "--seed", "1", cwd=tmp_path)
    assert "a file of 2 bytes, which was not saved; --files DIR saves files" in told.stderr


def test_an_empty_path_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("def main(input):\n    return 'ran'\n")
    done = pie("run", "", "--dummy", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "the path is empty" in done.stderr


def test_a_run_is_of_the_user_who_is_named(tmp_path: Path) -> None:
    (tmp_path / "who.py").write_text("from inferlet import runtime\ndef main(input):\n    return runtime.username()\n")
    assert pie("run", "who.py", "--dummy", cwd=tmp_path).stdout == "anonymous\n"
    done = pie("run", "who.py", "--dummy", "--user", "ann", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "ann\n"), done.stderr


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("run p.py --dummy --key secret", "--key"),
        ("run p.py --dummy --user ann --private-key id", "--private-key"),
        ("run p.py --dummy --watch --key secret", "--key"),
        ("doctor --user ann", "--user"),
        ("doctor --key secret", "--key"),
    ],
)
def test_what_says_to_a_server_who_asks_needs_a_server(tmp_path: Path, line: str, option: str) -> None:
    (tmp_path / "p.py").write_text("def main(input):\n    return 'ran'\n")
    done = pie(*line.split(), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"`{option}` only counts with `--server`" in squeezed(done.stderr)
