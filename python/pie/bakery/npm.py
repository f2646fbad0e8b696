"""The dependencies of a JavaScript or TypeScript program: bundled with it into one file by esbuild."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from pie.bakery.command import run
from pie.errors import PieError
from pie.folder import read_file, read_project_file
from pie.programs import MAX_DEPENDENCY_BYTES

ESBUILD = "esbuild@0.25.12"
"""What bundles where the project brings no esbuild of its own."""
BUNDLE = "main.js"

_PACKAGE = "package.json"
_PACKAGES = "node_modules"
_OPTIONS = (
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
)
_PROVIDED = {"inferlet"}
# How esbuild marks a file that it leaves out.
_DISABLED = "(disabled):"


def has_dependencies(folder: Path) -> bool:
    """Whether the `package.json` in `folder` names packages that the program needs when it runs.

    Raises PieError `build-failed` where it cannot be read.
    """
    path = folder / _PACKAGE
    content = read_project_file(folder, _PACKAGE)
    if content is None:
        return False
    try:
        listed = json.loads(content).get("dependencies", {})
    except (ValueError, AttributeError, RecursionError) as error:
        raise PieError("build-failed", f"{path} cannot be read: {error}") from error
    if not isinstance(listed, dict):
        raise PieError("build-failed", f'{path}: dependencies is no object; write it as {{"left-pad": "^1.3.0"}}')
    return bool(listed.keys() - _PROVIDED)


def bundle(folder: Path, entry: Path) -> dict[str, bytes]:
    """One file that holds the entry and all that it imports, but `inferlet`, which the runtime brings.

    Installs what `package.json` names where `node_modules` is missing. Raises PieError `build-failed` with what npm or esbuild
    said, and where a file that was bundled lies outside of the folder.
    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        message = (
            f"{folder / _PACKAGE} names dependencies, and bundling them needs Node with npm, which are not there; install Node 20 or newer"
        )
        raise PieError("build-failed", message)
    if not (folder / _PACKAGES).is_dir():
        locked = read_project_file(folder, "package-lock.json") is not None
        # Packages at a path are copied in: a link would leave the folder.
        run([npm, "ci" if locked else "install", "--install-links", "--no-audit", "--no-fund", "--loglevel=error"], folder=folder)
    own = folder / _PACKAGES / ".bin" / "esbuild"
    esbuild: list[str | Path] = [own] if own.exists() else [shutil.which("npx") or "npx", "--yes", ESBUILD]
    with tempfile.TemporaryDirectory(prefix="pie-build-") as name:
        target, listing = Path(name) / BUNDLE, Path(name) / "inputs.json"
        run([*esbuild, entry.relative_to(folder), *_OPTIONS, f"--metafile={listing}", f"--outfile={target}"], folder=folder)
        _check_inputs(folder, listing)
        return {BUNDLE: read_file(target, MAX_DEPENDENCY_BYTES)}


def _check_inputs(folder: Path, listing: Path) -> None:
    """Refuses a bundle that holds files of outside of the project: esbuild follows links, and paths that lead up."""
    top = folder.resolve()
    try:
        names = list(json.loads(read_file(listing, MAX_DEPENDENCY_BYTES))["inputs"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PieError("build-failed", f"esbuild did not say what it bundled ({error}); use {ESBUILD} or a newer one") from error
    for name in names:
        place = (top / name).resolve()
        if place.is_relative_to(top) or name.startswith(_DISABLED):
            continue
        message = (
            f"the program imports {str(place)!r}, which lies outside of its folder {str(folder)!r}, and nothing outside is bundled; "
            f"copy it into the folder, or, if it is a package that is linked into {_PACKAGES}, run `npm install --install-links`"
        )
        raise PieError("build-failed", message)
