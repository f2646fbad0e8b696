"""One batch on the device: its tokens go there, are computed and drawn from, and what is wanted comes back.

Everything that is called here is done later, in the stream of the batches; the host waits for nothing but the plan of
the batch before, which was copied long ago.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pie.backends.base import Capabilities
from pie.backends.checks import I64, Spans
from pie.backends.cuda.calls import Calls
from pie.backends.cuda.decoder import Decoder, Tokens
from pie.backends.cuda.device import Device
from pie.backends.cuda.drawing import Drawing
from pie.backends.cuda.graphs import Graphs, Recorder, sizes
from pie.backends.cuda.memory import WORKSPACE_BYTES
from pie.backends.cuda.options import CudaOptions
from pie.backends.cuda.pages import Pool
from pie.backends.cuda.pieces import I32, Pieces, cut, tokens_of_piece
from pie.backends.cuda.rows import Rows
from pie.backends.cuda.staging import ALIGNED, Returning, Staging
from pie.backends.cuda.weights import Weights
from pie.batch import Batch
from pie.models.spec import DecoderSpec

SPLIT_TOKENS = 2048
"""Keys that are summed at once, where attention is split at all and has to be the same in every batch: whole pages."""
_N_ARRAYS = 5
"""Words of a token on their way to the device: id, position, what it follows, page, slot."""
_NOT_FOLLOWING = -1


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

    tokens: Tensor
    """int32 [D]."""
    logits: Tensor
    """float32 [K, V]."""
    followed: Tensor | None
    """int32 [T]: the tokens, of which those that nothing could be drawn for are NOTHING; None where none follows."""
    firsts: Tensor
    """The first draw of each row, on the device, int32 [R]."""
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
    ) -> None:
        self._spec, self._calls, self._device, self._limits, self._options = spec, calls, device, limits, options
        self._dtype = weights.embedding.dtype
        self.pool = Pool(spec, limits, self._dtype, device)
        n_most = max(limits.max_batch_tokens, options.graph_seqs if recorder else 0)
        self._decoder = Decoder(spec, weights, calls, n_most)
        self._tokens = Staging(device, (_N_ARRAYS + 1) * (n_most + ALIGNED))
        self._indices = Staging(device, limits.n_pages + n_most)
        self._drawing = Drawing(calls, Staging(device, 16 * n_most), spec.vocab_size)
        self._back = [Returning(device, torch.int32), Returning(device, torch.int32)]
        self._logits_back = Returning(device, torch.float32)
        self._workspace = torch.zeros(WORKSPACE_BYTES if device.name.type == "cuda" else 1, dtype=torch.uint8, device=device.name)
        self._per_piece = tokens_of_piece(spec.attention) if options.deterministic else None
        self._eager = calls.attention(self._workspace, "NHD", backend="fa2")
        self._planned: Any = None
        self._graphs: Graphs | None = None
        self._graphed: dict[int, Any] = {}
        if recorder is not None and options.graph_seqs:
            self._graphs = Graphs(recorder, device, n_bytes=options.graph_bytes, time_s=options.graph_s)
            self._capture(self._graphs)

    @property
    def graph_sizes(self) -> list[int]:
        """The sizes of decode batches that have a graph."""
        return self._graphs.captured if self._graphs else []

    def begin(self, asked: Asked, drawn_before: Tensor | None) -> Came:
        """Launches a batch; `drawn_before` are the first draws of the rows of the batch before."""
        with self._device.computing():
            self.pool.copy(asked.batch)
            vocab_size = self._spec.vocab_size
            if not asked.batch.n_tokens:
                logits = states = torch.zeros(0, vocab_size, device=self._device.name)
                followed = None
            else:
                followed, logits, states = self._compute(asked, drawn_before)
            drawn = self._drawing.draw(asked.batch, asked.rows, logits)
            kept = self._kept(asked.rows, logits, states)
            came = (self._back[0].fetch(drawn.tokens), self._logits_back.fetch(kept))
            came_followed = None if followed is None else self._back[1].fetch(followed)
            done = self._device.mark()
            self.pool.began(asked.batch, done)
        return Came(*came, came_followed, drawn.firsts, done)

    def _compute(self, asked: Asked, drawn_before: Tensor | None) -> tuple[Tensor | None, Tensor, Tensor]:
        """The tokens of those that follow, the logits of the rows that are wanted, and the states behind them."""
        batch, spans = asked.batch, asked.spans
        is_decode = batch.n_tokens == batch.n_seqs and not len(batch.mask_runs)
        size = self._graphs.size_for(batch.n_tokens) if self._graphs and is_decode else None
        n_padded = batch.n_tokens if size is None else size
        arrays = self._arrays(asked, n_padded)
        row_token = batch.row_token.view(np.int32)
        is_all = batch.n_rows == batch.n_tokens and bool((row_token == np.arange(batch.n_tokens)).all())
        ids, positions, follows, pages, slots, *rest = self._tokens.send(arrays if is_all else [*arrays, row_token], room=n_padded)
        followed = None
        if drawn_before is not None and (asked.follows >= 0).any():
            followed = torch.where(follows >= 0, drawn_before[follows.clamp(min=0)], ids)
            # What follows nothing is computed as any token would be, and fails when it is waited for.
            ids.copy_(followed.clamp(min=0))
        tokens, rows = Tokens(ids, positions, pages, slots), None if is_all else rest[0]
        if size is None or self._graphs is None:
            self._plan(self._eager, cut(batch, spans, self._per_piece))
            logits, states = self._decoder.forward(tokens, self._eager, self.pool.kv, rows)
        else:
            self._plan(self._graphed[size], self._padded(batch, size))
            every, every_state = self._graphs.replay(size)
            logits, states = (all_of[: batch.n_rows] if rows is None else all_of[rows] for all_of in (every, every_state))
        return None if followed is None else followed[: batch.n_tokens], logits, states

    def _arrays(self, asked: Asked, n_padded: int) -> list[I32]:
        """What the device has to know of each token; those behind the last are written to the page of nobody."""
        batch, spans = asked.batch, asked.spans
        page_size = batch.page_size
        slots, first_pages, follows, is_reread = spans.first_slot, batch.kv_indptr[:-1], asked.follows, spans.is_reread
        if batch.n_tokens > batch.n_seqs:
            owner = np.repeat(np.arange(batch.n_seqs), spans.n_new)
            slots = (slots - batch.qo_indptr[:-1])[owner] + np.arange(batch.n_tokens)
            first_pages, follows, is_reread = first_pages[owner], follows[owner], is_reread[owner]
        pages = np.where(is_reread, self.pool.nobody, batch.kv_indices[first_pages + slots // page_size])
        arrays: list[npt.NDArray[Any]] = [batch.tokens.view(np.int32), batch.positions.view(np.int32), follows, pages, slots % page_size]
        n_more = n_padded - batch.n_tokens
        if n_more:
            fill = [0, 0, _NOT_FOLLOWING, self.pool.nobody, 0]
            arrays = [np.concatenate([values, np.full(n_more, value)]) for values, value in zip(arrays, fill, strict=True)]
        return [values.astype(np.int32, copy=False) for values in arrays]

    def _nobody(self, n: int) -> Pieces:
        """Pieces of one token each, with a slot in the page of nobody."""
        indptr = np.arange(n + 1, dtype=np.int32)
        return Pieces(indptr, indptr.copy(), np.full(n, self.pool.nobody, np.int32), np.ones(n, np.int32), None)

    def _padded(self, batch: Batch, size: int) -> Pieces:
        """The pieces of a decode batch, with some of nobody behind them."""
        nobody = self._nobody(size - batch.n_seqs)
        indptr, indices, last = (words.view(np.int32) for words in (batch.kv_indptr, batch.kv_indices, batch.kv_last_page_len))
        return Pieces(
            qo_indptr=np.arange(size + 1, dtype=np.int32),
            kv_indptr=np.concatenate([indptr, indptr[-1:] + nobody.kv_indptr[1:]]),
            kv_indices=np.concatenate([indices, nobody.kv_indices]),
            kv_last_page_len=np.concatenate([last, nobody.kv_last_page_len]),
            mask=None,
        )

    def _plan(self, attention: Any, pieces: Pieces) -> None:
        """Has attention planned for a batch."""
        heads = self._spec.attention
        # A plan is written to memory that the plan before may be copied from; that is long over, but for a hair.
        if self._planned is not None:
            self._device.synchronize(self._planned)
        # What the host plans by stays there; the pages go to the device here, for FlashInfer would wait for their copy.
        [indices] = self._indices.send([pieces.kv_indices])
        attention.plan(
            torch.from_numpy(pieces.qo_indptr),
            torch.from_numpy(pieces.kv_indptr),
            indices,
            torch.from_numpy(pieces.kv_last_page_len),
            heads.n_heads,
            heads.n_kv_heads,
            heads.head_dim,
            self._limits.page_size,
            custom_mask=self._visible(pieces),
            causal=pieces.mask is None,
            sm_scale=heads.scale,
            q_data_type=self._dtype,
            kv_data_type=self._dtype,
            non_blocking=True,
            **self._splitting(),
        )
        self._planned = self._device.mark()

    def _visible(self, pieces: Pieces) -> Tensor | None:
        """Which slots each token sees, bool and flat; None where none has a mask.

        They come as bits and are unpacked here: FlashInfer packs them again, but takes packed ones of several sequences
        from wrong places (it counts bits where it addresses bytes).
        """
        if pieces.mask is None:
            return None
        packed = torch.from_numpy(pieces.mask).to(self._device.name, non_blocking=True)
        bits = packed[:, None] >> torch.arange(8, dtype=torch.uint8, device=packed.device)
        return (bits & 1).flatten()[: pieces.n_mask_bits].bool()

    def _splitting(self) -> dict[str, Any]:
        """How long sequences are split: by their length alone where no batch may change a bit.

        A graph has room for as many splits as it was captured with, so that none is split where there are graphs.
        """
        if not self._options.deterministic:
            return {}
        if self._options.graph_seqs:
            return {"disable_split_kv": True}
        return {"fixed_split_size": max(1, SPLIT_TOKENS // self._limits.page_size)}

    def _kept(self, rows: Rows, logits: Tensor, states: Tensor) -> Tensor:
        """The rows that are answered, float32 [K, V], hidden states in the place of logits where those are wanted."""
        if len(rows.kept) == 0:
            return logits[:0]
        kept = logits if len(rows.kept) == rows.n_rows else logits[torch.from_numpy(rows.kept).to(logits.device, non_blocking=True)]
        if len(rows.states):
            kept = kept.clone()
            for index in rows.states.tolist():
                kept[index] = 0
                kept[index, : self._spec.hidden_size] = states[int(rows.kept[index])]
        return kept

    def _capture(self, graphs: Graphs) -> None:
        """Captures decode batches of tokens that are written to the page of nobody."""
        wanted = list(sizes(self._options.graph_seqs))
        n_indices = self._options.graph_seqs * -(-self._spec.max_positions // self._limits.page_size)
        device = self._device.name
        indices = torch.zeros(n_indices, dtype=torch.int32, device=device)

        def prepare(size: int) -> Callable[[], tuple[Tensor, Tensor]]:
            self._graphed[size] = attention = self._calls.attention(
                self._workspace,
                "NHD",
                use_cuda_graph=True,
                qo_indptr_buf=torch.zeros(size + 1, dtype=torch.int32, device=device),
                paged_kv_indptr_buf=torch.zeros(size + 1, dtype=torch.int32, device=device),
                paged_kv_indices_buf=indices,
                paged_kv_last_page_len_buf=torch.zeros(size, dtype=torch.int32, device=device),
                backend="fa2",
            )
            fill = [0, 0, _NOT_FOLLOWING, self.pool.nobody, 0]
            ids, positions, _, pages, slots = self._tokens.send([np.full(size, value, np.int32) for value in fill], room=size)
            self._plan(attention, self._nobody(size))
            return partial(self._decoder.forward, Tokens(ids, positions, pages, slots), attention, self.pool.kv, None)

        with self._device.computing():
            graphs.capture(wanted, prepare)
