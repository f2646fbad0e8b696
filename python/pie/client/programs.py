"""What a client sends: a program as one file of bytes, built on the way where it has to be, and what it is called."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pie import _engine
from pie.bakery.build import ready
from pie.bakery.manifest import DEFAULT_VERSION, parse_manifest, plain_name
from pie.bakery.project import Project, open_project
from pie.errors import PieError
from pie.programs import Component, Source

_NAMELESS = "program"


@dataclass(frozen=True)
class Package:
    """A program that is ready to be sent."""

    data: bytes
    name: str
    """What it is called where its user gives no other name."""
    version: str
    """Its version where its user gives no other one."""
    manifest: str | None
    """The text of its `Pie.toml`: the one that was given, else the one that stands beside it or that it carries."""

    def launchable(self) -> bytes:
        """The program with its manifest inside, as it is launched without being installed.

        Raises PieError `invalid-argument` for a built program that carries another manifest.
        """
        if self.manifest is None:
            return self.data
        packed = _engine.read_packed(self.data)
        if packed is not None and packed["manifest"] == self.manifest:
            return self.data
        if packed is None:
            return _engine.pack_program("component", {}, "", self.manifest, None, self.data)
        message = f"{self.name!r} is built and carries a manifest of its own; build it again with the other one, or install it with that"
        raise PieError("invalid-argument", message)


def read_package(program: Path | bytes, manifest: str | None = None) -> Package:
    """The program at a path, which is built where it cannot run from its own files, or that bytes are.

    `manifest` is the text that takes the place of its own. Raises the PieErrors of `open_project` and `ready`.
    """
    if isinstance(program, Path):
        project = open_project(program, None if manifest is None else parse_manifest(manifest))
        return package(project, ready(project))
    if manifest is None:
        packed = _engine.read_packed(program)
        manifest = None if packed is None else packed["manifest"]
    if manifest is None:
        return Package(program, _NAMELESS, DEFAULT_VERSION, None)
    described = parse_manifest(manifest)
    return Package(program, described.name, described.version, manifest)


def package(project: Project, program: Component | Source) -> Package:
    """What `ready` made of a project, to be sent. Source is packed: the server's own language runtime runs it."""
    if isinstance(program, Source):
        data = _engine.pack_program(program.language, dict(program.files), program.entry, program.manifest)
    else:
        data = program.read()
    described = project.manifest
    if described is None:
        return Package(data, plain_name(project.name), DEFAULT_VERSION, None)
    return Package(data, described.name, described.version, described.text)
