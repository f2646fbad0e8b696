"""`pie install`, `pie uninstall` and `pie programs`: the programs of a server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from pie.cli.tables import age, print_table, short_digest, size
from pie.errors import PieError

if TYPE_CHECKING:
    from pie.client import Client

MANIFEST = "Pie.toml"

_COLUMNS = ("NAME", "VERSION", "SIZE", "INSTALLED", "DIGEST")


async def install(client: Client, program: Path, *, name: str | None, version: str | None, manifest: Path | None) -> int:
    """Installs the program at a path and prints what it is called at the server."""
    installed = await client.install(program, name=name, version=version, manifest=read_manifest(program, manifest))
    print(installed)
    return 0


async def uninstall(client: Client, program: str) -> int:
    """Removes `name@version`."""
    name, at, version = program.partition("@")
    if not at:
        raise PieError("invalid-name", f"{program!r} names no version; write it as NAME@VERSION (`pie programs` lists them)")
    await client.uninstall(name, version)
    return 0


async def print_programs(client: Client) -> int:
    """Prints a line for each installed program of the user."""
    now = time.time()
    print_table(
        _COLUMNS,
        [
            (program.name, program.version, size(program.bytes), f"{age(now - program.installed)} ago", short_digest(program.digest))
            for program in await client.programs()
        ],
    )
    return 0


def read_manifest(program: Path, manifest: Path | None) -> str | None:
    """The text of the manifest that was named, or that stands in the folder of the program."""
    if manifest is None:
        manifest = program / MANIFEST
        if not manifest.is_file():
            return None
    try:
        return manifest.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise PieError("invalid-manifest", f"{str(manifest)!r} cannot be read: {reason}") from error
