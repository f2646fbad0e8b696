"""One batch on the device: its tokens go there, are computed and drawn from, and what is wanted comes back.

Everything that is called here is done later, in the stream of the batches; the host waits for nothing but the plan of
the batch before, which was copied long ago. Plain decode batches and others that are decoded have graphs
(`pie.backends.cuda.decoding`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pie.backends.base import Capabilities
from pie.backends.checks import I64, Spans
from pie.backends.cuda.arena import Decode
from pie.backends.cuda.attention import Attending, Mask, Planner, Split, Wrapper
from pie.backends.cuda.calls import Calls
from pie.backends.cuda.cascade import Cascade, as_sent, words_of_prefixes
from pie.backends.cuda.decoder import Decoder, Tokens
from pie.backends.cuda.decoding import Decoding, Parts
from pie.backends.cuda.device import Device
from pie.backends.cuda.drawing import Drawing
from pie.backends.cuda.graphs import Recorder
from pie.backends.cuda.group import Group
from pie.backends.cuda.options import CudaOptions
from pie.backends.cuda.pages import Pool
from pie.backends.cuda.pieces import I32, Cut, PackedMasks, Pieces, cut, tokens_of_piece
from pie.backends.cuda.plain import Plain
from pie.backends.cuda.prefixes import Lists, Prefixes, Shared
from pie.backends.cuda.rows import Rows
from pie.backends.cuda.staging import ALIGNED, Returning, Staging, words_of
from pie.backends.cuda.weights import Weights
from pie.batch import Batch
from pie.batch_layout import U32
from pie.models.spec import DecoderSpec

_N_ARRAYS = 5
"""Words of a token on their way to the device: id, position, what it follows, page, slot."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A batch that was checked."""

    batch: Batch
    spans: Spans
    rows: Rows
    follows: I64
    """The row of the batch before whose draw is the token of a sequence, [B]; -1: none."""


class Came(NamedTuple):
    """Where the answer of a batch lies once it is done, in host memory."""

    tokens: U32
    """[D]."""
    logits: npt.NDArray[np.float32]
    """[K, V]."""
    followed: I32 | None
    """The tokens, of which those that nothing could be drawn for are NOTHING, [T]; None where none follows."""
    n_rows: int
    """Rows whose first draw the next batch may follow."""
    done: Any
    """The mark of its end."""


class Step:
    """Computes the batches of one model."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a driver
        self,
        spec: DecoderSpec,
        weights: Weights,
        calls: Calls,
        device: Device,
        limits: Capabilities,
        options: CudaOptions,
        recorder: Recorder | None,
        group: Group,
    ) -> None:
        self._spec, self._weights, self._device = spec, weights, device
        dtype, n_graphed = weights.embedding.dtype, options.graph_seqs if recorder else 0
        self.pool = Pool(spec, limits, dtype, device)
        n_most = max(limits.max_batch_tokens, n_graphed)
        self._decoder = Decoder(spec, weights, calls, n_most, group)
        self._tokens = Staging(device, (_N_ARRAYS + 1) * (n_most + ALIGNED))
        self._places = Staging(device, limits.n_pages + n_most)
        self._kept_rows = Staging(device, 3 * n_most)
        self._drawing = Drawing(calls, Staging(device, 16 * n_most), spec.vocab_size)
        self._back = [Returning(device, torch.int32), Returning(device, torch.int32)]
        self._logits_back = Returning(device, torch.float32)
        self._firsts = torch.zeros(n_most, dtype=torch.int32, device=device.name)
        """The first draw of each row of the batch that was launched last."""
        self._no_logits = np.zeros((0, spec.vocab_size), np.float32)
        self._per_piece = tokens_of_piece(spec.attention) if options.deterministic else None
        self._planner = Planner(spec.attention, dtype, calls, device, limits, options)
        self._causal, self._masked = self._planner.wrapper(), self._planner.wrapper()
        self._prefix: Wrapper | None = None
        """Of prefixes that sequences share; None: they are read once for each."""
        if self._planner.can_share:
            self._prefix = self._planner.wrapper()
            self._prefixes = Prefixes.of(spec.attention, limits, dtype.itemsize, options.cascade_bytes)
        self._decoding: Decoding | None = None
        self._warm_up(calls)
        if recorder is not None and n_graphed:
            agreed = group.any if group.size > 1 else None
            parts = Parts(self._decoder, calls, self._planner, device, self.pool, self._firsts, limits, options, recorder, agreed)
            self._decoding = Decoding(parts, spec.attention, spec.max_positions, spec.vocab_size)
            if group.rank == 0:
                for told in self._decoding.left():
                    print(f"cuda: {told}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Drops what would keep the memory of the device: graphs keep what they read, and with it this."""
        if self._decoding is not None:
            self._decoding.close()

    @property
    def graph_sizes(self) -> list[int]:
        """The sizes of decode batches that have a graph."""
        return self._decoding.sizes if self._decoding else []

    def graph_for(self, plain: Plain) -> int | None:
        """The size of the graphs by which a plain batch runs; None: there is none."""
        if self._decoding is None:
            return None
        size = self._decoding.size_for(plain.n_seqs, len(plain.kv_indices))
        return size if size is not None and self._decoding.draws(plain, size) else None

    def decode(self, plain: Plain, size: int) -> Came:
        """Launches a plain batch by the graphs of that size."""
        assert self._decoding is not None
        n = plain.n_seqs
        with self._device.computing():
            tokens = self._decoding.run(plain, size)
            done = self._device.mark()
        self.pool.began(plain.kv_indices, done)
        return Came(tokens.drawn[:n], self._no_logits, tokens.followed[:n] if plain.most_followed else None, n, done)

    def begin(self, asked: Asked) -> Came:
        """Launches a batch of any kind."""
        batch, n_rows = asked.batch, asked.rows.n_rows
        with self._device.computing():
            self.pool.copy(batch)
            if not batch.n_tokens:
                logits = states = self._firsts.new_zeros((0, self._spec.vocab_size), dtype=torch.float32)
                followed = None
            else:
                followed, logits, states = self._compute(asked)
            drawn = self._drawing.draw(batch, asked.rows, logits)
            self._firsts[:n_rows].copy_(drawn.firsts)
            tokens, kept = self._back[0].fetch(drawn.tokens), self._logits_back.fetch(self._kept(asked.rows, logits, states))
            came_followed = None if followed is None else self._back[1].fetch(followed)
            done = self._device.mark()
        pages = (batch.kv_indices, batch.copy_src, batch.copy_dst, batch.swap_out_src, batch.swap_in_dst)
        self.pool.began(np.concatenate(pages), done)
        back = None if came_followed is None else came_followed.numpy()
        return Came(tokens.numpy().view(np.uint32), kept.numpy(), back, n_rows, done)

    def _compute(self, asked: Asked) -> tuple[Tensor | None, Tensor, Tensor]:
        """The tokens of those that follow, the logits of the rows that are wanted, and the states behind them."""
        batch = asked.batch
        is_following = bool((asked.follows >= 0).any())
        row_token = batch.row_token.view(np.int32)
        is_all = batch.n_rows == batch.n_tokens and bool((row_token == np.arange(batch.n_tokens)).all())
        arrays = self._arrays(asked)
        is_decode = batch.n_tokens == batch.n_seqs and not len(batch.mask_runs)
        size = self._decoding.size_for(batch.n_seqs, len(batch.kv_indices)) if self._decoding and is_decode else None
        if size is not None and self._decoding is not None:
            forward = self._decoding.forward(_decode(batch, arrays), size)
            wanted = slice(batch.n_rows) if is_all else self._tokens.send([row_token])[0]
            followed = self._decoding.followed(size)[: batch.n_tokens] if is_following else None
            return followed, forward.logits[wanted], forward.states[wanted]
        ids, positions, follows, pages, slots, *rest = self._tokens.send(arrays if is_all else [*arrays, row_token])
        followed = None
        if is_following:
            followed = torch.where(follows >= 0, self._firsts[follows.clamp(min=0)], ids)
            # What follows nothing is computed as any token would be, and fails when it is waited for.
            ids.copy_(followed.clamp(min=0))
        pieces = cut(batch, asked.spans, self._per_piece)
        attention = self._plan(pieces, self._shared(pieces.causal))
        rows = None if is_all else rest[0]
        return followed, *self._decoder.forward(Tokens(ids, positions, pages, slots), attention, self.pool.kv, rows)

    def _arrays(self, asked: Asked) -> list[I32]:
        """What the device has to know of each token: id, position, what it follows, page, slot."""
        batch, spans = asked.batch, asked.spans
        page_size = batch.page_size
        slots, first_pages, follows, is_reread = spans.first_slot, batch.kv_indptr[:-1], asked.follows, spans.is_reread
        if batch.n_tokens > batch.n_seqs:
            owner = np.repeat(np.arange(batch.n_seqs), spans.n_new)
            slots = (slots - batch.qo_indptr[:-1])[owner] + np.arange(batch.n_tokens)
            first_pages, follows, is_reread = first_pages[owner], follows[owner], is_reread[owner]
        pages = np.where(is_reread, self.pool.nobody, batch.kv_indices[first_pages + slots // page_size])
        arrays: list[npt.NDArray[Any]] = [batch.tokens.view(np.int32), batch.positions.view(np.int32), follows, pages, slots % page_size]
        return [values.astype(np.int32, copy=False) for values in arrays]

    def _plan(self, pieces: Cut, shared: Shared | None = None) -> Attending:
        """Has attention planned for a batch without a graph; returns what computes it.

        `shared` are the prefixes of the pieces without masks, which those are then without.
        """
        if shared is not None and pieces.causal is not None:
            own = replace(pieces.causal, kv_indptr=shared.own_indptr, kv_indices=shared.own_indices)
            pieces = pieces._replace(causal=own)
        # What the host plans by stays there; the rest goes to the device here, for FlashInfer would wait for its copy.
        arrays: list[I32] = []
        for some in pieces:
            if some is not None:
                arrays.append(some.kv_indices)
                arrays += [] if some.tokens is None else [some.tokens]
                arrays += [] if some.masks is None else [words_of(some.masks.bits), some.masks.starts]
        arrays += [] if shared is None else words_of_prefixes(shared)
        sent = iter(self._places.send(arrays))
        causal = None if pieces.causal is None else self._planned(self._causal, pieces.causal, sent)
        masked = None if pieces.masked is None else self._planned(self._masked, pieces.masked, sent)
        if shared is not None and causal is not None:
            causal = (self._cascaded(shared, self._causal, list(sent)), causal[1])
        if causal is None or masked is None:
            one = causal or masked
            assert one is not None
            return one[0]
        assert causal[1] is not None
        assert masked[1] is not None
        return Split(causal[0], causal[1], masked[0], masked[1])

    def _shared(self, pieces: Pieces | None) -> Shared | None:
        """What sequences without masks share; None: nothing, or too little."""
        if self._prefix is None or pieces is None:
            return None
        return self._prefixes.find(Lists(pieces.qo_indptr, pieces.kv_indptr, pieces.kv_indices, pieces.kv_last_page_len))

    def _cascaded(self, shared: Shared, own: Wrapper, sent: list[Tensor]) -> Cascade:
        """Plans the prefixes, of which the device has been sent these arrays."""
        assert self._prefix is not None
        rows, row_of_token, has_row, kv_indices = as_sent(sent, len(shared.has_row))
        self._planner.plan_prefixes(self._prefix, torch.from_numpy(shared.qo_indptr), torch.from_numpy(shared.kv_indptr), kv_indices)
        return Cascade(own, self._prefix, self._planner.merge, rows, row_of_token, has_row)

    def _planned(self, wrapper: Wrapper, pieces: Pieces, sent: Iterator[Tensor]) -> tuple[Attending, Tensor | None]:
        """Plans some pieces; what the device has to know of them comes next in `sent`. Returns their tokens too."""
        indices = next(sent)
        tokens = None if pieces.tokens is None else next(sent)
        mask = None if pieces.masks is None else Mask(next(sent).view(torch.uint8)[: len(pieces.masks.bits)], next(sent))
        qo_indptr, kv_indptr, last = (torch.from_numpy(words) for words in (pieces.qo_indptr, pieces.kv_indptr, pieces.kv_last_page_len))
        self._planner.plan(wrapper, qo_indptr, kv_indptr, indices, last, mask)
        return wrapper, tokens

    def _warm_up(self, calls: Calls) -> None:
        """Runs every kernel once, on a token of nobody, so that all is compiled and chosen before a batch comes."""
        with self._device.computing():
            calls.choose_linears(self._weights.matrices())
            ids, positions, pages, slots = self._tokens.send([np.array([word], np.int32) for word in (0, 0, self.pool.nobody, 0)])
            logits = self._firsts.new_zeros((1, self._spec.vocab_size), dtype=torch.float32)
            for masks in (None, PackedMasks(np.ones(1, np.uint8), np.array([0, 1], np.int32))):
                ends, nobody, last = (np.array(words, np.int32) for words in ([0, 1], [self.pool.nobody], [1]))
                one = Pieces(ends, ends, nobody, last, None, masks)
                attention = self._plan(Cut(one, None) if masks is None else Cut(None, one))
                logits, _ = self._decoder.forward(Tokens(ids, positions, pages, slots), attention, self.pool.kv, None)
            if self._prefix is not None:
                one, first = Pieces(ends, ends, nobody, last), np.zeros(1, np.int32)
                attention = self._plan(Cut(one, None), Shared(ends, ends, nobody, first, first, np.ones(1, np.bool_), ends, nobody))
                logits, _ = self._decoder.forward(Tokens(ids, positions, pages, slots), attention, self.pool.kv, None)
            self._drawing.warm_up(logits)
            self._device.finish()

    def _kept(self, rows: Rows, logits: Tensor, states: Tensor) -> Tensor:
        """The rows that are answered, float32 [K, V], hidden states in the place of logits where those are wanted."""
        if len(rows.kept) == 0:
            return logits[:0]
        is_all = len(rows.kept) == rows.n_rows
        arrays = [] if is_all else [rows.kept]
        arrays += [rows.states, rows.kept[rows.states]] if len(rows.states) else []
        sent = iter(self._kept_rows.send([array.astype(np.int32) for array in arrays]) if arrays else [])
        kept = logits if is_all else logits[next(sent)]
        if len(rows.states):
            places, of_states = next(sent), next(sent)
            filled = logits.new_zeros((len(rows.states), self._spec.vocab_size))
            filled[:, : self._spec.hidden_size] = states[of_states]
            kept = kept.clone() if is_all else kept
            kept[places] = filled
        return kept


def _decode(batch: Batch, arrays: list[I32]) -> Decode:
    """A batch of one token a sequence, whose rows are drawn from by others."""
    ids, positions, follows, pages, _ = (array.view(np.uint32) for array in arrays)
    none = ids[:0]
    return Decode(ids, positions, follows + np.uint32(1), pages, batch.kv_indptr, batch.kv_indices, batch.kv_last_page_len, None, none)
