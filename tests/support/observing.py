"""Records what a driver computed, by context: the proof that an answer did not depend on company or chunking."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pie.batch import Batch


@dataclass
class Trace:
    """What one context fed to the model, and the logits it got."""

    tokens: dict[int, int] = field(default_factory=dict)
    """Token by position."""
    rows: dict[int, bytes] = field(default_factory=dict)
    """Digest of the logits row by position."""
    batch_ids: list[int] = field(default_factory=list)

    def fed(self) -> list[int]:
        """The tokens in order of their positions."""
        return [self.tokens[position] for position in sorted(self.tokens)]


class Recorder:
    """The observer of a driver loop; not shared between loops."""

    def __init__(self) -> None:
        self.traces: dict[int, Trace] = {}
        self.widths: list[int] = []
        self.live: list[frozenset[int]] = []

    def __call__(self, batch: Batch, logits: Any) -> None:
        """Takes the batch apart by sequence."""
        n_seqs = len(batch.qo_indptr) - 1
        self.widths.append(n_seqs)
        contexts = [int(batch.seq_context[seq_idx]) for seq_idx in range(n_seqs)]
        self.live.append(frozenset(contexts))
        for seq_idx, context in enumerate(contexts):
            trace = self.traces.setdefault(context, Trace())
            trace.batch_ids.append(batch.id)
            for token_idx in range(int(batch.qo_indptr[seq_idx]), int(batch.qo_indptr[seq_idx + 1])):
                trace.tokens[int(batch.positions[token_idx])] = int(batch.tokens[token_idx])
        owners = np.searchsorted(np.asarray(batch.qo_indptr), np.asarray(batch.row_token), side="right") - 1
        for row_idx, token_idx in enumerate(batch.row_token):
            row = np.ascontiguousarray(logits[row_idx])
            digest = hashlib.sha256(row.tobytes()).digest()
            self.traces[contexts[int(owners[row_idx])]].rows[int(batch.positions[int(token_idx)])] = digest
