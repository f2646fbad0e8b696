"""Plans of the kernels: a typed face over the C calls that build and run them."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pie.backends.cpu.library import Library
from pie.models.safetensors import Tensor
from pie.models.spec import DtypeName

F32: TypeAlias = npt.NDArray[np.float32]

NONE = 0xFFFFFFFF
"""The index that stands for none."""

DTYPE_CODES: dict[DtypeName, int] = {"bfloat16": 1, "float32": 2}
ISA_CODES = {"auto": 0, "avx512": 2, "avx2": 3, "portable": 1}


class OpKind(enum.IntEnum):
    """The operations of a plan; `rust/kernels/src/plan/op.rs` says what each does."""

    EMBED = 1
    RMS_NORM = 2
    LINEAR = 3
    LINEAR_ADD = 4
    ROTARY_WRITE = 5
    ATTENTION = 6
    SWIGLU = 7
    SELECT_ROWS = 8
    LOGITS = 9
    ADD_VECTOR = 10
    LORA = 11


@dataclass(frozen=True)
class PlanOptions:
    """Sizes of a plan; `rust/kernels/src/plan/options.rs` has their limits."""

    dtype: DtypeName
    isa: str
    n_threads: int
    max_tokens: int
    vocab_size: int
    max_positions: int
    page_size: int
    n_pages: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int

    @property
    def kv_shape(self) -> tuple[int, ...]:
        """Shape of the pool of keys and values, in elements of `dtype`."""
        return (self.n_pages, self.n_layers, 2, self.n_kv_heads, self.page_size * self.head_dim)


@dataclass(frozen=True)
class LowRankPart:
    """What an adapter changes in one linear; `slot` is that of an operation of the plan."""

    slot: int
    rank: int
    scale: float
    a: Tensor
    """[rank, inputs]"""
    b: Tensor
    """[outputs, rank]; of the dtype of `a`."""


@dataclass(frozen=True)
class Op:
    """One operation; the meaning of its fields depends on the kind."""

    kind: OpKind
    src: int = NONE
    dst: int = NONE
    layer: int = 0
    weight: int = NONE
    weight_2: int = NONE
    value: float = 0.0


@dataclass
class Program:
    """Buffers and operations of a plan, in the making."""

    buffers: list[tuple[int, int, int]] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)

    def buffer(self, width: int, *, rounded: bool = False, rows: bool = False) -> int:
        """A buffer of f32, or `rounded` to the plan's dtype.

        It has a row for each token, or a row for each of the logits' `rows`.
        """
        self.buffers.append((width, int(rounded), int(rows)))
        return len(self.buffers) - 1

    def add(self, op: Op) -> None:
        """Appends an operation."""
        self.ops.append(op)


class Plan:
    """A plan of the kernels; its threads and memory end with it."""

    def __init__(self, library: Library, options: PlanOptions) -> None:
        self.options = options
        self._library = library
        ffi = library.ffi
        fields = dict(vars(options), dtype=DTYPE_CODES[options.dtype], isa=ISA_CODES[options.isa])
        handle = ffi.new("pie_k_plan **")
        library.call("pie_k_plan_new", ffi.new("pie_k_options *", fields), handle)
        self._plan: Any = ffi.gc(handle[0], library.lib.pie_k_plan_free)
        # Memory that the kernels use in place.
        self._kept: list[object] = []

    def close(self) -> None:
        """Ends the threads and frees the memory of the plan."""
        self._library.ffi.release(self._plan)
        self._kept.clear()

    def isa(self) -> str:
        """The instruction set in use."""
        code = self._library.ffi.new("uint32_t *")
        self._library.call("pie_k_plan_isa", self._plan, code)
        return next(name for name, value in ISA_CODES.items() if value == code[0])

    def add_linear(self, parts: Sequence[Tensor]) -> int:
        """Packs a linear from matrices [outputs, inputs] stacked by rows; returns its index."""
        ffi = self._library.ffi
        keep: list[object] = []
        array = ffi.new("pie_k_part[]", [self._part(tensor, tensor.shape[0], keep) for tensor in parts])
        index = ffi.new("uint32_t *")
        self._library.call("pie_k_plan_add_linear", self._plan, array, len(parts), parts[0].shape[1], index)
        return int(index[0])

    def add_vector(self, *parts: Tensor) -> int:
        """Copies a vector, put together from parts; returns its index."""
        ffi = self._library.ffi
        keep: list[object] = []
        tensor = parts[0] if len(parts) == 1 else _joined(parts)
        part, index = ffi.new("pie_k_part *", self._part(tensor, tensor.shape[0], keep)), ffi.new("uint32_t *")
        self._library.call("pie_k_plan_add_vector", self._plan, part, index)
        return int(index[0])

    def set_table(self, tensor: Tensor) -> None:
        """Sets the embedding table [V, E], which is read in place."""
        part = self._library.ffi.new("pie_k_part *", self._part(tensor, tensor.shape[0], self._kept))
        self._library.call("pie_k_plan_set_table", self._plan, part, tensor.shape[1])

    def set_rotary(self, cos: F32, sin: F32) -> None:
        """Copies the rotary tables [positions, D / 2]."""
        ffi = self._library.ffi
        self._library.call("pie_k_plan_set_rotary", self._plan, ffi.from_buffer("float[]", cos), ffi.from_buffer("float[]", sin), cos.size)

    def set_kv(self, memory: npt.NDArray[Any]) -> None:
        """Sets the memory of keys and values, of `options.kv_shape`; it is used in place."""
        start = self._library.ffi.from_buffer(memory, require_writable=True)
        self._kept.append(start)
        self._library.call("pie_k_plan_set_kv", self._plan, start, memory.nbytes)

    def set_host(self, memory: npt.NDArray[Any]) -> None:
        """Sets the memory that pages are swapped out to, as many of them as it holds; it is used in place."""
        start = self._library.ffi.from_buffer(memory, require_writable=True)
        self._kept.append(start)
        self._library.call("pie_k_plan_set_host", self._plan, start, memory.nbytes)

    def seal(self, program: Program) -> None:
        """Checks the program; afterwards the plan can run."""
        ffi = self._library.ffi
        buffers = ffi.new("pie_k_buffer[]", program.buffers)
        ops = ffi.new("pie_k_op[]", [vars(op) | {"kind": int(op.kind)} for op in program.ops])
        self._library.call("pie_k_plan_seal", self._plan, buffers, len(program.buffers), ops, len(program.ops))

    def put_adapter(self, adapter_id: int, version: int, sigma: float, parts: Sequence[LowRankPart]) -> None:
        """Copies an adapter, in place of one of the same name."""
        ffi = self._library.ffi
        keep: list[object] = []
        fields: list[dict[str, object]] = []
        for part in parts:
            a, b = self._part(part.a, part.rank, keep), self._part(part.b, part.rank, keep)
            fields.append(
                {
                    "a": a["data"],
                    "b": b["data"],
                    "a_bytes": a["n_bytes"],
                    "b_bytes": b["n_bytes"],
                    "slot": part.slot,
                    "rank": part.rank,
                    "scale": part.scale,
                    "dtype": a["dtype"],
                }
            )
        self._library.call(
            "pie_k_plan_put_adapter", self._plan, adapter_id, version, sigma, ffi.new("pie_k_low_rank[]", fields), len(fields)
        )

    def forget_adapter(self, adapter_id: int, version: int) -> None:
        """Forgets an adapter."""
        self._library.call("pie_k_plan_forget_adapter", self._plan, adapter_id, version)

    def noise(self, seed: int, stream: int, n: int) -> F32:
        """The first `n` numbers of the noise of adapters: of a stream under a seed of 64 bits."""
        out = np.empty(n, np.float32)
        room = self._library.ffi.from_buffer("float[]", out, require_writable=True)
        self._library.call("pie_k_noise", seed, stream, 0, room, n)
        return out

    def step(self, arena: npt.NDArray[np.uint32], logits: F32) -> None:
        """Runs a batch into `logits` [R, V].

        Raises KernelError where the batch does not fit, and then nothing has changed.
        """
        ffi = self._library.ffi
        words, out = ffi.from_buffer("uint32_t[]", arena), ffi.from_buffer("float[]", logits, require_writable=True)
        self._library.call("pie_k_step", self._plan, words, arena.size, out, logits.size)

    def linear(self, index: int, x: F32, n_outputs: int, *, y: F32 | None = None) -> F32:
        """Runs one linear on x [M, K] into `y` [M, N], which is made if not given; returns it."""
        ffi = self._library.ffi
        y = np.empty((len(x), n_outputs), np.float32) if y is None else y
        out = ffi.from_buffer("float[]", y, require_writable=True)
        self._library.call("pie_k_linear", self._plan, index, len(x), ffi.from_buffer("float[]", x), x.size, out, y.size)
        return y

    def read(self, buffer: int, width: int) -> F32:
        """The rows of a buffer as the newest step left them."""
        ffi = self._library.ffi
        out, written = np.empty(self.options.max_tokens * width, np.float32), ffi.new("uint64_t *")
        room = ffi.from_buffer("float[]", out, require_writable=True)
        self._library.call("pie_k_plan_read", self._plan, buffer, room, out.size, written)
        return out[: written[0]].reshape(-1, width)

    def read_memory(self, memory: npt.NDArray[Any]) -> int:
        """Reads an array on all threads as fast as memory gives it; returns the exclusive or of its words."""
        ffi = self._library.ffi
        parity = ffi.new("uint32_t *")
        self._library.call("pie_k_read_memory", self._plan, ffi.from_buffer(memory), memory.nbytes, parity)
        return int(parity[0])

    def _part(self, tensor: Tensor, n_rows: int, keep: list[object]) -> dict[str, object]:
        """A `pie_k_part`; the bytes live as long as what is put into `keep`."""
        # The kernels know no float16: its float32 is made here, exactly, and lives as long as it is needed.
        dtype: DtypeName = "float32" if tensor.dtype == "float16" else tensor.dtype
        values = tensor.float32() if tensor.dtype == "float16" else tensor.data
        data = self._library.ffi.from_buffer(values)
        keep.append(data)
        return {"data": data, "n_bytes": values.nbytes, "n_rows": n_rows, "dtype": DTYPE_CODES[dtype]}


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """Vectors one after the other, as float32."""
    values = np.concatenate([part.float32() for part in parts])
    return Tensor(parts[0].name, parts[0].path, "float32", values.shape, values.view(np.uint8))
