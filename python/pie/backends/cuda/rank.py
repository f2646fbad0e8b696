"""The process of a rank: `python -P -m pie.backends.cuda.rank ORDER`, which the first rank starts.

It opens its share of the model, and launches each batch that the first rank launches. It ends with the first rank, and
leaves signals to it.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import traceback
from collections import deque
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pie import driver_process
from pie.backends.cuda.device import first_line
from pie.backends.cuda.group import Ranks
from pie.backends.cuda.launching import Last, Launcher
from pie.backends.cuda.layout import Share
from pie.backends.cuda.options import CudaOptions
from pie.backends.cuda.order import Order
from pie.backends.cuda.share import Plan
from pie.backends.cuda.staging import SLOTS
from pie.batch import Batch
from pie.errors import PieError
from pie.models.loader import load_checkpoint

LOST = 75
"""The exit code of a rank that could not go on (EX_TEMPFAIL)."""


def main(order: Order) -> int:
    """The whole process; returns its exit code."""
    if not driver_process.begin(order.parent):
        return 0
    os.set_inheritable(order.connection, False)
    sys.path[:] = order.path
    threading.Thread(target=_end_with_first, args=(order.connection,), daemon=True).start()
    connection = Connection(order.connection)
    try:
        opened = _opened(order, connection)
        if opened is None:
            return LOST
        _serve(*opened, connection)
    except (EOFError, OSError):
        pass  # the first rank is gone, and so is whoever this could be told
    except Exception as error:
        traceback.print_exc()
        with suppress(OSError):  # whoever would be told may be why
            # Programs are told it: what torch says of a device names no path of the machine, what others say may.
            said = f": {first_line(error)}" if isinstance(error, RuntimeError) else ""
            _say(connection, "lost", f"{type(error).__name__}{said}")
        return LOST
    return 0


def _end_with_first(connection: int) -> None:
    """Ends the process when the first rank is gone: what waits for it on a device would wait for ever.

    Where this thread gets no turn, for another one waits for the device in the middle of a call, the system ends it.
    """
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    poll.poll()
    # Nobody is left whom anything could be told.
    os._exit(0)


def _opened(order: Order, connection: Connection) -> tuple[Launcher, Any] | None:
    """The share of this rank and its device; None where it cannot be opened, which is said."""
    options = CudaOptions(**order.options)
    try:
        plan = Plan.of(load_checkpoint(Path(order.folder)), options, Share(order.rank, options.tensor_parallel))
        parts = plan.parts()
        _say(connection, "ready")
        connection.recv_bytes()
        torch.set_num_threads(1 if options.device == "cpu" else torch.get_num_threads())
        group = Ranks(order.rank, options.tensor_parallel, Path(order.meeting), parts.device.name)
        launcher, _ = plan.open(parts, group)
    except PieError as error:
        _say(connection, "error", error.code, error.message, dict(error.details))
        return None
    _say(connection, "open")
    return launcher, parts.device


def _serve(launcher: Launcher, device: Any, connection: Connection) -> None:
    """Launches batches until the first rank is gone."""
    last: Last | None = None
    begun: deque[Any] = deque()
    while True:
        content = connection.recv_bytes()
        batch = Batch(np.frombuffer(content[1:], np.uint32))
        # The memory of a batch is used again two batches later.
        if len(begun) == SLOTS:
            done = begun.popleft()
            device.synchronize(done)
            launcher.step.pool.ended(done)
        with torch.inference_mode():
            came = launcher.begin(launcher.look(batch, last if content[0] else None))
        begun.append(came.done)
        last = Last(batch.id, came.n_rows)


def _say(connection: Connection, *said: object) -> None:
    connection.send_bytes(json.dumps(said).encode())


if __name__ == "__main__":
    sys.exit(main(Order(**json.loads(sys.argv[1]))))
