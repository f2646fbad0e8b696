"""Whether a program can answer requests by HTTP: one that is sure not to is refused before it is served."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from pie.errors import PieError
from pie.programs import MAX_COMPONENT_BYTES, Component, Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pie.bakery.project import Project

_SERVING = (b"http-server", b"incoming-handler")
"""What a component that answers requests has in the names of its imports or exports."""
_DEFAULT = re.compile(rb"\bexport\s+default\b|\bas\s+['\"]?default\b|\bexport\s*\{[^{}]*\bdefault\b")
"""What a module of JavaScript has that exports something as its default."""
_SERVES_ITSELF = re.compile(rb"\bserve\b")
"""The function of the SDK by which a program takes requests itself; it may be imported by another name."""
_READS_ARGUMENTS = re.compile(rb"\b(?:argparse|args|argv|input)\b")
"""A word of a source that may read the arguments of the launch."""
_SOURCES = (".py", ".js", ".mjs", ".ts")
_PYTHON = (
    "add `async def fetch(request: Request) -> Response` to it, with both from inferlet.http_server; it is called for each request, and "
    "`main` is not"
)
_JAVASCRIPT = (
    "add `export default { async fetch(request) { return new Response('hello'); } }` to it; that is called for each request, and `main` "
    "is not"
)
_COMPONENT = (
    "in Rust have `main` call `inferlet::http_server::serve(fetch).await`, with `async fn fetch(request: Request) -> Result<Response>`; "
    "other components export wasi:http/incoming-handler"
)


def check_answers(project: Project, program: Component | Source) -> None:
    """Refuses a program, with PieError `invalid-program`, that has nothing to answer requests with.

    `program` is what was made of the project. A program that may have something is left alone.
    """
    source = project.source if isinstance(project.source, Source) else program
    if isinstance(source, Source):
        _check_source(source.language, source.entry, dict(source.files))
    else:
        _check_component(project.name, source.read())


def may_read_arguments(project: Project, program: Component | Source) -> bool:
    """Whether a program that answers requests may read what stands behind `--`. Its `fetch` is not given any of it.

    A package that it brings may read it too.
    """
    source = program if isinstance(program, Source) else project.source
    if not isinstance(source, Source):
        return True
    return any(_READS_ARGUMENTS.search(content) for path, content in source.files if path.endswith(_SOURCES))


def _check_component(name: str, content: bytes) -> None:
    from pie._engine import read_packed

    packed = read_packed(content, MAX_COMPONENT_BYTES)
    if packed is not None and packed["language"] != "component":
        _check_source(packed["language"], packed["entry"], packed["files"])
    elif not any(word in content for word in _SERVING):
        raise PieError("invalid-program", f"the component {name!r} answers no requests by HTTP; {_COMPONENT}")


def _check_source(language: str, entry: str, files: Mapping[str, bytes]) -> None:
    if any(_SERVES_ITSELF.search(content) for path, content in files.items() if path.endswith(_SOURCES)):
        return
    if language == "python":
        if not _may_bind_fetch(files[entry]):
            raise PieError("invalid-program", f"{entry!r} has no function `fetch`, which answers requests by HTTP; {_PYTHON}")
    elif _DEFAULT.search(files[entry]) is None:
        message = f"{entry!r} has no default export with a function `fetch`, which answers requests by HTTP"
        raise PieError("invalid-program", f"{message}; {_JAVASCRIPT}")


def _may_bind_fetch(content: bytes) -> bool:
    """Whether a file of Python may bind the name: by a definition, an assignment or an import."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True  # launching it says what is wrong
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name="fetch") | ast.AsyncFunctionDef(name="fetch") | ast.ClassDef(name="fetch"):
                return True
            case ast.Name(id="fetch", ctx=ast.Store()) | ast.alias(asname="fetch") | ast.alias(name="fetch" | "*"):
                return True
    return False
