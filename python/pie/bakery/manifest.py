"""`Pie.toml`: reads the manifest of a project, and makes one where there is none.

The engine itself knows the schema.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pie import _engine
from pie.errors import PieError
from pie.folder import Folder, read_file
from pie.programs import MANIFEST_FILE

MAX_NAME_CHARS = 64
NAME_RULE = "at most 64 of a to z, 0 to 9, '.', '_' and '-', beginning with a letter or digit"
"""What the name of a program is made of, for messages; `is_program_name` and the engine hold to it."""
DEFAULT_VERSION = "0.1.0"
"""The version of a program whose manifest is missing."""

# The engine names the limit of a manifest; this one is for what is no manifest at all.
_MAX_FILE_BYTES = 1 << 20
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9._-]+")


@dataclass(frozen=True)
class Parameter:
    """One field of the input."""

    name: str
    type: str
    """`string`, `int`, `float`, `bool`, `array` or `object`."""
    optional: bool
    default: Any
    """What it is where it is left out; None where there is no default."""
    description: str | None
    choices: tuple[Any, ...]
    min: float | None
    max: float | None


@dataclass(frozen=True)
class Manifest:
    """A manifest that fits the schema."""

    text: str
    """As it is written; what the engine is given."""
    name: str
    version: str
    description: str | None
    language: str | None
    entry: str | None
    parameters: tuple[Parameter, ...] | None
    """In order; None where the program takes any input."""
    http_instance: Literal["request", "shared"] | None
    """What answers a request by HTTP; None where the program serves none."""
    python: tuple[str, ...]
    """The requirements that are bundled, as pip reads them."""


def parse_manifest(text: str, file: str = MANIFEST_FILE) -> Manifest:
    """The manifest of a text.

    Raises PieError `invalid-manifest`, which names the file, the line, the field, its value and what is expected.
    """
    shown = file.encode("utf-8", "backslashreplace").decode()  # a path may be of any bytes
    fields = json.loads(_engine.read_manifest(text, shown))
    parameters = fields["parameters"]
    return Manifest(
        text=text,
        name=fields["package"]["name"],
        version=fields["package"]["version"],
        description=fields["package"]["description"],
        language=fields["program"]["language"],
        entry=fields["program"]["entry"],
        parameters=None if parameters is None else tuple(Parameter(**one | {"choices": tuple(one["choices"])}) for one in parameters),
        http_instance=None if fields["http"] is None else fields["http"]["instance"],
        python=tuple(fields["dependencies"]["python"]),
    )


def read_manifest(path: Path) -> Manifest:
    """The manifest in a file that the user named; PieError `invalid-manifest` also where it cannot be read."""
    try:
        content = read_file(path, _MAX_FILE_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PieError("invalid-manifest", f"the manifest {str(path)!r} cannot be read: {reason}") from error
    except PieError as error:
        raise PieError("invalid-manifest", error.message) from error
    return parse_manifest(_text(content, path), str(path))


def read_own_manifest(folder: Folder, path: Path) -> Manifest | None:
    """The manifest in the folder of a project, at `path`; None where there is none.

    Raises as `Folder.read`, and `invalid-manifest`.
    """
    content = folder.read(PurePosixPath(path.name), _MAX_FILE_BYTES)
    return None if content is None else parse_manifest(_text(content, path), str(path))


def _text(content: bytes, path: Path) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise PieError("invalid-manifest", f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from error


def new_manifest(name: str) -> Manifest:
    """A manifest for a program that has none, called as its file or folder as far as a name may be."""
    return parse_manifest(f'[package]\nname = "{plain_name(name)}"\nversion = "{DEFAULT_VERSION}"\n')


def with_http(manifest: Manifest, *, shared: bool | None, public: bool) -> Manifest:
    """The manifest with a table `[http]`, where it has none.

    Raises PieError `invalid-argument` where it has one that says otherwise.
    """
    if manifest.http_instance is not None:
        if public or (shared is not None and shared != (manifest.http_instance == "shared")):
            message = "the manifest of the program has a table [http] already; say there who may ask and what answers, and nowhere else"
            raise PieError("invalid-argument", message)
        return manifest
    lines = ["", "[http]", f'instance = "{"shared" if shared else "request"}"', f"public = {'true' if public else 'false'}", ""]
    return parse_manifest(manifest.text.rstrip("\n") + "\n" + "\n".join(lines))


def is_program_name(name: str) -> bool:
    """Whether a program can be called so: by the rule of the engine for `package.name`."""
    return _NAME.fullmatch(name) is not None


def plain_name(name: str) -> str:
    """What a program is called whose file or folder is called `name`: as that, as far as a name may be."""
    return _NOT_IN_NAMES.sub("-", name.lower()).strip("._-")[:MAX_NAME_CHARS] or "program"


def title(manifest: Manifest) -> str:
    """What a program is called and is for, in a line."""
    return f"{manifest.name} {manifest.version}" + (f": {manifest.description}" if manifest.description else "")


def usage(manifest: Manifest) -> str:
    """What the program takes, for a terminal: one line a parameter."""
    lines = [title(manifest)]
    if manifest.parameters is None:
        return "\n".join([*lines, "It takes any input."])
    if not manifest.parameters:
        return "\n".join([*lines, "It takes no input."])
    rows = [(f"--{one.name.replace('_', '-')}", one.type, _explained(one)) for one in manifest.parameters]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines += [f"  {flag:<{widths[0]}}  {kind:<{widths[1]}}  {words}".rstrip() for flag, kind, words in rows]
    return "\n".join(lines)


def _explained(parameter: Parameter) -> str:
    notes = []
    if parameter.choices:
        notes.append("one of " + ", ".join(map(_json, parameter.choices)))
    if parameter.min is not None:
        notes.append(f"at least {parameter.min}")
    if parameter.max is not None:
        notes.append(f"at most {parameter.max}")
    if parameter.default is not None:
        notes.append(f"default {_json(parameter.default)}")
    elif not parameter.optional:
        notes.append("required")
    return " ".join(filter(None, [parameter.description, f"({'; '.join(notes)})" if notes else ""]))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
