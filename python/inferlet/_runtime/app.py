"""The component's entry: what the engine calls to run a program from source.

Making its instance is the build of the snapshot: the standard library is loaded, launches are rehearsed, and what is
alive then is frozen and never counted, so that launches share its pages (`sharing.py`; a plain snapshot does without).
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import random
import sys
import warnings
from collections.abc import Callable

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.run import Failure
from wit_world.imports import runtime as _runtime
from wit_world.imports import session as _session
from wit_world.imports import source as _source

from inferlet import _async  # noqa: F401  # a program finds only what the snapshot has
from inferlet._runtime import check, leftovers, report, settings, standard, stdio, unavailable
from inferlet._runtime.bundle import Bundle
from inferlet._runtime.program import run_program
from inferlet._wait import EventLoop
from inferlet.errors import InferletError

# The instance ends with the launch: freeing what a failed program held would only cost time, and recurse as deep as the
# program did.
_ended: list[BaseException] = []


class Run(exports.Run):
    """The export `pie:inferlet/run`. Its one instance is made before the snapshot, when every import has ended."""

    def __init__(self) -> None:
        _prepare(self.run)

    def run(self, input: str) -> str:  # noqa: A002 - the name in the interface
        """Runs the program of this launch once; a program that fails raises its failure."""
        # The generator's state is part of the snapshot; the bytes are a stream from the launch seed.
        random.seed(int.from_bytes(os.urandom(32), "little"))
        stdio.install(_session.print)
        bundle: Bundle | None = None
        try:
            bundle = Bundle({file.path: file.content for file in _source.files()}, _source.entry())
            bundle.install()
            # As a script finds them on any machine, for `argparse` and its like.
            sys.argv = [bundle.entry, *_runtime.args()]
            return _run(bundle, input)
        except BaseException as error:
            raise Err(_failure(error, bundle)) from None
        finally:
            stdio.flush()
            if bundle is not None:
                bundle.remove()


class Check(exports.Check):
    """The export `pie:inferlet/check`."""

    def check(self) -> None:
        """Looks at the program of this launch; what is wrong with it is raised as a text."""
        try:
            check.check(Bundle({file.path: file.content for file in _source.files()}, _source.entry()))
        except (check.FaultError, InferletError) as fault:
            raise Err(str(fault).encode(errors="replace").decode()) from None


def _run(bundle: Bundle, input_json: str) -> str:
    try:
        return run_program(bundle, input_json)
    except SystemExit as exit_:
        if exit_.code is None or exit_.code == 0:
            return "null"
        raise


def _failure(error: BaseException, bundle: Bundle | None) -> Failure:
    _ended.append(error)
    stdio.flush()
    if bundle is not None:
        bundle.remember_lines()
    described = report.describe(error, bundle.files if bundle is not None else ())
    stdio.report(described.traceback)
    return Failure(described.kind, described.message, described.code, described.traceback)


def _use_engine_loop() -> None:
    """Makes `asyncio.run` in a script run on the engine's loop."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        policy = asyncio.DefaultEventLoopPolicy()
        policy.new_event_loop = EventLoop  # type: ignore[method-assign]
        asyncio.set_event_loop_policy(policy)


def _prepare(run: Callable[[str], str]) -> None:
    standard.load()
    unavailable.install()
    leftovers.install()
    _use_engine_loop()
    if not settings.PLAIN:
        # Not loaded otherwise: another version of CPython may not even have what it looks for.
        importlib.import_module("inferlet._runtime.sharing").share(run, _ended.clear)
    gc.freeze()
