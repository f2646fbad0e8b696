"""Where `pie run` puts the files that a program sends."""

from __future__ import annotations

from pathlib import Path

import pytest

from pie.cli.files import FileSink
from pie.errors import PieError


def test_files_are_numbered_and_never_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    sink = FileSink(folder)
    assert not (tmp_path / "made").exists()  # a program that sends no file leaves no folder behind
    folder.mkdir(parents=True)
    (folder / "file-2.bin").write_bytes(b"mine")
    told = [sink.take(data) for data in (b"one", b"", b"\x00\xff")]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "file-1.bin": b"one",
        "file-2.bin": b"mine",
        "file-3.bin": b"",
        "file-4.bin": b"\x00\xff",
    }
    assert told[0] == f"the program sent a file of 3 bytes: {folder / 'file-1.bin'}"


def test_the_folder_is_made_when_the_first_file_comes(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []
    sink.take(b"x")
    assert (tmp_path / "a" / "b" / "file-1.bin").read_bytes() == b"x"


def test_without_a_folder_a_file_is_told_of_and_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert FileSink(None).take(b"x") == "the program sent a file of 1 byte, which was not saved; --files DIR saves files"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["taken", "taken/below"])
def test_a_folder_that_cannot_be_made_is_refused_before_anything_runs(tmp_path: Path, name: str) -> None:
    (tmp_path / "taken").write_text("x")
    with pytest.raises(PieError, match=r"--files '.*' cannot be used: '.*taken' is not a folder") as refused:
        FileSink(tmp_path / name)
    assert refused.value.code == "invalid-argument"
