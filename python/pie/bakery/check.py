"""Checks a program before it is given out.

What could not run anywhere is refused here, and not when somebody launches it.
"""

from __future__ import annotations

from collections.abc import Callable

from pie import _engine
from pie.compiler import COMMAND
from pie.config import Flags, load
from pie.config.environment import with_libraries
from pie.errors import PieError
from pie.programs import RUNTIMES


def check(program: bytes, tell: Callable[[], None] | None = None) -> None:
    """Refuses a program that cannot run, without running any of it.

    Sources are compiled by the runtime of their language, a component by the engine, which keeps what it compiled for
    launches to come. `tell` is called before a component or a runtime is compiled for the first time, which may take
    half a minute. Raises PieError `invalid-program`, with file, line and column of sources that do not parse, and what
    else `Engine.check` raises.
    """
    config = load(Flags())
    try:
        config.engine.cache_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"the cache folder {str(config.engine.cache_dir)!r} cannot be made ({reason}); set engine.cache_dir to a folder of yours"
        raise PieError("invalid-config", message) from error
    engine = _engine.Engine(
        cache_dir=str(config.engine.cache_dir),
        runtimes_dir=str(RUNTIMES),
        compiler=with_libraries(COMMAND),
        settings={"stack_bytes": config.engine.stack_bytes, "max_processes": config.engine.max_processes},
        limits=config.limits,
    )
    try:
        if tell is not None and not engine.is_prepared(program):
            tell()
        engine.check(program)
    finally:
        engine.stop()
