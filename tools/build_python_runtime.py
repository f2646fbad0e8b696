"""Builds the Python language runtime: `python/pie/runtimes/python.wasm`.

Skips where the inputs (the SDK, the WIT files, this script, the version of componentize-py) are what they were; `--force` builds
anyway.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools.python_bindings import ROOT, WIT, WORLD, componentize_py, ensure_bindings

SDK = ROOT / "python" / "inferlet"
TARGET = ROOT / "python" / "pie" / "runtimes" / "python.wasm"
WORK = ROOT / "build" / "python-runtime"
DIGEST = WORK / "inputs.sha256"
APP = "inferlet._runtime.app"


def inputs_digest() -> str:
    """A digest of everything that the component is made of."""
    digest = hashlib.sha256(importlib.metadata.version("componentize-py").encode())
    files = [*SDK.rglob("*.py"), *WIT.rglob("*.wit"), Path(__file__)]
    for path in sorted(files):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def is_current(digest: str) -> bool:
    """Whether the component was built from these inputs."""
    return TARGET.exists() and DIGEST.exists() and DIGEST.read_text() == digest


def build(digest: str) -> None:
    """Builds the component and puts it in place at once, so that nobody reads half of it."""
    app = WORK / "app"
    shutil.rmtree(app, ignore_errors=True)
    shutil.copytree(SDK, app / "inferlet", ignore=shutil.ignore_patterns("__pycache__"))
    fresh = WORK / "python.wasm"
    command = [componentize_py(), "-q", "-d", str(WIT), "-w", WORLD, "componentize", "-p", str(app), "-o", str(fresh), APP]
    subprocess.run(command, check=True)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    fresh.replace(TARGET)
    DIGEST.write_text(digest)


def main() -> int:
    """Builds where it must; answers the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--force", action="store_true", help="build although nothing changed")
    arguments = parser.parse_args()
    ensure_bindings()
    digest = inputs_digest()
    target = TARGET.relative_to(ROOT)
    if is_current(digest) and not arguments.force:
        print(f"{target} is current")
        return 0
    print(f"Building {target} (about 10 s)", flush=True)
    started = time.monotonic()
    try:
        build(digest)
    except subprocess.CalledProcessError as error:
        print(f"componentize-py ended with exit code {error.returncode}; its messages stand above", file=sys.stderr)
        return 1
    print(f"{target}: {TARGET.stat().st_size / 1e6:.1f} MB in {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
