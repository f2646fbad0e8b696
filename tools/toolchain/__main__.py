"""The command: makes the tool chain ready, checks it, or prints the environment of a build."""

from __future__ import annotations

import argparse
import json
import sys
import time

from pie.bakery.toolchain.machine import ToolchainError
from pie.bakery.toolchain.wasm import PROGRAMS, cargo_environment

from . import js_runtime
from .pieces import PIECES, Piece

TARGETS = (PROGRAMS, js_runtime.JS_RUNTIME)


def main() -> int:
    """Returns the exit code: 1 where something is missing."""
    parser = argparse.ArgumentParser(prog="python3 -m tools.toolchain", description="Makes ready what building needs.")
    parser.add_argument("--check", action="store_true", help="only say what is missing; change nothing")
    parser.add_argument(
        "--env", metavar="TARGET", choices=TARGETS, help=f"print what cargo needs to build for TARGET ({', '.join(TARGETS)})"
    )
    parser.add_argument("--json", action="store_true", help="with --env: one JSON object instead of lines KEY=VALUE")
    options = parser.parse_args()
    if options.env:
        return print_environment(options.env, as_json=options.json)
    missing = [piece for piece in PIECES if not (piece.is_there() or (not options.check and get(piece)))]
    for piece in missing:
        print(f"missing: {piece.name} ({piece.purpose}); mend it with: {piece.remedy()}", file=sys.stderr)
    if not missing:
        print("The tool chain is ready.")
    return 1 if missing else 0


def get(piece: Piece) -> bool:
    """Tries to get a piece and returns whether it is there; says what it does, and why it could not."""
    if piece.make is None:
        return False
    print(f"Getting {piece.name}: {piece.purpose}", flush=True)
    started = time.monotonic()
    try:
        piece.make()
    except ToolchainError as failure:
        print(f"  {failure}", file=sys.stderr)
        return False
    print(f"  done in {time.monotonic() - started:.0f} s", flush=True)
    return piece.is_there()


def print_environment(target: str, *, as_json: bool) -> int:
    """Prints the environment of a build, or what it lacks."""
    try:
        environment = cargo_environment(target) if target == PROGRAMS else js_runtime.environment()
    except ToolchainError as failure:
        print(failure, file=sys.stderr)
        return 1
    print(json.dumps(environment) if as_json else "\n".join(f"{key}={value}" for key, value in environment.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
