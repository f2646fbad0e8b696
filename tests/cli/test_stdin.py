"""The lines of stdin, which are messages to a program."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pie.cli import stdin
from support.command import PATIENCE_S, command, environment

PLACE = "U+FFFD takes the place of what is not, there and in later lines: convert it to UTF-8, as by iconv\n"


@pytest.mark.parametrize(
    ("chunks", "lines", "told"),
    [
        ([b"a\nb\r\n", b"\n"], ["a", "b", ""], ""),
        # A character may come in parts.
        ([b"zw\xc3", b"\xb6lf\n", "\ufffd".encode()], ["zwölf", "\ufffd"], ""),
        ([b"a\n", b"caf\xe9\nb\n"], ["a", "caf\ufffd", "b"], f"warning: line 2 of stdin is not UTF-8 at byte 3; {PLACE}"),
        ([b"\xff\n", b"\xfe\n\xc3"], ["\ufffd", "\ufffd", "\ufffd"], f"warning: line 1 of stdin is not UTF-8 at byte 0; {PLACE}"),
    ],
)
def test_the_first_line_that_is_not_utf_8_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], chunks: list[bytes], lines: list[str], told: str
) -> None:
    monkeypatch.setattr(stdin, "_read", iter([*chunks, b""]).__next__)
    assert list(stdin.stdin_messages()) == lines
    assert capsys.readouterr().err == told


def test_a_program_gets_such_a_line_and_its_user_the_warning(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("from inferlet import session\nasync def main():\n    return await session.receive()\n")
    done = subprocess.run(
        command(["run", "p.py", "--dummy", "--seed", "1"]),
        cwd=tmp_path,
        env=environment(),
        input=b"caf\xe9\n",
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout.decode()) == (0, "caf\ufffd\n"), done.stderr
    assert f"warning: line 1 of stdin is not UTF-8 at byte 3; {PLACE}" in done.stderr.decode()
