"""The options that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pie.cli.completing import complete_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pie.config import Flags

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The configuration file; ~/.pie/config.toml, or that in XDG_CONFIG_HOME, if not given.",
        show_default=False,
    ),
]
ModelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="NAME|DIR",
        help="A model of the configuration, or a folder in the Hugging Face format; may be repeated, the first is the default.",
        show_default=False,
        autocompletion=complete_model,
    ),
]
DummyOption = Annotated[bool, typer.Option("--dummy", help="Answer with the dummy driver: hashes in place of a model.")]
LimitOption = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=N", help="A limit of each program, as in cpu_s=60 or memory_bytes=1GiB.", show_default=False),
]

MountOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mount", metavar="DIR=/PATH", help="A folder that programs read at /PATH, as in docs=/data; may be repeated.", show_default=False
    ),
]
AllowNetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-net",
        metavar="HOST[:PORT]",
        help="A server that programs may send HTTP requests to, as in api.example.com:443; may be repeated.",
        show_default=False,
    ),
]
FilesOption = Annotated[
    Path | None,
    typer.Option(
        "--files",
        metavar="DIR",
        help="Save the files that the program sends in DIR, as file-1.bin and so on; it is made when one comes.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def config_flags(
    config: Path | None, model: list[str] | None, dummy: bool, limit: list[str] | None, values: Mapping[str, object] | None = None
) -> Flags:
    """What the options say, for `pie.config.load`.

    `values` are settings with an option of their own: `{"server.port": port}`.
    """
    from pie.config import Flags

    return Flags(file=config, models=tuple(model or ()), dummy=dummy, limits=tuple(limit or ()), values=values or {})


def surroundings(mount: list[str] | None, allow_net: list[str] | None) -> dict[str, object]:
    """The settings that `--mount` and `--allow-net` give."""
    return _mounts(mount) | ({"runtime.allow_net": allow_net} if allow_net else {})


def _mounts(given: list[str] | None) -> dict[str, object]:
    """The setting that `--mount` gives; a relative folder is one of the current folder."""
    if not given:
        return {}
    written = [text.rpartition("=") for text in given]
    # What names no folder is refused with the others, by the one who knows how they are written.
    return {"runtime.fs_mounts": [f"{Path(folder).absolute()}={path}" if folder else path for folder, _, path in written]}
