"""What of the standard library has nothing to stand on in a program: threads, processes, sockets, signals, stdin.

Each use of it fails as it does on machines without it, so that libraries go their other way, with words on what to use
instead.
"""

from __future__ import annotations

import _thread
import contextlib
import errno
import importlib.abc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

from inferlet._runtime import stdio
from inferlet._wait import EventLoop

_THREADS = "a program has one thread; use tasks of asyncio (asyncio.gather, asyncio.create_task), which wait side by side"
_PROCESSES = "a program starts no processes of the machine; start another program with inferlet.runtime.spawn"
_SOCKETS = "a program has no sockets; ask servers with inferlet.http, urllib.request, requests or httpx, where --allow-net allows them"
_SIGNALS = (
    "a program gets no signals; bound what it does with asyncio.timeout, and clean up in finally. "
    "inferlet.session.receive raises SessionClosed when the client has gone"
)
_PACKAGES = "name packages under [dependencies] of Pie.toml; `pie run` and `pie build` install them"
_NATIVE = "a program loads no native libraries; use packages in pure Python"
_SCREEN = "a program has no screen and no terminal; print, or send with inferlet.session.send"
_OUTSIDE = (
    "it drives engines and talks to servers from outside, so this is a script of your machine: run it with `python FILE`. A program uses "
    "`inferlet`"
)
_DATABASE = "a program has no database library; keep data in files below /scratch, as JSON or CSV"
_COMPRESSION = "a program compresses with zlib, gzip or zipfile"

_MODULES = {
    "multiprocessing": f"{_PROCESSES}, or tasks with asyncio.gather",
    "_ssl": "TLS is spoken by the engine; ask servers with inferlet.http or urllib.request",
    "ctypes": _NATIVE,
    "ensurepip": _PACKAGES,
    "venv": _PACKAGES,
    "curses": _SCREEN,
    "readline": _SCREEN,
    "tkinter": _SCREEN,
    "turtle": _SCREEN,
    "dbm": _DATABASE,
    "pie": _OUTSIDE,
    "sqlite3": _DATABASE,
    "_bz2": _COMPRESSION,
    "_lzma": _COMPRESSION,
    "_zstd": _COMPRESSION,
}
"""Modules that are not there."""

_OS_NAMES = """
    execl execle execlp execlpe execv execve execvp execvpe fork forkpty kill killpg pipe2 popen posix_spawn posix_spawnp
    spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe startfile system wait wait3 wait4 waitid waitpid
""".split()  # noqa: SIM905
_SIGNAL_NAMES = """
    alarm getitimer pause pthread_kill pthread_sigmask raise_signal set_wakeup_fd setitimer siginterrupt sigpending sigtimedwait
    sigwait sigwaitinfo
""".split()  # noqa: SIM905
_SOCKET_NAMES = "create_connection create_server fromfd getaddrinfo gethostbyaddr gethostbyname getnameinfo socketpair".split()  # noqa: SIM905
_LOOP_SOCKETS = "create_connection create_datagram_endpoint create_server create_unix_connection create_unix_server".split()  # noqa: SIM905
_LOOP_PROCESSES = ("subprocess_exec", "subprocess_shell")


class AbsentModules(importlib.abc.MetaPathFinder):
    """Says of modules that nobody else has found why they are not there."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Raises ModuleNotFoundError for one of these modules."""
        way = _MODULES.get(fullname)
        if way is not None:
            raise ModuleNotFoundError(f"No module named {fullname!r} in a program: {way}", name=fullname)
        return None


def install() -> None:
    """Puts the words in place, once the standard library is loaded."""
    sys.meta_path.append(AbsentModules())
    sys.stdin = stdio.NoInput()
    # Nothing was started from a file: `argparse` wants a text all the same.
    sys.executable = ""
    _refuse(_thread, ("start_new_thread", "start_joinable_thread"), _refusing_threads)
    # Where `threading` keeps them under names of its own.
    _refuse(threading, ("_start_new_thread", "_start_joinable_thread"), _refusing_threads)
    _refuse(subprocess.Popen, ("__init__",), _refusing(_PROCESSES))
    _refuse(os, _OS_NAMES, _refusing(_PROCESSES))
    _explain(os, dict.fromkeys(_OS_NAMES, _PROCESSES))
    sockets = sys.modules.get("socket")
    if sockets is not None:
        _refuse(sockets.socket, ("__init__",), _refusing(_SOCKETS))
        _refuse(sockets, _SOCKET_NAMES, _refusing(_SOCKETS))
        _explain(sockets, dict.fromkeys(_SOCKET_NAMES, _SOCKETS))
    _install_signals()
    for names, way in ((_LOOP_SOCKETS, _SOCKETS), (_LOOP_PROCESSES, _PROCESSES)):
        for name in names:
            setattr(EventLoop, name, _refusing(way))


def _install_signals() -> None:
    # `asyncio.Runner` would handle the interrupt that never comes, at each launch.
    with contextlib.suppress(ValueError, OSError):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    before = signal.signal

    def set_handler(number: int, handler: Any) -> Any:
        """Takes what asks for nothing; a handler would never be called."""
        if callable(handler) and handler not in (signal.SIG_DFL, signal.SIG_IGN):
            raise ValueError(_SIGNALS)
        return before(number, handler)

    vars(signal)["signal"] = set_handler
    _refuse(signal, _SIGNAL_NAMES, _refusing_signals)
    _explain(signal, dict.fromkeys(_SIGNAL_NAMES, _SIGNALS))


def _refuse(owner: Any, names: Sequence[str], refusing: Callable[..., NoReturn]) -> None:
    """Puts a function that refuses in the place of those that are there."""
    for name in names:
        if hasattr(owner, name):
            setattr(owner, name, refusing)


def _explain(module: ModuleType, ways: Mapping[str, str]) -> None:
    """Has a module say of names that it lacks what to use instead; for `hasattr` they are still absent."""

    def missing(name: str) -> NoReturn:
        way = ways.get(name)
        message = f"module {module.__name__!r} has no attribute {name!r}"
        raise AttributeError(message if way is None else f"{message} in a program: {way}", name=name, obj=module)

    vars(module)["__getattr__"] = missing


def _refusing(way: str) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.ENOTSUP, way)

    return refuse


def _refusing_threads(*_: object, **__: object) -> NoReturn:
    # Of the type that CPython raises where no thread can be started.
    raise RuntimeError(f"can't start new thread: {_THREADS}")


def _refusing_signals(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOTSUP, _SIGNALS)
