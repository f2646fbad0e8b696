"""Building the JavaScript runtime for wasm: Rust with the C of QuickJS in it."""

from __future__ import annotations

from pie.bakery.toolchain import debian, wasm
from pie.bakery.toolchain.machine import ToolchainError, find

JS_RUNTIME = wasm.BARE


def environment() -> dict[str, str]:
    """What to add to the environment of cargo; the ToolchainError says how to get what is missing."""
    return c_environment() | wasm.cargo_environment(JS_RUNTIME)


def is_ready() -> bool:
    """Whether the runtime can be built."""
    try:
        environment()
    except ToolchainError:
        return False
    return True


def c_environment() -> dict[str, str]:
    """What the C of QuickJS is compiled with."""
    compiler, archiver = find("clang-22", "clang"), find("llvm-ar-22", "llvm-ar", "llvm-ar-14")
    if compiler is None or archiver is None:
        raise ToolchainError(f"clang and llvm are missing; mend it with: {debian.install_command('clang', 'llvm')}")
    suffix = JS_RUNTIME.replace("-", "_")
    return {f"CC_{suffix}": compiler, f"AR_{suffix}": archiver, f"CFLAGS_{suffix}": f"--target={JS_RUNTIME} -O3"}
