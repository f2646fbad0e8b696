"""How a command ends its process: what was written comes out, exit functions are called, and no thread holds it."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import atexit, os, sys, threading
from pie.cli import _leave

atexit.register(print, 'asked to be called')
atexit.register(print, 'told', file=sys.stderr)
threading.Thread(target=os.read, args=(0, 1)).start()
print('written', end=' ')
_leave(int(sys.argv[1]))
"""


@pytest.mark.parametrize("exit_code", [0, 1, 130, 143])
def test_nothing_is_lost_and_no_thread_is_waited_for(exit_code: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CODE, str(exit_code)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as ending:
        # Its stdin stays open: the thread that reads it never returns.
        assert ending.wait(60) == exit_code
        assert ending.stdout is not None
        assert ending.stderr is not None
        assert ending.stdout.read() == "written asked to be called\n"
        assert ending.stderr.read() == "told\n"
