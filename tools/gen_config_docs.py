"""Writes `docs/reference/configuration.md` and `python/pie/config/stated.py` from the tables of settings.

`python tools/gen_config_docs.py` writes; `--check` writes nothing and fails where the page is out of step.
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from pie import _engine
from pie.config.environment import VARIABLES
from pie.config.settings import NO_LIMIT, Setting, settings
from tools import generated
from tools.generated import ROOT

PAGE = ROOT / "docs" / "reference" / "configuration.md"
STATED = ROOT / "python" / "pie" / "config" / "stated.py"
WIDTH = 120

STATED_HEAD = '''"""What the engine states of the sections. Generated from its tables by `tools/gen_config_docs.py`; do not edit."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
'''

INTRODUCTION = """# Configuration

<!-- Generated from python/pie/config by tools/gen_config_docs.py; do not edit. -->

Four layers, of which the later wins: defaults, a file, the environment, flags. `pie config show` prints what holds, in
the form of a file, with the origin of each value; `pie config path` prints where the file is.

- **File**: `$XDG_CONFIG_HOME/pie/config.toml` or `~/.pie/config.toml`, or the one that `--config FILE` or `PIE_CONFIG`
  names. TOML.
- **Environment**: `PIE_SECTION__KEY`, as in `PIE_SERVER__PORT=9000`; of a model `PIE_MODEL__NAME__KEY`, its name in
  upper case with `_` for what is neither letter nor digit: `PIE_MODEL__PIE_TINY__KV_BYTES=64MiB`. It sets models that
  the file names, or the embedded one.
- **Flags** of `pie run`, `pie serve` and `pie config show`: `--config FILE`; `--model NAME|DIR` (a model of the file,
  or a folder; these alone are served, the first is the default); `--dummy` (every model on the dummy driver);
  `--limit NAME=VALUE`.

```toml
[engine]
worker_threads = 4

[limits]
memory_bytes = "512MiB"
wall_s = 600

[server]
port = 9000

[[model]]
name = "pie-tiny"

[[model]]
name = "qwen"
path = "models/Qwen3-0.6B"
kv_bytes = "4GiB"
```

A model may also be written as a table of its name: `[model.qwen]`. The first model is the default of programs, which
load it as `default` too. Without any, the embedded model `pie-tiny` is served.

What is written is taken as it stands, once: nothing in it is expanded but a `~` at the beginning of a path. Sizes
(`_bytes`) are whole numbers of bytes, or texts with a unit: `KB`, `MB`, `GB`, `TB` are powers of 1000, `KiB`, `MiB`,
`GiB`, `TiB` of 1024. Times (`_s`) are seconds. `"none"` means no limit, where there may be none. A relative path in a
file begins at the folder of the file, anywhere else at the current folder. In the environment, and in a flag, a list is
written with commas.

A key that there is not, a value of another kind or out of its range, and a damaged file are the error `invalid-config`,
which names the line, what is wrong and what it could be.
"""

SECTIONS = {
    "engine": "The engine itself.",
    "limits": "What each process may use; `pie run --limit NAME=VALUE` sets one.",
    "runtime": "What programs find around them.",
    "snapshots": "How snapshots are kept: see [snapshots on disk](snapshots.md).",
    "server": "`pie serve`.",
    "client": "The commands that talk to a server.",
    "model": "A model and how it is served: `[[model]]`, or `[model.NAME]`.",
    "mcp": "An MCP server that programs find by that name.",
}


HEADERS = {"model": "[[model]]", "mcp": "[mcp.NAME]"}
"""Of the sections that there may be several of."""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for section, rows in settings().items():
        header = HEADERS.get(section, f"[{section}]")
        table = "\n".join(_row(row) for row in rows.values())
        parts.append(
            f"## `{header}`\n\n{SECTIONS[section]}\n\n| key | what it is | what it may be | default |\n|---|---|---|---|\n{table}\n"
        )
    variables = "\n".join(f"| `{variable.name}` | {variable.description} |" for variable in VARIABLES)
    parts.append(
        "## Environment variables\n\nBeside `PIE_SECTION__KEY` these are read, and no others. "
        "What building runs (cargo, pip, npm) reads its own.\n\n"
        f"| variable | what it is |\n|---|---|\n{variables}\n"
    )
    return "\n".join(parts)


def _row(row: Setting) -> str:
    return f"| `{row.name}` | {row.description} | {_expected(row)} | {_default(row)} |"


def _expected(row: Setting) -> str:
    if not row.name.endswith("_bytes"):
        return row.expected.replace("a whole number", "whole").replace("a number", "number").replace("|", "\\|")
    return f"size from {_size(row.meta.ge)} to {_size(row.meta.le)}"


def _default(row: Setting) -> str:
    if row.name == "name":
        return "needed"
    value: Any = NO_LIMIT if row.default is None else row.default
    if row.name.endswith("_bytes"):
        return f'`"{_size(value)}"`' if value else "`0`"
    return f"`{json.dumps(list(value) if isinstance(value, tuple) else value)}`"


def _size(n_bytes: Any) -> str:
    """A size in the largest unit of which it is a whole number."""
    units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")]
    return next((f"{n_bytes >> power}{unit}" for power, unit in units if n_bytes and n_bytes % (1 << power) == 0), str(n_bytes))


def stated() -> str:
    """The module with the types and defaults of what the engine states, for type checkers and for those who read."""
    return STATED_HEAD + "".join(_section(section) for section in ("engine", "runtime", "snapshots", "server", "model", "mcp"))


def _section(section: str) -> str:
    rows = "".join(f"\n{_field(row)}\n{_docstring(row.description)}" for row in _engine.settings()[section])
    head = f'    """Of `[{section}]`, what the engine states."""\n'
    return f"\n\nclass {section.capitalize()}Settings(Struct, frozen=True, kw_only=True):\n{head}{rows}"


def _field(row: _engine.Setting) -> str:
    words = ", ".join(json.dumps(word) for word in row.choices)
    kinds = {"whole": "int", "seconds": "float", "flag": "bool", "texts": "tuple[str, ...]", "choice": f"Literal[{words}]"}
    kind = kinds.get(row.kind, "str") + (" | None" if row.optional else "")
    default = json.dumps(row.default) if isinstance(row.default, str) else repr(row.default)
    return f"    {row.name}: {kind} = {default}"


def _docstring(text: str) -> str:
    text = text.replace("\\", "\\\\")
    line = f'    """{text}"""\n'
    if len(line) <= WIDTH:
        return line
    lines = textwrap.wrap(text, WIDTH - 4, initial_indent='"""', break_on_hyphens=False)
    return textwrap.indent("\n".join(lines), "    ") + '\n    """\n'


if __name__ == "__main__":
    sys.exit(generated.main({PAGE: page(), STATED: stated()}, source="python/pie/config", description=__doc__))
