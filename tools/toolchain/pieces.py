"""The pieces that building needs.

How to see whether one is there, how to get it, and the command that mends it by hand.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass

from pie.bakery.toolchain import debian, wasm
from pie.bakery.toolchain.machine import answer, find, run

from . import ROOT, js_runtime

VENV = ROOT / ".venv"
REQUIREMENTS = ROOT / "requirements" / "build.txt"
NODE_MAJOR = 20


@dataclass(frozen=True)
class Piece:
    """One thing that building needs."""

    name: str
    purpose: str
    is_there: Callable[[], bool]
    remedy: Callable[[], str]
    make: Callable[[], None] | None = None


def rust_version() -> str:
    """The oldest Rust that compiles the engine."""
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    return str(manifest["workspace"]["package"]["rust-version"])


def has_rust() -> bool:
    """Whether cargo and a rustc that is new enough are on the path."""
    return find("cargo") is not None and _at_least(["rustc", "--version"], rust_version())


def rust_remedy() -> str:
    """How to get Rust itself, which no package of Debian 12 brings in this version."""
    if find("rustup"):
        return f"rustup toolchain install {rust_version()} && rustup default {rust_version()}"
    return f"install Rust {rust_version()} or newer with rustup (the site of Rust says how)"


def has_node() -> bool:
    """Whether Node and npm are on the path."""
    return find("npm") is not None and _at_least(["node", "--version"], str(NODE_MAJOR))


def has_python_packages() -> bool:
    """Whether the virtual environment has the packages that building needs, in the locked versions."""
    wanted = set(re.findall(r"^([\w.-]+==[\w.]+)", REQUIREMENTS.read_text(), re.M))
    listed = answer([VENV / "bin" / "python", "-m", "pip", "list", "--format", "freeze", "--disable-pip-version-check"])
    return listed is not None and {_normal(one) for one in wanted} <= {_normal(one) for one in listed.splitlines()}


def make_python_packages() -> None:
    """Makes the virtual environment, if it is not there, and installs the locked packages."""
    if not (VENV / "bin" / "python").exists():
        run([sys.executable, "-m", "venv", VENV])
    run([VENV / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", REQUIREMENTS])


def _at_least(command: list[str], wanted: str) -> bool:
    found = re.search(r"(\d+(?:\.\d+)*)", answer(command) or "")
    return found is not None and _numbers(found[1]) >= _numbers(wanted)


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def _normal(requirement: str) -> str:
    return re.sub(r"[-_.]+(?=.*==)", "-", requirement).lower()


def _package(name: str, purpose: str, is_there: Callable[[], bool], *packages: str) -> Piece:
    return Piece(name, purpose, is_there, lambda: debian.install_command(*packages), lambda: debian.install(*packages))


def _rust_for(target: str, purpose: str) -> Piece:
    return Piece(
        f"Rust for {target}",
        purpose,
        lambda: wasm.is_ready(target) if target == wasm.PROGRAMS else js_runtime.is_ready(),
        lambda: wasm.remedy(target),
        lambda: wasm.make_ready(target),
    )


PIECES = (
    Piece(f"Rust {rust_version()}", "compiles the engine", has_rust, rust_remedy),
    _package("a C compiler", "links the engine", lambda: find("cc", "gcc", "clang") is not None, "build-essential"),
    _package(
        "clang and llvm",
        "compile the JavaScript runtime",
        lambda: find("clang-22", "clang") is not None and find("llvm-ar-22", "llvm-ar", "llvm-ar-14") is not None,
        "clang",
        "llvm",
    ),
    _rust_for(wasm.PROGRAMS, "builds the Rust examples"),
    _rust_for(js_runtime.JS_RUNTIME, "builds the JavaScript runtime"),
    Piece(
        f"Node {NODE_MAJOR} with npm",
        "type-checks and builds the JavaScript SDK",
        has_node,
        lambda: f"install Node {NODE_MAJOR} or newer with npm, by your package manager or from the site of Node",
        lambda: debian.install("nodejs", "npm"),
    ),
    Piece(
        "Python packages",
        "build the wheel and the Python runtime",
        has_python_packages,
        lambda: f"python3 -m venv .venv && .venv/bin/python -m pip install -r {REQUIREMENTS.relative_to(ROOT)}",
        make_python_packages,
    ),
)
"""In the order in which they are got: what needs another comes after it."""
