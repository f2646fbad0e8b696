"""Runs programs for the tests of another language: a line of JSON on stdin a run, a line on stdout an answer.

A request has `program`, a path, and may have `input`, `args`, `seed`, `messages`, `limits`, `token_budget`, `credits`,
`programs` and `id`. The answer has its `id`, and `value`, `stdout`, `stderr`, `sent`, `messages`, `files` (base64) and
`launch_seed` (a text), or `error` with `code`, `message` and `details`. One runs after another. The end of stdin ends
the worker.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, BinaryIO, cast

from pie.errors import PieError
from pie.inprocess import LaunchOptions
from pie.testing.engines import engine
from pie.testing.runner import Run, Runner

_OPTIONS = ("args", "credits", "limits", "programs", "seed", "token_budget")
_FIELDS = ("id", "program", "input", "messages", *_OPTIONS)


def work(requests: Iterable[bytes], answers: BinaryIO, *, model: str | None = None, replies: Mapping[str, str] | None = None) -> None:
    """Answers each request, until there are no more.

    Raises PieError where the engine cannot be opened, as `pie.testing.engine`.
    """
    with engine(model, replies=replies) as opened:
        for number, line in zip(count(1), requests, strict=False):
            # A user of its own: a run finds nothing of those before.
            answer = _answered(Runner(opened, username=f"test-{number}"), line)
            # Characters beyond ASCII are escaped: some readers take more of them for the end of a line than others.
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()


def _answered(run: Runner, line: bytes) -> dict[str, Any]:
    number = None
    try:
        request = _request(line)
        number = request.get("id")
        return {"id": number, **_told(run(request["program"], request.get("input"), messages=_messages(request), **_options(request)))}
    except PieError as error:
        return {"id": number, "error": {"code": error.code, "message": error.message, "details": _plain(error.details)}}
    # What a list or an object of the request holds, or a long seed.
    except (TypeError, ValueError, OverflowError) as error:
        return {"id": number, "error": {"code": "invalid-argument", "message": f"a request cannot be run: {error}", "details": {}}}


def _request(line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise PieError("invalid-argument", f"a request is not JSON: {error}; write one object a line") from error
    if not isinstance(request, dict) or not isinstance(request.get("program"), str):
        raise PieError("invalid-argument", "a request has no program; give an object with the path of one as `program`")
    if unknown := [name for name in request if name not in _FIELDS]:
        raise PieError("invalid-argument", f"a request has no field {unknown[0]!r}; there are {', '.join(_FIELDS)}")
    return request


def _messages(request: Mapping[str, Any]) -> list[str]:
    messages = request.get("messages") or []
    if not isinstance(messages, list):
        raise PieError("invalid-argument", f"messages is of type {type(messages).__name__}; give a list of texts")
    return messages


def _options(request: Mapping[str, Any]) -> LaunchOptions:
    given = {name: request[name] for name in _OPTIONS if request.get(name) is not None}
    if isinstance(seed := given.get("seed"), str):
        # Numbers of JavaScript hold 53 bits.
        if not seed.isdecimal():
            raise PieError("invalid-argument", f"seed is {seed!r}; give a whole number")
        given["seed"] = int(seed)
    for name, kind, expected in _KINDS:
        if name in given and not isinstance(given[name], kind):
            raise PieError("invalid-argument", f"{name} is of type {type(given[name]).__name__}; give {expected}")
    return cast("LaunchOptions", given)


_KINDS: tuple[tuple[str, type, str], ...] = (
    ("args", list, "an array of texts"),
    ("limits", dict, "an object of limits by their names"),
    ("programs", dict, "an object of paths by the names of the programs"),
)


def _told(run: Run) -> dict[str, Any]:
    return {
        "value": run.value,
        "stdout": run.stdout,
        "stderr": run.stderr,
        "sent": run.sent,
        "messages": run.messages,
        "files": [base64.b64encode(data).decode("ascii") for data in run.files],
        "launch_seed": str(run.launch_seed),
    }


def _plain(details: Mapping[str, object]) -> dict[str, object]:
    """What JSON holds of the details of an error."""
    return {name: value if isinstance(value, str | int | float | None) else str(value) for name, value in details.items()}
