"""What of Python's standard library a program has nothing for: each use fails with words on what to use instead."""

from __future__ import annotations

import pytest

from pie.engine import Engine
from pie.programs import Source
from support.launching import python_source, run

REFUSALS = {
    "threads": ("import threading; threading.Thread(target=print).start()", "RuntimeError", "asyncio.gather"),
    "timers": ("import threading; threading.Timer(1, print).start()", "RuntimeError", "asyncio.gather"),
    "pools of threads": (
        "from concurrent.futures import ThreadPoolExecutor; ThreadPoolExecutor().submit(print)",
        "RuntimeError",
        "one thread",
    ),
    "raw threads": ("import _thread; _thread.start_new_thread(print, ())", "RuntimeError", "asyncio.gather"),
    "processes": ("import subprocess; subprocess.run(['ls'])", "OSError", "runtime.spawn"),
    "forks": ("import os; os.fork()", "AttributeError", "runtime.spawn"),
    "commands": ("import os; os.popen('ls')", ("AttributeError", "OSError"), "runtime.spawn"),
    "shells": ("import os; os.system('ls')", ("AttributeError", "OSError"), "runtime.spawn"),
    "processes that are awaited": (
        "import asyncio; asyncio.run(asyncio.create_subprocess_exec('ls'))",
        "OSError",
        "runtime.spawn",
    ),
    "pools of processes": ("import multiprocessing", "ModuleNotFoundError", "runtime.spawn"),
    "sockets": ("import socket; socket.socket()", "OSError", "inferlet.http"),
    "connections": ("import socket; socket.create_connection(('example.com', 80))", "OSError", "inferlet.http"),
    "streams": ("import asyncio; asyncio.run(asyncio.open_connection('example.com', 80))", "OSError", "inferlet.http"),
    "servers": ("import asyncio; asyncio.run(asyncio.start_server(print, '127.0.0.1', 80))", "OSError", "inferlet.http"),
    "TLS": ("import ssl", "ModuleNotFoundError", "inferlet.http"),
    "handlers of signals": ("import signal; signal.signal(signal.SIGTERM, print)", "ValueError", "asyncio.timeout"),
    "alarms": ("import signal; signal.alarm(1)", ("AttributeError", "OSError"), "asyncio.timeout"),
    "databases": ("import sqlite3", "ModuleNotFoundError", "/scratch"),
    "native libraries": ("import ctypes", "ModuleNotFoundError", "pure Python"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_a_program_has_nothing_for_names_the_way(dummy: Engine, name: str) -> None:
    source, kinds, words = REFUSALS[name]
    outcome = run(dummy, python_source(source))
    assert outcome.code == "program-error", outcome.message
    assert outcome.kind in ((kinds,) if isinstance(kinds, str) else kinds), outcome.message
    assert words in (outcome.message or "")


def test_libraries_still_find_out_what_is_there(dummy: Engine) -> None:
    outcome = run(
        dummy,
        python_source("""
import asyncio, os, signal, threading

async def main(input):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inline = await asyncio.to_thread(lambda: threading.current_thread() is threading.main_thread())
    try:
        import multiprocessing
    except ImportError as error:
        absent = error.name
    return [hasattr(os, "fork"), hasattr(os, "no_such_name"), inline, absent, threading.Lock().acquire()]
"""),
    )
    assert outcome.value == [False, False, True, "multiprocessing", True], outcome.traceback


def test_a_module_of_the_program_comes_before_one_that_is_absent(dummy: Engine) -> None:
    files = (("main.py", b"import sqlite3\ndef main(): return sqlite3.WHO"), ("sqlite3.py", b"WHO = 'mine'\n"))
    assert run(dummy, Source("python", files, "main.py")).value == "mine"
