"""Masks as run lengths: forbidden first, then alternating, 1 = allowed.

`[2, 3, 1]` forbids two elements, allows three and forbids one. Beyond the last run everything is forbidden; no run at
all restricts nothing. `length` is that of the row: the vocabulary for masks of tokens, the slots of the context after
the pass for attention masks. A mask that is longer than its row, or has more runs than its row has elements, is the
error `invalid-argument`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wit_world.imports import masks as _masks

from inferlet import _arguments
from inferlet.errors import host

__all__ = ["allowed", "allowing", "causal", "from_bools", "intersection", "pack", "shortest", "to_bools", "unpack", "window"]


def from_bools(allowed: Iterable[object]) -> list[int]:
    """The shortest mask of a row of truth values, one an element; what is true is allowed."""
    if isinstance(allowed, str | bytes | Mapping) or not isinstance(allowed, Iterable):
        _arguments.refuse("allowed", allowed, "a list of truth values")
    digits = ["1" if one else "0" for one in allowed]
    packed = int("".join(reversed(digits)) or "0", 2).to_bytes(-(-len(digits) // 8), "little")
    return unpack(packed, len(digits))


def to_bools(mask: Iterable[int], length: int) -> list[bool]:
    """A truth value for each element of the row: whether the mask allows it."""
    packed = pack(mask, length)
    return [bool(packed[index >> 3] >> (index & 7) & 1) for index in range(length)]


def shortest(mask: Iterable[int], length: int) -> list[int]:
    """The shortest mask that allows the same; equal masks have one shortest form."""
    return list(host(_masks.shortest, *_row(mask, length)))


def intersection(masks: Iterable[Iterable[int]], length: int) -> list[int]:
    """The shortest mask of what all masks allow."""
    n_elements = _arguments.count("length", length)
    return list(host(_masks.intersection, _arguments.masks("masks", masks, n_elements), n_elements))


def allowing(elements: Iterable[int], length: int) -> list[int]:
    """The shortest mask that allows these elements, in any order."""
    return list(host(_masks.allowing, _arguments.counts("elements", elements), _arguments.count("length", length)))


def allowed(mask: Iterable[int], length: int) -> list[int]:
    """The elements that a mask allows, ascending."""
    return list(host(_masks.allowed, *_row(mask, length)))


def pack(mask: Iterable[int], length: int) -> bytes:
    """A bit an element, the lowest bit of each byte first; bits beyond the row are 0."""
    return bytes(host(_masks.pack, *_row(mask, length)))


def unpack(bits: bytes, length: int) -> list[int]:
    """The shortest mask of these bits."""
    return list(host(_masks.unpack, _arguments.blob("bits", bits), _arguments.count("length", length)))


def window(start: int, n: int, window: int, sinks: int = 0) -> list[list[int]]:
    """Attention masks of the `n` tokens from slot `start` on.

    Each shows its own slot, the `window - 1` slots before it and the first `sinks` slots of the context. A window is at
    least 1.
    """
    numbers = _arguments.count("start", start), _arguments.count("n", n)
    sizes = _arguments.count("window", window), _arguments.count("sinks", sinks)
    return [list(mask) for mask in host(_masks.window, *numbers, *sizes)]


def causal(start: int, n: int) -> list[list[int]]:
    """Attention masks of the `n` tokens from slot `start` on that show every slot up to their own."""
    return [list(mask) for mask in host(_masks.causal, _arguments.count("start", start), _arguments.count("n", n))]


def _row(mask: Iterable[int], length: int) -> tuple[list[int], int]:
    """A mask, and how many elements its row has."""
    n_elements = _arguments.count("length", length)
    return _arguments.runs("mask", mask, n_elements), n_elements
