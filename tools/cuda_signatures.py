"""Writes the signatures of what the cuda back end calls of FlashInfer and xgrammar, as they are installed.

`python -m tools.cuda_signatures` writes `tests/backends/cuda/signatures.json`, by which a test binds every call where
the packages are not installed; `--check` writes nothing and fails where they are of other signatures, or of versions
that are not served. Neither needs a GPU.
"""

from __future__ import annotations

import inspect
import json
import sys
from importlib import import_module, metadata
from typing import Any

from pie.backends.cuda.signatures import PARAMETERS, VERSIONS, is_served
from tools.generated import ROOT

TABLE = ROOT / "tests" / "backends" / "cuda" / "signatures.json"
_REQUIRED = "required"


def main(arguments: list[str]) -> int:
    """Writes the table, or compares it."""
    found = installed()
    if "--check" not in arguments:
        TABLE.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        return 0
    wrong = differences(json.loads(TABLE.read_text(encoding="utf-8")), found)
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        print(f"what is installed is not what {TABLE.relative_to(ROOT)} says; run python -m tools.cuda_signatures", file=sys.stderr)
        return 1
    versions = ", ".join(f"{package} {version}" for package, version in found["versions"].items())
    print(f"{versions}: {len(found['calls'])} calls as recorded")
    return 0


def differences(recorded: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """What of the packages is not as recorded: signatures, and versions that are not served. Others are as good."""
    wrong = [f"{package} {version} is not served" for package, version in found["versions"].items() if not is_served(package, version)]
    others = [call for call, parameters in found["calls"].items() if parameters != recorded["calls"].get(call)]
    return wrong + [f"{call} has other parameters" for call in others]


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
