"""Builds the Python language runtime, `python/pie/runtimes/python.wasm`.

componentize-py makes it from the SDK and the WIT files.
"""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools.artefact import ROOT, Artefact, BuildError, make
from tools.python_bindings import WIT, WORLD, componentize_py, ensure_bindings
from tools.python_snapshot import mark_immortal

SDK = ROOT / "python" / "inferlet"
APP = "inferlet._runtime.app"
RUNTIME = Artefact(
    target=ROOT / "python" / "pie" / "runtimes" / "python.wasm",
    work=ROOT / "build" / "python-runtime",
    inputs=(
        *SDK.rglob("*.py"),
        *WIT.rglob("*.wit"),
        *(Path(__file__).resolve().with_name(name) for name in ("build_python_runtime.py", "python_snapshot.py")),
    ),
    salt=importlib.metadata.version("componentize-py"),
    takes="about 20 s",
)


def build() -> Path:
    """Builds the component."""
    app = RUNTIME.work / "app"
    shutil.rmtree(app, ignore_errors=True)
    shutil.copytree(SDK, app / "inferlet", ignore=shutil.ignore_patterns("__pycache__"))
    fresh = RUNTIME.work / "python.wasm"
    command = [componentize_py(), "-q", "-d", str(WIT), "-w", WORLD, "componentize", "-p", str(app), "-o", str(fresh), APP]
    done = subprocess.run(command, check=False)
    if done.returncode != 0:
        raise BuildError(f"componentize-py ended with exit code {done.returncode}; its messages stand above")
    mark_immortal(fresh)
    return fresh


if __name__ == "__main__":
    ensure_bindings()
    sys.exit(make(RUNTIME, build))
