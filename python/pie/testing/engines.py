"""An engine for tests, which leaves nothing behind and reads nothing of the user's but what it is told to."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from os import PathLike
from pathlib import Path

from pie.config import EngineConfig, ModelConfig
from pie.engine import Engine as _Engine
from pie.errors import PieError
from pie.inprocess import Engine


@contextmanager
def engine(
    model: str | PathLike[str] | None = None,
    *,
    replies: Mapping[str, str] | None = None,
    data_dir: str | PathLike[str] | None = None,
) -> Iterator[Engine]:
    """An engine while the body runs.

    Without a model the dummy driver answers: hashes of what it sees, the same in every run, in microseconds. Where the
    text that it sees holds a key of `replies`, it says the value; of several keys the one that stands last decides, ""
    fits every text, and where there are replies and none fits, it ends its turn. `model` is the name of a configured
    model, `pie-tiny` or a folder; it has no replies. What programs keep lies in `data_dir`, which is a temporary folder
    if not given.

    Raises PieError `invalid-argument`, `invalid-model` and `invalid-config`.
    """
    with ExitStack() as stack:
        folder = Path(data_dir) if data_dir is not None else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pie-test-")))
        if model is None:
            opened = _dummy(folder, _checked(replies))
        elif replies:
            message = f"replies are given by the dummy driver, and the model is {str(model)!r}; leave one of the two out"
            raise PieError("invalid-argument", message)
        else:
            opened = Engine(model, settings={"engine.data_dir": str(folder)})
        # It is closed before the folder goes.
        yield stack.enter_context(opened)


def _dummy(folder: Path, replies: Mapping[str, str]) -> Engine:
    made = _Engine(EngineConfig(data_dir=folder))
    try:
        made.add_model(options=ModelConfig(driver="dummy"), replies=replies)
    except BaseException:
        made.close()
        raise
    return Engine.of(made)


def _checked(replies: Mapping[str, str] | None) -> Mapping[str, str]:
    for seen, said in (replies or {}).items():
        if not (isinstance(seen, str) and isinstance(said, str)):
            message = f"replies has {seen!r}: {said!r}; give texts: what the model sees, and what it says then"
            raise PieError("invalid-argument", message)
    return replies or {}
