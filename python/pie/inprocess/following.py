"""Follows a program from its launch to its end: what it receives, what is shown of it, and its value."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from pie import checks
from pie.errors import PieError
from pie.events import AnyEvent
from pie.inprocess.output import Output
from pie.inprocess.process import Process

OnEvent: TypeAlias = Callable[[AnyEvent], object]
"""What is called with each event of a program, its last included."""
Message: TypeAlias = str | bytes
"""What a program receives: a text by `session.receive`, bytes by `session.receive_file`."""


def followed(process: Process, messages: Iterable[Message], on_event: OnEvent | None) -> Any:
    """Sends messages to a process and shows its events to its end; returns its value.

    Without `on_event` they are shown by `Output`. Whatever leaves this early, as Ctrl-C does, ends the program.
    """
    show = on_event or Output().show
    try:
        sending = _Sending(process, messages)
        for event in process.events():
            show(event)
    except BaseException:
        process.cancel()
        raise
    sending.check()
    return process.result()


async def followed_async(process: Process, messages: Iterable[Message], on_event: OnEvent | None) -> Any:
    """As `followed`, and other tasks run meanwhile; a task that is cancelled ends the program."""
    show = on_event or Output().show
    try:
        sending = _Sending(process, messages)
        async for event in process.events():
            show(event)
    except BaseException:
        process.cancel()
        raise
    sending.check()
    return process.result()


class _Sending:
    """Sends messages to a process, then the end of the session; on a thread, since the program may not read them."""

    def __init__(self, process: Process, messages: Iterable[Message]) -> None:
        if isinstance(messages, str | bytes):
            raise checks.refused("messages", messages, "a list of str (messages) and bytes (files)")
        given = list(messages)
        for index, message in enumerate(given):
            if not isinstance(message, str | bytes):
                raise checks.refused(f"messages[{index}]", message, "a str, which is a message, or bytes, which are a file")
        self._process = process
        self._failure: PieError | None = None
        if given:
            threading.Thread(target=self._send, args=(given,), name=f"pie-messages-{process.pid}", daemon=True).start()
        else:
            process.close_input()

    def check(self) -> None:
        """Raises what kept a message from being sent, but that the program had ended."""
        if self._failure is not None:
            raise self._failure

    def _send(self, messages: list[Message]) -> None:
        try:
            for message in messages:
                if isinstance(message, str):
                    self._process.send(message)
                else:
                    self._process.send_file(message)
            self._process.close_input()
        except PieError as error:
            if error.code != "session-closed":
                self._failure = error
                self._process.cancel()
