"""A file that is built from others: built again only when one of them has changed, and put in place at once."""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class BuildError(Exception):
    """What is missing or failed, with the remedy."""


@dataclass(frozen=True)
class Artefact:
    """What is built, where, and from what."""

    target: Path
    work: Path
    """A folder of its own for what comes in between."""
    inputs: tuple[Path, ...]
    """Every file that goes in, the building script included."""
    salt: str = ""
    """What goes in beside files, such as the version of a tool."""
    takes: str = "a moment"
    """How long a build takes, for whoever waits."""

    def digest(self) -> str:
        """A digest of everything that goes in."""
        digest = hashlib.sha256(self.salt.encode())
        for path in sorted(set(self.inputs)):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(ROOT)} {len(content)}\n".encode() + content)
        return digest.hexdigest()


def make(artefact: Artefact, build: Callable[[], Path]) -> int:
    """Builds where it must and tells how it went; returns the exit code.

    `build` returns the fresh file, or raises BuildError.
    """
    parser = argparse.ArgumentParser(description=f"Builds {artefact.target.name} where its inputs have changed.")
    parser.add_argument("--force", action="store_true", help="build although nothing changed")
    arguments = parser.parse_args()
    digest, stamp = artefact.digest(), artefact.work / "inputs.sha256"
    name = artefact.target.relative_to(ROOT)
    if not arguments.force and artefact.target.exists() and stamp.exists() and stamp.read_text() == digest:
        print(f"{name} is current")
        return 0
    print(f"Building {name} ({artefact.takes})", flush=True)
    started_s = time.monotonic()
    artefact.work.mkdir(parents=True, exist_ok=True)
    try:
        fresh = build()
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    artefact.target.parent.mkdir(parents=True, exist_ok=True)
    fresh.replace(artefact.target)
    stamp.write_text(digest)
    print(f"{name}: {artefact.target.stat().st_size / 1e6:.1f} MB in {time.monotonic() - started_s:.1f} s")
    return 0
