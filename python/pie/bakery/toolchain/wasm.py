"""Building Rust for wasm: who builds asks `cargo_environment`, and need not know by which of two routes.

The targets of rustup are taken where they can be had, else Debian's second rustc, which builds the standard library
from its sources.
"""

from __future__ import annotations

import re
from pathlib import Path

from . import debian
from .machine import ToolchainError, answer, cache_folder, find, run, tools_folder

PROGRAMS = "wasm32-wasip2"
BARE = "wasm32-unknown-unknown"

RUSTC = Path("/usr/bin/rustc")
LIBRARY_SOURCES = Path("/usr/lib/rustlib/src/rust/library")
COMPILER_PACKAGES = ("rustc-web", "rust-web-src")
RUSTUP_PATIENCE_S = 120.0


def cargo_environment(target: str) -> dict[str, str]:
    """What to add to the environment of `cargo build --target TARGET`.

    The ToolchainError says how to get what is missing.
    """
    if has_target(target):
        return {}
    if not (has_compiler() and (linker := find_linker()) and (target != PROGRAMS or has_component_parts())):
        raise ToolchainError(f"Rust for {target} is missing; mend it with: {remedy(target)}")
    upper = target.upper().replace("-", "_")
    environment = {
        "RUSTC": str(RUSTC),
        # Building the standard library is a feature of nightly compilers.
        "RUSTC_BOOTSTRAP": "1",
        "CARGO_UNSTABLE_BUILD_STD": "std,panic_abort",
    }
    if target == PROGRAMS:
        flags = f"-L native={libc_folder()} -C link-self-contained=no -C link-arg=--wasm-ld-path={linker}"
        return environment | {f"CARGO_TARGET_{upper}_LINKER": str(component_linker()), f"CARGO_TARGET_{upper}_RUSTFLAGS": flags}
    return environment | {f"CARGO_TARGET_{upper}_LINKER": linker}


def has_target(target: str) -> bool:
    """Whether the rustc on the path brings the standard library of a target."""
    folder = answer(["rustc", "--print", "target-libdir", "--target", target])
    return folder is not None and any(Path(folder).glob("libstd-*.rlib"))


def is_ready(target: str) -> bool:
    """Whether cargo can build for a target."""
    try:
        cargo_environment(target)
    except ToolchainError:
        return False
    return True


def make_ready(target: str) -> None:
    """Gets what building for a target needs, by the first route that leads there."""
    if find("rustup"):
        try:
            run(["rustup", "target", "add", target], timeout_s=RUSTUP_PATIENCE_S)
        except ToolchainError as failure:
            print(f"  {failure}; taking Debian's compiler instead", flush=True)
        else:
            return
    if not has_compiler():
        debian.install(*COMPILER_PACKAGES)
    if find_linker() is None:
        debian.install(linker_package())
    if target == PROGRAMS:
        make_component_parts()


def remedy(target: str) -> str:
    """The command that mends a target that could not be had."""
    if not debian.has_apt():
        return f"rustup target add {target}"
    return debian.install_command(*COMPILER_PACKAGES, linker_package()) + f" && python3 -m {__package__}"


def has_compiler() -> bool:
    """Whether Debian's second compiler is there, with the sources of its standard library."""
    return RUSTC.exists() and LIBRARY_SOURCES.is_dir()


def linker_package() -> str:
    """The linker of the same LLVM as the compiler: another one may not read its objects."""
    found = re.search(r"^LLVM version: (\d+)", answer([RUSTC, "-vV"]) or "", re.M)
    return f"lld-{found[1]}" if found and has_compiler() else "lld-22"


def find_linker() -> str | None:
    """The linker for wasm."""
    return find(f"wasm-ld-{linker_package().removeprefix('lld-')}")


def libc_folder() -> Path:
    """Where the C library of WASI lies: unpacked by us, or installed."""
    unpacked, installed = (root / "usr/lib" / PROGRAMS for root in (cache_folder() / "wasi-libc", Path("/")))
    return installed if (installed / "libc.a").exists() else unpacked


def component_linker() -> Path:
    """The linker that makes components; it calls the linker for wasm."""
    return Path(find("wasm-component-ld") or tools_folder() / "bin" / "wasm-component-ld")


def has_component_parts() -> bool:
    """Whether there is what components need beside a compiler."""
    return component_linker().exists() and (libc_folder() / "libc.a").exists()


def make_component_parts() -> None:
    """Gets the C library and the linker of components."""
    if not (libc_folder() / "libc.a").exists():
        debian.unpack("wasi-libc", cache_folder() / "wasi-libc", libc_folder() / "libc.a")
    if not component_linker().exists():
        print("  installing wasm-component-ld with cargo (about a minute)", flush=True)
        run(["cargo", "install", "--locked", "--quiet", "--root", tools_folder(), "wasm-component-ld"])
