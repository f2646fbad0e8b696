"""Files of `pie snapshots export`: whole or not at all."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pie.cli.kept_snapshots import _write


def test_a_write_that_fails_leaves_what_was_there_and_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "kept.json"
    # What cannot be encoded fails behind the first bytes, as a disk that is full does.
    broken = "x" * 1_000_000 + "\ud800"
    with pytest.raises(UnicodeEncodeError):
        _write(target, broken)
    assert list(tmp_path.iterdir()) == []
    _write(target, "old")
    with pytest.raises(UnicodeEncodeError):
        _write(target, broken)
    assert [(path.name, path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()] == [("kept.json", "old")]


def test_a_file_that_is_replaced_keeps_its_mode_and_a_link_stays_one(tmp_path: Path) -> None:
    target, link = tmp_path / "kept.json", tmp_path / "link.json"
    _write(target, "old")
    target.chmod(0o640)
    link.symlink_to(target.name)
    _write(link, "new")
    assert link.is_symlink()
    assert (target.read_text(encoding="utf-8"), stat.S_IMODE(target.stat().st_mode)) == ("new", 0o640)
    _write(Path("/dev/null"), "gone")
    assert not Path("/dev/null").is_file()
