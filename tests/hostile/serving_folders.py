"""Serves model folders one after the other and says of each what became of it:
`python -m hostile.serving_folders FOLDER...`.

A folder that brings the engine down ends this process, which then says nothing of it. Memory is bounded by the system,
so that a test of memory can fail without taking the machine with it.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from pathlib import Path

from pie.config import ModelConfig
from pie.engine import Engine
from pie.errors import PieError
from support.engines import started
from support.launching import finish, python_source

# Beyond what a case may take, so that taking too much is seen as such first.
ROOM_BYTES = 2 << 30
PROGRAM = python_source(
    """
from inferlet import Context, Model

async def main(input):
    ctx = Context(Model.load(input))
    ctx.user("a a " * 400)
    return len(ctx.buffer())
"""
)


def status(field: str) -> int:
    """A size of this process, in bytes."""
    found = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    assert found
    return int(found[1]) << 10


def forget_peak() -> None:
    """Counts the peak of memory anew."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def load(engine: Engine, folder: Path) -> str:
    """The code of the error with which a folder is refused, or nothing."""
    try:
        engine.add_model(options=ModelConfig(name=folder.name, path=str(folder), driver="dummy"))
    except PieError as error:
        return f"{error.code}: {error.message}"
    return ""


def main(folders: list[Path]) -> None:
    """A line for each folder: its name, what it was refused with or what its program ended with, and bytes above those
    before.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    engine = Engine()
    engine.add_model(options=ModelConfig(driver="dummy"))
    with started(engine):
        finish(engine.launch(PROGRAM, input="default"))
        most = status("VmData") + ROOM_BYTES
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        for folder in folders:
            forget_peak()
            before = status("VmRSS")
            refused = load(engine, folder)
            outcome = None if refused else finish(engine.launch(PROGRAM, input=folder.name))
            said = refused or f"{outcome.code or 'served'}: {outcome.message or outcome.value}"
            print(json.dumps({"name": folder.name, "said": said[:2000], "n_bytes": status("VmHWM") - before}), flush=True)
        # Whoever had nothing to do with them is served as before.
        print(json.dumps({"name": "default", "said": str(finish(engine.launch(PROGRAM, input="default")).value), "n_bytes": 0}), flush=True)


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
