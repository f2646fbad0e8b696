"""Runs every example in its three languages on the embedded model, as a user would: `make run`."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Styles of a terminal (ECMA-48, SGR).
_BOLD, _FAINT = 1, 2

EXAMPLES: dict[str, list[str]] = {
    "hello": ["--name", "Ada"],
    "chat": ["--prompt", "Tell me a short story about a fox.", "--max-tokens", "96"],
    "branches": ["--prompt", "Name an animal.", "--branches", "4"],
    "agent": ["--prompt", "How much does a guitar cost?"],
    "beam_search": ["--prompt", "Name an animal.", "--beams", "3"],
}


def forms(example: str) -> list[tuple[str, Path]]:
    """The three forms of an example: language and path."""
    return [
        ("Python", ROOT / "examples/python" / f"{example}.py"),
        ("TypeScript", ROOT / "examples/typescript" / f"{example}.ts"),
        ("Rust", ROOT / "build/programs" / f"{example}.wasm"),
    ]


def main() -> int:
    """Runs them one after the other; returns 1 if one failed."""
    failed = []
    for example, arguments in EXAMPLES.items():
        for language, path in forms(example):
            command = ["pie", "run", str(path.relative_to(ROOT)), "--", *arguments]
            print(f"\n{_styled(language, _BOLD)}  $ {' '.join(command)}", flush=True)
            start_s = time.perf_counter()
            code = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode
            print(_styled(f"{time.perf_counter() - start_s:.2f} s", _FAINT), flush=True)
            if code != 0:
                failed.append(f"{language} {example} ended with exit code {code}")
    print("\n" + ("; ".join(failed) if failed else f"{3 * len(EXAMPLES)} programs ran."))
    return 1 if failed else 0


def _styled(text: str, style: int) -> str:
    """The text in a style where a terminal shows it; a log gets the text alone."""
    return f"\033[{style}m{text}\033[0m" if sys.stdout.isatty() else text


if __name__ == "__main__":
    sys.exit(main())
