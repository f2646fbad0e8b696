"""What the files of a program import from beside them.

A file may be anybody's, and so none is parsed: parsers recurse, take their time, and make many times as much of a text
as it is long. It is looked through once from its beginning to its end; texts and comments of Python are passed over.
The language runtime judges the file.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from pie.errors import PieError
from pie.folder import Folder

MAX_IMPORTS = 1 << 16
"""The most different imports that are looked for, of all files of a program."""

_TOP = PurePosixPath()
_MAX_NAME_PARTS = 64
"""No file is looked for beyond so many parts of a dotted name."""
_MAX_NAME_CHARS = 512
"""A name of more characters, before or behind `import`, is passed over: it names no file."""

# Repeats are possessive: nothing is looked at twice, and nothing is kept in order to go back.
_PYTHON = re.compile(
    r"""
    \#[^\r\n]*+
    | \"{3} (?: [^"\\]++ | \\. | "(?!"") )*+ (?: \"{3} )?
    | '{3} (?: [^'\\]++ | \\. | '(?!'') )*+ (?: '{3} )?
    | " (?: [^"\\\r\n]++ | \\\r\n | \\. )*+ (?: " )?
    | ' (?: [^'\\\r\n]++ | \\\r\n | \\. )*+ (?: ' )?
    | (?<!\w) (?P<word> from | import ) (?!\w)
    """,
    re.VERBOSE | re.DOTALL,
)
_BASE = re.compile(r"(?:[\w. \t\f]++|\\\r?\n)++")
_NAMES = re.compile(r"(?:[ \t\f]++|\\\r?\n)*+(?:\((?P<inner>(?:[\w*, \t\f\r\n\\]++|\#[^\r\n]*+)*+)|(?P<line>(?:[\w*., \t\f]++|\\\r?\n)*+))")
_COMMENT = re.compile(r"\#[^\r\n]*+")
_SCRIPT = re.compile(r"""(?:\bfrom|\bimport|\bimport\s*+\()\s*+(['"])(\.{1,2}/[^'"\n]++)\1""")


class Imports:
    """The imports of one program, whose files lie in an open folder. Each is looked for once."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._looked_for: set[str] = set()
        self._listings: dict[PurePosixPath, frozenset[str]] = {}
        self._found: set[PurePosixPath] = set()

    def of(self, path: PurePosixPath, content: bytes) -> list[PurePosixPath]:
        """The files in the folder that a file imports, without those that another one imported before.

        Raises PieError `invalid-program` where the program imports too much, and as `Folder.is_file`.
        """
        text = content.decode("utf-8", "replace")
        if path.suffix == ".py":
            return [file for name in self._new(python_imports(path, text)) for file in self._python_files(name)]
        return [file for target in self._new(_script_imports(path, text)) for file in self._script_files(PurePosixPath(target))]

    def _new(self, wanted: Iterable[str]) -> Iterator[str]:
        for one in wanted:
            if one not in self._looked_for:
                if len(self._looked_for) == MAX_IMPORTS:
                    message = (
                        f"the program imports more than {MAX_IMPORTS} modules; import fewer, or make it a folder, which is taken whole"
                    )
                    raise PieError("invalid-program", message)
                self._looked_for.add(one)
                yield one

    def _python_files(self, name: str) -> Iterator[PurePosixPath]:
        """The files that importing the dotted `name` runs, packages on the way included."""
        here = _TOP
        for part in name.split(".")[:_MAX_NAME_PARTS]:
            there, here, file = self._listing(here), here / part, f"{part}.py"
            if part in there and "__init__.py" in self._listing(here) and self._is_new(here / "__init__.py"):
                yield here / "__init__.py"
            if file in there and self._is_new(here.with_name(file)):
                yield here.with_name(file)
            if part not in there:
                return

    def _script_files(self, target: PurePosixPath) -> Iterator[PurePosixPath]:
        """The file that a path in a script names, as it is or with its ending left out."""
        if ".." in target.parts or not target.name:
            return
        stem = target.name.removesuffix(".js")
        there = self._listing(target.parent)
        for name in (target.name, f"{stem}.ts", f"{target.name}.js", f"{target.name}.ts"):
            if name in there and self._folder.is_file(target.with_name(name)):
                if self._is_new(target.with_name(name)):
                    yield target.with_name(name)
                return

    def _is_new(self, path: PurePosixPath) -> bool:
        """Whether a file lies there that was not found before."""
        if path in self._found or not self._folder.is_file(path):
            return False
        self._found.add(path)
        return True

    def _listing(self, path: PurePosixPath) -> frozenset[str]:
        """The names in a folder; none where it is not one."""
        if path not in self._listings:
            self._listings[path] = self._folder.names(path)
        return self._listings[path]


def python_imports(path: PurePosixPath, text: str) -> Iterator[str]:
    """The dotted names that a Python file imports; where it may be a module or a name in one, both."""
    begun: int | None = None
    at = 0
    while match := _PYTHON.search(text, at):
        at = match.end()
        if match["word"] == "from":
            begun = at
        elif match["word"] == "import":
            base = None if begun is None else _BASE.fullmatch(text, begun, match.start())
            begun = None
            names = _NAMES.match(text, at)
            assert names is not None, "it matches the empty text"
            at = names.end()
            listed = [_name(one) for one in _COMMENT.sub("", names["inner"] or names["line"] or "").split(",")]
            if base is None:
                yield from filter(None, listed)
                continue
            if not (of := _name(base[0])):
                continue
            module = _module(path, of)
            if module:
                yield module
            # One after the other: all of them together may be as long as the module times how many they are.
            yield from (f"{module}.{name}".strip(".") for name in dict.fromkeys(listed) if name)


def _name(text: str) -> str:
    """The dotted name in a text, without the one that is given to it (`as`)."""
    words = text.replace("\\", " ").split()
    words = words[: words.index("as")] if "as" in words else words
    name = unicodedata.normalize("NFKC", "".join(words))
    return name if len(name) <= _MAX_NAME_CHARS else ""


def _module(path: PurePosixPath, base: str) -> str:
    """The dotted name of what stands between `from` and `import` in a file."""
    name = base.lstrip(".")
    level = len(base) - len(name)
    package = path.parent.parts[: max(0, len(path.parent.parts) - level + 1)] if level else ()
    return ".".join([*package, *filter(None, [name])])


def _script_imports(path: PurePosixPath, text: str) -> Iterator[str]:
    """The paths that a script imports, from the top of the folder."""
    for match in _SCRIPT.finditer(text):
        yield os.path.normpath(path.parent / match[2])
