"""What options and a checkpoint come to: dtype, pages. The same for every driver."""

from __future__ import annotations

from pie.backends.base import Capabilities, DriverOptions
from pie.errors import PieError
from pie.models.loader import Checkpoint
from pie.models.spec import DecoderSpec, DtypeName

_DTYPES: dict[str, DtypeName] = {"bfloat16": "bfloat16", "float32": "float32"}
_ELEMENT_BYTES: dict[DtypeName, int] = {"bfloat16": 2, "float32": 4}
_MAX_SWAP_BYTES = 2 << 30
"""The most host memory that is taken unasked."""
_MAX_HOST_PAGES = 1 << 24


def invalid(message: str, option: str | None = None) -> PieError:
    """The error of options that do not fit; `option` is the one to change, for whoever knows where it was set."""
    return PieError("invalid-argument", message, None if option is None else {"option": option})


def token_bytes(spec: DecoderSpec, dtype: DtypeName) -> int:
    """Bytes of the keys and values of one token in all layers."""
    heads = spec.attention
    return 2 * spec.n_layers * heads.n_kv_heads * heads.head_dim * _ELEMENT_BYTES[dtype]


def page_bytes(spec: DecoderSpec, dtype: DtypeName, page_size: int) -> int:
    """Bytes of one page: the keys and values of `page_size` tokens in all layers."""
    return token_bytes(spec, dtype) * page_size


def choose_dtype(checkpoint: Checkpoint, options: DriverOptions) -> DtypeName:
    """The dtype asked for, else that of the checkpoint.

    Raises PieError `invalid-argument` where weights would have to be rounded.
    """
    if options.dtype is None:
        return checkpoint.dtype
    dtype = _DTYPES.get(options.dtype)
    if dtype is None:
        raise invalid(f"dtype is {options.dtype!r}; choose one of {', '.join(_DTYPES)}", "dtype")
    if dtype == "bfloat16" and checkpoint.dtype == "float32":
        stored = ", ".join(sorted({tensor.dtype for tensor in checkpoint.tensors.values()} - {"bfloat16"}))
        raise invalid(f"{checkpoint.folder} has {stored} weights, which are not rounded to bfloat16; leave dtype out", "dtype")
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
