"""Tensors of a safetensors file, memory-mapped.

The format: 8 bytes of header length (little endian), a JSON header of name -> dtype, shape and data offsets, then the
data. numpy knows no bfloat16, so a tensor stays bytes with the name of its dtype.
"""

from __future__ import annotations

import math
import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pie.models.config import check_regular, invalid_model, parse_json_object
from pie.models.spec import Shape, StoredDtypeName

MAX_HEADER_BYTES = 8 << 20
"""Of 40,000 tensors and more; the largest models have some thousands a file.

What is in it is held as objects, ten times as large.
"""

MAX_TENSORS = 1 << 16
"""No file holds more tensors."""

_PIECE_BYTES = 1 << 20
_EXPONENTS = {"bfloat16": ("<u2", 0x7F80), "float16": ("<u2", 0x7C00), "float32": ("<u4", 0x7F800000)}
"""How the bits of a number are read, and those that are all set where it is not finite."""
_DTYPES: dict[str, tuple[StoredDtypeName, int]] = {"BF16": ("bfloat16", 2), "F16": ("float16", 2), "F32": ("float32", 4)}


@dataclass(frozen=True)
class Tensor:
    """One tensor of a file."""

    name: str
    path: Path
    dtype: StoredDtypeName
    shape: Shape
    data: npt.NDArray[np.uint8]
    """Its bytes, row-major, read-only, at any alignment; the map lives as long as they do."""

    def is_finite(self) -> bool:
        """Whether no number in it is NaN or an infinity; reads it in pieces."""
        kind, exponent = _EXPONENTS[self.dtype]
        pieces = (self.data[start : start + _PIECE_BYTES].view(kind) for start in range(0, len(self.data), _PIECE_BYTES))
        return not any(bool(((words & exponent) == exponent).any()) for words in pieces)

    def float32(self) -> npt.NDArray[np.float32]:
        """The tensor as float32, copied; exact for every dtype."""
        if self.dtype == "bfloat16":
            halves = np.frombuffer(self.data.tobytes(), "<u2").astype(np.uint32)
            return (halves << 16).view(np.float32).reshape(self.shape)
        if self.dtype == "float16":
            return np.frombuffer(self.data.tobytes(), "<f2").astype(np.float32).reshape(self.shape)
        return np.frombuffer(self.data.tobytes(), "<f4").reshape(self.shape)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a file, mapped; PieError `invalid-model` where the file is damaged or a dtype is not supported."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise invalid_model(f"{path}: cannot be read ({error.strerror}); fetch the file again") from None
    except ValueError:  # mmap of an empty file
        raise invalid_model(f"{path}: the file is empty; fetch it again") from None
    header, start = _header(path, mapped)
    data = np.frombuffer(mapped, np.uint8)[start:]
    entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
    if len(entries) > MAX_TENSORS:
        raise invalid_model(f"{path}: holds {len(entries)} tensors, and the limit is {MAX_TENSORS}; use a model in more files")
    tensors = {name: _tensor(path, name, entry, data) for name, entry in entries.items()}
    _check_places(path, {name: entry["data_offsets"] for name, entry in entries.items()}, len(data))
    return tensors


def read_metadata(path: Path) -> dict[str, str]:
    """What the header of a file says beside its tensors; PieError `invalid-model` where it is damaged."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        raise invalid_model(f"{path}: cannot be read; fetch the file again") from None
    with mapped:
        metadata = _header(path, mapped)[0].get("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise invalid_model(f"{path}: its __metadata__ is not an object of texts; fetch the file again")
    return metadata


def _check_places(path: Path, places: dict[str, list[int]], n_bytes: int) -> None:
    """The format has the tensors lie one after the other, without gaps, up to the end.

    Otherwise some would be read from another's bytes.
    """
    at, before = 0, "the header"
    for name, (start, end) in sorted(places.items(), key=lambda place: place[1]):
        if start != at:
            how = "overlaps" if start < at else "leaves a gap behind"
            raise invalid_model(f"{path}: {name} begins at byte {start} and {how} {before}, which ends at {at}; fetch the file again")
        at, before = end, name
    if at != n_bytes:
        raise invalid_model(f"{path}: {n_bytes - at} bytes lie behind {before}, the last of its tensors; fetch the file again")


def _header(path: Path, mapped: mmap.mmap) -> tuple[dict[str, Any], int]:
    length = int.from_bytes(mapped[:8], "little")
    if MAX_HEADER_BYTES < length <= len(mapped) - 8:
        raise invalid_model(f"{path}: its header has {length} bytes, and the limit is {MAX_HEADER_BYTES}; use a model in more files")
    if len(mapped) < 8 or length > len(mapped) - 8:
        raise invalid_model(f"{path}: not a safetensors file, or cut off ({len(mapped)} bytes); fetch it again")
    header = parse_json_object(path, mapped[8 : 8 + length], "its header: ")
    return header, 8 + length


def _tensor(path: Path, name: str, entry: object, data: npt.NDArray[np.uint8]) -> Tensor:
    match entry:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [int(start), int(end)]} if all(
            isinstance(size, int) and size >= 0 for size in shape
        ):
            pass
        case _:
            raise invalid_model(f"{path}: the header's entry of {name} is damaged; fetch the file again")
    if dtype not in _DTYPES:
        raise invalid_model(f"{path}: {name} is {dtype}; supported: {', '.join(_DTYPES)}")
    dtype_name, element_bytes = _DTYPES[dtype]
    if not 0 <= start <= end <= len(data):
        raise invalid_model(f"{path}: {name} lies at bytes {start} to {end} of {len(data)}: the file is cut off; fetch it again")
    if end - start != math.prod(shape) * element_bytes:
        raise invalid_model(f"{path}: {name} has {end - start} bytes for shape {shape} of {dtype}; fetch the file again")
    return Tensor(name, path, dtype_name, tuple(shape), data[start:end])
