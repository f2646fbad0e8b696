"""Shows that long work goes on: a spinner on a terminal, one line elsewhere. Always on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from pie.cli.interrupts import raised

if TYPE_CHECKING:
    from pie.config import Config


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Names the work while the body runs; Ctrl-C is an exception in it, as by `raised`.

    The function that it gives names other work from there on.
    """
    if not sys.stderr.isatty():
        _say(what)
        with raised():
            yield _say
        return
    from rich.console import Console  # costs more than most runs need

    with raised(), Console(stderr=True).status(f"{what}...") as status:
        yield lambda other: status.update(f"{other}...")


def _say(what: str) -> None:
    print(f"{what}...", file=sys.stderr, flush=True)


def loading(config: Config) -> AbstractContextManager[object]:
    """Names the models while the body loads them, on a terminal.

    The embedded model is not named: it is loaded before anybody could read its name.
    """
    names = [model.name for model in config.models if not model.is_embedded]
    return working(f"Loading {', '.join(names)}") if names and sys.stderr.isatty() else nullcontext()


def note_templates(config: Config) -> None:
    """Says of each model that brings no chat template that it is served with the plain one, a line on stderr each."""
    from pie.models.description import template_file

    for model in config.models:
        if not model.is_embedded and template_file(model.folder) is None:
            print(
                f"the model {model.name} has no chat template, and gets the plain one: {model.folder} holds no chat_template.jinja "
                "and no tokenizer_config.json with a chat_template; fetch it again with all of its files",
                file=sys.stderr,
                flush=True,
            )
