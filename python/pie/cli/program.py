"""The program of a command line: built where it has to be, and what its manifest says of the arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pie.cli.arguments import WORDS, doubts
from pie.cli.progress import working
from pie.cli.terminal import warn
from pie.errors import PieError

if TYPE_CHECKING:
    from pathlib import Path

    from pie.bakery.manifest import Manifest
    from pie.bakery.project import Project
    from pie.cli.arguments import Json
    from pie.client.programs import Package
    from pie.programs import Component, Source

# By these a program reads its arguments itself: `sys.argv` and what parses it, `inferlet.args()`, or a field `help`.
_OWN_HELP = (b"argv", b"argparse", b"args(", b"'help'", b'"help"', b".help")
_WORDS = (WORDS.encode(), b"argv", b"argparse", b"args(")
_MAX_SHOWN_WORDS = 3
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_NAMED = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]{0,31}")
_INSTALLED = re.compile(rf"{_NAMED.pattern}@{_VERSION.pattern}")


def made_ready(project: Project) -> Component | Source:
    """The program to launch; a project that cannot run from its own files is built first.

    Raises the PieErrors of building.
    """
    from pie.bakery.build import needs_building, ready
    from pie.bakery.dependencies import misnamed_list

    if (misnamed := misnamed_list(project)) is not None:
        warn(f"{misnamed} beside the program is not read; call it requirements.txt, and its packages are installed")
    note_emptiness(project)
    if not needs_building(project):
        return ready(project)
    with working(f"Building {project.name}"):
        return ready(project)


def packaged(project: Project) -> Package:
    """The program of a project as it is sent to a server; built first as by `made_ready`."""
    from pie.client.programs import package

    return package(project, made_ready(project))


def help_of(arguments: Sequence[str], project: Project) -> str | None:
    """What the program takes, for a terminal, where `--help` asks for that; None where the program gets the arguments.

    It gets them where it has a parameter of that name, and where its own files read arguments: then it may have a help
    of its own.
    """
    if "--help" not in arguments:
        return None
    from pie.bakery.manifest import title, usage

    manifest = project.manifest
    if manifest is not None and manifest.parameters is not None:
        return None if any(one.name == "help" for one in manifest.parameters) else usage(manifest)
    taken = _taken(project)
    if taken is None:
        return None
    lines = [project.name if manifest is None else title(manifest), *taken]
    lines += [
        'What follows `--` becomes the fields of its input: -- --name Ada gives {"name": "Ada"}; --input JSON gives all of it.',
        "A [parameters] table in a Pie.toml beside it says what it takes, and has that checked.",
    ]
    return "\n".join(lines)


def usage_of_built(project: Project, manifest: Manifest) -> str:
    """What a program takes that was built with a manifest, for a terminal, in the words of `help_of`."""
    from pie.bakery.manifest import title, usage

    if manifest.parameters is not None:
        return usage(manifest)
    return "\n".join([title(manifest), *(_taken(project) or ["It reads its arguments itself."])])


def _taken(project: Project) -> list[str] | None:
    """What a program takes whose manifest does not say it; None where it reads its arguments itself."""
    from pie.cli import rust_help
    from pie.programs import Source

    if project.source is None:
        return rust_help.of_crate(project.folder)
    if not isinstance(project.source, Source):
        return rust_help.of_component(project.source)
    if _reads(project.source, _OWN_HELP):
        return None
    parameters = [] if project.manifest is not None else _parameters(project.source)
    return parameters or ["It takes any input."]


def _parameters(source: Source) -> list[str]:
    """The parameters of a `main` in Python that are bound by their names, as of one that has several: a line each.

    Of one that has a single one, which gets the whole input, there is nothing to say.
    """
    content = dict(source.files).get(source.entry)
    if source.language != "python" or content is None:
        return []
    try:
        body = ast.parse(content).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # launching it says what is wrong
    mains = [one for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name == "main"]
    if not mains:
        return []
    given = mains[-1].args
    named = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [*[None] * (len(named) - len(given.defaults)), *given.defaults, *given.kw_defaults]
    named += given.kwonlyargs
    if len(named) <= 1 and not given.kwonlyargs:
        return []
    rows = []
    for one, default in zip(named, defaults, strict=True):
        kind = ast.unparse(one.annotation) if one.annotation is not None else ""
        rows.append((f"--{one.arg.replace('_', '-')}", kind, "(required)" if default is None else f"(default {ast.unparse(default)})"))
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return [f"  {flag:<{widths[0]}}  {kind:<{widths[1]}}  {words}" for flag, kind, words in rows]


def note_emptiness(project: Project) -> None:
    """Warns of a program in Python whose entry has nothing that could run: it ends at once, and prints nothing."""
    from pie.programs import Source

    source = project.source
    if not isinstance(source, Source) or source.language != "python":
        return
    try:
        body = ast.parse(dict(source.files)[source.entry]).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # launching it says what is wrong
    if all(isinstance(one, ast.Pass) or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)) for one in body):
        remedy = "write `async def main(input): ...` into it, which is called, or statements"
        warn(f"{source.entry} has nothing to run, so that the program ends at once; {remedy}")


def note_doubts(arguments: Sequence[str], manifest: Manifest | None) -> None:
    """Warns of arguments that were probably meant to be taken otherwise."""
    for doubt in doubts(arguments, text_parameters(manifest)):
        warn(doubt)


def note_words(program_input: Json, project: Project) -> None:
    """Warns of words without a name that the program does not look for; its manifest refuses them if it can."""
    from pie.programs import Source

    words = program_input.get(WORDS) if isinstance(program_input, dict) else None
    has_parameters = project.manifest is not None and project.manifest.parameters is not None
    if not isinstance(words, list) or has_parameters or not isinstance(project.source, Source) or _reads(project.source, _WORDS):
        return
    shown = ", ".join(repr(word) for word in words[:_MAX_SHOWN_WORDS]) + (", ..." if len(words) > _MAX_SHOWN_WORDS else "")
    remedy = "give each a name, as in -- --name VALUE"
    if any(isinstance(word, bool) for word in words):
        remedy += "; switches of pie, such as --dummy, take no value"
    warn(f"no file of {project.name} reads words without a name, which are in the input as {WORDS!r}: {shown}; {remedy}")


def _reads(source: Source, words: Sequence[bytes]) -> bool:
    """Whether a file of the program has one of these words."""
    return any(word in content for _, content in source.files for word in words)


def _is_there(program: Path) -> bool:
    """Whether something lies at a path, or cannot be looked for: opening it says what is wrong with the path."""
    try:
        return program.exists()
    except (OSError, ValueError):
        return True


def installed_name(program: Path) -> str | None:
    """The `NAME@VERSION` that the path of a program is, where nothing lies at it; None where it is something else."""
    name = str(program)
    if _INSTALLED.fullmatch(name) is None:
        return None
    return None if _is_there(program) else name


def check_version(program: Path) -> None:
    """PieError `unknown-program` where nothing lies at a path that is a name and an `@` without a version behind it."""
    name, at, version = str(program).partition("@")
    if not at or _NAMED.fullmatch(name) is None or _VERSION.fullmatch(version) is not None or "/" in version or _is_there(program):
        return

    from pie.config.suggest import shortened

    what = f"{shortened(version)!r} is not the version of a program" if version else f"no version is behind the @ of {name!r}"
    message = f"{what}, and nothing lies at that path; write {name}@VERSION (`pie programs` lists them), or check the path"
    raise PieError("unknown-program", message)


def check_place(program: Path) -> None:
    """PieError `unknown-program` where nothing lies at a path that could be a name, with or without a version."""
    check_version(program)
    name = str(program)
    if _NAME.fullmatch(name) is None or _is_there(program):
        return
    message = (
        f"there is no program at {name!r}; check the path, or, for one that is installed in a server, write "
        f"{name}@VERSION (`pie programs` lists them), or add --server URL"
    )
    raise PieError("unknown-program", message)


def text_parameters(manifest: Manifest | None) -> frozenset[str]:
    """The parameters that are strings: an argument for one of them is no number, whatever it looks like."""
    parameters = manifest.parameters if manifest else None
    return frozenset(one.name for one in parameters or () if one.type == "string")
