"""Attacks by programs: what a launch, a source or a running program can do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path

from pie import _engine
from pie.client import Client, PieError, connect
from tools.siege.doors import Target

_JS = "import { Context, Model, Sampler, session } from 'inferlet';\n"
_PY = "import asyncio\nfrom inferlet import Context, Model, Sampler, session\n"
_PATIENCE_S = 20.0
_STAY_S = 4.0
_MISTAKES = Path(__file__).resolve().parents[2] / "build/programs/mistakes.wasm"

Attack = Callable[[Target], Coroutine[None, None, None]]


@dataclass(frozen=True)
class Program:
    """A hostile program, and how it is launched."""

    name: str
    path: str
    text: str
    n: int = 4
    detached: bool = False


def python(name: str, body: str, n: int = 4) -> Program:
    """A Python program with that body of `main`."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    return Program(name, "main.py", f"{_PY}async def main(input):\n{lines}\n", n)


def script(name: str, body: str, n: int = 4) -> Program:
    """A JavaScript program with that body of `main`."""
    return Program(name, "main.js", f"{_JS}export async function main(input) {{\n{body}\n}}\n", n)


PROGRAMS = (
    Program("hidden_nest", "main.ts", "1.\nif(1)/`/.x\n" + "(" * 250_000 + "\nexport function main(){return 1}\n", 2),
    Program("slow_to_parse", "main.ts", "let x = " + "<T>(" * 60 + "1" + ")" * 60 + ";\nexport function main(){ return 1 }", 2),
    Program("flat_source", "main.ts", "const a: number = 1;\n" * 45_000 + "export function main() { return 1 }\n", 4),
    script(
        "arrays", "const held = []; for (let i = 0; i < 20; i++) held.push(new Uint8Array(10 << 20).fill(1)); await session.receive();", 16
    ),
    python("lists", "held = []\nwhile True:\n    held.append(bytearray(b'x') * (8 << 20))", 8),
    python("recursion", "import sys\nsys.setrecursionlimit(10**9)\ndef f(n): return f(n + 1)\nf(0)", 16),
    script("encode", "const t = Model.load('default').tokenizer(); for (;;) t.encode('ab '.repeat(1 << 20));", 4),
    script("long_text", "for (;;) { try { new Context(Model.load('default')).user('ab '.repeat(1 << 20)); } catch {} }", 4),
    script(
        "stops",
        "const c = new Context(Model.load('default')); c.append([1]); const held = []; const stop = new Uint32Array(2e6).fill(5);"
        " for (let i = 0; i < 200; i++) held.push(c.generate(Sampler.argmax(), { stop })); await session.receive();",
        2,
    ),
    script("spinning", "for (;;) ;", 8),
    python("contexts", "model = Model.load('default')\nheld = []\nwhile True:\n    held.append(Context(model).append([1] * 64))", 2),
    python(
        "forks",
        "ctx = Context(Model.load('default')).append([1] * 500)\nawait ctx.flush()\nheld = []\nwhile True:\n    held.append(ctx.fork())",
        2,
    ),
    python("snapshots", "ctx = Context(Model.load('default')).append([1])\nwhile True: ctx.snapshot()", 2),
    python("printing", "while True: print('x' * 10000)", 4),
    python(
        "prefills",
        "import random\nmodel = Model.load('default')\nwhile True:\n"
        "    contexts = [Context(model).append([random.randrange(300, 3000) for _ in range(1900)]) for _ in range(8)]\n"
        "    await asyncio.gather(*(c.flush() for c in contexts))",
        2,
    ),
    python(
        "generations",
        "model = Model.load('default')\nasync def one(i):\n"
        "    c = Context(model).append([i + 300, 5])\n"
        "    return await c.generate(Sampler.top_p(1.0, 0.99), max_tokens=200, stop=[], auto_flush=False).collect_tokens()\n"
        "await asyncio.gather(*(one(i) for i in range(60)))",
        4,
    ),
    python("huge_error", "raise RuntimeError('\\x01' * 3_000_000)", 8),
)


def packed(path: str, text: bytes, data: bytes | None = None) -> bytes:
    """A program of one source file, and of one with `data`, as a client sends it."""
    files = {path: text} if data is None else {path: text, "data.bin": data}
    return _engine.pack_program("python" if path.endswith(".py") else "javascript", files, path)


async def run(target: Target, program: Program) -> None:
    """Launches copies of a hostile program and leaves them for a while; every error is one that the server gave."""
    async with connect(url_of(target), user=target.user) as client:
        digest = await client.upload(packed(program.path, program.text.encode()))
        launches = [client.launch(digest, detached=program.detached) for _ in range(program.n)]
        launched = await asyncio.gather(*launches, return_exceptions=True)
        processes = [process for process in launched if not isinstance(process, BaseException)]
        if not processes:
            raise next(fault for fault in launched if isinstance(fault, BaseException))
        results = [asyncio.ensure_future(process.result()) for process in processes]
        try:
            await asyncio.wait(results, timeout=_PATIENCE_S)
            await asyncio.gather(*(process.terminate() for process in processes), return_exceptions=True)
        finally:
            for result in results:
                result.cancel()
            await asyncio.gather(*results, return_exceptions=True)


async def large_programs(target: Target) -> None:
    """Programs of many megabytes, detached."""
    async with connect(url_of(target), user=target.user) as client:
        text = b"async def main(input):\n    from inferlet import session\n    await session.receive()\n"
        for _ in range(8):
            program = packed("main.py", text, os.urandom(24 << 20))
            process = await client.launch(await client.upload(program), detached=True)
            await process.detach()
        await asyncio.sleep(5)
        await _end_all(client)


async def launches(target: Target) -> None:
    """Launches in a storm, each terminated at once."""
    async with connect(url_of(target), user=target.user) as client:
        digest = await client.upload(packed("main.js", b"export function main() { return 1 }"))
        for _ in range(30):
            found = await asyncio.gather(*(client.launch(digest) for _ in range(16)), return_exceptions=True)
            processes = [process for process in found if not isinstance(process, BaseException)]
            await asyncio.gather(*(process.terminate() for process in processes), return_exceptions=True)


async def installs(target: Target) -> None:
    """Installs without end, never taken away."""
    async with connect(url_of(target), user=target.user) as client:
        for number in range(40):
            text = f"def main(input):\n    return {os.urandom(8).hex()!r}\n".encode()
            await client.install(packed("main.py", text, os.urandom(1 << 20)), name=f"p{number}", version=f"1.{os.urandom(2).hex()}")


async def messages(target: Target) -> None:
    """Messages to a program that never receives."""
    text = b"import asyncio\nasync def main(input):\n    await asyncio.sleep(60)\n"
    async with connect(url_of(target), user=target.user) as client:
        process = await client.launch(await client.upload(packed("main.py", text)))
        for _ in range(2000):
            try:
                await process.send("x" * (256 << 10))
            except PieError as error:
                if error.code != "limit-queue":
                    raise
                await asyncio.sleep(0.01)
        await process.terminate()


async def foreign(target: Target) -> None:
    """Verbs on what others have."""
    async with connect(url_of(target), user=target.user) as client:
        for pid in range(1, 400):
            for verb in (client.terminate, client.attach, client.outcome):
                try:
                    await verb(pid)
                except PieError as error:
                    if error.code != "unknown-process":
                        raise


async def fresh_names(target: Target) -> None:
    """Thirty users whom nobody has heard of, each with programs that nobody has read yet, and who leave them behind."""

    async def come_and_go() -> None:
        name = os.urandom(6).hex()
        async with connect(url_of(target), user=name) as client:
            text = f"from inferlet import session\nasync def main(input):\n    await session.receive()  # {name}\n".encode()
            digest = await client.upload(packed("main.py", text))
            await asyncio.gather(*(client.launch(digest, detached=True) for _ in range(2)))
            await asyncio.sleep(_STAY_S)
            await _end_all(client)

    found = await asyncio.gather(*(come_and_go() for _ in range(30)), return_exceptions=True)
    faults = [fault for fault in found if isinstance(fault, PieError)]
    if faults:
        raise faults[0]


async def deep_recursion(target: Target) -> None:
    """A component, compiled from Rust, whose calls nest until the stack is full: sixteen at once."""
    program = _MISTAKES.read_bytes()
    async with connect(url_of(target), user=target.user) as client:
        digest = await client.upload(program)
        deep = {"recursion": {"depth": 10**9}}
        launched = await asyncio.gather(*(client.launch(digest, input=deep) for _ in range(16)), return_exceptions=True)
        processes = [process for process in launched if not isinstance(process, BaseException)]
        ends = await asyncio.gather(*(process.result() for process in processes), return_exceptions=True)
        codes = {end.code for end in ends if isinstance(end, PieError)}
        if not codes <= {"limit-stack", "limit-engine-memory", "limit-processes"}:
            raise AssertionError(f"programs that recurse ended with {codes}")


async def _end_all(client: Client) -> None:
    await asyncio.gather(*(client.terminate(process.pid) for process in await client.list()), return_exceptions=True)


def url_of(target: Target) -> str:
    """Where clients connect."""
    return f"ws://{target.host}:{target.port}"


def _named(program: Program) -> Attack:
    async def attack(target: Target) -> None:
        await run(target, program)

    attack.__name__ = program.name
    return attack


ATTACKS: tuple[Attack, ...] = (*(map(_named, PROGRAMS)), large_programs, launches, installs, messages, foreign, fresh_names, deep_recursion)
