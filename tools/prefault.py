"""Has each instance of a language runtime first write to those pages of its memory that every program writes to.

`rust/runtime-builder` says why. Which pages those are the engine that has been built shows: it launches a program, and
Linux tells which pages of the image of the memory it has as its own by then. Elsewhere the runtimes stay as they are:
programs run as well, and launches take longer where many begin at once.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools.artefact import ROOT, BuildError
from tools.build_js_runtime import builder

if TYPE_CHECKING:
    from pie.programs import Language

RUNTIMES = ROOT / "python" / "pie" / "runtimes"
MARK = b"pie-prefault"
"""Stands in a runtime that is done, before the number of its pages (uint32, little-endian)."""
PROGRAMS: dict[Language, tuple[str, str]] = {
    "javascript": (
        "main.js",
        """\
import { Context, Model, Sampler, session } from 'inferlet';

export async function main({ system = 'Be brief.', maxTokens = 64 }) {
  session.send('here');
  let question = await session.receive();
  const context = new Context(Model.load());
  context.system(system);
  while (question !== '') {
    context.user(question);
    const sampler = Sampler.topP(0.8, 0.95);
    for await (const text of context.generate(sampler, { maxTokens }).texts()) session.send(text);
    question = await session.receive();
  }
}
""",
    ),
    "python": (
        "main.py",
        """\
from inferlet import Context, Model, Sampler, session


async def main(system="Be brief.", max_tokens=64):
    session.send("here")
    question = await session.receive()
    context = Context(Model.load())
    context.system(system)
    while question:
        context.user(question)
        async for text in context.generate(Sampler.top_p(0.8, 0.95), max_tokens=max_tokens).texts():
            session.send(text)
        question = await session.receive()
""",
    ),
}
"""The program of each language whose pages are looked at while it waits for its first message: one as most are."""
N_PROGRAMS = 3
"""A page is taken that each of so many has written to."""
PAGE_BYTES = 4096
# Of an entry of /proc/self/pagemap: there is a page, and it is that of a file.
_PRESENT, _OF_FILE = 1 << 63, 1 << 61


def written_pages(language: Language) -> set[int]:
    """The pages of the image of the runtime's memory that every program writes to, counted from its first.

    Raises OSError where the system does not tell.
    """
    from pie.config import EngineConfig  # noqa: PLC0415 - the engine has been built when this is asked
    from pie.engine import Engine  # noqa: PLC0415
    from pie.events import Event  # noqa: PLC0415
    from pie.programs import Source  # noqa: PLC0415

    file, text = PROGRAMS[language]
    source = Source(language, ((file, text.encode()),), file)
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(EngineConfig(cache_dir=Path(folder) / "cache", data_dir=Path(folder) / "data", max_processes=N_PROGRAMS + 1))
        with engine:
            # The first one of an engine finds other things in its place than the later ones.
            programs = [engine.launch(source, input={}) for _ in range(N_PROGRAMS + 1)]
            for program in programs:
                event = program.next_event(300.0)
                if event != Event.Stdout("here"):
                    raise BuildError(f"a {language} program that waits gave {event}")
            written = [pages for pages in _own_pages(Path(folder)) if pages]
    if len(written) <= N_PROGRAMS:
        raise BuildError(f"{len(programs)} programs run, and {len(written)} images of a memory were found")
    return reduce(set.intersection, written)


def _own_pages(folder: Path) -> list[set[int]]:
    """For each image that is mapped from a file of `folder`, its pages that are no longer those of the file."""
    lines = [line.split() for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()]
    images = [line for line in lines if line[-1].startswith(str(folder)) and line[1] == "rw-p"]
    first = min((int(line[2], 16) for line in images), default=0)
    found = []
    with Path("/proc/self/pagemap").open("rb") as pagemap:
        for addresses, _, offset, *_ in images:
            start, end = (int(address, 16) // PAGE_BYTES for address in addresses.split("-"))
            pagemap.seek(8 * start)
            entries = struct.unpack(f"<{end - start}Q", pagemap.read(8 * (end - start)))
            before = (int(offset, 16) - first) // PAGE_BYTES
            found.append({before + idx for idx, entry in enumerate(entries) if entry & _PRESENT and not entry & _OF_FILE})
    return found


def n_marked(runtime: Path) -> int:
    """How many pages an instance of the runtime writes to first; 0 where it is not done."""
    content = runtime.read_bytes()
    at = content.find(MARK)
    return 0 if at < 0 else int.from_bytes(content[at + len(MARK) : at + len(MARK) + 4], "little")


def prefault(language: Language) -> None:
    """Does so for the runtime of a language, unless it is done."""
    runtime = RUNTIMES / f"{language}.wasm"
    if n_marked(runtime) > 0:
        print(f"{runtime.relative_to(ROOT)} is current")
        return
    try:
        pages = written_pages(language)
    except OSError as error:
        print(f"{runtime.relative_to(ROOT)} stays as it is: the system does not tell which pages programs write to ({error})")
        return
    fresh = runtime.with_suffix(".fresh")
    done = subprocess.run([builder(), "prefault", runtime, fresh, *map(str, sorted(pages))], check=False)
    if done.returncode != 0:
        raise BuildError(f"the pages of {runtime.name} could not be written first; the message stands above")
    fresh.replace(runtime)
    print(f"{runtime.relative_to(ROOT)}: {len(pages)} pages are written first")


if __name__ == "__main__":
    try:
        for each in PROGRAMS:
            prefault(each)
    except BuildError as error:
        sys.exit(str(error))
