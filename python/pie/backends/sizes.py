"""What options and a checkpoint come to: dtype, pages. The same for every driver."""

from __future__ import annotations

from pie.backends.base import Capabilities, DriverOptions
from pie.errors import PieError
from pie.models.loader import Checkpoint
from pie.models.spec import DtypeName, page_bytes

_DTYPES: dict[str, DtypeName] = {"bfloat16": "bfloat16", "float32": "float32"}
_MAX_SWAP_BYTES = 2 << 30
"""The most host memory that is taken unasked."""
_MAX_HOST_PAGES = 1 << 24


def invalid(message: str, option: str | None = None) -> PieError:
    """The error of options that do not fit; `option` is the one to change, for whoever knows where it was set."""
    return PieError("invalid-argument", message, None if option is None else {"option": option})


def default_dtype(checkpoint: Checkpoint, *, float16: bool = False) -> DtypeName:
    """The dtype that a checkpoint is computed in where none is asked for, by a back end with `float16` or without."""
    only_float16 = all(tensor.dtype == "float16" for tensor in checkpoint.tensors.values())
    return "float16" if float16 and only_float16 else checkpoint.dtype


def choose_dtype(checkpoint: Checkpoint, options: DriverOptions, *, float16: bool = False) -> DtypeName:
    """The dtype asked for, else that of the checkpoint, for a back end that computes in `float16` or not.

    Raises PieError `invalid-argument` where weights would have to be rounded.
    """
    if options.dtype is None:
        return default_dtype(checkpoint, float16=float16)
    known = _DTYPES | ({"float16": "float16"} if float16 else {})
    dtype = known.get(options.dtype)
    if dtype is None:
        raise invalid(f"dtype is {options.dtype!r}; choose one of {', '.join(known)}", "dtype")
    strangers = {tensor.dtype for tensor in checkpoint.tensors.values()} - {dtype}
    if dtype != "float32" and strangers:
        stored = ", ".join(sorted(strangers))
        raise invalid(f"{checkpoint.folder} has {stored} weights, which are not rounded to {dtype}; leave dtype out", "dtype")
    return dtype


def capabilities(backend: str, checkpoint: Checkpoint, dtype: DtypeName, options: DriverOptions) -> Capabilities:
    """What a driver with these options serves; PieError `invalid-argument` for sizes that are too small."""
    for name in ("page_size", "max_batch_tokens"):
        if getattr(options, name) < 1:
            raise invalid(f"{name} is {getattr(options, name)}; it must be at least 1", name)
    spec = checkpoint.spec
    n_bytes = page_bytes(spec, dtype, options.page_size)
    n_pages = options.kv_bytes // n_bytes if options.n_pages is None else options.n_pages
    if n_pages < 1:
        if options.n_pages is not None:
            raise invalid(f"n_pages is {options.n_pages}; it must be at least 1", "n_pages")
        one = f"one page of {options.page_size} tokens needs {n_bytes} bytes"
        raise invalid(f"kv_bytes is {options.kv_bytes}; {one}: give at least {n_bytes}", "kv_bytes")
    swap_bytes = min(n_pages * n_bytes, _MAX_SWAP_BYTES) if options.swap_bytes is None else options.swap_bytes
    if swap_bytes < 0:
        raise invalid(f"swap_bytes is {swap_bytes}; it must be at least 0", "swap_bytes")
    if options.adapter_bytes < 0:
        raise invalid(f"adapter_bytes is {options.adapter_bytes}; it must be at least 0", "adapter_bytes")
    return Capabilities(
        backend=backend,
        vocab_size=spec.vocab_size,
        max_positions=spec.max_positions,
        page_size=options.page_size,
        n_pages=n_pages,
        max_batch_tokens=options.max_batch_tokens,
        host_pages=min(swap_bytes // n_bytes, _MAX_HOST_PAGES),
        masks=True,
        positions=True,
        # A row of logits has room for it in every model that there is.
        embeddings=spec.hidden_size if spec.hidden_size <= spec.vocab_size else 0,
    )
