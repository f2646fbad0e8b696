"""What a program may know of the engine and of its own launch, and how it starts others."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from typing import Any

from wit_world.imports import runtime as _runtime

from inferlet import _arguments, _json
from inferlet._wait import block_on, flush_output, in_loop, resolve
from inferlet.errors import ArgumentTypeError, ErrorCode, InferletError, host

__all__ = ["Child", "args", "instance_id", "launch_seed", "models", "spawn", "username", "version"]


awaited: list[str] = []
"""The program of the last child that was awaited by itself, and not by its `wait`."""


def models() -> list[str]:
    """Names of the loaded models, in the order of the configuration; the first is the default."""
    return list(_runtime.models())


def version() -> str:
    """Version of the engine, as `major.minor.patch`."""
    return _runtime.version()


def instance_id() -> str:
    """Names this engine, not the process that runs in it."""
    return _runtime.instance_id()


def username() -> str:
    """The user who launched the program; `anonymous` where nobody gave a name."""
    return _runtime.username()


def args() -> list[str]:
    """The launch arguments as they were typed after `--`, unparsed."""
    return list(_runtime.args())


def launch_seed() -> int:
    """The seed from which every unseeded draw of this launch derives. Launching with the same seed repeats the run."""
    return _runtime.launch_seed()


def spawn(  # noqa: PLR0913  # keywords of one launch
    program: str,
    args: object = None,
    *,
    argv: Sequence[str] = (),
    output: bool = False,
    detached: bool = False,
    seed: int | None = None,
    token_budget: int | None = None,
    credits: float | None = None,  # noqa: A002  # what all clients call it
) -> Child:
    """Starts a program as a child, with a JSON value as its input.

    The program is one that the launch names (`pie run --program NAME=FILE`), `.` for this program, the path of a file
    or folder of this program, or an installed one as `name` or `name@version`.

    A child has the user of this program, at most its limits and budgets, and ends with it. `argv` are the arguments
    that it reads unparsed; without `args` they become its input too, as behind `--` on the command line. What it prints
    and sends becomes output of this program with `output`; its standard error always does. A `detached` one goes on
    when this program has ended, which only a server allows. Without a `seed` its launch seed follows from that of this
    program and from how many children it had before. At most `token_budget` tokens enter its contexts and those of its
    own children; they count for this program too. It begins with `credits` in each model, which come from those of this
    program, or without them with half of what there is; what is left at its end returns.

    Raises `InferletError` with the code `unknown-program`, or `limit-child-depth`, `limit-children` or `limit-spawns`
    where there are too many.
    """
    options = _runtime.SpawnOptions(
        output=bool(output),
        detached=bool(detached),
        seed=None if seed is None else _arguments.seed("seed", seed),
        token_budget=None if token_budget is None else _arguments.seed("token_budget", token_budget),
        credits=None if credits is None else _arguments.number("credits", credits),
    )
    arguments = [_arguments.text(f"argv[{index}]", argument) for index, argument in enumerate(argv)]
    text = _json.dumps(args, "args", ErrorCode.INVALID_ARGUMENT)
    flush_output()
    return Child(host(_runtime.spawn, _arguments.text("program", program), text, arguments, options), program)


class Child:
    """A process that this program has started. Awaiting it gives what it returned, or raises its error.

    It goes on when nobody holds it any more, and ends with this program. Its error has a note that names the child; the
    traceback of the child stands on standard error, and in `error.details["traceback"]`.
    """

    def __init__(self, raw: _runtime.Child, program: str) -> None:
        self._raw = raw
        self._program = program

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._raw.pid()

    def wait(self) -> Any:
        """Awaits its end: gives what it returned, or raises the error that it ended with, each time anew.

        Outside of a running event loop it blocks and returns the value itself. Cancelling the wait leaves the child
        running.
        """
        if in_loop():
            return self._value()
        try:
            return json.loads(block_on(self._raw.wait()))
        except InferletError as error:
            raise self._named(error) from None

    def cancel(self) -> None:
        """Ends it with the error `cancelled`, unless it has ended before."""
        self._raw.cancel()

    def __await__(self) -> Generator[Any, Any, Any]:
        awaited[:] = [self._program]
        return self._value().__await__()

    def __str__(self) -> str:
        """Refuses to be put into a text: what it returns has to be awaited."""
        message = "a child is not a text; await it for what it returned: await child"
        raise ArgumentTypeError(ErrorCode.INVALID_ARGUMENT, message)

    async def _value(self) -> Any:
        try:
            text: str = await resolve(self._raw.wait(), self)
        except InferletError as error:
            raise self._named(error) from None
        return json.loads(text)

    def _named(self, error: InferletError) -> InferletError:
        """The error of the child, which says whose it is: of several that a `gather` awaits it is the first."""
        error.add_note(f"raised by the child {self._program!r}, process {self.pid}")
        return error
