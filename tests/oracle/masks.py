"""Masks as run lengths, by what they mean: one truth value an element."""

from __future__ import annotations

from itertools import groupby

MAX_ROW = 1 << 24


class UnfitError(Exception):
    """A mask that does not fit its row."""


def bits(runs: list[int], length: int) -> list[bool]:
    """What is allowed of a row; no run at all restricts nothing."""
    if sum(runs) > length or len(runs) > length + 1:
        raise UnfitError
    if not runs:
        return [True] * length
    row = [bool(index % 2) for index, run in enumerate(runs) for _ in range(run)]
    return row + [False] * (length - len(row))


def of_bits(row: list[bool]) -> list[int]:
    """The shortest form."""
    if all(row):
        return []
    runs = [] if row[0] is False else [0]
    runs += [len(list(run)) for _, run in groupby(row)]
    if not row[-1]:
        runs.pop()
    return runs or [0]


def intersection(masks: list[list[int]], length: int) -> list[int]:
    """The shortest form of what all masks allow."""
    rows = [bits(mask, length) for mask in masks]
    return of_bits([all(values) for values in zip(*rows, strict=True)] if rows else [True] * length)


def window(start: int, n: int, window: int, sinks: int) -> list[list[int]]:
    """The masks of tokens that see a window that ends with them, and the first slots."""
    return [of_bits([slot < sinks or slot > end - window for slot in range(end + 1)] + [False]) for end in range(start, start + n)]


def causal(start: int, n: int) -> list[list[int]]:
    """The masks of tokens that see all up to themselves."""
    return [[0, end + 1] for end in range(start, start + n)]
