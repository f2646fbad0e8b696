"""Writes typed Python bindings of the WIT world into `build/bindings`, for type checkers and tests.

The component gets bindings of its own when it is built; these only describe them: every function raises
NotImplementedError.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIT = ROOT / "wit"
BINDINGS = ROOT / "build" / "bindings"
WORLD = "language-runtime"


def componentize_py() -> str:
    """The path of componentize-py beside this interpreter; SystemExit names the command that installs it."""
    found = shutil.which("componentize-py", path=str(Path(sys.executable).parent)) or shutil.which("componentize-py")
    if found is None:
        raise SystemExit(f"componentize-py is missing; install it: {sys.executable} -m pip install componentize-py==0.25.1")
    return found


def ensure_bindings() -> Path:
    """Writes the bindings where they are missing or older than the WIT files, and returns their folder."""
    stamp = BINDINGS / "wit_world" / "__init__.py"
    newest = max(path.stat().st_mtime for path in WIT.rglob("*.wit"))
    if not stamp.exists() or stamp.stat().st_mtime < newest:
        _generate()
    return BINDINGS


def _generate() -> None:
    fresh = BINDINGS.with_name("bindings.new")
    shutil.rmtree(fresh, ignore_errors=True)
    subprocess.run([componentize_py(), "-q", "-d", str(WIT), "-w", WORLD, "bindings", str(fresh)], check=True)
    # A helper for wasi:http that this world has no use for, and that does not import without it.
    (fresh / "poll_loop.py").unlink(missing_ok=True)
    shutil.rmtree(fresh / "componentize_py_async_support", ignore_errors=True)
    for path in (*fresh.rglob("*.py"), *fresh.rglob("*.pyi")):
        path.write_text("# mypy: ignore-errors\n" + path.read_text())
    shutil.rmtree(BINDINGS, ignore_errors=True)
    fresh.rename(BINDINGS)


if __name__ == "__main__":
    print(ensure_bindings().relative_to(ROOT))
