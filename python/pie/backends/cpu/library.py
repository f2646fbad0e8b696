"""The kernels' shared object: where it is, and that it is the one that this package was written for."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, cast

import cffi

from pie.errors import PieError

ABI_VERSION = 4
"""The version of `kernels.h`."""

_EXTENSION = "pie._engine"
_STRUCTS = ("pie_k_options", "pie_k_part", "pie_k_buffer", "pie_k_op", "pie_k_error", "pie_k_low_rank")


class KernelError(Exception):
    """A call of the kernels failed; the message is theirs."""


class Library:
    """The C functions of the kernels."""

    def __init__(self, path: Path | None = None) -> None:
        """Opens the shared object at `path`, else that of the extension module, whose code is not run by this.

        Raises PieError `internal` where there is none, or one of another version.
        """
        path = extension_path() if path is None else path
        self.path = path
        # Any: the stubs of numpy before Python 3.12 do not say that arrays are buffers.
        self.ffi = cast(Any, cffi.FFI())
        self.ffi.cdef((Path(__file__).parent / "kernels.h").read_text(encoding="utf-8"))
        try:
            self.lib = self.ffi.dlopen(str(path))
            version = int(self.lib.pie_k_abi_version())
        except (OSError, AttributeError) as error:
            raise PieError("internal", f"{path} does not hold the kernels ({error}); install the package again") from None
        sizes = [int(self.lib.pie_k_struct_bytes(which)) for which in range(len(_STRUCTS))]
        expected = [int(self.ffi.sizeof(struct)) for struct in _STRUCTS]
        if version != ABI_VERSION or sizes != expected:
            raise PieError(
                "internal",
                f"{path} holds kernels of version {version} with structures of {sizes} bytes, not version {ABI_VERSION} with {expected}; "
                "install the package again",
            )

    def call(self, name: str, *arguments: object) -> None:
        """Calls `name(*arguments, error)`; raises KernelError with the kernels' message where it fails."""
        error = self.ffi.new("pie_k_error *")
        if getattr(self.lib, name)(*arguments, error) != 0:
            raise KernelError(bytes(self.ffi.string(error.message)).decode())


def extension_path() -> Path:
    """The file of the extension module, found without running it."""
    spec = importlib.util.find_spec(_EXTENSION)
    if spec is None or spec.origin is None:
        raise PieError("internal", f"the module {_EXTENSION} is not installed; install the package with its compiled part")
    return Path(spec.origin)
