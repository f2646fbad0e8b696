"""Writes the Rust snippets of the guide as functions of the program `tests/guests/guides`.

`python tools/gen_guides.py` writes, `--check` reports a difference.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "guide"
PAGES = ("text", "tools", "grammars", "steps", "passes", "market", "adapters", "messages", "children", "files", "http", "mcp")
"""The pages that show everything in three languages."""
MIXED = ("recipes",)
"""Pages that show everything in Python and TypeScript, and some of it in Rust."""
TARGET = ROOT / "tests" / "guests" / "guides" / "src" / "snippets.rs"
_FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"(?:#|//) (\w+\.\w+)\n")
"""The first line of a whole program: the name of its file."""


def snippets(language: str) -> dict[str, str]:
    """The snippets of a language by their page and number: `tools/1` is the first of `tools.md`.

    Whole programs, which begin with the name of a file, are left out.
    """
    found = {}
    for page in (*PAGES, *MIXED):
        blocks = _FENCED.findall((GUIDE / f"{page}.md").read_text(encoding="utf-8"))
        texts = [text for given, text in blocks if given == language and not _NAMED.match(text)]
        found.update({f"{page}/{number}": text for number, text in enumerate(texts, 1)})
    return found


def files(page: str) -> dict[str, str]:
    """The whole programs of a page by the names of their files."""
    blocks = _FENCED.findall((GUIDE / f"{page}.md").read_text(encoding="utf-8"))
    return {named[1]: text for _, text in blocks if (named := _NAMED.match(text))}


def rust() -> str:
    """The file."""
    made = snippets("rust")
    names = {key: key.replace("/", "_") for key in made}
    lines = ["//! Written by `python tools/gen_guides.py`.", "", "use inferlet::prelude::*;", ""]
    given = "server: &str, model: &Model, ctx: &mut Context"
    lines += [f"pub(crate) async fn run(snippet: &str, {given}) -> Result<()> {{", "    match snippet {"]
    lines += [f'        "{key}" => {name}(server, model, ctx).await,' for key, name in names.items()]
    lines += ['        other => Err(format!("the guide has no snippet {other}")),', "    }", "}"]
    for key, name in names.items():
        lines += ["", f"async fn {name}({given}) -> Result<()> {{"]
        lines += [f"    {line}" if line else "" for line in made[key].splitlines()]
        lines += ["    Ok(())", "}"]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Writes or checks; returns the exit code."""
    text = rust()
    if "--check" in sys.argv[1:]:
        is_stale = not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text
        if is_stale:
            print(f"{TARGET.relative_to(ROOT)} is out of step with the guide: run python tools/gen_guides.py", file=sys.stderr)
        return int(is_stale)
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
