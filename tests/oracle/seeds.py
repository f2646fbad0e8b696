"""The seed of a generation that nobody gave one."""

from __future__ import annotations

from collections.abc import Sequence

from .dummy import fold, fold_all


def fork_path(parent: int, number: int) -> int:
    """The path of the `number`-th fork of a context, counted from 1; a fresh context has path 0."""
    return fold(parent, number)


def saved_path(parent: int, number: int) -> int:
    """The path of a snapshot that is the `number`-th copy of a context, forks counted too."""
    return fold_all(parent, (int.from_bytes(b"saved", "big"), number))


def opened_path(parent: int, number: int) -> int:
    """The path of the `number`-th context that a process makes from snapshots of a path."""
    return fold_all(parent, (int.from_bytes(b"opened", "big"), number))


def origin(path: int, tokens: Sequence[int]) -> int:
    """Where a generation starts: the path of its context and all tokens, pending and buffered ones included."""
    return fold(path, fold_all(0, tokens))


def derive(launch_seed: int, start: int, n_before: int) -> int:
    """The seed of a generation at an origin where `n_before` generators succeeded with their first step before."""
    return fold_all(0, (launch_seed, start, n_before))
