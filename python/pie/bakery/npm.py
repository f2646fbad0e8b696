"""The dependencies of a JavaScript or TypeScript program: bundled with it into one file by esbuild."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from pie.bakery.command import run
from pie.errors import PieError

ESBUILD = "esbuild@0.25.12"
"""What bundles where the project brings no esbuild of its own."""
BUNDLE = "main.js"

_PACKAGE = "package.json"
_PROVIDED = {"inferlet"}


def has_dependencies(folder: Path) -> bool:
    """Whether the `package.json` in `folder` names packages that the program needs when it runs.

    Raises PieError `build-failed` where it cannot be read.
    """
    path = folder / _PACKAGE
    if not path.is_file():
        return False
    try:
        listed = json.loads(path.read_bytes()).get("dependencies", {})
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise PieError("build-failed", f"{path} cannot be read: {error}") from error
    if not isinstance(listed, dict):
        raise PieError("build-failed", f'{path}: dependencies is no object; write it as {{"left-pad": "^1.3.0"}}')
    return bool(listed.keys() - _PROVIDED)


def bundle(folder: Path, entry: Path) -> dict[str, bytes]:
    """One file that holds the entry and all that it imports, but `inferlet`, which the runtime brings.

    Installs what `package.json` names where `node_modules` is missing. Raises PieError `build-failed` with what npm or esbuild said.
    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        message = (
            f"{folder / _PACKAGE} names dependencies, and bundling them needs Node with npm, which are not there; install Node 20 or newer"
        )
        raise PieError("build-failed", message)
    if not (folder / "node_modules").is_dir():
        locked = (folder / "package-lock.json").is_file()
        run([npm, "ci" if locked else "install", "--no-audit", "--no-fund", "--loglevel=error"], folder=folder)
    own = folder / "node_modules" / ".bin" / "esbuild"
    esbuild: list[str | Path] = [own] if own.exists() else [shutil.which("npx") or "npx", "--yes", ESBUILD]
    with tempfile.TemporaryDirectory(prefix="pie-build-") as name:
        target = Path(name) / BUNDLE
        options = [
            "--bundle",
            "--format=esm",
            "--platform=neutral",
            "--target=es2023",
            "--main-fields=module,main",
            "--conditions=import,module",
            "--external:inferlet",
            "--external:pie:*",
            "--charset=utf8",
            "--log-level=error",
            "--legal-comments=inline",
        ]
        run([*esbuild, entry.relative_to(folder), *options, f"--outfile={target}"], folder=folder)
        return {BUNDLE: target.read_bytes()}
