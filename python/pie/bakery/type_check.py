"""`pie build --check`: the types of a program, by the checker of its language, where that is there.

The checkers are the user's own, and those of the project: tsc from its `node_modules`, mypy with the settings and
plug-ins that the project names. So nothing is checked unless somebody asks.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from pie.bakery import sdk
from pie.bakery.command import CommandError, run, shortened, temporary_folder
from pie.bakery.project import Project
from pie.errors import PieError
from pie.folder import read_project_file
from pie.programs import Source

TSCONFIG = "tsconfig.json"

_NO_TSC = "the types were not checked: tsc is not there; install it with `npm install --save-dev typescript`"
_NO_MYPY = "the types were not checked: mypy is not there; install it with `python -m pip install mypy`"
_UNTYPED = "the types were not checked: JavaScript is checked where there is a tsconfig.json with allowJs and checkJs"
_RUST = "the compiler has checked the types"


def check_types(project: Project, packages: Mapping[str, bytes]) -> str:
    """What was found, in a line for people: that the types are right, or why they were not looked at.

    `packages` are the files of the packages of a Python program. Raises PieError `build-failed` with every fault that
    the checker found.
    """
    source = project.source
    if not isinstance(source, Source):
        return _RUST
    return _python(project, source, packages) if source.language == "python" else _typescript(project, source)


def _typescript(project: Project, source: Source) -> str:
    own = project.folder / "node_modules" / ".bin" / "tsc"
    tsc = str(own.resolve()) if own.is_file() else shutil.which("tsc")
    has_settings = read_project_file(project.folder, TSCONFIG) is not None
    if not has_settings and not source.entry.endswith(".ts"):
        return _UNTYPED
    if tsc is None:
        return _NO_TSC
    if has_settings:
        _run([tsc, "--noEmit", "--pretty", "false", "-p", str(project.folder.resolve())], project.folder, "tsc")
        return "tsc has found nothing wrong with the types"
    base = project.base.resolve()
    with temporary_folder() as made:
        settings = made / TSCONFIG
        files = [str(base / name) for name, _ in source.files if name.endswith(".ts")]
        settings.write_text(json.dumps(loose_settings(sdk.FOLDER / "js") | {"files": [*files, str(sdk.FOLDER / "js" / "globals.d.ts")]}))
        _run([tsc, "--noEmit", "--pretty", "false", "-p", str(settings)], project.folder, "tsc")
    return "tsc has found nothing wrong with the types"


def loose_settings(types: Path | str) -> dict[str, object]:
    """What a `tsconfig.json` says for scripts that have none, with the types of the SDK in a folder."""
    return {
        "compilerOptions": {
            "target": "ESNext",
            "module": "ESNext",
            "moduleResolution": "bundler",
            "lib": ["ES2024", "ESNext.Disposable"],
            "types": [],
            "strict": True,
            "noEmit": True,
            "isolatedModules": True,
            "verbatimModuleSyntax": True,
            "erasableSyntaxOnly": True,
            "allowImportingTsExtensions": True,
            "resolveJsonModule": True,
            "paths": {name: [f"{types}/index.d.ts"] for name in sdk.NAMES},
        }
    }


def _python(project: Project, source: Source, packages: Mapping[str, bytes]) -> str:
    mypy = _mypy()
    if mypy is None:
        return _NO_MYPY
    base = project.base.resolve()
    with temporary_folder() as made:
        for name, content in packages.items():
            path = made / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        files = [str(base / name) for name, _ in source.files if name.endswith(".py")]
        options = ["--python-executable", sys.executable, "--explicit-package-bases", "--follow-imports=silent", "--cache-dir", os.devnull]
        path_of_modules = os.pathsep.join([str(base), str(made)])
        _run([*mypy, *options, *files], project.folder, "mypy", {"MYPYPATH": path_of_modules})
    return "mypy has found nothing wrong with the types"


def _mypy() -> list[str] | None:
    """The command of the checker: that of the environment of `pie`, else the one on the path."""
    if importlib.util.find_spec("mypy") is not None:
        return [sys.executable, "-P", "-m", "mypy"]
    found = shutil.which("mypy")
    return None if found is None else [found]


def _run(command: list[str], folder: Path, name: str, environment: Mapping[str, str] | None = None) -> None:
    try:
        run(command, folder=folder, environment=environment)
    except CommandError as error:
        # Both say on stdout what is wrong with the program, and on stderr what is wrong with themselves.
        said = error.stdout if error.stdout.strip() else error.stderr
        raise PieError("build-failed", f"{name} has found faults:\n{shortened(said)}") from error
