"""Decode batches by CUDA graphs: one copy there, one replay, and the tokens back.

A graph computes a batch whole: which tokens follow, the layers, the greatest logit of each row. A second one draws at
random. Both are captured at the start, for some sizes; whoever has fewer sequences is padded with some of nobody. Where
bits may depend on the batch, each size has one more for batches whose sequences share prefixes: it merges states in
every layer, which costs those batches too much that share nothing, and what is launched kernel by kernel would cost
more than most prefixes save.
Symbols: S sequences of a size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pie.backends.base import Capabilities
from pie.backends.cuda.arena import MAX_INDICES, Arena, Decode, TokensBack
from pie.backends.cuda.arena import Tokens as TokensOnHost
from pie.backends.cuda.attention import Attending, Planner, Wrapper
from pie.backends.cuda.calls import Calls
from pie.backends.cuda.cascade import CascadeGraphs
from pie.backends.cuda.decoder import Decoder, Tokens
from pie.backends.cuda.device import Device
from pie.backends.cuda.graphs import Budget, Graphs, Recorder, sizes
from pie.backends.cuda.options import CudaOptions
from pie.backends.cuda.pages import Pool
from pie.backends.cuda.plain import Plain
from pie.backends.cuda.prefixes import MOST_PREFIXES, Lists, Prefixes, Shared
from pie.backends.cuda.sampler_words import SAMPLER_WORDS, TEMPERATURE
from pie.backends.cuda.sampling import Draws, draw, drawable, greatest
from pie.batch_layout import U32
from pie.models.spec import Attention

MAX_SORTED_IN_VAIN = 1 << 22
"""The most logits that a graph sorts of rows that need not be sorted.

An estimate: a GPU takes half a millisecond for them, which is what it costs the host to draw kernel by kernel.
"""


class Parts(NamedTuple):
    """What graphs are made with."""

    decoder: Decoder
    calls: Calls
    planner: Planner
    device: Device
    pool: Pool
    firsts: Tensor
    """The first draw of each row of the batch before, int32, where every batch leaves those of its own."""
    limits: Capabilities
    options: CudaOptions
    recorder: Recorder
    agreed: Callable[[bool], bool] | None
    """See `pie.backends.cuda.graphs.Budget`."""


class Forward(NamedTuple):
    """What a graph computed of each of S rows, on the device."""

    logits: Tensor
    """float32 [S, V]."""
    states: Tensor
    """[S, E]."""
    is_drawable: Tensor
    """bool [S]."""


class Decoding:
    """The graphs of one model."""

    def __init__(self, parts: Parts, heads: Attention, max_positions: int, vocab_size: int) -> None:
        options, device = parts.options, parts.device
        n_most = options.graph_seqs
        self._parts = parts
        n_each = 1 - -max_positions // parts.limits.page_size
        self._arena = Arena(device, n_most, n_most * n_each, parts.pool.nobody)
        self._prefixes: Prefixes | None = None
        if parts.planner.can_share:
            self._prefixes = Prefixes.of(heads, parts.limits, parts.pool.kv.element_size(), options.cascade_bytes)
            n_indices = min(MOST_PREFIXES * n_each, MAX_INDICES)
            self._cascades = CascadeGraphs(parts.planner, device, n_most, n_indices, parts.pool.nobody)
        self._back = TokensBack(device, n_most)
        # One for all sizes: a batch has read its rows before the next one writes.
        self._logits = torch.zeros(n_most, vocab_size, device=device.name)
        self._attention: dict[int, Wrapper] = {}
        self._numbers = np.arange(n_most + 1, dtype=np.uint32)
        self._offsets = torch.arange(n_most + 1, dtype=torch.int32)
        with device.computing():
            self._warm_up(min(1, n_most))
        budget = Budget(device, n_bytes=options.graph_bytes, time_s=options.graph_s, agreed=parts.agreed)
        self._forward = Graphs(parts.recorder, budget)
        self._draws = [Graphs(parts.recorder, budget), Graphs(parts.recorder, budget)]
        """With neither top-k nor top-p, and with them."""
        self._sharing = Graphs(parts.recorder, budget)
        """As `_forward`, of batches whose sequences share prefixes."""
        with device.computing():
            self._forward.capture(list(sizes(n_most)), self._prepare)
            for is_filtered, graphs in enumerate(self._draws):
                graphs.capture(self._forward.captured, partial(self._prepare_draws, is_filtered=bool(is_filtered)))
            if self._prefixes is not None:
                self._sharing.capture([size for size in self._forward.captured if size > 1], self._prepare_sharing)

    @property
    def sizes(self) -> list[int]:
        """The sizes of decode batches that have a graph."""
        return self._forward.captured

    def left(self) -> list[str]:
        """What has no graph and why, a sentence each."""
        kinds = {
            "decode batches": self._forward,
            "draws from decode batches": self._draws[0],
            "draws with top-k or top-p from decode batches": self._draws[1],
        }
        shared = self._sharing.told("decode batches that share prefixes", "read them once for each sequence")
        return [told for told in (*(graphs.told(what) for what, graphs in kinds.items()), shared) if told]

    def _warm_up(self, size: int) -> None:
        """Runs what graphs are made of, before the clock of `graph_s` and the count of `graph_bytes` begin.

        Kernels are compiled, which may take minutes where a library is used for the first time, and libraries take
        memory that is not that of graphs.
        """
        self._prepare(size)()
        for is_filtered in (False, True):
            self._prepare_draws(size, is_filtered=is_filtered)()
        if self._prefixes is not None:
            self._prepare_sharing(size)()
            self._cascades.clear()
        self._parts.device.finish()
        self._attention.clear()

    def close(self) -> None:
        """Drops the graphs, which keep what they read."""
        for graphs in (self._forward, *self._draws, self._sharing):
            graphs.clear()

    def size_for(self, n_seqs: int, n_indices: int) -> int | None:
        """The size of the graph for so many sequences with so many pages in all; None: there is none."""
        size = self._forward.size_for(n_seqs)
        return size if size is not None and self._arena.holds(n_indices, size) else None

    def draws(self, plain: Plain, size: int) -> bool:
        """Whether the tokens of a batch are drawn by a graph.

        The one for top-k and top-p sorts all rows of its size. Where too many of them have neither, tokens are drawn
        kernel by kernel.
        """
        if not plain.is_random:
            return True
        if plain.n_filtered and (size - plain.n_filtered) * self._logits.shape[1] > MAX_SORTED_IN_VAIN:
            return False
        return self._draws[plain.n_filtered > 0].has(size)

    def run(self, plain: Plain, size: int) -> TokensOnHost:
        """Launches a plain batch; says where its tokens will lie."""
        sampler = plain.sampler if plain.is_random else None
        self._replay(_decode(plain, sampler), size)
        if plain.is_random:
            self._draws[plain.n_filtered > 0].replay(size)
        return self._back.fetch(size)

    def forward(self, decode: Decode, size: int) -> Forward:
        """Launches a batch up to its rows, which are drawn from by others."""
        forward: Forward = self._replay(decode, size)
        return forward

    def followed(self, size: int) -> Tensor:
        """The tokens of the batch that was launched last, on the device, int32 [S]; NOTHING where none can be drawn."""
        return self._back.followed(size)

    def _replay(self, decode: Decode, size: int) -> Any:
        shared = self._shared(decode, size)
        if shared is not None:
            own_indptr, own_indices = (words.view(np.uint32) for words in (shared.own_indptr, shared.own_indices))
            decode = decode._replace(kv_indptr=own_indptr, kv_indices=own_indices)
        self._arena.send(decode, size)
        if not self._parts.planner.is_fixed:
            n_indices = len(decode.kv_indices) + size - len(decode.tokens)
            self._plan(self._attention[size], size, n_indices)
        if shared is None:
            return self._forward.replay(size)
        self._cascades.plan(size, shared)
        return self._sharing.replay(size)

    def _shared(self, decode: Decode, size: int) -> Shared | None:
        """What the sequences of a batch share; None: nothing, or there is no graph that makes use of it."""
        if self._prefixes is None or not self._sharing.has(size):
            return None
        counting = self._numbers[: len(decode.tokens) + 1]
        shared = self._prefixes.find(Lists(counting, decode.kv_indptr, decode.kv_indices, decode.kv_last_page_len))
        return shared if shared is not None and self._cascades.holds(shared) else None

    def _plan(self, attention: Wrapper, size: int, n_indices: int) -> None:
        """Plans by what was sent last, in host memory; the page indices are on the device already."""
        arena, first = self._arena, self._arena.fields(size).kv_indices.start
        counting = self._counting(size)
        indptr, last = (arena.host(size, name) for name in ("kv_indptr", "kv_last_page_len"))
        self._parts.planner.plan(attention, counting, indptr, arena.words[first : first + n_indices], last)

    def _counting(self, size: int) -> Tensor:
        return self._offsets[: size + 1]

    def _prepare(self, size: int) -> Callable[[], Forward]:
        """Everything of a batch of tokens that are written to the page of nobody."""
        arena, device, words = self._arena, self._parts.device.name, self._words(size)
        attention = self._attention[size] = self._parts.planner.graphed(
            size,
            qo_indptr_buf=self._counting(size).to(device),
            paged_kv_indptr_buf=words["kv_indptr"],
            paged_kv_indices_buf=words["kv_indices"],
            paged_kv_last_page_len_buf=words["kv_last_page_len"],
        )
        arena.send(_nobody(), size)
        self._plan(attention, size, size)
        return partial(self._compute, size, words, attention)

    def _prepare_sharing(self, size: int) -> Callable[[], Forward]:
        """The same, of tokens that all share the page of nobody: by the plan of the other graph and one of prefixes."""
        attention = self._attention[size]
        self._arena.send(_nobody(), size)
        self._plan(attention, size, size)
        return partial(self._compute, size, self._words(size), self._cascades.prepare(size, attention))

    def _words(self, size: int) -> dict[str, Tensor]:
        """Where the arrays of a size lie on the device."""
        fields = self._arena.fields(size)
        return {name: self._arena.words[place] for name, place in zip(fields._fields, fields, strict=True)}

    def _compute(self, size: int, words: dict[str, Tensor], attention: Attending) -> Forward:
        """What a graph computes."""
        parts = self._parts
        drawn, followed = self._back.drawn(size), self._back.followed(size)
        follows = words["follows"]
        torch.where(follows >= 0, parts.firsts[follows.clamp(min=0)], words["ids"], out=followed)
        # What follows nothing is computed as any token would be, and fails when it is waited for.
        tokens = Tokens(followed.clamp(min=0), words["positions"], words["pages"], words["slots"])
        logits, states = parts.decoder.forward(tokens, attention, parts.pool.kv, None, self._logits[:size])
        is_drawable = drawable(logits, logits)
        drawn.copy_(greatest(logits, is_drawable))
        parts.firsts[:size].copy_(drawn)
        return Forward(logits, states, is_drawable)

    def _prepare_draws(self, size: int, *, is_filtered: bool) -> Callable[[], tuple[Tensor]]:
        """What draws at random, from the rows that the other graph computed."""
        fields = self._arena.fields(size)
        sampler, slot = (self._arena.words[place] for place in (fields.sampler, fields.row_slot))
        row = torch.arange(size, device=self._parts.device.name)
        return partial(self._draw, size, row, sampler.view(size, SAMPLER_WORDS), slot, is_filtered=is_filtered)

    def _draw(self, size: int, row: Tensor, sampler: Tensor, slot: Tensor, *, is_filtered: bool) -> tuple[Tensor]:
        parts, drawn, logits = self._parts, self._back.drawn(size), self._logits[:size]
        draws = Draws.of(row, sampler, slot, [1] * size, is_filtered=is_filtered)
        tokens = draw(logits, drawable(logits, logits), draws, parts.calls.arithmetic)
        # The sign of a zero does not count.
        is_random = ((sampler[:, TEMPERATURE] << 1) != 0) & (draws.top_k != 1)
        drawn.copy_(torch.where(is_random, tokens, drawn))
        parts.firsts[:size].copy_(drawn)
        return (drawn,)


def _decode(plain: Plain, sampler: U32 | None) -> Decode:
    indptr, indices, last = plain.kv_indptr, plain.kv_indices, plain.kv_last_page_len
    return Decode(plain.tokens, plain.positions, plain.follows, plain.pages, indptr, indices, last, sampler, plain.row_slot)


def _nobody() -> Decode:
    """No sequence at all."""
    none = np.zeros(0, np.uint32)
    return Decode(none, none, none, none, np.zeros(1, np.uint32), none, none, None, none)
