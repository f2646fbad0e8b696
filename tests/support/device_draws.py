"""What the cuda back end draws from rows of logits, on torch's CPU."""

from __future__ import annotations

import torch

from pie.backends.cuda.calls import Calls
from pie.backends.cuda.device import HostDevice
from pie.backends.cuda.drawing import Drawing
from pie.backends.cuda.rows import check_rows
from pie.backends.cuda.staging import Staging
from support.random_rows import RandomRows


def drawn_by(calls: Calls, rows: RandomRows) -> tuple[list[int], list[int]]:
    """All draws, and the first of each row."""
    vocab_size, batch = rows.logits.shape[1], rows.arena()
    drawing = Drawing(calls, Staging(HostDevice(), 64), vocab_size)
    with torch.inference_mode():
        drawn = drawing.draw(batch, check_rows(batch, vocab_size), torch.from_numpy(rows.logits))
    return drawn.tokens.tolist(), drawn.firsts.tolist()
