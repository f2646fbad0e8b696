"""A process that works on one program for an engine, within bounds, and ends.

It compiles a component, or removes types from scripts.
"""

import sys

COMMAND = (sys.executable, "-I", "-S", __file__)
"""What an engine runs.

It is for speed that it takes neither `site` nor the environment, and for safety that it takes no folder but the one in
which this file lies.
"""

if __name__ == "__main__":
    sys.path.insert(0, __file__.rpartition("/pie/")[0])

    from pie import _engine

    _engine.compile_worker()
