"""`pie test-worker`: runs programs for the tests of a project in JavaScript or TypeScript."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path

from pie.errors import PieError


def prepare(project: Path) -> None:
    """Makes the link by which the project finds what its tests import."""
    from pie.bakery.sdk import link

    link(project)


def work(model: str | None, replies: str | None) -> None:
    """Runs what stdin asks for, to its end."""
    from pie.testing.worker import work as work_until_end

    given = None if replies is None else _replies(replies)
    answers = sys.stdout.buffer
    # What is printed beside the answers is not for whoever reads them.
    with redirect_stdout(sys.stderr):
        work_until_end(sys.stdin.buffer, answers, model=model, replies=given)


def _replies(text: str) -> Mapping[str, str]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PieError("invalid-argument", f"--replies is not JSON: {error}; give an object of texts") from error
    if not isinstance(given, dict):
        raise PieError("invalid-argument", f"--replies is of type {type(given).__name__}; give an object of texts")
    return given
