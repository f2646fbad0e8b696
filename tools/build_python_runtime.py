"""Builds the Python language runtime, `python/pie/runtimes/python.wasm`.

componentize-py makes it from the SDK and the WIT files. `--plain FILE` builds another one there, whose snapshot is the
interpreter as it is once all is loaded: launches are slower, and nothing relies on how this version of CPython works
inside. Take it to see whether a fault lies there, and until a new version of CPython is understood.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

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
    """Builds the component that is shipped."""
    fresh = RUNTIME.work / "python.wasm"
    _componentize(RUNTIME.work / "app", fresh)
    mark_immortal(fresh)
    return fresh


def build_plain(target: Path) -> None:
    """Builds a component with a plain snapshot."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _componentize(RUNTIME.work / "plain", target, settings={"PLAIN = False": "PLAIN = True"})


def _componentize(app: Path, target: Path, settings: Mapping[str, str] = MappingProxyType({})) -> None:
    """Makes a component of a copy of the SDK in `app`, in whose settings lines are others."""
    shutil.rmtree(app, ignore_errors=True)
    shutil.copytree(SDK, app / "inferlet", ignore=shutil.ignore_patterns("__pycache__"))
    for line, other in settings.items():
        path = app / "inferlet" / "_runtime" / "settings.py"
        before = path.read_text(encoding="utf-8")
        if before.count(line) != 1:
            raise BuildError(f"{path.name} has no line {line!r}")
        path.write_text(before.replace(line, other), encoding="utf-8")
    command = [componentize_py(), "-q", "-d", str(WIT), "-w", WORLD, "componentize", "-p", str(app), "-o", str(target), APP]
    done = subprocess.run(command, check=False)
    if done.returncode != 0:
        raise BuildError(f"componentize-py ended with exit code {done.returncode}; its messages stand above")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--plain", type=Path)
    given, others = parser.parse_known_args()
    ensure_bindings()
    if given.plain is None:
        sys.argv[1:] = others
        sys.exit(make(RUNTIME, build))
    try:
        build_plain(given.plain)
    except BuildError as error:
        sys.exit(str(error))
