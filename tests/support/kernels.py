"""Where tests find the kernels."""

from __future__ import annotations

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path

from pie.backends.cpu.library import KernelError, Library
from pie.backends.cpu.plan import ISA_CODES, Plan, PlanOptions

ROOT = Path(__file__).resolve().parents[2]


def kernel_library() -> Path:
    """The shared object of the installed engine; without one, that of the kernels' crate, which cargo builds."""
    spec = find_spec("pie._engine")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin)
    command = ["cargo", "build", "--release", "--package", "pie-kernels", "--message-format", "json"]
    built = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    artifacts = [message for line in built.stdout.splitlines() if (message := json.loads(line))["reason"] == "compiler-artifact"]
    files = [Path(file) for message in artifacts if message["target"]["name"] == "pie_kernels" for file in message["filenames"]]
    return next(file for file in files if file.suffix in {".so", ".dylib", ".dll"})


def isas(path: Path) -> list[str]:
    """The instruction sets of this CPU, forced in turn by tests; `portable` is always one."""
    found = []
    for isa in ISA_CODES:
        sizes = dict.fromkeys(PlanOptions.__dataclass_fields__, 2) | {"dtype": "float32", "isa": isa}
        try:
            plan = Plan(Library(path), PlanOptions(**sizes))
        except KernelError:
            continue
        if isa != "auto":
            assert plan.isa() == isa
            found.append(isa)
    return found
