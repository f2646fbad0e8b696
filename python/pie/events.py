"""What a process tells its client: the same of an engine in this process and of a server."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from pie.errors import PieError, described


def _seq() -> int:
    """The number of the event, counted from 1 in each process.

    Two events that say the same are equal whatever their numbers.
    """
    return field(default=0, kw_only=True, compare=False, repr=False)


class Event:
    """The kinds of events; match on the classes below. Each has `seq`, its number, counted from 1 in each process."""

    @dataclass(frozen=True)
    class Stdout:
        """What the program sent or printed, verbatim.

        What was sent is one value an event; where prints are cut into events says nothing. Match on the text:
        `case Event.Stdout(text)`.
        """

        __match_args__ = ("text",)

        text: str
        form: Literal["text", "json"] | None = field(default=None, compare=False)
        """What `session.send` was given: a text, or a value, whose JSON `text` is. None for what was printed."""
        seq: int = _seq()

        @cached_property
        def value(self) -> Any:
            """The value that the program sent: of a JSON text what it holds, else the text.

            Raises PieError `invalid-argument` where Python cannot hold it, or where it is not JSON.
            """
            return _value(self.text, "sent") if self.form == "json" else self.text

    @dataclass(frozen=True)
    class Stderr:
        """What the program wrote to stderr, verbatim."""

        text: str
        seq: int = _seq()

    @dataclass(frozen=True)
    class Message:
        """What the program tells its client beside its output, by `session.message`."""

        text: str
        seq: int = _seq()

    @dataclass(frozen=True)
    class Notice:
        """What the engine itself says about the process, as that output was dropped while nobody read it."""

        text: str
        seq: int = _seq()

    @dataclass(frozen=True)
    class File:
        """A file that the program sent."""

        data: bytes
        seq: int = _seq()

    @dataclass(frozen=True)
    class Return:
        """The last event of a program that ended well. Match on its value: `case Event.Return(value)`."""

        __match_args__ = ("value",)

        text: str
        """The JSON text, as the program returned it."""
        seq: int = _seq()

        @cached_property
        def value(self) -> Any:
            """The value that the program returned.

            Raises PieError `invalid-argument` where Python cannot hold it (`text` can).
            """
            return _value(self.text, "returned")

    @dataclass(frozen=True)
    class Error:
        """The last event of a program that failed or was ended."""

        code: str
        message: str
        kind: str | None = None
        """The type of the error in the program's language; the code where the engine ended the program."""
        traceback: str = ""
        seq: int = _seq()


def _value(text: str, how: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"the value that the program {how} cannot be held by Python ({error}); read the text of the event"
        raise PieError("invalid-argument", message) from error


AnyEvent: TypeAlias = Event.Stdout | Event.Stderr | Event.Message | Event.Notice | Event.File | Event.Return | Event.Error
LastEvent: TypeAlias = Event.Return | Event.Error


def failure(last: Event.Error, pid: int) -> PieError:
    """The error of a program as an exception, for whoever waits for what process `pid` returns.

    It has the code of the program's error; `details` has the parts: `kind`, `message` and `traceback`, and the `pid`.
    """
    details = {"kind": last.kind, "message": last.message, "traceback": last.traceback, "pid": pid}
    return PieError(last.code, described(last.code, last.message, last.kind), details)
