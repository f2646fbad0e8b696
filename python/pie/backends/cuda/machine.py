"""What the machine has to have before a model is loaded: one clear error for each thing that it lacks."""

from __future__ import annotations

import ctypes
import inspect
import shlex
import shutil
from collections.abc import Sequence
from importlib import import_module, metadata, util
from pathlib import Path
from typing import Protocol

import torch

from pie.backends.cuda.device import first_line
from pie.backends.cuda.signatures import PARAMETERS, VERSIONS, is_served, numbers_of
from pie.config.environment import environment
from pie.errors import PieError
from pie.models.spec import DecoderSpec

LEAST_CAPABILITY = (8, 0)
"""Of a device: bfloat16 and the kernels of FlashInfer that are used begin with it (Ampere)."""
HEAD_DIMS = (64, 128, 256)
"""Head sizes that FlashInfer has kernels for."""


class Machine(Protocol):
    """What is looked at; a stand-in lacks things."""

    def toolkit(self) -> str | None:
        """The CUDA version that torch was built for; None: it was built without."""

    def driver(self) -> str | None:
        """The newest CUDA version that the display driver serves; None: there is no driver."""

    def n_devices(self) -> int:
        """CUDA devices."""

    def capability(self, device: int) -> tuple[int, int]:
        """Major and minor."""

    def version(self, package: str) -> str | None:
        """The version of an installed package; None: it is not installed."""

    def parameters(self, function: str) -> Sequence[str] | None:
        """The parameters of `package.function`; None: there is none. ImportError where the package is broken."""

    def compiles_c(self) -> bool:
        """Whether there is a compiler of C, with which Triton makes what launches its kernels."""

    def has_kernels(self) -> bool:
        """Whether there is a compiler of CUDA for FlashInfer's kernels, or they are compiled already."""


def check_machine(machine: Machine, device: str, spec: DecoderSpec, dtype: str) -> None:
    """Raises PieError `invalid-config`, with what to do, where the model cannot run on that device of the machine."""
    index = _index(device)
    toolkit = machine.toolkit()
    if toolkit is None:
        raise _lacks("the torch that is installed was built without CUDA; install one with it: pip install 'pie-engine[cuda]'")
    newest = machine.driver()
    if newest is None:
        raise _lacks(f'there is no NVIDIA driver, so {device} cannot be used; install one, or set driver = "cpu"')
    if numbers_of(newest) < numbers_of(toolkit)[:1]:
        raise _lacks(f"the NVIDIA driver serves CUDA {newest}, and torch needs {toolkit}; install a newer driver")
    n_devices = machine.n_devices()
    if n_devices == 0:
        raise _lacks(
            f'there is no CUDA device, so {device} cannot be used; set driver = "cpu", or see what hides it (CUDA_VISIBLE_DEVICES)'
        )
    if index >= n_devices:
        raise _lacks(f"there is no {device}: this machine has {n_devices} CUDA devices; give cuda:0 to cuda:{n_devices - 1}", "device")
    capability = machine.capability(index)
    if capability < LEAST_CAPABILITY:
        has, needs = (".".join(map(str, version)) for version in (capability, LEAST_CAPABILITY))
        raise _lacks(f"{device} has compute capability {has}, and {needs} is the least that is served; use another device", "device")
    if spec.attention.head_dim not in HEAD_DIMS and dtype != "float32":
        sizes = ", ".join(map(str, HEAD_DIMS))
        raise _lacks(
            f"the model has heads of {spec.attention.head_dim}, and FlashInfer serves {sizes}; "
            'set dtype = "float32", which runs without it and slowly, or driver = "cpu"',
            "dtype",
        )
    _check_packages(machine)
    if dtype != "float32":
        _check_compilers(machine)


def _check_packages(machine: Machine) -> None:
    for package, (least, below) in VERSIONS.items():
        found = machine.version(package)
        if found is None:
            raise _lacks(f"{package} is not installed, which the cuda back end needs: pip install 'pie-engine[cuda]'")
        if not is_served(package, found):
            raise _lacks(f"{package} is of version {found}; {least} and later below {below} are served: pip install 'pie-engine[cuda]'")
    for function, needed in PARAMETERS.items():
        try:
            found_parameters = machine.parameters(function)
        except (ImportError, OSError, RuntimeError) as error:
            package = function.partition(".")[0]
            raise _lacks(
                f"{package} is installed and cannot be imported ({first_line(error)}); install it again: pip install 'pie-engine[cuda]'"
            ) from error
        lacking = sorted(set(needed) - set(found_parameters or ()))
        if found_parameters is None or lacking:
            what = "is not there" if found_parameters is None else f"has no {', '.join(lacking)}"
            raise _lacks(
                f"{function} {what} in the version that is installed; install the one that is served: pip install 'pie-engine[cuda]'"
            )


def _check_compilers(machine: Machine) -> None:
    """What computes in float32 is compiled already, for it is neither FlashInfer nor Triton."""
    if not machine.compiles_c():
        raise _lacks("there is no C compiler, with which Triton makes what launches its kernels; install gcc or clang, or name one in CC")
    if not machine.has_kernels():
        raise _lacks(
            "there is no nvcc, by which FlashInfer compiles its kernels at first use; install the CUDA toolkit (and say in "
            "CUDA_HOME where it lies), or flashinfer-jit-cache, which has them compiled"
        )


def _index(device: str) -> int:
    """The number of a device; PieError for a name that is none."""
    kind, _, number = device.partition(":")
    if kind != "cuda" or not (number or "0").isdecimal():
        raise PieError("invalid-argument", f"device is {device!r}; give cuda:0, cuda:1 and so on, or cpu", {"option": "device"})
    return int(number or 0)


def _lacks(message: str, option: str = "driver") -> PieError:
    return PieError("invalid-config", message, {"option": option})


class ThisMachine:
    """The machine that this process runs on; see `Machine`."""

    def toolkit(self) -> str | None:
        """See `Machine`."""
        return torch.version.cuda

    def driver(self) -> str | None:
        """See `Machine`."""
        number = ctypes.c_int(0)
        try:
            ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number))
        except OSError:
            return None
        # The thousands are the major version, the tens the minor one.
        return f"{number.value // 1000}.{number.value % 1000 // 10}"

    def n_devices(self) -> int:
        """See `Machine`."""
        return torch.cuda.device_count()

    def capability(self, device: int) -> tuple[int, int]:
        """See `Machine`."""
        major, minor = torch.cuda.get_device_capability(device)
        return major, minor

    def version(self, package: str) -> str | None:
        """See `Machine`."""
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return None

    def parameters(self, function: str) -> Sequence[str] | None:
        """See `Machine`."""
        return installed_parameters(function)

    def compiles_c(self) -> bool:
        """See `Machine`."""
        named = shlex.split(environment().get("CC", ""))
        return any(shutil.which(name) for name in (named[:1] or ["gcc", "clang"]))

    def has_kernels(self) -> bool:
        """See `Machine`."""
        if util.find_spec("flashinfer_jit_cache") is not None:
            return True
        variables = environment()
        named = variables.get("CUDA_HOME") or variables.get("CUDA_PATH")
        if not named and shutil.which("nvcc"):
            return True
        return (Path(named or "/usr/local/cuda") / "bin" / "nvcc").exists()


def installed_parameters(function: str) -> Sequence[str] | None:
    """The parameters of a function of an installed package, by its path; None where there is no such function."""
    module, *path = function.split(".")
    found: object = import_module(module)
    for name in path:
        found = getattr(found, name, None)
    return list(inspect.signature(found).parameters) if callable(found) else None
