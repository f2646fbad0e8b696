"""What copying pages costs on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable

from pie.backends.base import Capabilities

_MIN_PAGES = 8
_MIN_BYTES = 4 << 20
"""More than the caches next to a core hold, as pages that are displaced lie far from it."""
_N_ROUNDS = 4

Copy = Callable[[int, int], object]
"""Copies a page, and returns when that is done: `(source, destination)`."""


def measure_copy_ns(swap_out: Copy, swap_in: Copy, limits: Capabilities, page_bytes: int) -> int:
    """Nanoseconds that a page takes to host memory or back, at least 1; 0 where there is no host memory.

    Pages are as they were before.

    Some pages are copied there and back, in rounds of which the fastest counts: in the first the memory is taken from
    the system, which happens once.
    """
    n = min(max(_MIN_PAGES, _MIN_BYTES // page_bytes), limits.n_pages, limits.host_pages)
    if n == 0:
        return 0
    times = []
    for _ in range(_N_ROUNDS):
        start = time.perf_counter_ns()
        for page in range(n):
            swap_out(page, page)
        for page in range(n):
            swap_in(page, page)
        times.append(time.perf_counter_ns() - start)
    return max(1, min(times) // (2 * n))
