"""What `pie doctor` finds of the machine: versions, the processor, the port, GPUs, and what builds programs."""

from __future__ import annotations

import importlib.util
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from pie.bakery.toolchain import wasm
from pie.bakery.toolchain.machine import ToolchainError, find, run
from pie.cli.findings import Finding
from pie.errors import PieError

if TYPE_CHECKING:
    from pie.config import Config

_ASK_S = 10.0
_INSTRUCTIONS = {"avx512": "AVX-512 with bfloat16", "avx2": "AVX2 with FMA"}
_OF_CUDA = ("torch", "flashinfer", "xgrammar")


def versions(_config: Config) -> Iterator[Finding]:
    """The versions of what runs here."""
    try:
        own = version("pie-engine")
    except PackageNotFoundError:
        yield Finding(
            "fail", "versions", "the package pie-engine is not installed; install it with pip, or with `make build` from its tree"
        )
        return
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield Finding("ok", "versions", f"pie {own}, Python {platform.python_version()}, {system}")


def processor(config: Config) -> Iterator[Finding]:
    """The instructions that the kernels of the driver `cpu` use here."""
    if not any(model.driver == "cpu" for model in config.models):
        yield Finding("ok", "processor", "no model runs on the driver cpu")
        return
    isa = _best_instructions()
    if isa in _INSTRUCTIONS:
        yield Finding("ok", "processor", f"{_INSTRUCTIONS[isa]}")
    else:
        remedy = 'take a machine that has one of them, or a GPU (driver = "cuda")'
        yield Finding("warn", "processor", f"it has neither AVX-512 with bfloat16 nor AVX2: models run several times slower; {remedy}")


def _best_instructions() -> str:
    """As the kernels themselves choose them."""
    from pie.backends.cpu.library import KernelError, Library
    from pie.backends.cpu.plan import Plan, PlanOptions

    smallest = PlanOptions(
        dtype="float32",
        isa="auto",
        n_threads=1,
        max_tokens=8,
        vocab_size=16,
        max_positions=16,
        page_size=4,
        n_pages=4,
        n_layers=1,
        n_heads=1,
        n_kv_heads=1,
        head_dim=4,
    )
    try:
        plan = Plan(Library(), smallest)
        try:
            return plan.isa()
        finally:
            plan.close()
    except KernelError as error:
        raise PieError("internal", f"the kernels do not run here: {error}; install the package again") from error


def port(config: Config) -> Iterator[Finding]:
    """Whether `pie serve` could listen where it is told to."""
    from pie._engine import check_address

    server = config.server
    if server.port == 0:
        yield Finding("ok", "port", "a free one (server.port = 0)")
        return
    try:
        check_address(server.host, server.port)
    except PieError as error:
        remedy = "" if ";" in error.message else "; give another one with --port N or server.port"
        yield Finding("warn", "port", f"{error.message}{remedy}")
        return
    yield Finding("ok", "port", f"{server.host}:{server.port} is free")


def gpu(config: Config) -> Iterator[Finding]:
    """GPUs, and what the driver `cuda` needs beside one."""
    wanted = [model.name for model in config.models if model.driver == "cuda" and model.device != "cpu"]
    found = _gpus()
    if not found:
        if wanted:
            remedy = 'install the driver of the GPU, or set driver = "cpu"'
            yield Finding("fail", "gpu", f"there is none that nvidia-smi shows, and {', '.join(wanted)} has the driver cuda; {remedy}")
        else:
            yield Finding("ok", "gpu", "none; models run on the processor")
        return
    lacks = [name for name in _OF_CUDA if importlib.util.find_spec(name) is None]
    if lacks:
        told = f"{', '.join(found)}, but {', '.join(lacks)} is missing, so that models run on the processor"
        yield Finding("fail" if wanted else "warn", "gpu", f"{told}; pip install 'pie-engine[cuda]'")
    else:
        yield Finding("ok", "gpu", f'{", ".join(found)}; models with driver = "cuda" run there')


def replicas(config: Config) -> Iterator[Finding]:
    """Whether there is what several engines behind one address need."""
    if config.server.replicas == 1:
        return
    if importlib.util.find_spec("ray") is None:
        from pie.replicas.actors import LACKS_RAY

        yield Finding("fail", "replicas", LACKS_RAY)
        return
    yield Finding("ok", "replicas", f"{config.server.replicas}, and ray is installed")


def _gpus() -> list[str]:
    if find("nvidia-smi") is None:
        return []
    try:
        told = run(["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"], timeout_s=_ASK_S)
    except ToolchainError:
        return []
    return [line.strip() for line in told.splitlines() if line.strip()]


def toolchains(_config: Config) -> Iterator[Finding]:
    """What builds programs: nothing is needed for Python, JavaScript and TypeScript without packages of npm."""
    if find("cargo") is None:
        yield Finding("warn", "toolchain", "no cargo: programs in Rust cannot be built; install Rust 1.95 or newer with rustup")
    elif not wasm.is_ready(wasm.PROGRAMS):
        remedy = wasm.remedy(wasm.PROGRAMS)
        yield Finding("warn", "toolchain", f"Rust has no {wasm.PROGRAMS}: programs in Rust cannot be built; mend it with: {remedy}")
    else:
        yield Finding("ok", "toolchain", f"Rust builds programs ({_version('cargo')})")
    if find("node") is None or find("npm") is None:
        yield Finding("warn", "toolchain", "no Node with npm: packages of npm cannot be bundled; install Node 20 or newer")
    else:
        yield Finding("ok", "toolchain", f"npm bundles packages (Node {_version('node')})")


def _version(command: str) -> str:
    try:
        return run([command, "--version"], timeout_s=_ASK_S).strip().removeprefix("v")
    except ToolchainError as error:
        return f"its version is not known: {error}"
