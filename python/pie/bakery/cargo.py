"""Rust programs: cargo builds the project to a component for wasm32-wasip2."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pie.bakery import sdk
from pie.bakery.command import CommandError, run
from pie.bakery.toolchain.machine import ToolchainError, find, target_folder
from pie.bakery.toolchain.wasm import PROGRAMS, cargo_environment
from pie.errors import PieError

# Every error of the compiler is shown, as far as a person would read.
_SHOWN_CHARS = 64 << 10
# The compiler counts its errors in one more, which is none of the program.
_COUNTED = "error: aborting due to"
# What the compiler and `must_use` of the SDK say of what has to be awaited.
_OF_FUTURES = "futures do nothing unless"


def build(folder: Path, *, locked: bool = False) -> bytes:
    """The component of the project in `folder`; with `locked`, of the crates that `Cargo.lock` names and no others.

    Builds in a folder that all programs share, so that the SDK and the standard library are built once. Raises PieError
    `build-failed` with every error of the compiler, with what cargo said, or with what is missing to build for wasm;
    and for futures that the program drops, since what they would do is never done.
    """
    if find("cargo") is None:
        raise PieError("build-failed", "building a Rust program needs cargo, which is not there; install Rust 1.95 or newer with rustup")
    try:
        environment = cargo_environment(PROGRAMS)
    except ToolchainError as error:
        raise PieError("build-failed", str(error)) from error
    sdk.link(folder)
    target = target_folder()
    try:
        return _built(folder, target, environment, locked=locked)
    except OSError as error:
        raise PieError("build-failed", f"{error.filename or str(target)!r} cannot be used to build in: {error.strerror}") from error


def _built(folder: Path, target: Path, environment: Mapping[str, str], *, locked: bool) -> bytes:
    command = ["cargo", "build", "--release", "--target", PROGRAMS, "--quiet", "--message-format", "json"]
    if locked:
        command.append("--locked")
    with _alone(target):
        try:
            said = run(command, folder=folder, environment={**environment, "CARGO_TARGET_DIR": str(target)})
        except CommandError as error:
            raise PieError("build-failed", _failure(error, folder)) from error
        if dropped := list(_dropped_futures(said, folder)):
            first = f"{str(folder)!r} drops what has to be awaited, so that it is never done; write `.await` behind the call"
            raise PieError("build-failed", "\n\n".join([first, *dropped])[:_SHOWN_CHARS])
        components = list(_components(said, folder))
        if len(components) != 1:
            names = ", ".join(path.name for path in components) or "none"
            message = (
                f'cargo made {len(components)} components of {str(folder)!r} ({names}); a program is one crate with crate-type = ["cdylib"]'
            )
            raise PieError("build-failed", message)
        return components[0].read_bytes()


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Nobody else builds meanwhile: two programs of one name have one place in the folder."""
    target.mkdir(parents=True, exist_ok=True)
    with (target / ".pie-build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _failure(error: CommandError, folder: Path) -> str:
    """The errors of the compiler without its warnings; what cargo itself said where there are none."""
    errors = list(_errors(error.stdout))
    if not errors:
        return error.message
    shown: list[str] = []
    n_chars = 0
    for text in errors:
        if shown and n_chars + len(text) > _SHOWN_CHARS:
            break
        shown.append(text[:_SHOWN_CHARS])
        n_chars += len(text)
    n_left_out = len(errors) - len(shown)
    n_errors = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
    more = [f"[{n_left_out} more errors are left out; `cargo build --target {PROGRAMS}` shows them]"] if n_left_out else []
    return "\n\n".join([f"cargo cannot compile {str(folder)!r}: {n_errors}", *shown, *more])


def _errors(said: str) -> Iterator[str]:
    """The errors of the compiler in cargo's messages, as it would print them."""
    for message in _messages(said):
        inner = message.get("message")
        if message.get("reason") != "compiler-message" or not isinstance(inner, dict):
            continue
        rendered = str(inner.get("rendered") or inner.get("message") or "").strip()
        if str(inner.get("level", "")).startswith("error") and not rendered.startswith(_COUNTED):
            yield rendered


def _dropped_futures(said: str, folder: Path) -> Iterator[str]:
    """The warnings of the compiler, as it would print them, of futures that the project itself makes and drops."""
    for message in _messages(said):
        inner = message.get("message")
        if message.get("reason") != "compiler-message" or not isinstance(inner, dict) or not _is_own(message, folder):
            continue
        lint = inner.get("code")
        if isinstance(lint, dict) and lint.get("code") == "unused_must_use" and _is_of_future(inner):
            yield str(inner.get("rendered") or inner.get("message")).strip()


def _is_of_future(warning: Mapping[str, Any]) -> bool:
    """Whether what is dropped is a future, or what a function of the SDK gives to be awaited."""
    children = warning.get("children")
    # A macro may print what looks like a message of cargo.
    notes = [str(note.get("message")) for note in children if isinstance(note, dict)] if isinstance(children, list) else []
    return "Future" in str(warning.get("message")) or any(note.startswith(_OF_FUTURES) for note in notes)


def _is_own(message: Mapping[str, Any], folder: Path) -> bool:
    """Whether a message of cargo is of the project itself."""
    return Path(str(message.get("manifest_path", "/"))).is_relative_to(folder.resolve())


def _components(said: str, folder: Path) -> Iterator[Path]:
    """The components of the project itself in cargo's messages."""
    for message in _messages(said):
        if message.get("reason") == "compiler-artifact" and _is_own(message, folder):
            yield from (Path(name) for name in message["filenames"] if name.endswith(".wasm"))


def _messages(said: str) -> Iterator[dict[str, Any]]:
    """What cargo said in JSON, an object a line. Macros of crates may print lines of their own among them."""
    for line in said.splitlines():
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict):
            yield message
