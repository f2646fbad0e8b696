"""TOML that anybody may have written, read within bounds."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pie.errors import PieError

_MAX_KEY_PARTS = 32
"""Parts of a dotted key: the parser of the standard library takes the square of them for each line."""

_KEY_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
# Blanks are taken whole and never given back, so that a text is looked at once.
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_KEY_PART}[ \t]*+\.[ \t]*+){{{_MAX_KEY_PARTS}}}")


def read_toml(file: Path | str, content: bytes) -> dict[str, Any]:
    """The document that `content` is, which `file` names in errors. Raises PieError `build-failed`."""
    try:
        text = content.decode()
        if _LONG_KEY.search(text):
            raise PieError("build-failed", f"{file} cannot be read: a key has more than {_MAX_KEY_PARTS} parts; shorten it")
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise PieError("build-failed", f"{file} cannot be read: {error}") from error
