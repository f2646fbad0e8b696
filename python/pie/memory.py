"""Whether what the models need fits into the memory of this machine.

Finding out by running out ends other programs too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pie.config import ModelConfig
from pie.errors import PieError
from pie.models.loader import read_config, weight_files
from pie.models.spec import page_bytes

_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")

_BASE_BYTES = 256 << 20
"""What the engine takes for itself: the interpreter, compiled code of the language runtimes, threads."""
_LEAST_BYTES = 64 << 20
"""What users have to get at least."""
_SWAP_BYTES = 2 << 30
"""The most that `swap_bytes = 0` takes."""
_PROCESS_BYTES = 64 << 20
"""What the process of a driver takes beside the model: an interpreter with numpy and the kernels, and texts and batches
that are shared.
"""
_SLOTS = 2
"""Batches whose rows are kept for a driver in a process of its own: one that runs, and one that follows or whose rows
are being read.
"""
_LOGIT_BYTES = 4
_CUDA_BYTES = 1 << 30
"""What each process of the cuda driver takes on a GPU beside what it pins: torch, and the libraries of CUDA. Estimated,
for no GPU was at hand.
"""
_PLANS_BYTES = 8 << 20
"""That FlashInfer pins for the plans of attention of one kind: with masks, without, and to prefixes that are shared."""
_ROW_ROOMS = 3
"""Of rows that come back from a GPU: of two batches under way, and of one that is read."""


def check_memory(models: Sequence[ModelConfig], memory_bytes: int | None = None) -> None:
    """PieError `invalid-config` where the weights and the keys and values of `models` are more than `memory_bytes`.

    That is the memory of this machine, or of the group of processes that this one may use, if not given. What a model
    needs is counted from below: its weight files and its pages.
    """
    memory_bytes = machine_bytes() if memory_bytes is None else memory_bytes
    needs = {model.name: needed_bytes(model) for model in models}
    if sum(needs.values()) <= memory_bytes:
        return
    listed = ", ".join(f"{name!r} {_gib(need)}" for name, need in needs.items())
    raise PieError(
        "invalid-config",
        f"the models need at least {_gib(sum(needs.values()))} of memory ({listed}), and there are {_gib(memory_bytes)}; "
        "lower model.NAME.kv_bytes or n_pages, or serve fewer models",
        {"needed_bytes": sum(needs.values()), "memory_bytes": memory_bytes},
    )


def users_bytes(models: Sequence[ModelConfig], configured: int = 0, machine: int | None = None, *, engines: int = 1) -> int:
    """What all users together may make engines with these models hold, in bytes.

    `configured` where that is not 0; else three quarters of what the models, their swap, their drivers and the engines
    themselves, so many of them, leave of `machine` bytes (those of this machine if not given). PieError
    `invalid-config` where what is configured, or the least that users have to get, exceeds the machine.
    """
    machine = machine_bytes() if machine is None else machine
    taken = sum(needed_bytes(model) + _swap_bytes(model) + driver_bytes(model) for model in models)
    own = engines * _BASE_BYTES
    left = machine - taken - own
    if configured == 0:
        if left < _LEAST_BYTES:
            raise PieError(
                "invalid-config",
                f"the models take {_gib(taken)}, swap and drivers included, and the engine itself {_gib(own)}: of the {_gib(machine)} of "
                f"this machine less than the {_gib(_LEAST_BYTES)} are left that users need; lower model.NAME.kv_bytes, n_pages or "
                "swap_bytes, or serve on a larger machine",
                {"models_bytes": taken, "engine_bytes": own, "machine_bytes": machine},
            )
        return max(left // 4 * 3, _LEAST_BYTES)
    if configured > left:
        raise PieError(
            "invalid-config",
            f"engine.memory_bytes = {configured} ({_gib(configured)}), what the models take ({_gib(taken)}, swap and drivers included) "
            f"and the engine itself ({_gib(own)}) are more than the {_gib(machine)} of this machine; lower it, or model.NAME.kv_bytes, "
            "n_pages or swap_bytes; 0 takes what there is",
            {"memory_bytes": configured, "models_bytes": taken, "engine_bytes": own, "machine_bytes": machine},
        )
    return configured


def _swap_bytes(model: ModelConfig) -> int:
    if model.driver == "dummy":
        return 0
    n_devices = _n_devices(model)
    return n_devices * (model.swap_bytes or min(_pages_bytes(model) // n_devices, _SWAP_BYTES))


def driver_bytes(model: ModelConfig) -> int:
    """What the driver of a model takes at most beside what the model itself needs.

    It needs rows of logits, adapters, a process where it has one of its own, and rows that wait for their token masks.
    """
    if model.driver == "dummy" and not model.isolate:
        return 0
    try:
        vocab_size = read_config(model.folder).vocab_size
    except (OSError, PieError):
        vocab_size = 0  # as below
    # The row of each generation does not count for `max_batch_rows`, and one row more than is wanted has room.
    n_rows = model.max_batch_rows + model.max_batch_seqs + 1
    # Another process may draw tokens, which stand behind its rows: those of a batch take a row.
    n_rows += model.isolate
    n_bytes = n_rows * vocab_size * _LOGIT_BYTES
    n_gpu_bytes = 0
    if model.driver == "cuda" and model.device != "cpu":
        # torch pins powers of two.
        n_plans = 2 if model.deterministic else 3
        n_pinned = _ROW_ROOMS * (1 << max(0, n_bytes - 1).bit_length()) + n_plans * _PLANS_BYTES
        n_gpu_bytes = (_CUDA_BYTES + n_pinned) * model.tensor_parallel
    n_late_bytes = min(model.max_late_rows * vocab_size * _LOGIT_BYTES, model.max_late_bytes)
    n_adapter_bytes = model.adapter_bytes if model.driver in {"cpu", "reference"} else 0
    return n_gpu_bytes + n_late_bytes + n_adapter_bytes + (_SLOTS * n_bytes + _PROCESS_BYTES if model.isolate else n_bytes)


def needed_bytes(model: ModelConfig) -> int:
    """What a model needs at least of the memory of this machine.

    That is nothing on the dummy driver, and nothing on a GPU, whose memory its driver looks after.
    """
    if model.driver == "dummy" or (model.driver == "cuda" and model.device != "cpu"):
        return 0
    try:
        weights = sum(path.stat().st_size for path in weight_files(model.folder))
    except (OSError, PieError):
        weights = 0  # a folder that cannot be read is reported when the model is loaded
    return weights + _pages_bytes(model)


def _pages_bytes(model: ModelConfig) -> int:
    """Keys and values of all pages on all devices; where the number of pages is stated, at least so much."""
    n_devices = _n_devices(model)
    if not model.n_pages:
        return n_devices * model.kv_bytes
    try:
        spec = read_config(model.folder)
    except (OSError, PieError):
        return 0  # as above
    # What `auto` is depends on the weights, which are not read for this.
    whole = page_bytes(spec, "float32" if model.dtype == "float32" else "bfloat16", model.page_size)
    # Each device has its part of the heads, and one at least.
    n_heads = spec.attention.n_kv_heads
    return model.n_pages * (whole // n_heads * max(n_heads, n_devices))


def _n_devices(model: ModelConfig) -> int:
    """Those that the model is spread over, each with pages and swap of its own."""
    return model.tensor_parallel if model.driver == "cuda" else 1


def machine_bytes(groups: Path = _GROUPS, own: Path = _OWN_GROUPS) -> int:
    """The memory of this machine, or of the control group of this process, or of one above that, where one has less."""
    n_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return n_bytes  # a system without control groups
    return min([n_bytes, *(limit for line in lines for limit in _group_limits(groups, line))])


def _group_limits(groups: Path, line: str) -> Iterator[int]:
    """The limits of a group and of those above it, as a line of /proc/self/cgroup names it: `ID:CONTROLLERS:/PATH`.

    The second version has one tree, without names of controllers; the first has one for memory.
    """
    _, controllers, path = line.split(":", 2)
    if controllers not in {"", "memory"}:
        return
    top, name = (groups / "memory", "memory.limit_in_bytes") if controllers else (groups, "memory.max")
    group = top / path.lstrip("/")
    for folder in (group, *group.parents):
        with suppress(OSError, ValueError):  # a group without a limit says "max", and the topmost has no file
            yield int((folder / name).read_text(encoding="ascii"))
        if folder == top:
            return


def _gib(n_bytes: int) -> str:
    return f"{n_bytes / (1 << 30):.2f} GiB"
