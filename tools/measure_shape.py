"""Prints the shape of a tree: `python -m tools.measure_shape [--at COMMIT]`.

For each crate, package and SDK: its lines, its longest file and its longest function. Tests and what is generated are
left out. With `--at COMMIT` each number stands behind that of the commit.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = {
    **{
        f"rust/{name}": f"rust/{name}/src/"
        for name in ("core", "host", "server", "text", "kernels", "python", "client", "channel", "js-runtime")
    },
    "pie": "python/pie/",
    "SDK of Python": "python/inferlet/",
    "SDK of JavaScript": "js/inferlet/src/",
    "SDK of Rust": "rust/inferlet/src/",
    "macros of Rust": "rust/inferlet-macros/src/",
    "client of JavaScript": "js/client/src/",
}
"""Where the code of each part lies."""

_RUST_FUNCTION = re.compile(r"( *)(?:pub(?:\([a-z: ]+\))? )?(?:(?:const|async|unsafe) )*fn (\w+)")
_RUST_TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{", re.MULTILINE)
_SCRIPT_FUNCTION = re.compile(
    r"( *)(?:export |default |static |async |private )*"
    r"(?:(?:function\*? )(?P<own>\w+)(?:<[^>]*>)?\(|\*?(?P<method>#?\w+)(?:<[^>]*>)?\([^;]*\{$)"
)
_SCRIPT_WORDS = {"if", "for", "while", "switch", "catch", "return", "super", "await"}


@dataclass(frozen=True)
class Shape:
    """A part of a tree."""

    n_files: int
    n_lines: int
    longest_file: tuple[int, str]
    longest_function: tuple[int, str]


def rust_functions(text: str) -> dict[str, int]:
    """The lines of each function of a Rust file as rustfmt writes it, tests of the file itself left out."""
    lines = _RUST_TESTS.split(text, maxsplit=1)[0].splitlines()
    lengths = {}
    for start, line in enumerate(lines):
        begun = _RUST_FUNCTION.match(line)
        if begun is None:
            continue
        # One without a body ends with a semicolon, one on a line of its own with a brace.
        ends = (number for number, other in enumerate(lines[start:], 1) if re.match(rf"{begun[1]}(\}}|\S.*[;}}]$)", other))
        lengths[f"{begun[2]} in line {start + 1}"] = next(ends, 0)
    return lengths


def python_functions(text: str) -> dict[str, int]:
    """The same of a module of Python."""
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {f"{node.name} in line {node.lineno}": (node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes}


def script_functions(text: str) -> dict[str, int]:
    """The same of a module of TypeScript: functions and methods, by their indentation."""
    lines, lengths = text.splitlines(), {}
    for start, line in enumerate(lines):
        begun = _SCRIPT_FUNCTION.match(line)
        name = (begun["own"] or begun["method"]) if begun else None
        if begun and name not in _SCRIPT_WORDS:
            ends = (number for number, other in enumerate(lines[start:], 1) if other.startswith(f"{begun[1]}}}"))
            lengths[f"{name} in line {start + 1}"] = next(ends, 0)
    return lengths


_FUNCTIONS = {".rs": rust_functions, ".py": python_functions, ".ts": script_functions}


def shape(files: Mapping[str, str]) -> Shape:
    """The shape of files by their names."""
    lengths = {name: _own_lines(name, text) for name, text in files.items()}
    functions = [
        (n_lines, f"{name.rpartition('/')[2]}: {function}")
        for name, text in files.items()
        for function, n_lines in _FUNCTIONS[Path(name).suffix](text).items()
    ]
    longest = max(((n_lines, name.rpartition("/")[2]) for name, n_lines in lengths.items()), default=(0, "none"))
    return Shape(len(files), sum(lengths.values()), longest, max(functions, default=(0, "none")))


def _own_lines(name: str, text: str) -> int:
    return len((_RUST_TESTS.split(text, maxsplit=1)[0] if name.endswith(".rs") else text).splitlines())


def shapes(files: Mapping[str, str]) -> dict[str, Shape]:
    """The shape of each part of a tree, of which there are all files."""
    return {
        part: shape({name: text for name, text in files.items() if name.startswith(folder) and is_code(name, text)})
        for part, folder in PARTS.items()
    }


def is_code(name: str, text: str) -> bool:
    """Whether a file is the product's own code: no test, nothing generated, no types alone."""
    path = Path(name)
    is_test = re.search(r"(^|_)(tests?|modelled)(_|$)", path.stem) or "tests" in path.parts
    is_made = "Generated from" in text.partition("\n")[0]
    return path.suffix in _FUNCTIONS and not name.endswith(".d.ts") and not is_test and not is_made


def files_now(root: Path) -> dict[str, str]:
    """The files of the working tree that are under version control."""
    listed = subprocess.run(["git", "ls-files", "-z", *PARTS.values()], cwd=root, check=True, capture_output=True, text=True).stdout
    names = (name for name in listed.split("\0") if Path(name).suffix in _FUNCTIONS and (root / name).is_file())
    return {name: (root / name).read_text(encoding="utf-8") for name in names}


def files_at(root: Path, commit: str) -> dict[str, str]:
    """Those of a commit. Raises SystemExit where there is none of that name."""
    made = subprocess.run(["git", "archive", "--format=tar", commit], cwd=root, check=False, capture_output=True)
    if made.returncode != 0:
        raise SystemExit(f"git has no commit {commit!r} here: {made.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as archive:
        return dict(_texts(archive))


def _texts(archive: tarfile.TarFile) -> Iterator[tuple[str, str]]:
    for member in archive:
        content = archive.extractfile(member) if member.isfile() and Path(member.name).suffix in _FUNCTIONS else None
        if content is not None:
            yield member.name, content.read().decode("utf-8", "replace")


def table(now: Mapping[str, Shape], before: Mapping[str, Shape] | None = None) -> str:
    """The parts in a table; what was before stands in front of an arrow."""
    lines = ["| part | files | lines | longest file | longest function |", "|---|---|---|---|---|"]
    for part, found in now.items():
        cells = _cells(found)
        if before is not None:
            cells = [old if old == new else f"{old} -> {new}" for old, new in zip(_cells(before[part]), cells, strict=True)]
        lines.append(f"| {part} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cells(found: Shape) -> list[str]:
    longest = (f"{n_lines} ({name})" for n_lines, name in (found.longest_file, found.longest_function))
    return [str(found.n_files), f"{found.n_lines:,}", *longest]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", metavar="COMMIT", help="show what was at this commit before what is in the tree")
    given = parser.parse_args(arguments)
    before = shapes(files_at(ROOT, given.at)) if given.at else None
    print(table(shapes(files_now(ROOT)), before))
    return 0


if __name__ == "__main__":
    sys.exit(main())
