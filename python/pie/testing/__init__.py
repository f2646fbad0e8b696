"""Tests of programs: they run in an engine of this process, by default on the dummy driver, in milliseconds.

With pytest the fixture `pie_run` does it; elsewhere `with pie.testing.engine() as engine: run = Runner(engine)`.
"""

from pie.errors import PieError
from pie.inprocess import Engine, source
from pie.testing.engines import engine
from pie.testing.runner import Run, Runner

__all__ = ["Engine", "PieError", "Run", "Runner", "engine", "source"]
