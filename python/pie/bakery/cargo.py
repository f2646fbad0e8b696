"""Rust programs: cargo builds the project to a component for wasm32-wasip2."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pie.bakery import sdk
from pie.bakery.command import run
from pie.bakery.toolchain.machine import ToolchainError, find, target_folder
from pie.bakery.toolchain.wasm import PROGRAMS, cargo_environment
from pie.errors import PieError


def build(folder: Path) -> bytes:
    """The component of the project in `folder`.

    Builds in a folder that all programs share, so that the SDK and the standard library are built once. Raises PieError
    `build-failed` with what cargo said, or with what is missing to build for wasm.
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
        return _built(folder, target, environment)
    except OSError as error:
        raise PieError("build-failed", f"{error.filename or str(target)!r} cannot be used to build in: {error.strerror}") from error


def _built(folder: Path, target: Path, environment: Mapping[str, str]) -> bytes:
    command = ["cargo", "build", "--release", "--target", PROGRAMS, "--quiet", "--message-format", "json-render-diagnostics"]
    with _alone(target):
        said = run(command, folder=folder, environment={**environment, "CARGO_TARGET_DIR": str(target)})
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


def _components(said: str, folder: Path) -> Iterator[Path]:
    """The components of the project itself in cargo's messages."""
    for line in said.splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        is_own = Path(message.get("manifest_path", "/")).is_relative_to(folder.resolve())
        if message.get("reason") == "compiler-artifact" and is_own:
            yield from (Path(name) for name in message["filenames"] if name.endswith(".wasm"))
