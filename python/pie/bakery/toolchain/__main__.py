"""The command: makes ready what building Rust programs needs."""

from __future__ import annotations

import sys

from .machine import ToolchainError
from .wasm import PROGRAMS, is_ready, make_ready


def main() -> int:
    """Returns the exit code: 1 where something is missing."""
    try:
        if not is_ready(PROGRAMS):
            make_ready(PROGRAMS)
    except ToolchainError as failure:
        print(failure, file=sys.stderr)
        return 1
    print(f"Rust for {PROGRAMS} is ready.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
