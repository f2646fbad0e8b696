"""Makes launches share what the snapshot holds: they write to few of its pages.

All that relies on how this version of CPython works inside is below this module. A plain snapshot
(`inferlet._runtime.settings`) does without it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from inferlet._runtime import heap, immortal, warmup


def share(run: Callable[[str], str], forget: Callable[[], None]) -> None:
    """Rehearses launches through `run`, and fixes what is alive then. `forget` drops what they left behind."""
    warmup.rehearse(run)
    forget()
    # Twice: what the first round frees may free more.
    gc.collect()
    gc.collect()
    immortal.list_objects()
    # Gives back what the interpreter keeps of objects that died, for the next ones.
    gc.collect()
    heap.fill_holes()
