"""What copying pages costs on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable

from pie.backends.base import Capabilities

_N_PAGES = 8
_N_ROUNDS = 4


def measure_copy_ns(copy: Callable[[int, int], object], limits: Capabilities) -> int:
    """Nanoseconds that `copy(page, host slot)` takes, at least 1; 0 where there is no host memory.

    A few pages are copied, in rounds of which the fastest counts: in the first the memory is taken from the system, which happens once.
    """
    n = min(_N_PAGES, limits.n_pages, limits.host_pages)
    if n == 0:
        return 0
    times = []
    for _ in range(_N_ROUNDS):
        start = time.perf_counter_ns()
        for page in range(n):
            copy(page, page)
        times.append(time.perf_counter_ns() - start)
    return max(1, min(times) // n)
