"""What users may make an engine hold follows from the machine and the models, or is stated and checked against them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pie.config import EMBEDDED_FOLDER, ModelConfig
from pie.config.tree import DriverName
from pie.errors import PieError
from pie.memory import check_memory, driver_bytes, machine_bytes, needed_bytes, users_bytes

GIB = 1 << 30
ADAPTERS = 128 << 20


@pytest.mark.parametrize(
    ("machine", "models", "expected"),
    [
        (4 * GIB, (), (4 * GIB - GIB // 4) // 4 * 3),
        (4 * GIB, (ModelConfig(driver="dummy"),), (4 * GIB - GIB // 4) // 4 * 3),
        (4 * GIB, (ModelConfig(kv_bytes=GIB, swap_bytes=GIB // 2),), None),
        (GIB // 4 + (64 << 20), (), 64 << 20),
        (GIB // 4 + (80 << 20), (), 64 << 20),
    ],
)
def test_users_get_three_quarters_of_what_models_and_engine_leave(
    machine: int, models: tuple[ModelConfig, ...], expected: int | None
) -> None:
    got = users_bytes(models, machine=machine)
    if expected is None:
        # The weights of the embedded model are a few megabytes, and so are its rows of logits.
        beside = machine - GIB - GIB // 2 - GIB // 4 - ADAPTERS
        assert (beside - (24 << 20)) // 4 * 3 <= got < beside // 4 * 3
    else:
        assert got == expected


def test_what_is_stated_is_taken_where_the_machine_has_it() -> None:
    assert users_bytes((), GIB, machine=2 * GIB) == GIB
    with pytest.raises(PieError, match=r"engine\.memory_bytes = 3221225472 .* more than the 2\.00 GiB") as raised:
        users_bytes((ModelConfig(kv_bytes=GIB),), 3 * GIB, machine=2 * GIB)
    assert raised.value.code == "invalid-config"


def test_what_is_stated_leaves_room_for_the_engines_themselves() -> None:
    for engines in (1, 3):
        most = 2 * GIB - engines * ENGINE
        assert users_bytes((), most, machine=2 * GIB, engines=engines) == most
        with pytest.raises(PieError, match=r"the engine itself .* are more than the 2\.00 GiB") as raised:
            users_bytes((), most + 1, machine=2 * GIB, engines=engines)
        assert raised.value.code == "invalid-config"
        assert users_bytes((), machine=2 * GIB, engines=engines) == most // 4 * 3


def test_a_machine_that_is_too_small_is_refused_and_not_promised_away() -> None:
    for models, machine in [((), ENGINE + (64 << 20) - 1), ((ModelConfig(kv_bytes=GIB, swap_bytes=1),), GIB + ENGINE)]:
        with pytest.raises(PieError, match=r"less than the 0\.06 GiB are left that users need; lower") as raised:
            users_bytes(models, machine=machine)
        assert raised.value.code == "invalid-config"


INTERPRETER = 64 << 20
ENGINE = 256 << 20
LATE_ROWS = 256 * 4096 * 4


@pytest.mark.parametrize("isolated", [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("rows", [{}, {"max_batch_rows": 4096, "max_batch_seqs": 4096}], ids=["few rows", "many rows"])
def test_models_defaults_and_users_together_fit_the_machine(isolated: tuple[bool, ...], rows: dict[str, int]) -> None:
    """Users have three quarters of what is left, and everything else is counted at its most."""
    models = [ModelConfig(name=f"m{n}", isolate=isolate, **rows) for n, isolate in enumerate(isolated)]
    taken = ENGINE
    for model in models:
        n_bytes = (model.max_batch_rows + model.max_batch_seqs + 1 + model.isolate) * 4096 * 4
        taken += 2 * model.kv_bytes + LATE_ROWS + ADAPTERS + (2 * n_bytes + INTERPRETER if model.isolate else n_bytes)
        taken += (EMBEDDED_FOLDER / "model.safetensors").stat().st_size
    for machine in (3 * GIB, 4 * GIB, 24 * GIB):
        users = users_bytes(models, machine=machine)
        assert users + taken <= machine
        assert users == (machine - taken) // 4 * 3


def test_a_dummy_driver_in_a_process_of_its_own_is_counted() -> None:
    beside, within = (users_bytes([ModelConfig(driver="dummy", isolate=isolate)], machine=4 * GIB) for isolate in (True, False))
    assert beside == within - (INTERPRETER + LATE_ROWS + 2 * 514 * 4096 * 4) // 4 * 3


def test_what_lies_on_a_gpu_is_not_of_this_machine() -> None:
    """But for the pages that are swapped out."""
    on_gpu, on_host = ModelConfig(driver="cuda", kv_bytes=8 * GIB), ModelConfig(driver="cuda", device="cpu", kv_bytes=8 * GIB)
    assert needed_bytes(on_gpu) == 0
    assert needed_bytes(on_host) > 8 * GIB
    machine = 24 * GIB
    # What its driver takes of this machine is little against that.
    assert users_bytes((on_gpu,), machine=machine) - users_bytes((on_host,), machine=machine) > 6 * GIB // 4 * 3


def test_pages_by_number_count_as_their_bytes_do() -> None:
    """A page of the embedded model has 64 KiB in 16 bits, and twice that in float32."""
    plain = needed_bytes(ModelConfig(n_pages=1))
    assert needed_bytes(ModelConfig(n_pages=4097)) - plain == 4096 << 16
    assert needed_bytes(ModelConfig(n_pages=4097, dtype="float32")) - plain == (4097 << 17) - (1 << 16)
    by_number, by_bytes = (
        users_bytes([model], machine=16 * GIB) for model in (ModelConfig(n_pages=1 << 16), ModelConfig(kv_bytes=4 * GIB))
    )
    assert by_number == by_bytes
    with pytest.raises(PieError, match=r"need at least 64\.\d\d GiB .* lower model\.NAME\.kv_bytes or n_pages"):
        check_memory([ModelConfig(name="a", n_pages=1 << 20)], 16 * GIB)


def test_each_device_of_a_model_has_pages_and_swap() -> None:
    one, two = (ModelConfig(driver="cuda", device="cpu", kv_bytes=GIB, swap_bytes=GIB, tensor_parallel=n) for n in (1, 2))
    assert needed_bytes(two) - needed_bytes(one) == GIB
    assert users_bytes([one], machine=16 * GIB) - users_bytes([two], machine=16 * GIB) == 2 * GIB // 4 * 3
    # The number of pages is that of each as well, whose heads are a part of all.
    one, two = (ModelConfig(driver="cuda", device="cpu", n_pages=1 << 16, tensor_parallel=n) for n in (1, 2))
    assert needed_bytes(two) == needed_bytes(one)


def test_rows_that_wait_for_masks_are_counted_as_far_as_they_may_wait() -> None:
    few, many, bounded = (
        driver_bytes(ModelConfig(max_late_rows=n, max_late_bytes=n_bytes)) for n, n_bytes in [(1, GIB), (4096, GIB), (4096, 8 << 20)]
    )
    assert many - few == 4095 * 4096 * 4
    assert bounded - few == (8 << 20) - 4096 * 4


@pytest.mark.parametrize(("driver", "has"), [("cpu", True), ("reference", True), ("cuda", False), ("dummy", False)])
def test_adapters_are_counted_where_the_driver_has_them(driver: DriverName, *, has: bool) -> None:
    without, some = (driver_bytes(ModelConfig(driver=driver, adapter_bytes=n_bytes)) for n_bytes in (0, GIB))
    assert some - without == (GIB if has else 0)


def test_what_is_stated_leaves_room_for_the_processes_of_drivers() -> None:
    model = ModelConfig(isolate=True)
    most = 4 * GIB - ENGINE - needed_bytes(model) - model.kv_bytes - driver_bytes(model)
    assert users_bytes([model], most, machine=4 * GIB) == most
    with pytest.raises(PieError, match=r"swap and drivers included"):
        users_bytes([model], most + 1, machine=4 * GIB)


@pytest.mark.parametrize(
    ("line", "file", "text", "expected"),
    [
        ("0::/a/b", "a/b/memory.max", "1048576\n", 1 << 20),
        ("0::/a/b", "a/memory.max", "2097152\n", 2 << 20),
        ("0::/", "memory.max", "3145728\n", 3 << 20),
        ("7:memory:/a", "memory/a/memory.limit_in_bytes", "4194304\n", 4 << 20),
        ("7:cpu:/a", "memory/a/memory.limit_in_bytes", "4194304\n", None),
        ("0::/a/b", "a/b/memory.max", "max\n", None),
    ],
)
def test_the_limit_of_the_own_control_group_counts_and_those_above_it(
    tmp_path: Path, line: str, file: str, text: str, expected: int | None
) -> None:
    own = tmp_path / "own"
    own.write_text(f"3:cpuset:/elsewhere\n{line}\n")
    limit = tmp_path / "groups" / file
    limit.parent.mkdir(parents=True)
    limit.write_text(text)
    without = machine_bytes(tmp_path / "none", tmp_path / "none")
    assert machine_bytes(tmp_path / "groups", own) == (expected or without)


def test_a_driver_on_a_gpu_takes_memory_of_the_host() -> None:
    """For torch, for the plans of attention, and for rows, of which torch pins powers of two; each rank of a model."""
    on_host, alone, two = (
        driver_bytes(model)
        for model in (ModelConfig(driver="cuda", device="cpu"), ModelConfig(driver="cuda"), ModelConfig(driver="cuda", tensor_parallel=2))
    )
    assert alone - on_host > GIB + (16 << 20)
    assert two - alone == alone - on_host
