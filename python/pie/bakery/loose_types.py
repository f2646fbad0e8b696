"""`pie types`: the types of the SDK for scripts that are no project, so that editors and tsc know them."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath

from pie.bakery import sdk
from pie.bakery.output import named_folder
from pie.bakery.type_check import TSCONFIG, loose_settings
from pie.errors import PieError
from pie.folder import read_project_file

_TYPES = PurePosixPath(".pie/sdk/js")
_IGNORE = b"# A link that names a place of this machine; `pie types` makes it anew.\n*\n"


def write_loose_types(folder: Path) -> str:
    """Links the SDK in a folder, and describes it in a `tsconfig.json` where there is none.

    Returns what was done, for people. Raises PieError `build-failed` where the folder is missing or cannot be written,
    or where its own `tsconfig.json` does not name the link: what to add is said.
    """
    if not folder.is_dir():
        raise PieError("build-failed", f"{str(folder)!r} is not a folder; name the one that the scripts lie in")
    link = sdk.make_link(folder)
    with named_folder(link.parent) as opened:
        if not opened.has(".gitignore"):
            opened.write(".gitignore", _IGNORE)
    path = folder / TSCONFIG
    there = read_project_file(folder, TSCONFIG)
    if there is not None and str(sdk.LINK).encode() not in there:
        paths = json.dumps({name: [f"./{_TYPES}/index.d.ts"] for name in sdk.NAMES})
        message = (
            f"{str(path)!r} is yours and is left as it is, but does not name the types, which lie in {str(link)!r} now; "
            f'add "paths": {paths} to its compilerOptions, and "{_TYPES}/globals.d.ts" to its include'
        )
        raise PieError("build-failed", message)
    if there is None:
        settings = loose_settings(f"./{_TYPES}") | {"include": ["**/*.ts", f"{_TYPES}/globals.d.ts"]}
        with named_folder(folder) as opened:
            opened.check(TSCONFIG)
            opened.write(TSCONFIG, (json.dumps(settings, indent=2) + "\n").encode())
    return f"{link} leads to the types, and {path} names them: editors and `tsc -p {folder}` know `inferlet`"
