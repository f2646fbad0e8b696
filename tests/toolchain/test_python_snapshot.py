"""Marking the objects in the memory of a component: on components of a few bytes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tools import python_snapshot
from tools.artefact import BuildError
from tools.python_snapshot import IMMORTAL, MAX_FREED, Snapshot, mark_immortal

MARK = tuple(range(0xB1E0_0DD5, 0xB1E0_0DD5 + 16))
TYPE, OBJECT, STATIC, TABLE = 0x1000, 0x1020, 0x1040, 0x8000


def number(value: int) -> bytes:
    encoded = b""
    while value >= 0x80:
        encoded += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return encoded + bytes((value,))


def component(segments: dict[int, bytes], *, kind: int = 0) -> bytes:
    """A component of one module with a memory that holds the segments."""
    data = number(len(segments))
    for address, content in segments.items():
        data += bytes((kind, 0x41)) + number(address) + b"\x0b" + number(len(content)) + content
    memory = bytes((5, 3, 1, 0, 1))
    module = b"\0asm\x01\0\0\0" + memory + bytes((11,)) + number(len(data)) + data
    return b"\0asm\x0d\0\x01\0" + bytes((1,)) + number(len(module)) + module


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def objects() -> dict[int, bytes]:
    """A type, an object of it with three references, and an object that is immortal already."""
    return {TYPE: words(7, TYPE), OBJECT: words(3, TYPE), STATIC: words(7 << 28, TYPE)}


def write(folder: Path, segments: dict[int, bytes]) -> Path:
    path = folder / "python.wasm"
    path.write_bytes(component(segments))
    return path


def table(*addresses: int) -> dict[int, bytes]:
    return {TABLE: words(*MARK, len(addresses), *addresses)}


def test_objects_are_marked_in_place(tmp_path: Path) -> None:
    path = write(tmp_path, objects() | table(TYPE, OBJECT, STATIC))
    before = path.read_bytes()
    assert mark_immortal(path) == 3
    marked = Snapshot(path.read_bytes())
    assert [marked.words(address, 2) for address in (TYPE, OBJECT, STATIC)] == [(IMMORTAL, TYPE), (IMMORTAL, TYPE), (7 << 28, TYPE)]
    assert sum(old != new for old, new in zip(before, path.read_bytes(), strict=True)) <= 8


@pytest.mark.parametrize("content", [words(0, TYPE), words(0x1B2_0000, TYPE), words(3, 0x5000), words(0x1234_5678, 0x5000)])
def test_what_was_freed_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, objects() | {OBJECT: content} | table(TYPE, OBJECT))
    assert mark_immortal(path) == 1
    assert Snapshot(path.read_bytes()).words(OBJECT, 2) == struct.unpack("<2I", content)


def test_a_snapshot_whose_objects_were_freed_is_refused(tmp_path: Path) -> None:
    freed = range(0x2000, 0x2000 + 8 * (MAX_FREED + 1), 8)
    path = write(tmp_path, objects() | table(TYPE, *freed))
    with pytest.raises(BuildError, match=rf"^{MAX_FREED + 1} of the {MAX_FREED + 2} objects that never die were freed"):
        mark_immortal(path)


@pytest.mark.parametrize("lists", [{}, table(TYPE) | {0x9000: words(*MARK, 0)}])
def test_a_snapshot_without_one_list_is_refused(tmp_path: Path, lists: dict[int, bytes]) -> None:
    with pytest.raises(BuildError, match=rf"^the snapshot holds {len(lists)} lists"):
        mark_immortal(write(tmp_path, objects() | lists))


def test_words_span_segments_and_the_zeros_between_them() -> None:
    snapshot = Snapshot(component({0x10: b"\x01\x02", 0x14: b"\x03", 0x18: b"\x04\x05\x06\x07"}))
    assert snapshot.words(0x10, 3) == (0x0201, 0x03, 0x07060504)
    assert snapshot.words(0x16, 1) == (0x05040000,)


def test_a_word_outside_of_every_segment_cannot_be_written() -> None:
    snapshot = Snapshot(component({0x10: bytes(4), 0x18: bytes(4)}))
    for address in (0x0F, 0x12, 0x14, 0x1A):
        with pytest.raises(BuildError, match=f"^the word at {address:#x} does not lie in one segment"):
            snapshot.write_word(address, 1)


def test_segments_of_other_kinds_are_refused() -> None:
    with pytest.raises(BuildError, match="segment of an unknown kind"):
        Snapshot(component({0x10: b"\x01"}, kind=1))


def test_the_mark_is_that_of_the_runtime() -> None:
    assert f"range({MARK[0]:#x}" in python_snapshot.LISTED_BY.read_text().replace("_", "").lower()
