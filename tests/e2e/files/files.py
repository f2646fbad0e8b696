"""Programs that use files: one function a task, by the standard library alone."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inferlet import files


def scenario(root: str) -> list[Any]:
    """What programs do with files."""
    seen: list[Any] = []
    folder = Path(root) / "notes"
    os.makedirs(folder / "deep")
    with open(f"{root}/notes/a.txt", "w") as file:
        file.write("one\n")
    with open(folder / "a.txt", "a") as file:
        file.write("zwei ä\n")
    seen.append((folder / "a.txt").read_text())
    seen.append(os.stat(folder / "a.txt").st_size)
    seen.append(sorted(os.listdir(folder)))
    os.rename(folder / "a.txt", folder / "deep/b.txt")
    (folder / "deep/b.txt").write_bytes(b"x")
    seen.append((folder / "deep/b.txt").read_text())
    with open(folder / "deep/b.txt", "r+b") as file:
        file.seek(3)
        file.write(b"y")
        file.truncate(6)
    seen.append(list((folder / "deep/b.txt").read_bytes()))
    seen.append(failure(lambda: (folder / "missing").read_text()))
    seen.append(failure(lambda: os.rmdir(folder / "deep")))
    seen.append(failure(lambda: os.mkdir(folder / "deep")))
    seen.append(failure(lambda: open(folder / "deep", "w")))
    seen.append(failure(lambda: open(folder / "deep/b.txt", "x")))
    os.remove(folder / "deep/b.txt")
    os.rmdir(folder / "deep")
    seen.append(os.listdir(folder))
    shutil.rmtree(folder)
    seen.append(folder.exists())
    return seen


def write(path: str, text: str) -> None:
    """Writes a file."""
    Path(path).write_text(text)


def read(path: str) -> str:
    """Reads a file."""
    return Path(path).read_text()


def listed(path: str) -> list[str]:
    """The names in a folder."""
    return sorted(os.listdir(path))


def make(path: str) -> None:
    """Makes a folder and those above it."""
    os.makedirs(path, exist_ok=True)


def reach(paths: list[str]) -> list[list[str | None]]:
    """What stops a program from reading, writing and making each of these paths."""
    tries: tuple[Callable[[str], object], ...] = (read, lambda path: write(path, "mine"), os.mkdir)
    return [[failure(lambda one=one, path=path: one(path)) for one in tries] for path in paths]


def fill(path: str, size: int) -> list[Any]:
    """Writes until it is stopped: the error, why, and what is there."""
    stopped = failure(lambda: Path(path).write_bytes(b"x" * size))
    refused = files.refusal()
    return [stopped, None if refused is None else refused.code, os.stat(path).st_size <= size]


def many(path: str, n: int) -> list[Any]:
    """Makes files until it is stopped: how many, the error, and why."""
    made = 0
    stopped = None
    while made < n and stopped is None:
        stopped = failure(Path(f"{path}/{made}").touch)
        made += stopped is None
    refused = files.refusal()
    return [made, stopped, None if refused is None else refused.code]


def uncaught(path: str, size: int) -> None:
    """Ends with the error."""
    with open(path, "wb") as file:
        file.write(b"x" * size)


TASKS: dict[str, Callable[..., Any]] = {
    "scenario": scenario,
    "write": write,
    "read": read,
    "list": listed,
    "make": make,
    "reach": reach,
    "fill": fill,
    "many": many,
    "uncaught": uncaught,
}


def failure(call: Callable[[], object]) -> str | None:
    """The name of the error of a call."""
    try:
        call()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return None


async def main(input: dict[str, Any]) -> Any:
    """Does a task."""
    task = input.pop("do")
    return TASKS[task](**input)
