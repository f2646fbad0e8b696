"""`pie run --watch`: the program runs again when a file of it changes."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.command import PATIENCE_S, pie, start
from support.folders import write


@contextmanager
def watching(program: str, folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """`pie run --watch`; what it says is read line by line, and it ends by Ctrl-C with 130."""
    running = start(["run", program, "--dummy", "--watch", *options], folder)
    # What it waits for is read from both streams: where nothing comes any more, a test must not hang.
    end = threading.Timer(PATIENCE_S, running.kill)
    end.start()
    try:
        yield running
        running.send_signal(signal.SIGINT)
        _, stderr = running.communicate(timeout=PATIENCE_S)
        assert running.returncode == 130
        assert "Traceback" not in stderr
    finally:
        end.cancel()
        running.kill()
        running.wait()


def line(running: subprocess.Popen[str], *, of: str = "stdout", until: str = "") -> str:
    """The next line of a stream, or the next that has these words."""
    stream = running.stdout if of == "stdout" else running.stderr
    assert stream is not None
    for text in stream:
        if until in text:
            return text
    raise AssertionError(f"{of} ended without {until!r}")


def test_a_change_runs_the_program_again(tmp_path: Path) -> None:
    write(tmp_path, {"p/main.py": "import lib\ndef main(input): return lib.WORD\n", "p/lib.py": "WORD = 'one'\n"})
    with watching("p", tmp_path) as running:
        assert line(running) == "one\n"
        line(running, of="stderr", until="waiting for a change")
        (tmp_path / "p/lib.py").write_text("WORD = 'second'\n")
        assert line(running) == "second\n"
        assert line(running, of="stderr", until="changed: ") == "changed: lib.py; running again\n"


def test_what_still_runs_is_ended_first(tmp_path: Path) -> None:
    program = tmp_path / "p.py"
    program.write_text("def main(input):\n    print('spinning')\n    while True:\n        pass\n")
    with watching("p.py", tmp_path) as running:
        assert line(running) == "spinning\n"
        program.write_text("def main(input): return 'ended'\n")
        assert line(running) == "ended\n"
        told = line(running, of="stderr", until="changed: p.py")
        while "waiting for a change" not in told:
            told = line(running, of="stderr")
            assert "error[" not in told


def test_a_mistake_waits_for_the_next_change(tmp_path: Path) -> None:
    write(tmp_path, {"p/main.ts": "export function main( {", "p/Pie.toml": "[package\n"})
    with watching("p", tmp_path) as running:
        assert "Pie.toml" in line(running, of="stderr", until="error[invalid-manifest]")
        line(running, of="stderr", until="waiting for a change")
        (tmp_path / "p/Pie.toml").unlink()
        line(running, of="stderr", until="changed: Pie.toml (removed)")
        line(running, of="stderr", until="error[invalid-program]")
        line(running, of="stderr", until="waiting for a change")
        (tmp_path / "p/main.ts").write_text("export function main(): string { return 'mended'; }\n")
        assert line(running) == "mended\n"


def test_a_file_that_is_imported_later_is_watched_too(tmp_path: Path) -> None:
    write(tmp_path, {"main.py": "def main(input): return 'alone'\n", "deep/lib.py": "WORD = 'one'\n", "other/unrelated.py": ""})
    with watching("main.py", tmp_path) as running:
        assert line(running) == "alone\n"
        (tmp_path / "main.py").write_text("from deep import lib\ndef main(input): return lib.WORD\n")
        assert line(running) == "one\n"
        line(running, of="stderr", until="changed: main.py")
        line(running, of="stderr", until="waiting for a change")
        (tmp_path / "deep/lib.py").write_text("WORD = 'second'\n")
        assert line(running) == "second\n"
        line(running, of="stderr", until="changed: deep/lib.py")


def test_what_cannot_be_watched_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("def main(): pass\n")
    absent = pie("run", "absent.py", "--dummy", "--watch", cwd=tmp_path)
    assert (absent.returncode, "unknown-program" in absent.stderr) == (1, True)
    with_server = pie("run", "p.py", "--watch", "--server", "ws://127.0.0.1:1", cwd=tmp_path)
    assert (with_server.returncode, "--server" in with_server.stderr) == (2, True)
    serving = pie("run", "p.py", "--dummy", "--watch", "--port", "0", cwd=tmp_path)
    assert (serving.returncode, "--port" in serving.stderr) == (2, True)
    detached = pie("run", "p.py", "--watch", "--detach", cwd=tmp_path)
    assert (detached.returncode, "invalid-argument" in detached.stderr) == (1, True)
