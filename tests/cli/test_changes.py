"""Which files of a program are looked at, and when a change of them is over."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pie.cli import changes
from pie.cli.changes import State, differences, look, next_change
from support.folders import write


def test_what_builds_write_and_what_is_hidden_is_not_looked_at(tmp_path: Path) -> None:
    skipped = [".git/x", "dist/p.wasm", "node_modules/a/index.js", "lib/__pycache__/a.pyc", "a.py~", "Cargo.lock", "out/f"]
    write(tmp_path, dict.fromkeys(["main.py", "lib/a.py", *skipped], ""))
    assert {str(path.relative_to(tmp_path)) for path in look([tmp_path], without=tmp_path / "out")} == {"main.py", "lib/a.py"}
    assert set(look([tmp_path / "main.py", tmp_path / "absent.py"])) == {tmp_path / "main.py"}


def test_a_folder_that_is_linked_into_itself_is_looked_at_once(tmp_path: Path) -> None:
    write(tmp_path, {"p/main.py": ""})
    for name in ("a", "b"):
        (tmp_path / "p" / name).symlink_to(tmp_path / "p")
    (tmp_path / "link").symlink_to(tmp_path / "p")
    assert list(look([tmp_path / "p"])) == [tmp_path / "p/main.py"]
    assert list(look([tmp_path / "link"])) == [tmp_path / "link/main.py"]


def test_no_more_files_are_looked_at_than_a_program_could_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MAX_FILES", 4)
    write(tmp_path, {f"{number}.py": "" for number in range(9)})
    assert len(look([tmp_path])) == 3, "and the folder"


def test_a_file_that_is_replaced_by_another_of_its_age_and_size_has_changed(tmp_path: Path) -> None:
    file, other = tmp_path / "a.py", tmp_path / "b.py"
    file.write_text("1")
    before = look([file])
    other.write_text("2")
    os.utime(other, ns=(before[file][0], before[file][0]))
    other.rename(file)
    assert look([file]) != before


def test_a_change_is_over_when_the_files_stay_as_they_are() -> None:
    path = Path("/a.py")
    looks: Iterator[State] = iter([{path: (n, 0, 0)} for n in (0, 0, 1, 2, 3, 3, 4)])
    assert next_change(lambda: next(looks), {path: (0, 0, 0)}, lambda: False) == {path: (3, 0, 0)}


def test_nobody_waits_once_it_is_over() -> None:
    n_looks = iter(range(3))
    assert next_change(dict, {}, lambda: next(n_looks, None) is None) is None
    path = Path("/a.py")
    looks: Iterator[State] = iter([{path: (n, 0, 0)} for n in range(9)])
    n_looks = iter(range(3))
    assert next_change(lambda: next(looks), {}, lambda: next(n_looks, None) is None) is None


def test_changes_are_told_by_their_paths() -> None:
    base, one = Path("/p"), (1, 1, 1)
    before = {base / "a.py": one, base / "b.py": one, base / "c.py": one}
    after = {base / "a.py": (2, 1, 1), base / "b.py": one, base / "lib/d.py": one, Path("/q/e.py"): one}
    assert differences(before, after, base) == "a.py, c.py (removed), lib/d.py (new), /q/e.py (new)"
    assert differences({}, {base / f"{n}.py": one for n in range(7)}, base).endswith("4.py (new), and 2 more")
