"""Everything that a user can get wrong gives one clear message and the exit code 1."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pie.config import EMBEDDED_FOLDER
from support.command import pie
from support.launching import ROOT


@dataclass(frozen=True)
class Case:
    """Files, the program to run, and what the message must say."""

    name: str
    program: str
    words: tuple[str, ...]
    text: str | None = None
    arguments: tuple[str, ...] = ("--dummy",)


HELLO = "def main(input):\n    return 1\n"
COMPONENT = (ROOT / "build/programs/hello.wasm").read_bytes
PROGRAMS = [
    Case("no such file", "absent.py", ("unknown-program", "absent.py")),
    Case("not a program", "notes.rb", ("invalid-program", ".rb", ".py"), "puts 1"),
    Case("unknown model folder", "p.py", ("invalid-model", "absent-model"), HELLO, ("--model", "absent-model")),
    Case("python that does not parse", "p.py", ("SyntaxError", "p.py", "line 2"), "def main(input):\n    return (\n"),
    Case("typescript that does not parse", "p.ts", ("p.ts:2:", "expected"), "export function main() {\n  return (;\n}\n"),
    Case("javascript that does not parse", "p.js", ("p.js:2:",), "export function main() {\n  return (;\n}\n"),
    Case("typescript enum", "p.ts", ("p.ts:1:", "enum"), "enum A { B }\nexport function main() {}\n"),
    Case("javascript without entry", "p.js", ("main", "export"), "const x = 1;\n"),
    Case("python main is no function", "p.py", ("main", "int"), "main = 5\n"),
    Case(
        "python throws",
        "p.py",
        ("ValueError", "boom", "p.py", "line 2", "error[program-error]"),
        "def main(input):\n    raise ValueError('boom')\n",
    ),
    Case(
        "typescript throws",
        "p.ts",
        ("RangeError", "boom", "p.ts:2:"),
        "export function main(): void {\n  throw new RangeError('boom');\n}\n",
    ),
    Case("python returns no JSON", "p.py", ("invalid-output", "set"), "def main(input):\n    return {'a': {1, 2}}\n"),
    Case("python returns NaN", "p.py", ("invalid-output", "nan"), "def main(input):\n    return float('nan')\n"),
    Case("javascript returns no JSON", "p.js", ("invalid-output", "BigInt"), "export function main() { return { a: 1n }; }\n"),
    Case("javascript returns a cycle", "p.js", ("invalid-output", "cycl"), "export function main() { const a = {}; a.a = a; return a; }\n"),
    Case("unhandled rejection", "p.js", ("boom",), "export async function main() { Promise.reject(new Error('boom')); }\n"),
    Case("python dead-lock", "p.py", ("deadlock",), "import asyncio\nasync def main(input):\n    await asyncio.Event().wait()\n"),
    Case("javascript dead-lock", "p.js", ("deadlock",), "export async function main() { await new Promise(() => {}); }\n"),
    Case("python recursion", "p.py", ("RecursionError",), "def main(input):\n    return main(input)\n"),
    Case("javascript recursion", "p.js", ("RangeError", "stack"), "export function main() { return main(); }\n"),
    Case("python memory", "p.py", ("MemoryError",), "def main(input):\n    return len(bytearray(1 << 30))\n"),
    Case("unknown import", "p.py", ("ModuleNotFoundError", "numpy"), "import numpy\ndef main(input):\n    return 1\n"),
    Case("unknown limit", "p.py", ("invalid-config", "typo"), HELLO, ("--dummy", "--limit", "typo=1")),
    Case(
        "limit that is no number",
        "p.py",
        ("invalid-config", "cpu_s = 'x'", "a number from 0.001"),
        HELLO,
        ("--dummy", "--limit", "cpu_s=x"),
    ),
    Case(
        "a limit that is hit",
        "p.py",
        ("limit-cpu", "0.2"),
        "def main(input):\n    while True:\n        pass\n",
        ("--dummy", "--limit", "cpu_s=0.2"),
    ),
    Case("an argument that is not UTF-8", "p.py", ("invalid-argument", "UTF-8"), HELLO, ("--dummy", "--", "--name", "\udcff")),
    Case("two inputs", "p.py", ("invalid-argument", "--input"), HELLO, ("--dummy", "--input", "{}", "--", "--a", "1")),
]

CALLS = [
    ("Model.load('nobody')", ("unknown-model", "nobody", "pie-tiny")),
    ("Context(model).append([4_000_000])", ("invalid-token", "4000000")),
    ("Context(model).append([-1])", ("-1",)),
    ("model.tokenizer().decode([4_000_000])", ("invalid-token", "4000000")),
    ("Context(model).generate(Sampler.argmax(), auto_flush=False)", ("empty-context",)),
    ("ctx.generate(Sampler.top_p(-1.0, 0.9))", ("invalid-sampler", "temperature", "-1")),
    ("ctx.generate(Sampler.top_p(float('nan'), 0.9))", ("invalid-sampler", "temperature")),
    ("ctx.generate(Sampler.top_p(1.0, 0.0))", ("invalid-sampler", "p")),
    ("ctx.generate(Sampler.top_p(1.0, 1.5))", ("invalid-sampler", "1.5")),
    ("ctx.generate(Sampler.top_k(1.0, 0))", ("invalid-sampler", "k")),
    ("ctx.generate(Sampler.min_p(1.0, 2.0))", ("invalid-sampler", "2")),
    ("ctx.generate(Sampler.multinomial(1.0, 2))", ("invalid-sampler", "draws", "2")),
    ("ctx.generate(Sampler.argmax(), max_tokens=-1)", ("max_tokens", "-1")),
    ("ctx.generate(Sampler.argmax(), seed=2**64)", ("seed", str(2**64))),
    ("ctx.generate(Sampler.argmax(), stop=[4_000_000])", ("invalid-token", "4000000")),
    ("ctx.generate(Sampler.argmax(), typo=1)", ("TypeError", "typo")),
    ("ctx.generate('argmax')", ("TypeError", "str")),
    ("ctx.truncate(1000)", ("truncate-range", "1000")),
    ("ctx.user(5)", ("TypeError", "int")),
    ("(ctx.release(), ctx.seq_len)", ("context-released",)),
]


@pytest.mark.parametrize(("given", "bound"), [("nan", "1000000000"), ("-1", "0"), ("1e10", "1000000000")])
def test_credits_out_of_range(tmp_path: Path, given: str, bound: str) -> None:
    (tmp_path / "p.py").write_text(HELLO)
    done = pie("run", "p.py", "--dummy", "--credits", given, cwd=tmp_path)
    print(done.stderr)
    assert done.returncode == 2
    assert "Invalid value for '--credits'" in done.stderr
    assert f"than or equal to {bound}" in " ".join(done.stderr.replace("│", " ").split())


@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case.name)
def test_a_bad_program(tmp_path: Path, case: Case) -> None:
    if case.text is not None:
        (tmp_path / case.program).write_text(case.text)
    done = pie("run", case.program, *case.arguments, cwd=tmp_path)
    expect(done.returncode, done.stderr, case.words)


@pytest.mark.parametrize(("call", "words"), CALLS, ids=[call for call, _ in CALLS])
def test_an_argument_out_of_range(tmp_path: Path, call: str, words: tuple[str, ...]) -> None:
    lines = ["from inferlet import *", "async def main(input):", "    model = Model.load('default')", "    ctx = Context(model)"]
    lines += ["    ctx.user('x')", f"    {call}", "    return 'accepted'"]
    (tmp_path / "p.py").write_text("\n".join(lines))
    done = pie("run", "p.py", "--dummy", cwd=tmp_path)
    assert "line 6" in done.stderr
    expect(done.returncode, done.stderr, words)


def damage_config(**changes: object) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return damage


def cut(name: str, n_bytes: int) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / name
        path.write_bytes(path.read_bytes()[:n_bytes])

    return damage


DAMAGES: list[tuple[str, Callable[[Path], None], tuple[str, ...]]] = [
    ("no config", lambda folder: (folder / "config.json").unlink(), ("config.json",)),
    ("broken config", cut("config.json", 50), ("config.json",)),
    ("no weights", lambda folder: (folder / "model.safetensors").unlink(), ("safetensors",)),
    ("cut weights", cut("model.safetensors", 100_000), ("model.safetensors",)),
    ("cut header", cut("model.safetensors", 20), ("model.safetensors",)),
    ("no tokenizer", lambda folder: (folder / "tokenizer.json").unlink(), ("tokenizer.json",)),
    ("broken tokenizer", cut("tokenizer.json", 500), ("tokenizer.json",)),
    ("unknown architecture", damage_config(architectures=["GPT9ForCausalLM"], model_type="gpt9"), ("GPT9ForCausalLM", "Qwen3")),
    ("shape that does not fit", damage_config(intermediate_size=64), ("mlp", "64")),
    ("fewer layers than weights", damage_config(num_hidden_layers=4), ("num_hidden_layers 4", "layers.4")),
    ("absurd size", damage_config(num_hidden_layers=-3), ("num_hidden_layers", "-3")),
]


@pytest.mark.parametrize(("name", "damage", "words"), DAMAGES, ids=[name for name, _, _ in DAMAGES])
def test_a_damaged_model_folder(tmp_path: Path, name: str, damage: Callable[[Path], None], words: tuple[str, ...]) -> None:
    folder = tmp_path / "model"
    shutil.copytree(EMBEDDED_FOLDER, folder)
    damage(folder)
    (tmp_path / "p.py").write_text(HELLO)
    done = pie("run", "p.py", "--model", "model", cwd=tmp_path)
    expect(done.returncode, done.stderr, ("invalid-model", *words))


COMPONENTS: list[tuple[str, Callable[[], bytes], tuple[str, ...]]] = [
    ("truncated", lambda: COMPONENT()[:50_000], ("invalid-program",)),
    ("empty", lambda: b"", ("invalid-program",)),
    ("text", lambda: b"not wasm", ("invalid-program",)),
    ("core module", lambda: b"\0asm\x01\0\0\0", ("invalid-program", "component")),
    ("empty component", lambda: b"\0asm\x0d\0\x01\0", ("invalid-program", "pie:inferlet/run", "#[inferlet::main]")),
]


@pytest.mark.parametrize(("name", "content", "words"), COMPONENTS, ids=[name for name, _, _ in COMPONENTS])
def test_a_bad_component(tmp_path: Path, name: str, content: Callable[[], bytes], words: tuple[str, ...]) -> None:
    (tmp_path / "p.wasm").write_bytes(content())
    done = pie("run", "p.wasm", "--dummy", cwd=tmp_path)
    expect(done.returncode, done.stderr, words)


def expect(exit_code: int, stderr: str, words: tuple[str, ...]) -> None:
    print(stderr)
    assert exit_code == 1, stderr
    assert stderr.count("error[") == 1, stderr
    assert "panicked" not in stderr
    missing = [word for word in words if word.lower() not in stderr.lower()]
    assert not missing, f"{missing} not in {stderr!r}"
