"""What a Rust program takes, as far as its files say that where its manifest does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path, PurePosixPath

from pie.errors import PieError
from pie.folder import Folder
from pie.programs import Component

_MAX_FILES = 256
_MAX_ATTRIBUTES = 16
_SOURCES = PurePosixPath("src")
# By these the files of a crate read their arguments themselves, or have a help of their own.
_READS_ARGUMENTS = re.compile(rb'(?<![.\w])args\(\)|\bparse_args\(|\bargs_os\(|\bhelp\s*:|"help"')
# The name of a function of the engine, or of the system, as a built program imports it; it imports only what it calls.
_IMPORTS_ARGUMENTS = (b"\x04args", b"get-arguments")
# At most eight attributes between the two: without a bound, a file of nothing else takes minutes.
_MAIN = re.compile(r"#\[(?:inferlet::)?main\]\s*(?:#\[[^\]]*\]\s*){0,8}(?:pub\s+)?(?:async\s+)?fn\s+\w+\s*\(")
_MARK = re.compile(r"""//|/\*|'\\?"'|\br(?P<hashes>\#{0,8})"|\"""")
_STRING = r'"(?:[^"\\]|\\.)*+"'
_WHOLE_STRING = re.compile(_STRING, re.DOTALL)
_TOKEN = re.compile(rf"{_STRING}|->|[(\[{{<>}}\]),]", re.DOTALL)
_FIELD = re.compile(
    rf"(?P<attributes>(?:\#\[(?:{_STRING}|[^\]\"\#])*+\]\s*){{0,16}}+)(?:pub(?:\([^)]*\))?\s+)?(?:r\#)?(?P<name>\w+)\s*:\s*(?P<type>.+)",
    re.DOTALL,
)
_SERDE = re.compile(r"#\[\s*serde\s*\((.*?)\)\s*\]", re.DOTALL)
_RENAME = re.compile(r'\brename\s*=\s*"([^"\\]*)"')
_RENAME_ALL = re.compile(r'\brename_all\s*=\s*"([^"\\]*)"')
# What makes of a field, or of all of them, something else than a key of its own.
_OTHERWISE = re.compile(r"\b(?:flatten|transparent|untagged|from|try_from|remote|rename_all|rename)\b")
_WORD = re.compile(r"\w+")
_AFTER_AN = ("A", "E", "I", "O", "a", "e", "i", "o", "f32", "f64")
# How `rename_all` writes the words of a name, by what it is called.
_CASES: dict[str, Callable[[list[str]], str]] = {
    "snake_case": "_".join,
    "lowercase": "_".join,
    "UPPERCASE": lambda words: "_".join(words).upper(),
    "SCREAMING_SNAKE_CASE": lambda words: "_".join(words).upper(),
    "PascalCase": lambda words: "".join(map(_capitalized, words)),
    "camelCase": lambda words: words[0] + "".join(map(_capitalized, words[1:])),
}


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
        texts.append(_without_comments(content.decode("utf-8", "replace")))
    taken = next((found for text in texts if (found := _MAIN.search(text)) is not None), None)
    parameters = None if taken is None else _parts(taken.string, taken.end())
    if parameters is None:
        return ["Its manifest does not say what it takes."]
    if not parameters:
        return ["It takes no input."]
    kind = _one_line(parameters[0].partition(":")[2])
    if fields := _fields(kind, texts):
        return fields
    if kind.rpartition("::")[2] == "Value":
        return ["It takes any input."]
    article = "an" if kind.startswith(_AFTER_AN) else "a"
    return [f"Its main takes {article} {kind}, as JSON; its manifest does not say more."]


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


def _without_comments(text: str) -> str:
    """The text without its comments, up to one, or a string, that has no end."""
    kept, at = [], 0
    while (mark := _MARK.search(text, at)) is not None:
        kept.append(text[at : mark.start()])
        match mark[0]:
            case "//":
                end = text.find("\n", mark.end())
            case "/*":
                end = text.find("*/", mark.end()) + 2
                end = -1 if end == 1 else end
            case '"':
                string = _WHOLE_STRING.match(text, mark.start())
                end = -1 if string is None else string.end()
            case one if one.startswith("'"):
                end = mark.end()
            case _:
                close = '"' + mark["hashes"]
                end = text.find(close, mark.end()) + len(close)
                end = -1 if end == len(close) - 1 else end
        if end < 0:
            return "".join(kept)
        if mark[0] == '"':
            kept.append(text[mark.start() : end])
        elif not mark[0].startswith("/"):
            kept.append('""')  # no name is written so
        at = end
    return "".join([*kept, text[at:]])


def _parts(text: str, at: int) -> list[str] | None:
    """What stands between commas, from `at` up to the bracket that closes it; None where there is none."""
    parts, depth = [], 0
    for token in _TOKEN.finditer(text, at):
        match token[0]:
            case "(" | "[" | "{" | "<":
                depth += 1
            case ")" | "]" | "}" | ">" if depth > 0:
                depth -= 1
            case ")" | "]" | "}" | ">":
                parts.append(text[at : token.start()])
                return [part.strip() for part in parts if part.strip()]
            case "," if depth == 0:
                parts.append(text[at : token.start()])
                at = token.end()
    return None


def _fields(name: str, texts: list[str]) -> list[str]:
    """The fields of the struct of a name, a line each; none where it is no struct of the crate with plain fields."""
    if _WORD.fullmatch(name) is None:
        return []
    struct = re.compile(rf"(?<!\w)(?:pub(?:\([^()]{{0,40}}\))?\s+)?struct\s+{name}\s*\{{")
    found = next((found for text in texts if (found := struct.search(text)) is not None), None)
    parts = None if found is None else _parts(found.string, found.end())
    if found is None or parts is None:
        return []
    own = _serde(_attributes_before(found.string[: found.start()]))
    case = _RENAME_ALL.search(own)
    if _OTHERWISE.search(_RENAME_ALL.sub("", own)) or (case is not None and case[1] not in _CASES):
        return []
    rows = []
    for part in parts:
        if (field := _FIELD.fullmatch(part)) is None:
            return []
        said = _serde(field["attributes"])
        renamed = _RENAME.search(said)
        said = _RENAME.sub("", said)  # a field may be called `skip` or `default`
        if re.search(r"\bskip(?:_deserializing)?\b", said):
            continue
        if _OTHERWISE.search(said) or (renamed is not None and _WORD.fullmatch(renamed[1]) is None):
            return []
        key = field["name"] if case is None else _CASES[case[1]](field["name"].split("_"))
        kind = _one_line(field["type"])
        may_miss = any(re.search(r"\bdefault\b", text) for text in (own, said)) or kind.startswith("Option<")
        flag = (key if renamed is None else renamed[1]).replace("_", "-")
        rows.append((f"--{flag}", kind, "(may be left out)" if may_miss else "(required)"))
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    return [f"  {flag:<{widths[0]}}  {kind:<{widths[1]}}  {words}" for flag, kind, words in rows]


def _attributes_before(text: str) -> str:
    """The attributes at the end of a text."""
    attributes: list[str] = []
    while len(attributes) < _MAX_ATTRIBUTES and (text := text.rstrip()).endswith("]") and (at := text.rfind("#[")) >= 0:
        attributes.insert(0, text[at:])
        text = text[:at]
    return "".join(attributes)


def _serde(attributes: str) -> str:
    """What attributes say to serde."""
    return ",".join(_SERDE.findall(attributes))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _capitalized(word: str) -> str:
    return word[:1].upper() + word[1:]
