"""Pins requirements/*.in into requirements/*.txt with pip's own resolver, without installing anything."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "requirements"


def resolve(source: Path) -> list[str]:
    """The pinned requirements that pip would install for `source` into an empty environment.

    They are `name==version`, sorted.
    """
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--dry-run",
        "--ignore-installed",
        "--quiet",
        "--report",
        "-",
        "-r",
    ]
    report = json.loads(subprocess.run([*command, str(source)], check=True, capture_output=True, text=True).stdout)
    pins = ((item["metadata"]["name"].lower(), item["metadata"]["version"]) for item in report["install"])
    return [f"{name}=={version}" for name, version in sorted(pins)]


def main() -> None:
    """Writes a lock beside every requirements file."""
    for source in sorted(FOLDER.glob("*.in")):
        pins = resolve(source)
        header = f"# The lock of {source.name}; `make lock` writes it anew.\n"
        source.with_suffix(".txt").write_text(header + "\n".join(pins) + "\n", encoding="utf-8")
        print(f"{source.with_suffix('.txt').name}: {len(pins)} packages")


if __name__ == "__main__":
    main()
