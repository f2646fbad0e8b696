"""Which leading pages the sequences of a batch share, found on the host: attention reads those once for all of them.

Sequences that begin alike have the same pages, so that the page lists of a batch make a tree. A sequence takes part in
one shared prefix at the most: in a deep tree each takes the node of its path that saves most. Pages that a sequence
writes are never shared, and neither is the page behind the last full one.
Symbols: B sequences, T tokens, N prefixes, R rows (tokens of sequences that take part), P page indices.
"""

from __future__ import annotations

import sys
from itertools import repeat
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pie.backends.base import Capabilities
from pie.backends.checks import I64, Flags
from pie.models.spec import Attention

I32: TypeAlias = npt.NDArray[np.int32]
Words: TypeAlias = npt.NDArray[np.uint32] | npt.NDArray[np.int32]

MOST_PREFIXES = 32
"""Of a batch; those that save most. A graph has room for so many, and FlashInfer a part of its workspace for each."""
_TILE_ROWS = 128
"""Rows of queries, a token's heads of one group each a row, that read keys and values together: FlashInfer's largest
tile, which it takes for long prefixes of many sequences.
"""
_LOOK_AGAIN = 64
"""Batches of the same sequences after which all page lists are looked at anew: what has become alike is shared then."""
_PAGES_EACH, _MOST_PAGES = 8192, 1 << 22
"""Page indices that may be looked at for each batch on average, in 100 us, and the most that are saved up: the lists of
larger batches are looked at every few batches.
"""
_MOST_GROWN = 64
"""Sequences that may have a new page for it to be seen by what is between these; of more, each is looked at."""
_WORD_BYTES = 4


class Lists(NamedTuple):
    """The pages of the sequences of a batch; the arrays may be views of an arena."""

    qo_indptr: Words
    """The tokens of each sequence, [B + 1]."""
    kv_indptr: Words
    """[B + 1]."""
    kv_indices: Words
    """[P]."""
    kv_last_page_len: Words
    """[B]."""


class Shared(NamedTuple):
    """The prefixes of a batch that are attended to once, and what is left of the sequences."""

    qo_indptr: I32
    """The rows of each prefix, [N + 1]."""
    kv_indptr: I32
    """The pages of each prefix, all of them full, [N + 1]."""
    kv_indices: I32
    rows: I32
    """The token of each row, prefix by prefix, [R]."""
    row_of_token: I32
    """[T]; 0 for a token that has no row."""
    has_row: Flags
    """[T]."""
    own_indptr: I32
    """The pages of each sequence behind its prefix, at least one, [B + 1]."""
    own_indices: I32


class _Cut(NamedTuple):
    """Where the sequences of a batch are cut, as long as they are the same ones and begin with the same pages."""

    qo_indptr: I64
    """[B + 1]."""
    n_possible: I64
    """Pages of each sequence that might have been shared, [B]."""
    marks: Words
    """The last of these, by which a sequence is known, or its first page where there are none, [B]."""
    n_shared: I64
    """Pages of the prefix of each sequence, [B]."""
    ends: I64
    """Sums of these, [B + 1]."""
    begins: list[bytes]
    """What the page list of each sequence begins with, as bytes."""
    shared: Shared | None
    """But for what is left of the sequences; None: nothing is shared, or too little."""


class _Latest(NamedTuple):
    """The last batch of one token a sequence, and what its sequences share."""

    starts: bytes
    """Its `kv_indptr` as it came."""
    content: bytes
    """Its page indices."""
    kv_indptr: I64
    shared: Shared | None


class Prefixes:
    """Finds what sequences share, batch by batch.

    A decode batch mostly has the sequences of the one before, some of them with one page more: then what was found
    holds, which takes some comparisons of bytes. It holds as well as long as every page list begins as it did, some
    tens of nanoseconds a sequence. Where sequences come and go, all page lists are looked at, by operations on whole
    arrays, or where there are too many to do so each time, it is looked which lists begin with the prefixes that are
    known.
    """

    @classmethod
    def of(cls, heads: Attention, limits: Capabilities, element_bytes: int, least_bytes: int) -> Prefixes:
        """Of the batches of a driver with these limits."""
        return cls(heads, limits.page_size, limits.n_pages, element_bytes, least_bytes)

    def __init__(self, heads: Attention, page_size: int, n_pages: int, element_bytes: int, least_bytes: int) -> None:
        """`least_bytes` of a layer's keys and values have to be saved; in a pool of `n_pages`."""
        self._page_size = page_size
        self._group = heads.n_heads // heads.n_kv_heads
        self._page_bytes = 2 * page_size * heads.n_kv_heads * heads.head_dim * element_bytes
        self._least_bytes = max(1, least_bytes)
        self._none = n_pages + 1
        """In the place of the page in front of the first one. `n_pages` itself is the page of nobody."""
        self._last = np.zeros(self._none, np.int64)
        """The last of the sequences that begin with a page, of those that are looked at."""
        self._before = np.zeros(self._none, np.int64)
        """The page that a page stands behind, of those that are looked at."""
        self._known: _Cut | None = None
        self._latest: _Latest | None = None
        self._begins: list[bytes] = []
        """The prefixes that were found when all lists were looked at last, the longest first."""
        self._n_finds = 0
        """Batches since then."""
        self._n_left = _MOST_PAGES
        """Page indices that may be looked at."""

    def find(self, lists: Lists) -> Shared | None:
        """What the sequences of a batch share; None: nothing, or too little for what it costs to merge."""
        n_seqs = len(lists.kv_last_page_len)
        if n_seqs < 2:
            return None
        self._n_finds += 1
        self._n_left = min(self._n_left + _PAGES_EACH, _MOST_PAGES)
        is_looked_at = len(lists.kv_indices) <= self._n_left
        is_due = is_looked_at and self._n_finds > _LOOK_AGAIN
        if lists.qo_indptr[-1] != n_seqs:
            kv_indptr = lists.kv_indptr.astype(np.int64)
            self._latest = None
            return self._again(lists, kv_indptr, is_looked_at=is_looked_at, is_due=is_due)
        latest, starts, content = self._latest, lists.kv_indptr.tobytes(), lists.kv_indices.tobytes()
        if latest is not None and not is_due and starts == latest.starts and content == latest.content:
            return latest.shared
        kv_indptr, cut = lists.kv_indptr.astype(np.int64), self._known
        if latest is not None and cut is not None and not is_due and _has_grown(latest, kv_indptr, content):
            shared = _completed(cut, lists, kv_indptr)
        else:
            shared = self._again(lists, kv_indptr, is_looked_at=is_looked_at, is_due=is_due)
        self._latest = _Latest(starts, content, kv_indptr, shared)
        return shared

    def _again(self, lists: Lists, kv_indptr: I64, *, is_looked_at: bool, is_due: bool) -> Shared | None:
        """What is shared by sequences of which it is not known that they are those of the batch before.

        All lists may be looked at, and have to be where that is due.
        """
        cut, n_possible = self._known, self._n_possible(lists, kv_indptr)
        if cut is None or is_due or not _holds(cut, lists, kv_indptr, n_possible):
            looking = self._by_all if is_looked_at else self._by_known
            cut = self._known = self._cut(lists, kv_indptr, n_possible, looking(lists, kv_indptr, n_possible))
            if is_looked_at:
                self._begins = sorted(set(cut.begins) - {b""}, key=lambda begin: (-len(begin), begin))
        return _completed(cut, lists, kv_indptr)

    def _n_possible(self, lists: Lists, kv_indptr: I64) -> I64:
        """Full pages in front of the first token of each sequence that the batch computes."""
        qo_indptr = lists.qo_indptr.astype(np.int64)
        lengths = (kv_indptr[1:] - kv_indptr[:-1] - 1) * self._page_size + lists.kv_last_page_len
        n_pages: I64 = (lengths - (qo_indptr[1:] - qo_indptr[:-1])) // self._page_size
        return n_pages

    def _by_all(self, lists: Lists, kv_indptr: I64, n_possible: I64) -> tuple[I64, I64]:
        """Looks at all page lists: how many pages of each sequence are a prefix, and which one, by its last page."""
        self._n_finds = 0
        n_seqs = len(n_possible)
        n_shared, last_page = np.zeros(n_seqs, np.int64), np.full(n_seqs, self._none)
        alike = self._alike(lists.kv_indices[kv_indptr[:-1]], n_possible)
        if len(alike):
            self._n_left -= len(lists.kv_indices)
            pages, starts = self._paths(lists.kv_indices, kv_indptr[alike], n_possible[alike])
            n_shared[alike], last_page[alike] = _best_nodes(pages, starts, self._none)
        return n_shared, last_page

    def _by_known(self, lists: Lists, kv_indptr: I64, n_possible: I64) -> tuple[I64, I64]:
        """Looks which sequences begin with a prefix that is known: how long it is, and which one."""
        n_shared, which = np.zeros_like(n_possible), np.zeros_like(n_possible)
        content, firsts = lists.kv_indices.tobytes(), lists.kv_indices[kv_indptr[:-1]]
        for number, begin in enumerate(self._begins):
            n = len(begin) // _WORD_BYTES
            is_possible = (firsts == int.from_bytes(begin[:_WORD_BYTES], sys.byteorder)) & (n_possible >= n) & (n_shared == 0)
            candidates = np.flatnonzero(is_possible)
            found = map(content.startswith, repeat(begin), (kv_indptr[candidates] * _WORD_BYTES).tolist())
            taking = candidates[np.fromiter(found, np.bool_, len(candidates))]
            n_shared[taking], which[taking] = n, number
        return n_shared, which

    def _cut(self, lists: Lists, kv_indptr: I64, n_possible: I64, found: tuple[I64, I64]) -> _Cut:
        """Cuts the sequences behind prefixes of so many pages, where that pays."""
        n_seqs, qo_indptr = len(n_possible), lists.qo_indptr.astype(np.int64)
        marks = lists.kv_indices.take(kv_indptr[:-1] + np.maximum(n_possible - 1, 0))
        n_shared, which = found
        prefixes = self._paying(n_shared, which, qo_indptr)
        if prefixes is None:
            return _Cut(qo_indptr, n_possible, marks, np.zeros_like(n_shared), np.zeros(n_seqs + 1, np.int64), [], None)
        members, ends = prefixes
        is_member = np.zeros(n_seqs, np.bool_)
        is_member[members] = True
        n_shared[~is_member] = 0
        begins = [b""] * n_seqs
        for first, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            at = kv_indptr[members[first]]
            begin = lists.kv_indices[at : at + n_shared[members[first]]].tobytes()
            for member in members[first:end].tolist():
                begins[member] = begin
        shared = _shared(members, ends, n_shared, qo_indptr, begins)
        return _Cut(qo_indptr, n_possible, marks, n_shared, _ends(n_shared), begins, shared)

    def _alike(self, firsts: Words, n_possible: I64) -> I64:
        """The sequences that begin with a full page that another one begins with too."""
        candidates = np.flatnonzero(n_possible > 0)
        pages = firsts[candidates]
        numbers = np.arange(len(candidates))
        self._last[pages] = numbers
        is_earlier = self._last[pages] != numbers
        if not is_earlier.any():
            return candidates[:0]
        # The last one of those that begin alike is marked by the earlier ones.
        self._last[pages] = 0
        self._last[pages[is_earlier]] = 1
        marked: I64 = candidates[self._last[pages] == 1]
        return marked

    def _paths(self, kv_indices: Words, firsts: I64, lengths: I64) -> tuple[I64, I64]:
        """The leading pages of some sequences, side by side, and where those of each begin, with the end behind them.

        Where every page always stands behind the same page, the same page means the same pages in front of it too: by
        that they make a tree. A path ends in front of a page that stands behind several.
        """
        starts = _ends(lengths)
        pages = kv_indices.take(np.repeat(firsts - starts[:-1], lengths) + np.arange(starts[-1])).astype(np.int64)
        before = np.empty_like(pages)
        before[1:] = pages[:-1]
        before[starts[:-1]] = self._none
        self._before[pages] = before
        is_other = self._before.take(pages) != before
        if not is_other.any():
            return pages, starts
        self._before[pages[is_other]] = -1
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
        kept = np.minimum.reduceat(np.where(self._before.take(pages) == -1, within, starts[-1]), starts[:-1])
        kept = np.minimum(kept, lengths)
        return pages[within < np.repeat(kept, lengths)], _ends(kept)

    def _paying(self, n_shared: I64, which: I64, qo_indptr: I64) -> tuple[I64, I64] | None:
        """The sequences of each prefix that pays, prefix by prefix, and the ends of these; None: none does.

        `which` says which prefix is whose. What is saved is counted in tiles of queries that read the pages.
        """
        taking = np.flatnonzero(n_shared > 0)
        if not len(taking):
            return None
        members = taking[np.argsort(which[taking], kind="stable")]
        firsts = np.flatnonzero(np.append(True, which[members[1:]] != which[members[:-1]]))
        n_rows = (qo_indptr[members + 1] - qo_indptr[members]) * self._group
        apart = np.add.reduceat(-(-n_rows // _TILE_ROWS), firsts)
        together = -(-np.add.reduceat(n_rows, firsts) // _TILE_ROWS)
        saved = (apart - together) * n_shared[members[firsts]]
        chosen = np.sort(np.argsort(-saved, kind="stable")[:MOST_PREFIXES])
        chosen = chosen[saved[chosen] > 0]
        if saved[chosen].sum() * self._page_bytes < self._least_bytes:
            return None
        n_each = np.append(firsts[1:], len(members)) - firsts
        is_chosen = np.zeros(len(firsts), np.bool_)
        is_chosen[chosen] = True
        return members[np.repeat(is_chosen, n_each)], np.cumsum(n_each[chosen])


def _holds(cut: _Cut, lists: Lists, kv_indptr: I64, n_possible: I64) -> bool:
    """Whether the sequences are those of the batch before, some tokens longer, and may be cut as those."""
    if not np.array_equal(lists.qo_indptr, cut.qo_indptr) or (n_possible < cut.n_possible).any():
        return False
    if not np.array_equal(lists.kv_indices.take(kv_indptr[:-1] + np.maximum(cut.n_possible - 1, 0)), cut.marks):
        return False
    if cut.shared is None:
        return True
    content, at = lists.kv_indices.tobytes(), (kv_indptr[:-1] * _WORD_BYTES).tolist()
    return all(map(content.startswith, cut.begins, at))


def _has_grown(latest: _Latest, kv_indptr: I64, content: bytes) -> bool:
    """Whether the page lists are those of the batch before, some of them with one page more.

    All that stands between two new pages is then what it was, only moved.
    """
    if len(kv_indptr) != len(latest.kv_indptr):
        return False
    moved = kv_indptr - latest.kv_indptr
    n_more = moved[1:] - moved[:-1]
    grown = np.flatnonzero(n_more)
    if len(grown) > _MOST_GROWN or (n_more[grown] != 1).any():
        return False
    ends = [*(latest.kv_indptr[grown + 1] * _WORD_BYTES).tolist(), len(latest.content)]
    at = [0, *(kv_indptr[grown + 1] * _WORD_BYTES).tolist()]
    return all(content.startswith(latest.content[first:end], place) for first, end, place in zip([0, *ends[:-1]], ends, at, strict=True))


def _completed(cut: _Cut, lists: Lists, kv_indptr: I64) -> Shared | None:
    """What is shared, with what is left of each sequence."""
    if cut.shared is None:
        return None
    own_indptr = kv_indptr - cut.ends
    at = np.arange(own_indptr[-1]) + np.repeat(cut.ends[1:], own_indptr[1:] - own_indptr[:-1])
    return cut.shared._replace(own_indptr=_i32(own_indptr), own_indices=_i32(lists.kv_indices.take(at)))


def _best_nodes(pages: I64, starts: I64, none: int) -> tuple[I64, I64]:
    """At which node each path of a tree is cut: pages up to there, 0: nowhere, and the last of them.

    `pages` are the paths side by side, `starts` where they begin. A node is left where fewer paths go on. Of `k` paths
    that share `d` pages each saves `d (k - 1) / k`; each path takes its own best node. Those whose best is below leave
    the node, so that the pages above are read once more for them, and not once for each.
    """
    n_paths = len(starts) - 1
    n_shared, last_page = np.zeros(n_paths, np.int64), np.full(n_paths, none)
    if not len(pages):
        return n_shared, last_page
    n_users = np.bincount(pages).take(pages)
    is_end = np.empty(len(pages), np.bool_)
    is_end[:-1] = n_users[1:] != n_users[:-1]
    # A path may be empty: its start is the end of another one, or behind all.
    is_end[starts[1:][starts[1:] > 0] - 1] = True
    ends = np.flatnonzero(is_end & (n_users > 1))
    path = np.searchsorted(starts, ends, side="right") - 1
    depth = ends + 1 - starts[path]
    order = np.lexsort((-depth, depth - depth / n_users[ends], path))
    is_last = np.append(path[order][1:] != path[order][:-1], True) if len(order) else order.astype(np.bool_)
    best = order[is_last]
    n_shared[path[best]], last_page[path[best]] = depth[best], pages[ends[best]]
    return n_shared, last_page


def _shared(members: I64, ends: I64, n_shared: I64, qo_indptr: I64, begins: list[bytes]) -> Shared:
    """The arrays of prefixes: their sequences, prefix by prefix, and the ends of these."""
    n_tokens = (qo_indptr[1:] - qo_indptr[:-1])[members]
    row_ends = _ends(n_tokens)
    rows = np.arange(row_ends[-1]) + np.repeat(qo_indptr[members] - row_ends[:-1], n_tokens)
    row_of_token, has_row = np.zeros(qo_indptr[-1], np.int32), np.zeros(qo_indptr[-1], np.bool_)
    row_of_token[rows], has_row[rows] = np.arange(len(rows)), True
    firsts = members[np.append(0, ends[:-1])]
    indices = np.frombuffer(b"".join(begins[seq] for seq in firsts.tolist()), np.int32)
    none = indices[:0]
    qo = np.append(0, row_ends[ends])
    return Shared(_i32(qo), _i32(_ends(n_shared[firsts])), indices, _i32(rows), row_of_token, has_row, none, none)


def _ends(lengths: I64) -> I64:
    """0, and the sums of the lengths so far."""
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends


def _i32(values: Words | I64) -> I32:
    return values.astype(np.int32)
