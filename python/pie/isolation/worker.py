"""The process of a driver: `python -P -m pie.isolation.worker ORDER`, which an engine starts.

It opens the driver, says what that serves, and runs batches until the engine is gone. It is killed with the engine, and
leaves signals to it: Ctrl-C and SIGTERM reach every process of a terminal or a service, and what runs may have to come
to its end.
"""

from __future__ import annotations

import json
import os
import pickle
import socket
import sys
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pie import _engine, driver_process
from pie.backends.base import (
    Answer,
    Command,
    CommandedDriver,
    Drawn,
    DriverError,
    DriverLostError,
    FailedSequencesError,
    FollowingDriver,
    RefusedAdapterError,
    UnsupportedError,
    WritingDriver,
)
from pie.batch import Batch
from pie.batch_layout import U32
from pie.errors import PieError
from pie.isolation import wire

if TYPE_CHECKING:
    from pie.backends.base import Driver

LOST = 75
"""The exit code where the device of the driver is gone for this process: another one may have it (EX_TEMPFAIL)."""

_Logits: TypeAlias = "npt.NDArray[np.float32]"


@dataclass(frozen=True)
class Order:
    """What the process is started with."""

    parent: int
    """The engine."""
    connection: int
    """The socket to it."""
    channel: Sequence[int]
    """The descriptors of the shared memory."""
    path: Sequence[str]
    """Where modules are imported from."""

    def written(self) -> str:
        """As an argument of the command line."""
        return json.dumps(asdict(self))


def main(order: Order) -> int:
    """The whole process; returns its exit code."""
    if not driver_process.begin(order.parent):
        return 0
    _engine.take_short_turns()
    _engine.keep_small_pages(alone=False)  # which the server may have asked for; weights are streamed from huge ones
    for descriptor in (order.connection, *order.channel):
        os.set_inheritable(descriptor, False)
    sys.path[:] = order.path
    connection = socket.socket(fileno=order.connection)
    try:
        opening: Callable[[], Driver] = pickle.loads(wire.receive(connection))
        driver = _opened(opening, connection)
        if driver is None:
            return 1
        try:
            limits = driver.capabilities
            end = _engine.DriverEnd(order.channel, limits.vocab_size, wire.LOOKING_S)
            wire.send(connection, json.dumps({"capabilities": asdict(limits)}).encode())
            _Serving(end, driver, connection.fileno()).run()
        except DriverLostError as lost:
            # With this process its batches end, and the engine starts another one.
            print(f"the driver is lost: {lost}", file=sys.stderr, flush=True)
            with suppress(OSError):  # the engine may be gone
                wire.send(connection, json.dumps({"lost": str(lost)[: wire.MAX_REASON_CHARACTERS]}).encode())
            return LOST
        finally:
            driver.close()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the engine is gone, and so is whoever this could be told
    return 0


def _opened(opening: Callable[[], Driver], connection: socket.socket) -> Driver | None:
    """The driver; none where it cannot be opened, which is said."""
    try:
        return opening()
    except PieError as error:
        said: list[object] = [error.code, error.message, dict(error.details)]
    except Exception as error:
        traceback.print_exc()
        said = ["internal", f"the driver cannot be opened: {type(error).__name__}: {error}", {}]
    wire.send(connection, json.dumps({"error": said}, default=str).encode())
    return None


class _Begun(NamedTuple):
    room: _Logits
    """Where the rows go."""
    answer: Callable[[], Answer]
    is_command: bool = False


class _Serving:
    """Runs the batches that come, and carries out the commands."""

    def __init__(self, end: _engine.DriverEnd, driver: Driver, host: int) -> None:
        self._end = end
        self._driver = driver
        self._host = host
        self._vocab_size = driver.capabilities.vocab_size
        self._writer = driver if isinstance(driver, WritingDriver) else None
        self._follower = driver if driver.capabilities.follows and isinstance(driver, FollowingDriver) else None
        self._words: dict[int, U32] = {}
        self._rooms: dict[int, _Logits] = {}
        """Of each slot, as long as it has room for as many."""

    def run(self) -> None:
        """Until the engine is gone."""
        begun: deque[_Begun] = deque()
        depth = 1 if self._follower is None else 2
        while True:
            try:
                arrived = self._end.receive(self._host)
            except PieError as error:
                if error.code == "engine-stopped":
                    return
                raise
            if arrived is not None:
                begun.append(self._begin(*arrived))
                if len(begun) < depth:
                    continue
            self._finish(begun.popleft())

    def _begin(self, slot: int, n_words: int, n_most_words: int, n_most_rows: int) -> _Begun:
        words, room = self._words.get(slot), self._rooms.get(slot)
        if words is None or len(words) != n_most_words:
            words = self._words[slot] = np.frombuffer(memoryview(self._end.words(slot)), np.uint32)
        if room is None or len(room) != n_most_rows:
            room = self._rooms[slot] = np.frombuffer(memoryview(self._end.rows(slot)), np.float32).reshape(n_most_rows, self._vocab_size)
        command = wire.read_command(words)
        if command is not None:
            return _Begun(room, partial(self._carry_out, command), is_command=True)
        batch = Batch(words[:n_words])
        if self._follower is not None:
            try:
                return _Begun(room, self._follower.launch(batch))
            except DriverLostError:
                raise
            except BaseException as error:
                return _Begun(room, partial(_raise, error))
        if self._writer is not None:
            room = room[: batch.n_rows]
            return _Begun(room, partial(self._writer.run_into, batch, room))
        return _Begun(room, partial(self._driver.run, batch))

    def _carry_out(self, command: Command) -> Answer:
        if not isinstance(self._driver, CommandedDriver):
            raise UnsupportedError(f"there are no adapters on this driver, {self._driver.capabilities.backend}")
        self._driver.command(command)
        return np.empty((0, self._vocab_size), np.float32)

    def _finish(self, begun: _Begun) -> None:
        failures = None
        try:
            try:
                answer = begun.answer()
            except FailedSequencesError as failed:
                answer = failed.answer
                failures = json.dumps([(int(seq_idx), str(why)[: wire.MAX_REASON_CHARACTERS]) for seq_idx, why in failed.reasons.items()])
                if len(failures) > _engine.MAX_TEXT_BYTES:
                    raise DriverError(f"{len(failed.reasons)} sequences failed, too many to say which") from failed
            if isinstance(answer, Drawn):
                n_rows = self._put(answer.logits, begun.room)
                self._end.answer_drawn(n_rows, self._put_tokens(answer.tokens, begun.room, n_rows), failures)
            else:
                n_rows = len(answer) if answer is begun.room else self._put(answer, begun.room)
                self._end.answer(n_rows, failures)
        except DriverLostError:
            raise
        except BaseException as error:
            if begun.is_command and isinstance(error, UnsupportedError | RefusedAdapterError):
                self._end.fail(wire.refusal(error))
            else:
                self._end.fail(str(error) if isinstance(error, DriverError) else f"{type(error).__name__}: {error}")

    def _put(self, logits: Any, room: _Logits) -> int:
        """Copies rows to where the engine reads them; returns how many."""
        if not isinstance(logits, np.ndarray) or logits.dtype != np.float32 or not logits.flags.c_contiguous:
            found = f"{logits.dtype} {logits.shape}" if isinstance(logits, np.ndarray) else type(logits).__name__
            raise TypeError(f"the logits are {found}; answer float32 [rows, {self._vocab_size}], C-contiguous")
        if logits.size == 0:
            return 0
        if logits.shape[1:] != (self._vocab_size,):
            raise ValueError(f"the logits have the shape {list(logits.shape)}; answer [rows, {self._vocab_size}]")
        n_rows = min(len(logits), len(room))
        room[:n_rows] = logits[:n_rows]
        return n_rows

    def _put_tokens(self, tokens: Any, room: _Logits, n_rows: int) -> int:
        """Copies tokens behind the rows; returns how many."""
        if not isinstance(tokens, np.ndarray) or tokens.dtype != np.uint32 or tokens.ndim != 1:
            found = f"{tokens.dtype} {tokens.shape}" if isinstance(tokens, np.ndarray) else type(tokens).__name__
            raise TypeError(f"the tokens are {found}; answer uint32 [tokens]")
        behind = room.reshape(-1)[n_rows * self._vocab_size :].view(np.uint32)
        if len(tokens) > len(behind):
            raise ValueError(f"{len(tokens)} tokens were drawn, and {len(behind)} have room; answer as many as row_draws says")
        behind[: len(tokens)] = tokens
        return len(tokens)


def _raise(error: BaseException) -> _Logits:
    raise error


if __name__ == "__main__":
    sys.exit(main(Order(**json.loads(sys.argv[1]))))
