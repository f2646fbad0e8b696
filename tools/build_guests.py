"""Builds the Rust examples and the programs of the tests and benchmarks to `build/programs/<name>.wasm`.

Also the script of the Rust client, which runs here, to `build/programs/client-script`. Cargo skips what is unchanged.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tools.toolchain  # noqa: E402, F401  # found by the line above; it makes `pie` importable
from pie.bakery.toolchain.machine import ToolchainError, target_folder  # noqa: E402
from pie.bakery.toolchain.wasm import PROGRAMS, cargo_environment  # noqa: E402

WORKSPACES = (ROOT / "examples" / "rust", ROOT / "tests" / "guests", ROOT / "asv_benchmarks" / "guests")
TARGET = ROOT / "build" / "programs"


def build(workspace: Path, environment: dict[str, str]) -> list[Path]:
    """Builds a workspace and returns its components; cargo shows its progress and its errors itself."""
    command = ["cargo", "build", "--release", "--locked", "--target", PROGRAMS, "--message-format", "json-render-diagnostics"]
    done = subprocess.run(command, cwd=workspace, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise ToolchainError(f"cargo could not build {workspace.relative_to(ROOT)}; its messages stand above")
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    files = [name for message in messages if message["reason"] == "compiler-artifact" for name in message["filenames"]]
    return [Path(name) for name in files if name.endswith(".wasm")]


def build_client_script(environment: dict[str, str]) -> Path:
    """Builds the script of the Rust client, which the test of the three clients runs."""
    command = ["cargo", "build", "--release", "--locked", "--package", "pie-client", "--example", "script"]
    if subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=False).returncode != 0:
        raise ToolchainError("cargo could not build the script of rust/client; its messages stand above")
    return target_folder() / "release" / "examples" / "script"


def publish(component: Path, name: str | None = None) -> bool:
    """Puts a component in place at once, so that nobody reads half of it; false where it already lies there."""
    target, content = TARGET / (name or component.name), component.read_bytes()
    if target.exists() and target.read_bytes() == content:
        return False
    fresh = target.with_suffix(".new")
    fresh.write_bytes(content)
    fresh.chmod(component.stat().st_mode)
    fresh.replace(target)
    return True


def main() -> int:
    """Builds all; returns the exit code."""
    started = time.monotonic()
    TARGET.mkdir(parents=True, exist_ok=True)
    try:
        environment = {**cargo_environment(PROGRAMS), "CARGO_TARGET_DIR": str(target_folder())}
        components = [component for workspace in WORKSPACES for component in build(workspace, environment)]
        script = build_client_script({"CARGO_TARGET_DIR": str(target_folder())})
    except ToolchainError as error:
        print(error, file=sys.stderr)
        return 1
    for component in sorted(components, key=lambda path: path.name):
        state = "built" if publish(component) else "is current"
        print(f"{TARGET.relative_to(ROOT) / component.name} {state}: {component.stat().st_size / 1e3:.0f} kB")
    publish(script, "client-script")
    print(f"{len(components)} programs in {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
