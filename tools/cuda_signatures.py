"""Writes the signatures of what the cuda back end calls of FlashInfer and xgrammar, as they are installed.

`python -m tools.cuda_signatures` writes `tests/backends/cuda/signatures.json`, by which a test binds every call where
the packages are not installed; `--check` writes nothing and fails where they are of other signatures. Neither needs a
GPU.
"""

from __future__ import annotations

import inspect
import json
import sys
from importlib import import_module, metadata
from typing import Any

from pie.backends.cuda.signatures import PARAMETERS, VERSIONS
from tools.generated import ROOT

TABLE = ROOT / "tests" / "backends" / "cuda" / "signatures.json"
_REQUIRED = "required"


def main(arguments: list[str]) -> int:
    """Writes the table, or compares it."""
    text = json.dumps(installed(), indent=2) + "\n"
    if "--check" not in arguments:
        TABLE.write_text(text, encoding="utf-8")
        return 0
    if TABLE.read_text(encoding="utf-8") != text:
        print(f"{TABLE.relative_to(ROOT)} is not what is installed; run python -m tools.cuda_signatures", file=sys.stderr)
        return 1
    print(", ".join(f"{package} {metadata.version(package)}" for package in VERSIONS), f": {len(PARAMETERS)} calls as recorded")
    return 0


def installed() -> dict[str, Any]:
    """The versions, and of each function its parameters: how each is given, and whether it has to be."""
    calls = {}
    for function in PARAMETERS:
        module, *path = function.split(".")
        found: Any = import_module(module)
        for name in path:
            found = getattr(found, name)
        calls[function] = [
            [name, parameter.kind.name, _REQUIRED if parameter.default is parameter.empty else "optional"]
            for name, parameter in inspect.signature(found).parameters.items()
        ]
    return {"versions": {package: metadata.version(package) for package in VERSIONS}, "calls": calls}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
