"""`pie install`, `pie uninstall` and `pie programs`: the programs of a server."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pie.bakery.manifest import new_manifest, parse_manifest, read_manifest, with_http
from pie.bakery.project import open_project
from pie.cli.handlers import check_answers
from pie.cli.program import made_ready
from pie.cli.remote import Server, listed_of, talk
from pie.cli.tables import age, print_json, print_table, short_digest, size
from pie.cli.terminal import warn
from pie.config.suggest import shortened
from pie.errors import PieError

if TYPE_CHECKING:
    from pie.client import Client

_COLUMNS = ("NAME", "VERSION", "SIZE", "INSTALLED", "DIGEST")
# What a server calls the list of everybody's in the error of a role.
_ALL_USERS = '"all_users"'
# Versions that an error names.
_MAX_VERSIONS = 8


@dataclass(frozen=True)
class HttpOptions:
    """How a program is to answer requests by HTTP."""

    shared: bool
    """By one instance for all."""
    public: bool
    """Of anybody."""


def install(  # noqa: PLR0913  # options of one command
    server: Server, program: Path, *, name: str | None, version: str | None, manifest: Path | None, http: HttpOptions | None
) -> int:
    """Installs the program at a path, and prints what it is called at the server; returns the exit code.

    Sources are built first where they have to be. With `http` it gets a table `[http]`, unless its manifest has one. It
    is refused then where it has nothing to answer requests with.
    """
    project = open_project(program, None if manifest is None else read_manifest(manifest))
    ready = made_ready(project)
    if http is not None:
        check_answers(project, ready)

    from pie.client.programs import package as packaged  # with a client, which mistakes above do not wait for

    package = packaged(project, ready)
    text = package.manifest
    if http is not None:
        described = new_manifest(package.name) if text is None else parse_manifest(text)
        text = with_http(described, shared=http.shared or None, public=http.public).text

    async def send(client: Client) -> int:
        said = {"name": name or package.name, "version": version or package.version, "manifest": text}
        before = {f"{one.name}@{one.version}": one.digest for one in await client.programs()}
        installed = await client.install(package.data, **said)
        print(installed, flush=True)
        try:
            await _tell_what_it_changes(client, installed, before)
        except PieError as error:
            # The program is there, so that the installation has not failed.
            unknown = f"the list of programs, by which it would be told what {installed} replaces, cannot be read"
            told = f"{installed} is installed; {unknown} ([{error.code}] {error.message}); `pie programs` prints it"
            warn(server.advised(told))
        return 0

    return talk(server, lambda client, _: send(client))


async def _tell_what_it_changes(client: Client, installed: str, before: Mapping[str, str]) -> None:
    """Says, on stderr, that a program was replaced, and that its bare name launches another version.

    `before` has the digests of what was installed.
    """
    name, _, version = installed.partition("@")
    there = [one for one in await client.programs() if one.name == name]
    replaced = before.get(installed)
    if replaced is not None and any(one.version == version and one.digest != replaced for one in there):
        print(f"{installed} was installed with other content ({short_digest(replaced)}), and is replaced", file=sys.stderr)
    # The list ends with the version that the name launches.
    if there and there[-1].version != version:
        higher = there[-1].version
        remedy = f"launch {installed} by its version, or install a higher one with --version"
        print(f"{higher} is higher than {version}, and {name!r} launches {name}@{higher}; {remedy}", file=sys.stderr)


async def uninstall(client: Client, program: str, owner: str | None) -> int:
    """Removes `name@version`, one of `owner` for an operator. A name alone means its one version, which is told."""
    name, at, version = program.partition("@")
    if not at:
        version = await _only_version(client, program, owner)
    await client.uninstall(name, version, user=owner)
    if not at:
        print(f"{name}@{version} is uninstalled, the only version of {name!r}", file=sys.stderr)
    return 0


async def _only_version(client: Client, name: str, owner: str | None) -> str:
    """The version of a name that has one.

    PieError `invalid-name` where there are several, or none, and `not-permitted` where another's are for operators.
    """
    try:
        programs = await listed_of(owner, client.user, client.programs)
    except PieError as error:
        if error.code != "not-permitted":
            raise
        # Whoever typed `--of` did not ask for everybody's programs.
        message = error.message.replace(_ALL_USERS, "`--of` with another user", 1)
        raise PieError(error.code, message, error.details) from error
    found = [one.version for one in programs if one.name == name]
    if len(found) == 1:
        return found[0]
    shown = ", ".join(f"{name}@{version}" for version in found[:_MAX_VERSIONS])
    more = f" and {len(found) - _MAX_VERSIONS} more" if len(found) > _MAX_VERSIONS else ""
    remedy = f"write one that is installed: {shown}{more}"
    if not found:
        remedy = "and no program of that name is installed (`pie programs` lists those there are)"
    raise PieError("invalid-name", f"{shortened(name)!r} names no version; {remedy}")


async def print_programs(client: Client, *, all_users: bool, as_json: bool) -> int:
    """Prints a line for each installed program of the user, or of everybody."""
    programs = await client.programs(all_users=all_users)
    if as_json:
        print_json(programs)
        return 0
    now = time.time()
    print_table(
        ("USER", *_COLUMNS) if all_users else _COLUMNS,
        [
            (
                *([program.user or ""] if all_users else []),
                program.name,
                program.version,
                size(program.bytes),
                f"{age(now - program.installed)} ago",
                short_digest(program.digest),
            )
            for program in programs
        ],
    )
    return 0
