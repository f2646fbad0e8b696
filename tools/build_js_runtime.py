"""Builds the JavaScript language runtime: `python/pie/runtimes/javascript.wasm`.

The SDK and the runtime's own TypeScript become JavaScript by tsc, then bytecode, then part of a core module for wasm, then a
component. Skips where the inputs are what they were; `--force` builds anyway.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools.toolchain.machine import ToolchainError
from tools.toolchain.wasm import JS_RUNTIME, cargo_environment

ROOT = Path(__file__).resolve().parent.parent
SDK = ROOT / "js" / "inferlet"
RUNTIME = ROOT / "rust" / "js-runtime"
TARGET = ROOT / "python" / "pie" / "runtimes" / "javascript.wasm"
WORK = ROOT / "build" / "js-runtime"
DIGEST = WORK / "inputs.sha256"

INPUTS = [
    *((SDK, pattern) for pattern in ("src/*.ts", "globals.d.ts", "tsconfig.json", "package-lock.json")),
    *((RUNTIME, pattern) for pattern in ("build.rs", "src/**/*.rs", "prelude/*", "builder/src/*.rs", "**/Cargo.toml", "**/Cargo.lock")),
    (ROOT / "wit", "**/*.wit"),
]


class BuildError(Exception):
    """What is missing or failed, with the remedy."""


def inputs_digest() -> str:
    """A digest of everything that the component is made of."""
    digest = hashlib.sha256()
    files = {path for folder, pattern in INPUTS for path in folder.glob(pattern)}
    for path in sorted([*files, Path(__file__)]):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def is_current(digest: str) -> bool:
    """Whether the component was built from these inputs."""
    return TARGET.exists() and DIGEST.exists() and DIGEST.read_text() == digest


def target_folder() -> Path:
    """Where cargo builds: a folder that survives a fresh clone."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("CARGO_TARGET_DIR") or cache / "pie-build" / "target") / "js-runtime"


def run(*command: str | Path, folder: Path = ROOT, environment: dict[str, str] | None = None) -> None:
    """Runs a command; a failure is a BuildError that names it."""
    words = [str(word) for word in command]
    if shutil.which(words[0]) is None:
        raise BuildError(f"{words[0]} is missing; `python -m tools.toolchain` says how to get it")
    finished = subprocess.run(words, cwd=folder, env={**os.environ, **(environment or {})}, check=False)
    if finished.returncode != 0:
        raise BuildError(f"`{' '.join(words[:4])} ...` ended with exit code {finished.returncode}; its messages stand above")


def build(digest: str) -> None:
    """Builds the component and puts it in place at once, so that nobody reads half of it."""
    WORK.mkdir(parents=True, exist_ok=True)
    if not (SDK / "node_modules").is_dir():
        run("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", folder=SDK)
    tsc = SDK / "node_modules" / ".bin" / "tsc"
    shutil.rmtree(SDK / "dist", ignore_errors=True)
    run(tsc, "-p", SDK)
    shutil.rmtree(WORK / "modules", ignore_errors=True)
    run(tsc, "-p", RUNTIME / "prelude", "--outDir", WORK / "modules")

    cargo = ("cargo", "build", "--release", "--locked", "--quiet")
    run(*cargo, folder=RUNTIME / "builder", environment={"CARGO_TARGET_DIR": str(target_folder())})
    builder = target_folder() / "release" / "pie-js-runtime-builder"
    builtins = WORK / "builtins.bin"
    prelude = WORK / "modules" / "rust" / "js-runtime" / "prelude"
    run(builder, "bytecode", builtins, f"pie:inferlet={SDK / 'dist'}", f"pie:runtime={prelude}")

    environment = cargo_environment(JS_RUNTIME) | {"CARGO_TARGET_DIR": str(target_folder()), "PIE_JS_BUILTINS": str(builtins)}
    run(*cargo, "--target", JS_RUNTIME, folder=RUNTIME, environment=environment)
    core = target_folder() / JS_RUNTIME / "release" / "pie_js_runtime.wasm"
    fresh = WORK / "javascript.wasm"
    run(builder, "encode", core, fresh)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    fresh.replace(TARGET)
    DIGEST.write_text(digest)


def main() -> int:
    """Builds where it must; answers the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--force", action="store_true", help="build although nothing changed")
    arguments = parser.parse_args()
    digest = inputs_digest()
    target = TARGET.relative_to(ROOT)
    if is_current(digest) and not arguments.force:
        print(f"{target} is current")
        return 0
    print(f"Building {target} (two minutes the first time)", flush=True)
    started = time.monotonic()
    try:
        build(digest)
    except (BuildError, ToolchainError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{target}: {TARGET.stat().st_size / 1e6:.1f} MB in {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
