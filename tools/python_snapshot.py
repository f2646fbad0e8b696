"""The memory inside of the Python runtime's component: marks the objects in it that never die.

CPython neither counts nor frees an object whose count of references is that of an immortal one. It has no way to ask
for that, so the counts are written into the component when it has been built; `inferlet._runtime.immortal` leaves the
addresses.
"""

from __future__ import annotations

import runpy
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tools.artefact import ROOT, BuildError

# `_Py_IMMORTAL_INITIAL_REFCNT` and `_Py_IMMORTAL_MINIMUM_REFCNT` of CPython where pointers have 32 bits.
IMMORTAL = 5 << 28
MIN_IMMORTAL = 1 << 30
# No object has so many references; one that was freed has none, or the address of the next free block there.
MAX_REFERENCES = 1 << 20
# componentize-py frees a few objects of its own between the list and the snapshot, those of its build's environment.
MAX_FREED = 64
LISTED_BY = ROOT / "python" / "inferlet" / "_runtime" / "immortal.py"

_COMPONENT_MODULE = 1
_MODULE_DATA = 11
_HEADER_BYTES = 8
_I32_CONST, _END = 0x41, 0x0B


@dataclass(frozen=True)
class _Segment:
    """A part of the memory: where it lies in it and in the file, and its length."""

    address: int
    offset: int
    n_bytes: int


class Snapshot:
    """The initial memory of a component, addressed as the component does."""

    def __init__(self, component: bytes) -> None:
        self.component = bytearray(component)
        self._segments = sorted(self._find_segments(), key=lambda segment: segment.address)
        self._addresses = [segment.address for segment in self._segments]

    def find(self, pattern: bytes) -> list[int]:
        """The addresses at which the pattern stands."""
        found = []
        for segment in self._segments:
            at = self.component.find(pattern, segment.offset, segment.offset + segment.n_bytes)
            while at >= 0:
                found.append(segment.address + at - segment.offset)
                at = self.component.find(pattern, at + 1, segment.offset + segment.n_bytes)
        return found

    def words(self, address: int, n: int) -> tuple[int, ...]:
        """So many 32-bit words from an address on; what no segment fills is zero."""
        data, end = bytearray(4 * n), address + 4 * n
        for segment in self._segments[max(0, bisect_right(self._addresses, address) - 1) :]:
            if segment.address >= end:
                break
            start, stop = max(address, segment.address), min(end, segment.address + segment.n_bytes)
            if start < stop:
                offset = segment.offset - segment.address
                data[start - address : stop - address] = self.component[offset + start : offset + stop]
        return struct.unpack(f"<{n}I", data)

    def write_word(self, address: int, word: int) -> None:
        """Changes a word; BuildError where no segment holds all of it."""
        segment = self._segments[bisect_right(self._addresses, address) - 1]
        if not segment.address <= address <= segment.address + segment.n_bytes - 4:
            raise BuildError(f"the word at {address:#x} does not lie in one segment of the component's memory")
        struct.pack_into("<I", self.component, segment.offset + address - segment.address, word)

    def _find_segments(self) -> Iterator[_Segment]:
        for kind, start, end in self._sections(0, len(self.component)):
            if kind == _COMPONENT_MODULE:
                for inner, inner_start, _ in self._sections(start, end):
                    if inner == _MODULE_DATA:
                        yield from self._data(inner_start)

    def _sections(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        at = start + _HEADER_BYTES
        while at < end:
            kind = self.component[at]
            n_bytes, at = self._number(at + 1)
            yield kind, at, at + n_bytes
            at += n_bytes

    def _data(self, at: int) -> Iterator[_Segment]:
        n_segments, at = self._number(at)
        for _ in range(n_segments):
            # Kind 0: of the first memory, at an address that is a constant.
            if self.component[at : at + 2] != bytes((0, _I32_CONST)):
                raise BuildError("the component's memory has a segment of an unknown kind; was it built by another componentize-py?")
            # Addresses stay below 2 GiB: the sign of the constant is never set.
            address, at = self._number(at + 2)
            if self.component[at] != _END:
                raise BuildError("the address of a segment of the component's memory is not a constant")
            n_bytes, at = self._number(at + 1)
            yield _Segment(address, at, n_bytes)
            at += n_bytes

    def _number(self, at: int) -> tuple[int, int]:
        """A LEB128 number, and where it ends."""
        number = shift = 0
        while True:
            byte = self.component[at]
            at += 1
            # The highest bit says that more follow.
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number, at
            shift += 7


def mark_immortal(component: Path) -> int:
    """Writes the counts of all objects that the snapshot lists; gives how many they are."""
    snapshot = Snapshot(component.read_bytes())
    addresses = _listed(snapshot)
    known = set(addresses)
    freed = []
    for address in addresses:
        count, kind = snapshot.words(address, 2)
        is_immortal = count >= MIN_IMMORTAL
        if kind not in known or not (is_immortal or 0 < count < MAX_REFERENCES):
            freed.append(address)
        elif not is_immortal:
            snapshot.write_word(address, IMMORTAL)
    if len(freed) > MAX_FREED:
        raise BuildError(f"{len(freed)} of the {len(addresses)} objects that never die were freed, at most {MAX_FREED} are expected to be")
    component.write_bytes(snapshot.component)
    return len(addresses) - len(freed)


def _listed(snapshot: Snapshot) -> Sequence[int]:
    mark = cast("range", runpy.run_path(str(LISTED_BY))["MARK"])
    found = snapshot.find(struct.pack(f"<{len(mark)}I", *mark))
    if len(found) != 1:
        raise BuildError(f"the snapshot holds {len(found)} lists of the objects that never die; there must be one")
    table = found[0] + 4 * len(mark)
    (n_addresses,) = snapshot.words(table, 1)
    return snapshot.words(table + 4, n_addresses)
