"""What a client uploads: the bytes of a built program, or of one that is built from source on the way."""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from pie.errors import PieError
from pie.programs import Component, load_program

DEFAULT_VERSION = "0.1.0"

_NOT_IN_NAMES = re.compile(r"[^a-z0-9._-]+")


@dataclass(frozen=True)
class Package:
    """A program that is ready to be sent."""

    data: bytes
    name: str
    """What it is called where its user gives no other name."""

    @property
    def digest(self) -> str:
        """What the server knows the content by."""
        return f"sha256:{hashlib.sha256(self.data).hexdigest()}"


def read_package(program: str | Path | bytes, manifest: str | None = None) -> Package:
    """The program at a path, or that bytes are.

    Source is packed with its manifest (`Pie.toml`): the server's own language runtime runs it. Raises PieError `unknown-program`,
    `invalid-program` or `invalid-manifest`.
    """
    if isinstance(program, bytes):
        return Package(program, "program")
    path = Path(program)
    loaded = load_program(path)
    name = _NOT_IN_NAMES.sub("-", path.resolve().stem.lower()).strip("-._") or "program"
    if not isinstance(loaded, Component):
        # The engine is large, and only source needs it.
        from pie._engine import pack_program  # noqa: PLC0415

        return Package(pack_program(loaded.language, dict(loaded.files), loaded.entry, manifest), name)
    try:
        return Package(loaded.path.read_bytes(), name)
    except OSError as error:
        raise PieError("unknown-program", f"{str(path)!r} cannot be read: {error.strerror}") from error


def identify(manifest: str | None) -> tuple[str | None, str | None]:
    """The name and the version that a manifest (`Pie.toml`) gives. PieError `invalid-manifest` where it is no TOML."""
    if manifest is None:
        return None, None
    try:
        package = tomllib.loads(manifest).get("package", {})
    except tomllib.TOMLDecodeError as error:
        raise PieError("invalid-manifest", f"the manifest is no TOML: {error}") from error
    name, version = (package.get(key) if isinstance(package, dict) else None for key in ("name", "version"))
    return name if isinstance(name, str) else None, version if isinstance(version, str) else None
