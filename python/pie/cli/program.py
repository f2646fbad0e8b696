"""The program of a command line: built where it has to be, and what its manifest says of the arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pie.cli.progress import working

if TYPE_CHECKING:
    from pie.bakery.manifest import Manifest
    from pie.bakery.project import Project
    from pie.client.programs import Package
    from pie.programs import Component, Source


def made_ready(project: Project) -> Component | Source:
    """The program to launch; a project that cannot run from its own files is built first.

    Raises the PieErrors of building.
    """
    from pie.bakery.build import needs_building, ready

    if not needs_building(project):
        return ready(project)
    with working(f"Building {project.name}"):
        return ready(project)


def packaged(project: Project) -> Package:
    """The program of a project as it is sent to a server; built first as by `made_ready`."""
    from pie.client.programs import package

    return package(project, made_ready(project))


def wants_help(arguments: Sequence[str], manifest: Manifest) -> bool:
    """Whether `--help` asks for what the manifest says: the program has parameters, and none of that name."""
    return "--help" in arguments and manifest.parameters is not None and all(one.name != "help" for one in manifest.parameters)


def text_parameters(manifest: Manifest | None) -> frozenset[str]:
    """The parameters that are strings: an argument for one of them is no number, whatever it looks like."""
    parameters = manifest.parameters if manifest else None
    return frozenset(one.name for one in parameters or () if one.type == "string")
