"""Writes the error codes of every language, and their reference page, from `tools/errors.toml`.

`python tools/gen_errors.py` writes; `--check` writes nothing and fails where a file is out of step.
"""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools import generated
from tools.generated import ROOT

SOURCE = ROOT / "tools" / "errors.toml"
NOTICE = "Generated from tools/errors.toml by tools/gen_errors.py; do not edit."


@dataclass(frozen=True)
class ErrorCode:
    """One row of the list."""

    code: str
    summary: str
    remedy: str

    @property
    def camel(self) -> str:
        """The name of the Rust variant."""
        return "".join(word.capitalize() for word in self.code.split("-"))

    @property
    def upper(self) -> str:
        """The name of the Python constant."""
        return self.code.replace("-", "_").upper()


def load(source: Path = SOURCE) -> list[ErrorCode]:
    """Reads the list; a malformed or repeated code is a ValueError that names it."""
    with source.open("rb") as file:
        rows = [ErrorCode(**row) for row in tomllib.load(file)["error"]]
    seen: set[str] = set()
    for row in rows:
        if not re.fullmatch(r"[a-z]+(-[a-z]+)*", row.code):
            raise ValueError(f"code {row.code!r} is not lower-case words joined by hyphens")
        if row.code in seen:
            raise ValueError(f"code {row.code!r} stands twice")
        seen.add(row.code)
    return rows


def rust(rows: list[ErrorCode]) -> str:
    """The Rust enum: the same text serves the core, the SDK and the client, which share no crate."""
    variants = "\n".join(f"{generated.wrapped(row.summary, '    /// ')}\n    {row.camel}," for row in rows)
    names = "\n".join(f"            Self::{row.camel} => {row.code!r},".replace("'", '"') for row in rows)
    every = "\n".join(f"        Self::{row.camel}," for row in rows)
    return f"""// {NOTICE}

/// The stable name of what went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {{
{variants}
}}

impl ErrorCode {{
    /// Every code, in the order of the reference.
    pub const ALL: &'static [Self] = &[
{every}
    ];

    /// The code as programs and clients see it.
    pub const fn as_str(self) -> &'static str {{
        match self {{
{names}
        }}
    }}

    /// The code of that name.
    pub fn from_name(name: &str) -> Option<Self> {{
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }}
}}

impl std::fmt::Display for ErrorCode {{
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {{
        formatter.write_str(self.as_str())
    }}
}}
"""


def python(rows: list[ErrorCode]) -> str:
    """The Python enumeration."""
    members = "\n".join(f'    {row.upper} = "{row.code}"\n{generated.docstring(row.summary, "    ")}' for row in rows)
    return f'''"""The error codes. {NOTICE}"""

from enum import StrEnum


class ErrorCode(StrEnum):
    """The stable name of what went wrong; equal to its text."""

{members}
'''


def typescript(rows: list[ErrorCode]) -> str:
    """The TypeScript union."""
    members = "\n".join(f"{_block_comment(row.summary)}\n  '{row.code}'," for row in rows)
    return f"""// {NOTICE}

/** Every error code, in the order of the reference. */
export const ERROR_CODES = [
{members}
] as const;

/** The stable name of what went wrong. */
export type ErrorCode = (typeof ERROR_CODES)[number];
"""


def _block_comment(text: str) -> str:
    line = f"  /** {text} */"
    return line if len(line) <= generated.MAX_COLUMNS else f"  /**\n{generated.wrapped(text, '   * ')}\n   */"


def reference(rows: list[ErrorCode]) -> str:
    """The reference page."""
    table = "\n".join(f"| `{row.code}` | {row.summary} | {row.remedy} |" for row in rows)
    return f"""# Error codes

<!-- {NOTICE} -->

An error is a code, a message and details. The message names the value, the limit and the remedy.
Exceptions in Python and JavaScript have `.code`; the error strings of Rust begin with `[code] `, which
`inferlet::error_code` reads.

A program that fails may end with the code of a mistake in its own calls, or of an error that the engine gave it. Any
other code that it states becomes `program-error`: that a process ended with `limit-cpu`, `cancelled` or
`engine-stopped` is always the engine's word.

| code | what it means | what to do |
|---|---|---|
{table}
"""


def outputs(rows: list[ErrorCode]) -> dict[Path, str]:
    """Every generated file with its text."""
    return {
        ROOT / "rust/core/src/errors/codes.rs": rust(rows),
        ROOT / "rust/inferlet/src/error_codes.rs": rust(rows),
        ROOT / "rust/client/src/error_codes.rs": rust(rows),
        ROOT / "python/inferlet/_error_codes.py": python(rows),
        ROOT / "js/inferlet/src/error-codes.ts": typescript(rows),
        ROOT / "js/client/src/error-codes.ts": typescript(rows),
        ROOT / "docs/reference/errors.md": reference(rows),
    }


if __name__ == "__main__":
    sys.exit(generated.main(outputs(load()), source="tools/errors.toml", description=__doc__))
