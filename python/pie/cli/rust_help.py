"""What a Rust program takes, as far as its files say that where its manifest does not."""

from __future__ import annotations

import re
from itertools import islice, takewhile
from pathlib import Path, PurePosixPath

from pie.errors import PieError
from pie.folder import Folder
from pie.programs import Component

_MAX_FILES = 256
_SOURCES = PurePosixPath("src")
# By these the files of a crate read their arguments themselves, or have a help of their own.
_READS_ARGUMENTS = re.compile(rb'(?<![.\w])args\(\)|\bparse_args\(|\bargs_os\(|\bhelp\s*:|"help"')
# The name of a function of the engine, or of the system, as a built program imports it; it imports only what it calls.
_IMPORTS_ARGUMENTS = (b"\x04args", b"get-arguments")
# At most eight attributes between the two: without a bound, a file of nothing else takes minutes.
_MAIN = re.compile(r"#\[(?:inferlet::)?main\]\s*(?:#\[[^\]]*\]\s*){0,8}(?:pub\s+)?(?:async\s+)?fn\s+\w+\s*\((?P<parameter>[^()]*)\)")
_FIELD = re.compile(r"(?:pub(?:\([^)]*\))?\s+)?(?:r#)?(?P<name>\w+)\s*:\s*(?P<type>.+?),?")
_WORD = re.compile(r"\w+")


def of_component(component: Component) -> list[str] | None:
    """What to say of a built program; None where it reads its arguments itself, or carries sources that may."""
    from pie import _engine

    content = component.read()
    packed = _engine.read_packed(content)
    if (packed is not None and packed["language"] != "component") or any(name in content for name in _IMPORTS_ARGUMENTS):
        return None
    return ["Its manifest does not say what it takes." if packed and packed["manifest"] else "It has no manifest that says what it takes."]


def of_crate(folder: Path) -> list[str] | None:
    """What the `main` of the crate in a folder takes; None where its files read arguments.

    Raises PieError as `Folder.read`.
    """
    texts = []
    for content in _sources(folder):
        if _READS_ARGUMENTS.search(content):
            return None
        texts.append(content.decode("utf-8", "replace"))
    taken = next((found for text in texts if (found := _MAIN.search(text)) is not None), None)
    if taken is None:
        return ["Its manifest does not say what it takes."]
    kind = taken["parameter"].partition(":")[2].strip().removesuffix(",").rstrip()
    if not kind:
        return ["It takes any input."]
    return _fields(kind, texts) or [f"Its main takes a {kind}, as JSON; its manifest does not say more."]


def _sources(folder: Path) -> list[bytes]:
    try:
        with Folder(folder) as opened:
            if not opened.is_dir(_SOURCES):
                return []
            paths = (path for path, _ in opened.walk(_SOURCES, skips=frozenset()) if path.suffix == ".rs")
            found = (opened.read(_SOURCES / path) for path in islice(paths, _MAX_FILES))
            return [content for content in found if content is not None]
    except OSError as error:
        raise PieError("unknown-program", f"{str(folder)!r} cannot be read: {error.strerror}") from error


def _fields(name: str, texts: list[str]) -> list[str]:
    """The fields of the struct of a name, a line each; none where it is no plain struct of the crate."""
    if _WORD.fullmatch(name) is None:
        return []
    struct = re.compile(rf"^(?:pub(?:\([^)]*\))?\s+)?struct\s+{name}\s*\{{", re.MULTILINE)
    found = next((found for text in texts if (found := struct.search(text)) is not None), None)
    if found is None:
        return []
    body = found.string[found.end() :].partition("\n}")[0]
    before = takewhile(lambda line: line.startswith(("#[", "//")), reversed(found.string[: found.start()].splitlines()))
    own = "".join(line for line in before if line.startswith("#["))
    if any(word in text for word in ("rename", "flatten") for text in (own, body)):
        return []
    rows, attributes = [], ""
    for line in map(str.strip, body.splitlines()):
        if line.startswith("#["):
            attributes += line
        elif (field := _FIELD.fullmatch(line.partition("//")[0].rstrip())) is not None:
            may_miss = "default" in own + attributes or field["type"].startswith("Option<")
            words = "(may be left out)" if may_miss else "(required)"
            rows.append((f"--{field['name'].replace('_', '-')}", field["type"], words))
            attributes = ""
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    return [f"  {flag:<{widths[0]}}  {kind:<{widths[1]}}  {words}" for flag, kind, words in rows]
