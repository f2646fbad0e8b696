"""Masks in plain Python, for `inferlet.brle` where there is no engine. In the engine its own are used.

A row is a number whose bit of a value of two to the power `i` says whether element `i` is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NoReturn

MAX_LEN = 1 << 24
"""The longest row, as in the engine."""
MAX_TOKENS = 1 << 20
"""The most attention masks of one call, as in the engine."""


def shortest(mask: Sequence[int], length: int) -> list[int]:
    """The shortest form of a mask."""
    return _runs(_row(mask, length), length)


def intersection(masks: Sequence[Sequence[int]], length: int) -> list[int]:
    """The shortest form of what all masks allow."""
    row = _everything(length)
    for mask in masks:
        row &= _row(mask, length)
    return _runs(row, length)


def allowing(elements: Sequence[int], length: int) -> list[int]:
    """The shortest form of the mask that allows these elements."""
    _check_length(length)
    row = bytearray(-(-length // 8))
    for element in elements:
        if element >= length:
            _refuse(f"element {element} is beyond a row of {length}; give elements below {length}")
        row[element >> 3] |= 1 << (element & 7)
    return _runs(int.from_bytes(row, "little"), length)


def allowed(mask: Sequence[int], length: int) -> list[int]:
    """The elements that a mask allows."""
    row = _row(mask, length)
    return [index for index, bit in enumerate(_digits(row, length)) if bit == "1"]


def pack(mask: Sequence[int], length: int) -> bytes:
    """A bit an element, the lowest bit of each byte first."""
    return _row(mask, length).to_bytes(-(-length // 8), "little")


def unpack(bits: bytes, length: int) -> list[int]:
    """The shortest form of the mask of these bits."""
    _check_length(length)
    n_bytes = -(-length // 8)
    if len(bits) != n_bytes:
        _refuse(f"a mask has {len(bits)} bytes, and a row of {length} elements has {n_bytes}; give a bit for each element")
    row = int.from_bytes(bits, "little")
    if row >> length:
        _refuse(f"a bit beyond the {length} elements of the row is set; leave those bits 0")
    return _runs(row, length)


def window(start: int, n: int, window: int, sinks: int) -> list[list[int]]:
    """The attention masks of tokens that see a window that ends with them, and the first slots."""
    if window < 1:
        _refuse("a window of 0 shows nothing; give at least 1")
    return [_window(end, window, sinks) for end in _ends(start, n)]


def causal(start: int, n: int) -> list[list[int]]:
    """The attention masks of tokens that see all up to themselves."""
    return [[0, end + 1] for end in _ends(start, n)]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "shortest": shortest,
    "intersection": intersection,
    "allowing": allowing,
    "allowed": allowed,
    "pack": pack,
    "unpack": unpack,
    "window": window,
    "causal": causal,
}
"""By the names of the interface."""


def _window(end: int, window: int, sinks: int) -> list[int]:
    first = max(0, end + 1 - window)
    kept = min(sinks, first)
    if kept == first:
        return [0, end + 1]
    return [first, end + 1 - first] if kept == 0 else [0, kept, first - kept, end + 1 - first]


def _ends(start: int, n: int) -> Iterator[int]:
    if n > MAX_TOKENS:
        _refuse(f"masks of {n} tokens are wanted, and may be of at most {MAX_TOKENS} at once; ask for fewer")
    if start + n > MAX_LEN:
        _refuse(f"{n} tokens from slot {start} on reach beyond slot {MAX_LEN}; give slots of a context")
    return iter(range(start, start + n))


def _row(mask: Sequence[int], length: int) -> int:
    """The row that a mask allows; no run at all restricts nothing."""
    _check_length(length)
    if not mask:
        return _everything(length)
    if len(mask) > length + 1:
        remedy = "leave out runs of 0, so that there is one for each element at most"
        _refuse(f"a mask has {len(mask)} runs and its row {length} elements; {remedy}")
    covered = sum(mask)
    if covered > length:
        _refuse(f"a mask covers {covered} elements and its row has {length}; give runs that add up to {length} at most")
    digits = "".join(("1" if index % 2 else "0") * run for index, run in enumerate(mask))
    return int(digits[::-1] or "0", 2)


def _runs(row: int, length: int) -> list[int]:
    """The shortest form of a row."""
    if row == _everything(length):
        return []
    runs = [(digit, len(list(group))) for digit, group in groupby(_digits(row, length))]
    if runs[-1][0] == "0":
        runs.pop()
    if not runs:
        return [0]
    return ([] if runs[0][0] == "0" else [0]) + [n for _, n in runs]


def _digits(row: int, length: int) -> str:
    """A digit an element, the first element first."""
    return f"{row:0{length}b}"[::-1] if length else ""


def _everything(length: int) -> int:
    _check_length(length)
    return (1 << length) - 1


def _check_length(length: int) -> None:
    if length > MAX_LEN:
        _refuse(f"a row has {length} elements, and may have at most {MAX_LEN}; give the length of the vocabulary or of the context")


def _refuse(message: str) -> NoReturn:
    # Not at the top: `inferlet.errors` needs what stands in for the engine.
    from inferlet.errors import ErrorCode, InvalidArgumentError  # noqa: PLC0415

    raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, message)
