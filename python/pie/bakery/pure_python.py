"""The dependencies of a Python program: pure wheels, bundled as sources."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from pathlib import Path, PurePosixPath

from pie.bakery.command import run, temporary_folder
from pie.errors import PieError
from pie.folder import Folder, read_file
from pie.programs import MAX_DEPENDENCY_BYTES

RUNTIME_PYTHON = "3.14"
"""The version of the language runtime, by which wheels are chosen."""

_NOT_BUNDLED = frozenset({"__pycache__"})
_COMPILED = {".so", ".pyd", ".dll", ".dylib", ".a", ".wasm"}
_NO_PURE = re.compile(
    r"(?:No matching distribution found for|satisfies the requirement|has no usable wheels|only-binary)\W*([A-Za-z0-9._-]+)"
)


def install(wanted: list[str]) -> dict[str, bytes]:
    """The files of the packages that `requirements` answered, by the paths under which they are imported.

    The installer runs in a folder of its own: in that of the program it would take files of the program for its own
    modules and settings. Raises PieError `build-failed`, naming the dependency that has compiled extensions or is not
    to be had.
    """
    with temporary_folder() as folder:
        target = folder / "packages"
        listed = folder / "requirements.txt"
        listed.write_text("".join(f"{one}\n" for one in wanted), encoding="utf-8")
        try:
            run([*_installer(target), "-r", listed], folder=folder)
        except PieError as error:
            if found := _NO_PURE.search(error.message):
                message = (
                    f"the dependency {found[1]!r} has no release in pure Python, or there is none by that name; programs run in a sandbox "
                    f"that cannot load compiled extensions: choose another package, or a version that is pure\n{error.message}"
                )
                raise PieError("build-failed", message) from error
            raise
        return _collected(target)


def _installer(target: Path) -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        pip = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        return [
            *pip,
            f"--target={target}",
            "--only-binary=:all:",
            "--platform=any",
            "--implementation=py",
            "--abi=none",
            f"--python-version={RUNTIME_PYTHON}",
        ]
    if uv := shutil.which("uv"):
        return [
            uv,
            "pip",
            "install",
            "--link-mode=copy",
            "--quiet",
            "--target",
            str(target),
            "--only-binary=:all:",
            f"--python-version={RUNTIME_PYTHON}",
        ]
    raise PieError("build-failed", "the program has Python dependencies, but neither pip nor uv is there to install them; install one")


def _collected(target: Path) -> dict[str, bytes]:
    with Folder(target) as folder:
        walked = folder.walk(PurePosixPath(), skips=_NOT_BUNDLED, with_hidden=True)
        found = [(path, size_bytes) for path, size_bytes in walked if not _is_about(path)]
        for path, _ in found:
            if path.suffix in _COMPILED:
                package = _package_of(target, path)
                message = (
                    f"the dependency {package!r} has a compiled extension ({path}); programs run in a sandbox that cannot load it: "
                    "choose another package, or a version in pure Python"
                )
                raise PieError("build-failed", message)
        if (n_bytes := sum(size_bytes for _, size_bytes in found)) > MAX_DEPENDENCY_BYTES:
            message = f"the dependencies have {n_bytes} bytes, more than {MAX_DEPENDENCY_BYTES}; depend on fewer, or on smaller ones"
            raise PieError("build-failed", message)
        contents = {path.as_posix(): folder.read(path, MAX_DEPENDENCY_BYTES) for path, _ in found}
    return {path: content for path, content in contents.items() if content is not None}


def _is_about(path: PurePosixPath) -> bool:
    """Whether a file describes a package or is a command of it, so that no program imports it."""
    return path.parts[0] == "bin" or path.parts[0].endswith(".dist-info")


def _package_of(target: Path, file: PurePosixPath) -> str:
    """The distribution that brought a file."""
    for record in sorted(target.glob("*.dist-info/RECORD")):
        listed = read_file(record, MAX_DEPENDENCY_BYTES).decode("utf-8", "replace")
        if any(line.partition(",")[0] == file.as_posix() for line in listed.splitlines()):
            return record.parent.name.partition("-")[0]
    return file.parts[0]
