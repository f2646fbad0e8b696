"""What a model takes of a device's memory, counted before anything is loaded."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pie.backends.base import Capabilities
from pie.backends.cuda.arena import MAX_INDICES
from pie.backends.cuda.layout import Share
from pie.backends.cuda.options import CudaOptions
from pie.backends.cuda.pages import AT_ONCE
from pie.backends.cuda.prefixes import MOST_PREFIXES
from pie.backends.cuda.sampling import CHUNK
from pie.errors import PieError
from pie.models.spec import Attention, DecoderSpec

_LEAST_WORKSPACE_BYTES = 128 << 20
"""Of FlashInfer, which says that so much is enough; it is not for many heads."""
_BLOCKS = 2 * 256
"""Blocks of threads that FlashInfer splits attention for: two a processor, of which no device has more."""
_SMALL_TILE, _LARGE_TILE = 16, 128
"""Rows of queries that a block works on: of one token a sequence, and the most that there are."""
WRAPPER_BYTES = (8 << 20) + (128 << 10)
"""That FlashInfer's wrapper takes for plans and lengths."""
_PLAN_BYTES = 16
"""Of a plan, for each item of work: three indices of it, a flag, and its part of the ends of sums."""
_LIBRARIES_BYTES = 256 << 20
"""For the code of kernels and what cuBLAS works in; estimated, for no GPU was at hand."""
_DRAWING_BYTES = 100
"""That are taken for each logit that is worked on at once: weights, ranks and sums of 8 bytes, some of each."""
_LOGIT_BYTES = 4
_TOKEN_WORDS = 32
"""On their way to the device, of a token and of its row."""
_ROWS_AT_ONCE = 3
"""Rows of logits: as they are, under their masks, and as they are answered."""


@dataclass(frozen=True)
class Needed:
    """Bytes of the device's memory."""

    weights: int
    pages: int
    """Keys and values."""
    page: int
    """Of these, for one page."""
    work: int
    """What a batch is computed in."""
    graphs: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.pages + self.work + self.graphs


def needed(spec: DecoderSpec, share: Share, limits: Capabilities, element_bytes: int, options: CudaOptions) -> Needed:
    """What a share of a model takes with these options, on a device of CUDA."""
    own = share.spec(spec)
    heads, n_tokens = own.attention, limits.max_batch_tokens
    page = 2 * spec.n_layers * limits.page_size * heads.n_kv_heads * heads.head_dim * element_bytes
    widths = 3 * spec.hidden_size + 3 * own.intermediate_size + 2 * (heads.n_heads + 2 * heads.n_kv_heads) * heads.head_dim
    # Two wrappers, for tokens with masks and without, and the masks themselves, a bit for each slot of each token.
    work = workspace_bytes(heads, options) + 2 * WRAPPER_BYTES + n_tokens * spec.max_positions // 8 + _LIBRARIES_BYTES
    work += 0 if options.deterministic else _cascade_bytes(heads, n_tokens, spec.max_positions // limits.page_size, element_bytes)
    work += n_tokens * widths * element_bytes
    work += (_ROWS_AT_ONCE * n_tokens + options.graph_seqs) * spec.vocab_size * _LOGIT_BYTES + CHUNK * _DRAWING_BYTES
    work += _LOGIT_BYTES * spec.max_positions * heads.head_dim
    # The words of batches: pages by sequence, what tokens and rows say, token masks.
    n_indices = min(options.graph_seqs * (1 - -spec.max_positions // limits.page_size), MAX_INDICES)
    work += _LOGIT_BYTES * (n_indices + n_tokens * (_TOKEN_WORDS + -(-spec.vocab_size // 32)))
    if share.size > 1:
        # What is gathered of all ranks: a sum of a block, and the logits.
        work += share.size * n_tokens * _LOGIT_BYTES * max(spec.hidden_size, -(-spec.vocab_size // share.size))
    return Needed(
        weights=element_bytes * sum(math.prod(shape) for shape in share.shapes(spec).values()),
        pages=(limits.n_pages + 1 + AT_ONCE) * page,
        page=page,
        work=work,
        graphs=options.graph_bytes if options.graph_seqs else 0,
    )


def _cascade_bytes(heads: Attention, n_tokens: int, most_pages: int, element_bytes: int) -> int:
    """What attention to shared prefixes takes: a wrapper, states of all tokens, and the pages of prefixes.

    Of each token there are its heads as they are asked by, of the prefix and in order, and three times its sums.
    """
    states = n_tokens * heads.n_heads * 3 * (heads.head_dim * element_bytes + 4)
    return WRAPPER_BYTES + states + 4 * (MOST_PREFIXES * (most_pages + 2) + 3 * n_tokens)


def workspace_bytes(heads: Attention, options: CudaOptions) -> int:
    """What FlashInfer keeps of sequences that it splits: of each split a tile of every head and its sums, in float32.

    It splits as long as that fills the device, and in a graph for whatever fits its number of sequences
    (`PrefillSplitQOKVIndptr` and `PrefillPlan` in its `attention/scheduler.cuh`).
    """
    if options.deterministic:
        return _LEAST_WORKSPACE_BYTES  # nothing is split
    group, n_seqs = heads.n_heads // heads.n_kv_heads, options.graph_seqs
    eager = _BLOCKS // heads.n_kv_heads * _LARGE_TILE
    tile = _SMALL_TILE if group <= _SMALL_TILE else _LARGE_TILE
    graphed = max(_BLOCKS // heads.n_kv_heads, -(-n_seqs * group // tile) + n_seqs - 1) * tile if n_seqs else 0
    # Rows of prefixes, in tiles of which each prefix may leave one unfilled.
    shared = max(_BLOCKS // heads.n_kv_heads, -(-n_seqs * group // _LARGE_TILE) + MOST_PREFIXES - 1) * _LARGE_TILE if n_seqs else 0
    return max(_LEAST_WORKSPACE_BYTES, heads.n_heads * max(eager, graphed, shared) * (heads.head_dim + 1) * 4)


def plan_bytes(n_seqs: int) -> int:
    """What FlashInfer plans a decode batch of a graph in, on the device and pinned: see `PrefillPlan` there.

    Rows of prefixes count as sequences, and so do the prefixes.
    """
    n_items = max(_BLOCKS, 2 * n_seqs)
    return 4096 + _PLAN_BYTES * n_items + 8 * (n_seqs + 1)


def check_memory(need: Needed, free_bytes: int, limits: Capabilities, options: CudaOptions) -> None:
    """Raises PieError `invalid-argument`, with what would fit, where the model needs more than is free."""
    if need.total <= free_bytes:
        return
    left = free_bytes - need.weights - need.work - need.graphs
    n_pages = left // need.page - 1 - AT_ONCE
    what = (
        f"the model needs {_gib(need.total)} of device memory (weights {_gib(need.weights)}, keys and values {_gib(need.pages)}, "
        f"batches {_gib(need.work)}, graphs {_gib(need.graphs)}), and {_gib(free_bytes)} are free on {options.device}"
    )
    option = "kv_bytes" if options.n_pages is None else "n_pages"
    if n_pages >= 1:
        fits = n_pages * need.page if options.n_pages is None else n_pages
        raise PieError("invalid-argument", f"{what}; lower {option} to {fits}, which fits", {"option": option})
    if options.graph_seqs:
        raise PieError("invalid-argument", f"{what}; lower graph_bytes, or set graph_seqs to 0", {"option": "graph_bytes"})
    one = f"weights, batches of {limits.max_batch_tokens} tokens and one page are more than that"
    raise PieError("invalid-argument", f"{what}: {one}; lower max_batch_tokens, or use a smaller model", {"option": "max_batch_tokens"})


def _gib(n_bytes: int) -> str:
    return f"{n_bytes / (1 << 30):.2f} GiB"
