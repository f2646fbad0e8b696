"""Writes docs/reference/cuda-calls.md: what the cuda back end calls of FlashInfer and xgrammar.

It needs neither: the signatures are those that `tools/cuda_signatures.py` recorded from the installed packages.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools import generated

# By its path: the package around it wants torch.
_GIVEN = runpy.run_path(str(generated.ROOT / "python" / "pie" / "backends" / "cuda" / "signatures.py"))
PARAMETERS, VERSIONS = _GIVEN["PARAMETERS"], _GIVEN["VERSIONS"]
RECORDED = generated.ROOT / "tests" / "backends" / "cuda" / "signatures.json"
PAGE = generated.ROOT / "docs" / "reference" / "cuda-calls.md"
INTRODUCTION = """# Calls of the cuda back end

Generated from what the [cuda back end](../guide/cuda.md) gives and from the signatures of the packages.

Each call into FlashInfer and xgrammar has a stand-in in torch with the same parameters. A test binds every call that is
made by them to the signatures that the installed packages have; `make gpu` compares those signatures with the packages
of the machine, and the driver looks for the parameters when it starts.
"""


def page() -> str:
    """The page."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    versions = "\n".join(
        f"| `{package}` | {recorded['versions'][package]} | {least} or later, below {below} |"
        for package, (least, below) in VERSIONS.items()
    )
    calls = "\n".join(
        f"| `{function}` | {', '.join(f'`{name}`' for name in given)} | {len(recorded['calls'][function]) - _is_method(function)} |"
        for function, given in PARAMETERS.items()
    )
    return (
        f"{INTRODUCTION}\n| package | checked against | served |\n|---|---|---|\n{versions}\n\n"
        f"| call | parameters that are given | parameters that it has |\n|---|---|---|\n{calls}\n"
    )


def _is_method(function: str) -> bool:
    """Whether the first parameter is the object."""
    return function.rpartition(".")[2] in {"plan", "run", "reset_workspace_buffer"}


if __name__ == "__main__":
    sys.exit(generated.main({PAGE: page()}, source="the signatures that were recorded", description=__doc__))
