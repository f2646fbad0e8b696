"""What the machine has to have before a model is loaded: one clear error for each thing that it lacks."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Sequence
from importlib import import_module, metadata
from typing import Protocol

import torch

from pie.backends.cuda.signatures import PARAMETERS, VERSIONS
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
        """The parameters of `package.function`; None: there is none."""


def check_machine(machine: Machine, device: str, spec: DecoderSpec, dtype: str) -> None:
    """Raises PieError `invalid-config`, with what to do, where the model cannot run on that device of the machine."""
    index = _index(device)
    toolkit = machine.toolkit()
    if toolkit is None:
        raise _lacks("the torch that is installed was built without CUDA; install one with it: pip install 'pie-engine[cuda]'")
    newest = machine.driver()
    if newest is None:
        raise _lacks(f'there is no NVIDIA driver, so {device} cannot be used; install one, or set driver = "cpu"')
    if _numbers(newest) < _numbers(toolkit)[:1]:
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


def _check_packages(machine: Machine) -> None:
    for package, (least, below) in VERSIONS.items():
        found = machine.version(package)
        if found is None:
            raise _lacks(f"{package} is not installed, which the cuda back end needs: pip install 'pie-engine[cuda]'")
        if not _numbers(least) <= _numbers(found) < _numbers(below):
            raise _lacks(f"{package} is of version {found}; {least} and later below {below} are served: pip install 'pie-engine[cuda]'")
    for function, needed in PARAMETERS.items():
        found_parameters = machine.parameters(function)
        lacking = sorted(set(needed) - set(found_parameters or ()))
        if found_parameters is None or lacking:
            what = "is not there" if found_parameters is None else f"has no {', '.join(lacking)}"
            raise _lacks(
                f"{function} {what} in the version that is installed; install the one that is served: pip install 'pie-engine[cuda]'"
            )


def _index(device: str) -> int:
    """The number of a device; PieError for a name that is none."""
    kind, _, number = device.partition(":")
    if kind != "cuda" or not (number or "0").isdecimal():
        raise PieError("invalid-argument", f"device is {device!r}; give cuda:0, cuda:1 and so on, or cpu", {"option": "device"})
    return int(number or 0)


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, as far as they go: (0, 7, 2) of `0.7.2.post1`."""
    numbers = []
    for part in version.partition("+")[0].split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)


def _lacks(message: str, option: str | None = None) -> PieError:
    return PieError("invalid-config", message, None if option is None else {"option": option})


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


def installed_parameters(function: str) -> Sequence[str] | None:
    """The parameters of a function of an installed package, by its path; None where there is no such function."""
    module, *path = function.split(".")
    found: object = import_module(module)
    for name in path:
        found = getattr(found, name, None)
    return list(inspect.signature(found).parameters) if callable(found) else None
