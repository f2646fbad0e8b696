"""Generated files: written, or compared with what they should be."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_COLUMNS = 120
"""What a line of comments and documentation may have."""


def wrapped(text: str, prefix: str = "", columns: int = MAX_COLUMNS) -> str:
    """The lines of a text, each behind the prefix."""
    lines = textwrap.wrap(
        text,
        columns,
        initial_indent=prefix,
        subsequent_indent=prefix,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)


def docstring(text: str, indent: str) -> str:
    """A text as the docstring of an attribute in Python."""
    line = f'{indent}"""{text}"""'
    if len(line) <= MAX_COLUMNS:
        return line
    # The last line is that of the quotes.
    return wrapped(f'"""{text}', indent, MAX_COLUMNS - len('"""')) + f'\n{indent}"""'


def main(files: Mapping[Path, str], *, source: str, description: str | None) -> int:
    """The command of a generator, given its files with their texts.

    It writes those that differ, or with `--check` names them and fails.

    `source` is what they are generated from. Returns the exit code.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail where a file is out of step")
    check = parser.parse_args().check
    stale = [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if check and stale:
        names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
        print(f"out of step with {source}: {names} - run `python tools/{Path(sys.argv[0]).name}`", file=sys.stderr)
        return 1
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], encoding="utf-8")
    return 0
