"""The words that say how a row is drawn from: `row_sampler` of a batch, [N, SAMPLER_WORDS] for N rows."""

from __future__ import annotations

import numpy as np

from pie.backends.checks import Flags
from pie.batch_layout import U32

SAMPLER_WORDS = 8
"""Of a row: kind, temperature, top-k, top-p, min-p, two of the seed, position."""
TEMPERATURE, TOP_K, TOP_P, MIN_P, SEED_LOW, SEED_HIGH, POSITION = range(1, SAMPLER_WORDS)
_ONE = 0x3F800000
"""The bits of the float 1."""


def random_rows(sampler: U32) -> Flags:
    """Which rows are drawn from at random; of the others the greatest logit is taken."""
    # The sign of a zero does not count.
    found: Flags = (sampler[:, TEMPERATURE] << np.uint32(1) != 0) & (sampler[:, TOP_K] != 1)
    return found


def filtered_rows(sampler: U32) -> Flags:
    """Which rows have top-k or top-p, for which their vocabulary is sorted."""
    found: Flags = (sampler[:, TOP_K] != 0) | (sampler[:, TOP_P] < _ONE)
    return found
