"""Has instances of the language runtimes first write to those pages of their memory that programs write to anyway.

`rust/runtime-builder` says what that saves. The engine that has been built shows which pages those are: it launches a
program, and Linux tells which pages of the image of its memory are its own by then. This is for Linux on x86-64.
Elsewhere the runtimes stay plain: programs run as well, and launches that begin at once take longer.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import struct
import subprocess
import sys
import tempfile
from functools import reduce
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from pie.config import EngineConfig
from pie.engine import Engine
from pie.events import Event
from pie.programs import Language, Source
from tools.artefact import ROOT, BuildError
from tools.build_js_runtime import BUILDER_INPUTS, builder

RUNTIMES = ROOT / "python" / "pie" / "runtimes"
WORK = ROOT / "build" / "prefault"
"""Holds the plain runtimes, and digests of what the others were made of."""
INPUTS = (Path(__file__).resolve(), *BUILDER_INPUTS)
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
"""A program as most are, in each language. Its pages are looked at while it waits for its first message."""
N_PROGRAMS = 4
"""Programs that run at once: a page is taken that each of them has written to."""
PAGE_BYTES = 4096
# Of an entry of /proc/self/pagemap: there is a page, and it is that of a file.
_PRESENT, _OF_FILE = 1 << 63, 1 << 61


def tells_pages() -> bool:
    """Whether this is a machine for which it is done, and the system tells which pages a process has."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64") or os.sysconf("SC_PAGE_SIZE") != PAGE_BYTES:
        return False
    try:
        _pagemap(0, 1)
        Path("/proc/self/maps").read_bytes()
    except OSError:
        return False
    return True


def written_pages(language: Language) -> set[int]:
    """The pages of the image of the runtime's memory that programs have written to, counted from its first."""
    file, text = PROGRAMS[language]
    source = Source(language, ((file, text.encode()),), file)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        engine = Engine(EngineConfig(cache_dir=folder / "cache", data_dir=folder / "data", max_processes=N_PROGRAMS))
        with engine:
            programs = [engine.launch(source, input={}) for _ in range(N_PROGRAMS)]
            for program in programs:
                event = program.next_event(300.0)
                if event != Event.Stdout("here"):
                    raise BuildError(f"a {language} program that waits gave {event}")
            written = [pages for pages in _own_pages(folder) if pages]
    if len(written) < N_PROGRAMS:
        raise BuildError(f"{N_PROGRAMS} programs run, and {len(written)} images of a memory were found")
    return reduce(set.intersection, written)


def _own_pages(folder: Path) -> list[set[int]]:
    """For each image that is mapped from a file of `folder`, its pages that are no longer those of the file."""
    lines = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()]
    images = [line for line in lines if line[1] == "rw-p" and line[-1].startswith(f"{folder}/")]
    first = min((int(line[2], 16) for line in images), default=0)
    found = []
    for addresses, _, offset, *_ in images:
        start, end = (int(address, 16) // PAGE_BYTES for address in addresses.split("-"))
        before = (int(offset, 16) - first) // PAGE_BYTES
        entries = _pagemap(start, end - start)
        found.append({before + idx for idx, entry in enumerate(entries) if entry & _PRESENT and not entry & _OF_FILE})
    return found


def _pagemap(first: int, n_pages: int) -> tuple[int, ...]:
    """What Linux says of so many pages of this process."""
    with Path("/proc/self/pagemap").open("rb") as pagemap:
        pagemap.seek(8 * first)
        return struct.unpack(f"<{n_pages}Q", pagemap.read(8 * n_pages))


def n_marked(runtime: Path) -> int:
    """How many pages an instance of the runtime writes to first; 0 for a plain one."""
    content = runtime.read_bytes()
    at = content.find(MARK)
    return 0 if at < 0 else int.from_bytes(content[at + len(MARK) : at + len(MARK) + 4], "little")


def prefault(language: Language, *, force: bool = False) -> None:
    """Makes the runtime of a language one whose instances write first, unless that was done with the same tools."""
    runtime, plain, stamp = RUNTIMES / f"{language}.wasm", WORK / f"{language}.wasm", WORK / f"{language}.sha256"
    name = runtime.relative_to(ROOT)
    WORK.mkdir(parents=True, exist_ok=True)
    is_done = n_marked(runtime) > 0
    if not is_done:
        plain.write_bytes(runtime.read_bytes())
    elif not plain.exists():
        raise BuildError(f"{name} is done already, and {plain.relative_to(ROOT)} is gone, of which it was made; run `make clean build`")
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in (plain, *INPUTS))).hexdigest()
    if is_done and not force and stamp.exists() and stamp.read_text(encoding="ascii") == digest:
        print(f"{name} is current")
        return
    # Pages are those of a plain one, and so it is what stays where something goes wrong.
    runtime.write_bytes(plain.read_bytes())
    pages = written_pages(language)
    fresh = WORK / f"{language}.fresh"
    done = subprocess.run([builder(), "prefault", plain, fresh, *map(str, sorted(pages))], check=False)
    if done.returncode != 0:
        raise BuildError(f"{name} stays plain; the message above says why")
    fresh.replace(runtime)
    stamp.write_text(digest, encoding="ascii")
    print(f"{name}: {len(pages)} pages are written first")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Has instances of the language runtimes first write to the pages that programs write to.")
    parser.add_argument("--force", action="store_true", help="do it again although nothing changed")
    arguments = parser.parse_args()
    if not tells_pages():
        print("The runtimes stay plain: this is not Linux on x86-64, or /proc/self/pagemap cannot be read")
        sys.exit()
    try:
        for each in PROGRAMS:
            prefault(each, force=arguments.force)
    except BuildError as error:
        sys.exit(str(error))
