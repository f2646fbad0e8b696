"""What every process of a driver does first: it leaves signals to the engine, ends with it, and goes before it."""

from __future__ import annotations

import faulthandler
import signal
from contextlib import suppress
from pathlib import Path

from pie import _engine

_OOM_SCORE = "500"
"""Where memory runs out the driver goes before the engine, which can start it again."""


def begin(parent: int) -> bool:
    """Ties this process to the thread of `parent` that started it. False: that process has ended already.

    It is the system that ends it, so that it ends also where no Python runs any more: a thread may wait for a device
    and hold the interpreter.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if not _engine.die_with_parent(parent):
        return False
    faulthandler.enable()
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE, encoding="ascii")
    return True
