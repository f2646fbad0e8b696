"""A process that compiles one program for an engine, within limits, and ends: `python -m pie.compiler ORDER`."""

from __future__ import annotations

import sys

from pie import _engine

COMMAND = (sys.executable, "-P", "-m", "pie.compiler")
"""What an engine runs. `-P` keeps the folder in which the engine was started out of the imports."""

if __name__ == "__main__":
    sys.exit(_engine.compile_worker(sys.argv[1]))
