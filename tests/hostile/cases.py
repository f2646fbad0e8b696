"""The corpus: programs that a host must survive, with the limits under which they run and the code with which each of
them ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hostile import binaries
from pie.programs import Source
from support.launching import python_source, typescript_source

IMPORTS = "import asyncio\nfrom inferlet import Context, Model, Sampler, session\n"


@dataclass(frozen=True)
class Case:
    """One program."""

    name: str
    program: Source | bytes
    """Sources, or the bytes of something that is launched as a component."""
    code: str
    limits: Mapping[str, float] = field(default_factory=dict)
    """Of the launch."""
    token_budget: int | None = None
    input: Any = None


def python(name: str, code: str, body: str, **limits: float) -> Case:
    """A Python program whose `main` has that body."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    return Case(f"python {name}", python_source(f"{IMPORTS}async def main(input):\n{lines}\n"), code, limits)


def script(name: str, code: str, body: str, **limits: float) -> Case:
    """A JavaScript program whose `main` has that body."""
    imports = "import { Context, Model, Sampler, session } from 'inferlet';\n"
    return Case(f"javascript {name}", typescript_source(f"{imports}export async function main(input) {{\n{body}\n}}\n"), code, limits)


MODEL = "model = Model.load('default')"

CASES: tuple[Case, ...] = (
    # Computing for ever.
    python("loop", "limit-cpu", "while True: pass", cpu_s=0.3),
    python("regex", "limit-cpu", "import re\nre.match('(a+)+$', 'a' * 60 + 'b')", cpu_s=0.3),
    python("big integer", "limit-cpu", "n = 3\nwhile True: n = n * n", cpu_s=0.3),
    python("sort", "limit-cpu", "x = list(range(10**5))\nwhile True: x = sorted(x, key=lambda i: -i)", cpu_s=0.3),
    script("loop", "limit-cpu", "for (;;) ;", cpu_s=0.3),
    script("regex", "limit-cpu", "/^(a+)+$/.test('a'.repeat(60) + 'b');", cpu_s=0.3),
    script("microtasks", "limit-cpu", "for (;;) await null;", cpu_s=0.3),
    script("getter", "limit-cpu", "const o = { get a() { for (;;) ; } }; return o;", cpu_s=0.3),
    # Recursing.
    python("recursion", "limit-stack", "def f(): return f()\nf()"),
    python("repr", "limit-stack", "x = []\nfor _ in range(100000): x = [x]\nrepr(x)"),
    script("recursion", "limit-stack", "const f = () => f() + 1; f();"),
    script("deep value", "limit-stack", "let x = []; for (let i = 0; i < 200000; i++) x = [x]; return x;"),
    # Allocating.
    python("text", "limit-memory", "x = 'x'\nwhile True: x += x", memory_bytes=128 << 20),
    script("text", "program-error", "let x = 'x'; for (;;) x += x;"),
    # Printing.
    python("printing", "limit-output", "while True: print('x' * 1000)", output_bytes=1 << 20),
    python("sending", "limit-output", "while True: session.send('x' * 1000)", output_bytes=1 << 20),
    script("sending", "limit-output", "for (;;) session.send('x'.repeat(1000));", output_bytes=1 << 20),
    python("huge message", "limit-message", "session.send('x' * (9 << 20))"),
    script("huge message", "limit-message", "session.send('x'.repeat(9 << 20));"),
    # Opening.
    python("contexts", "limit-resources", f"{MODEL}\nheld = []\nwhile True: held.append(Context(model))", resources=500),
    script("contexts", "limit-resources", f"const {MODEL}; const held = []; for (;;) held.push(new Context(model));", resources=500),
    python("snapshots", "limit-snapshots", f"{MODEL}\nctx = Context(model).append([1])\nwhile True: ctx.snapshot()"),
    script("snapshots", "limit-snapshots", f"const {MODEL}; const ctx = new Context(model); for (let i = 0; ; i++) ctx.save(`${{i}}`);"),
    python("calls", "limit-calls", f"{MODEL}\nctx = Context(model)\nwhile True: ctx.buffer()", calls=10_000),
    script("calls", "limit-calls", f"const {MODEL}; const ctx = new Context(model); for (;;) ctx.buffer();", calls=10_000),
    # Waiting.
    python("waiting for nothing", "deadlock", "await asyncio.Future()"),
    script("waiting for nothing", "deadlock", "await new Promise(() => {});"),
    python("sleeping", "limit-wall", "await asyncio.sleep(1e6)", wall_s=0.3),
    python("many sleepers", "limit-wall", "await asyncio.gather(*(asyncio.sleep(1e6) for _ in range(5000)))", wall_s=2),
    script("timers", "limit-wall", "for (let i = 0; i < 5000; i++) setTimeout(() => {}, 1e9); await new Promise(() => {});", wall_s=2),
    python("receiving", "limit-wall", "await session.receive()", wall_s=0.3),
    # Leaving the sandbox.
    python("files", "program-error", "open('/etc/passwd')"),
    python("fork", "program-error", "import os\nos.fork()"),
    python("exit", "program-error", "import os\nos._exit(3)"),
    script("import", "invalid-program", "await import('fs');"),
    script("constructor", "program-error", "(() => {}).constructor('return process')().exit();"),
    # What is no program.
    Case("empty component", binaries.component(), "invalid-program"),
    Case("core module", binaries.module(), "invalid-program"),
    Case("half a component", binaries.component(binaries.module(n_functions=100))[:200], "invalid-program"),
    Case("text", b"print('hello')", "invalid-program"),
    Case("machine code", b"\x7fELF\x02\x01\x01" + bytes(57), "invalid-program"),
    # What is too much of a program.
    Case("100,000 functions", binaries.component(binaries.module(n_functions=100_000)), "limit-program"),
    Case("a million locals", binaries.component(binaries.module(n_functions=1, n_locals=1_000_000)), "limit-program"),
    Case("functions in many modules", binaries.component(*[binaries.module(n_functions=30_000)] * 3), "limit-program"),
    Case("deep nesting", binaries.nested(1000), "limit-program"),
    Case("2,000 modules", binaries.component(*[binaries.module()] * 2000), "limit-program"),
)
