"""Builds the JavaScript language runtime: `python/pie/runtimes/javascript.wasm`.

The SDK and the runtime's own TypeScript become JavaScript by tsc, then bytecode, then part of a core module for wasm.
That runs them, and becomes a component with the memory that it has then.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tools.toolchain  # noqa: F401  # found by the line above; it makes `pie` importable
from pie.bakery.toolchain.machine import ToolchainError, cache_folder
from tools.artefact import ROOT, Artefact, BuildError, make
from tools.toolchain import js_runtime
from tools.toolchain.js_runtime import JS_RUNTIME

SDK = ROOT / "js" / "inferlet"
CRATE = ROOT / "rust" / "js-runtime"
BUILDER = ROOT / "rust" / "runtime-builder"
INPUTS = [
    *((SDK, pattern) for pattern in ("src/*.ts", "globals.d.ts", "tsconfig.json", "package-lock.json")),
    *((CRATE, pattern) for pattern in ("build.rs", "src/**/*.rs", "prelude/*", "Cargo.toml", "Cargo.lock")),
    (ROOT / "wit", "**/*.wit"),
]
BUILDER_INPUTS = [path for pattern in ("src/*.rs", "Cargo.toml", "Cargo.lock") for path in sorted(BUILDER.glob(pattern))]
CARGO = ("cargo", "build", "--release", "--locked", "--quiet")
RUNTIME = Artefact(
    target=ROOT / "python" / "pie" / "runtimes" / "javascript.wasm",
    work=ROOT / "build" / "js-runtime",
    inputs=(*(path for folder, pattern in INPUTS for path in folder.glob(pattern)), *BUILDER_INPUTS, Path(__file__).resolve()),
    takes="two minutes the first time",
)


def target_folder() -> Path:
    """Where cargo builds: a folder that survives a fresh clone."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or cache_folder() / "target") / "js-runtime"


def run(*command: str | Path, folder: Path = ROOT, environment: dict[str, str] | None = None) -> None:
    """Runs a command; a failure is a BuildError that names it."""
    words = [str(word) for word in command]
    if shutil.which(words[0]) is None:
        raise BuildError(f"{words[0]} is missing; `python -m tools.toolchain` says how to get it")
    finished = subprocess.run(words, cwd=folder, env={**os.environ, **(environment or {})}, check=False)
    if finished.returncode != 0:
        raise BuildError(f"`{' '.join(words[:4])} ...` ended with exit code {finished.returncode}; its messages stand above")


def builder() -> Path:
    """The host tool of the builds of the language runtimes, which is built where it must."""
    run(*CARGO, folder=BUILDER, environment={"CARGO_TARGET_DIR": str(target_folder())})
    return target_folder() / "release" / "pie-runtime-builder"


def build() -> Path:
    """Builds the component."""
    try:
        environment = js_runtime.environment()
    except ToolchainError as error:
        raise BuildError(str(error)) from error
    if not (SDK / "node_modules").is_dir():
        run("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", folder=SDK)
    tsc = SDK / "node_modules" / ".bin" / "tsc"
    shutil.rmtree(SDK / "dist", ignore_errors=True)
    run(tsc, "-p", SDK)
    shutil.rmtree(RUNTIME.work / "modules", ignore_errors=True)
    run(tsc, "-p", CRATE / "prelude", "--outDir", RUNTIME.work / "modules")

    builtins = RUNTIME.work / "builtins.bin"
    prelude = RUNTIME.work / "modules" / "rust" / "js-runtime" / "prelude"
    run(builder(), "bytecode", builtins, f"pie:inferlet={SDK / 'dist'}", f"pie:runtime={prelude}")

    environment |= {"CARGO_TARGET_DIR": str(target_folder()), "PIE_JS_BUILTINS": str(builtins)}
    run(*CARGO, "--target", JS_RUNTIME, folder=CRATE, environment=environment)
    core = target_folder() / JS_RUNTIME / "release" / "pie_js_runtime.wasm"
    fresh = RUNTIME.work / "javascript.wasm"
    run(builder(), "encode", core, fresh)
    return fresh


if __name__ == "__main__":
    sys.exit(make(RUNTIME, build))
