"""The C boundary: what does not fit is an error with a message, never a crash."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pie.backends.cpu.library import KernelError, Library
from pie.backends.cpu.plan import Op, OpKind, Plan, PlanOptions, Program
from pie.errors import PieError
from pie.models.safetensors import Tensor

ROOT = Path(__file__).parents[2]
OPTIONS = PlanOptions(
    dtype="float32",
    isa="auto",
    n_threads=1,
    max_tokens=8,
    vocab_size=10,
    max_positions=16,
    page_size=4,
    n_pages=3,
    n_layers=1,
    n_heads=2,
    n_kv_heads=1,
    head_dim=4,
)


def options(**changes: Any) -> PlanOptions:
    return PlanOptions(**(vars(OPTIONS) | changes))


def tensor(*shape: int, dtype: str = "float32", n_bytes: int | None = None) -> Tensor:
    n_bytes = int(np.prod(shape)) * 4 if n_bytes is None else n_bytes
    return Tensor("w", Path("w"), dtype, shape, np.zeros(n_bytes, np.uint8))


@pytest.fixture
def kernels(library: Path) -> Library:
    return Library(library)


def test_the_declarations_are_those_of_the_kernels(kernels: Library) -> None:
    declared = re.findall(r"\b(pie_k_\w+)\(", (ROOT / "python/pie/backends/cpu/kernels.h").read_text())
    defined = re.findall(r"extern \"C\" fn (pie_k_\w+)\(", (ROOT / "rust/kernels/src/ffi.rs").read_text())
    assert sorted(declared) == sorted(defined)
    assert all(getattr(kernels.lib, name) for name in declared)


@pytest.mark.parametrize("path", ["/nowhere/libkernels.so", __file__])
def test_what_is_no_library_is_refused(path: str) -> None:
    with pytest.raises(PieError, match=r"does not hold the kernels.*install") as caught:
        Library(Path(path))
    assert caught.value.code == "internal"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_threads": 0}, "n_threads is 0"),
        ({"max_tokens": 1 << 17}, "max_tokens is 131072; it must be 1 to 65536"),
        ({"n_pages": 0}, "n_pages is 0"),
        ({"page_size": 5000}, "page_size is 5000"),
        ({"n_heads": 3, "n_kv_heads": 2}, "3 heads are not a multiple of 2"),
        ({"head_dim": 5}, "head_dim is 5"),
    ],
)
def test_sizes_are_checked(kernels: Library, changes: dict[str, int], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        Plan(kernels, options(**changes))


def test_null_pointers_are_errors(kernels: Library) -> None:
    null = kernels.ffi.NULL
    plan = Plan(kernels, OPTIONS)._plan
    calls: dict[str, tuple[object, ...]] = {
        "pie_k_plan_new": (null, null),
        "pie_k_plan_isa": (null, null),
        "pie_k_plan_add_linear": (plan, null, 1, 4, kernels.ffi.new("uint32_t *")),
        "pie_k_plan_add_vector": (plan, null, kernels.ffi.new("uint32_t *")),
        "pie_k_plan_set_table": (plan, null, 4),
        "pie_k_plan_set_rotary": (plan, null, null, 32),
        "pie_k_plan_set_kv": (plan, null, 3 * 2 * 4 * 4 * 4),
        "pie_k_plan_set_host": (plan, null, 2 * 4 * 4 * 4),
        "pie_k_plan_seal": (plan, null, 1, null, 1),
        "pie_k_plan_read": (plan, 0, null, 4, null),
        "pie_k_step": (null, null, 0, null, 0),
        "pie_k_linear": (plan, 0, 1, null, 4, null, 4),
    }
    for name, arguments in calls.items():
        with pytest.raises(KernelError, match="null"):
            kernels.call(name, *arguments)
        assert getattr(kernels.lib, name)(*arguments, null) == 1, "an error without room for its message"
    kernels.lib.pie_k_plan_free(null)


def test_a_plan_that_is_not_sealed_does_not_run(kernels: Library) -> None:
    with pytest.raises(KernelError, match="not sealed"):
        Plan(kernels, OPTIONS).step(np.zeros(64, np.uint32), np.zeros(0, np.float32))


def test_weights_are_checked(kernels: Library) -> None:
    plan = Plan(kernels, OPTIONS)
    with pytest.raises(KernelError, match="12 bytes is not 2 rows of 4 inputs"):
        plan.add_linear([tensor(2, 4, n_bytes=12)])
    with pytest.raises(KernelError, match="has not 4 elements"):
        plan.add_vector(tensor(4, n_bytes=12))
    with pytest.raises(KernelError, match="has not 10 rows of 4"):
        plan.set_table(tensor(9, 4))
    with pytest.raises(KernelError, match="rotary tables of 30 and 30 elements, not 32"):
        plan.set_rotary(np.zeros(30, np.float32), np.zeros(30, np.float32))
    with pytest.raises(KernelError, match="the pool has 4 bytes, but 3 pages need 384"):
        plan.set_kv(np.zeros(1, np.float32))
    with pytest.raises(KernelError, match="the pool has 132 bytes, but 1 pages need 128"):
        plan.set_host(np.zeros(33, np.float32))


WRONG_OPS = {
    "buffer 9 of 4": Op(OpKind.EMBED, dst=9),
    "buffer 1 is 4 x rounded, not 4 x f32": Op(OpKind.EMBED, dst=1),
    "vector 7 of 1": Op(OpKind.RMS_NORM, src=0, dst=1, weight=7),
    "buffer 2 is 16 x f32, not 4 x f32": Op(OpKind.RMS_NORM, src=2, dst=1, weight=0),
    "linear 3 of 1": Op(OpKind.LINEAR, src=1, dst=0, weight=3),
    "layer 1 of 1": Op(OpKind.ATTENTION, src=2, dst=3, layer=1, value=1.0),
    "its score factor is 0": Op(OpKind.ATTENTION, src=2, dst=3, value=0.0),
    "its value is NaN": Op(OpKind.EMBED, dst=0, value=float("nan")),
    "its linear has 4 outputs for a vocabulary of 10": Op(OpKind.LOGITS, src=1, weight=0),
    "buffer 1 has rows of Tokens, not of Logits": Op(OpKind.SELECT_ROWS, src=1, dst=1),
    "norm has not head_dim": Op(OpKind.ROTARY_WRITE, dst=2, weight=1, weight_2=1),
}


@pytest.mark.parametrize("message", WRONG_OPS)
def test_operations_are_checked(kernels: Library, message: str) -> None:
    plan = Plan(kernels, options(n_kv_heads=1))
    plan.set_table(tensor(10, 4))
    plan.add_vector(tensor(4))
    if "head_dim" in message:
        plan.add_vector(tensor(6))
    plan.add_linear([tensor(4, 4)])
    plan.set_rotary(np.zeros(32, np.float32), np.zeros(32, np.float32))
    plan.set_kv(np.zeros(OPTIONS.kv_shape, np.float32))
    program = Program()
    for width, rounded in ((4, False), (4, True), (16, False), (8, True)):
        program.buffer(width, rounded=rounded)
    program.add(WRONG_OPS[message])
    with pytest.raises(KernelError, match=f"operation 0: .*{message}"):
        plan.seal(program)
