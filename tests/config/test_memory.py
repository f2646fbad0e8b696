"""What users may make an engine hold follows from the machine and the models, or is stated and checked against them."""

from __future__ import annotations

import pytest

from pie.config import ModelConfig
from pie.errors import PieError
from pie.memory import users_bytes

GIB = 1 << 30


@pytest.mark.parametrize(
    ("machine", "models", "expected"),
    [
        (4 * GIB, (), (4 * GIB - GIB // 4) // 4 * 3),
        (4 * GIB, (ModelConfig(driver="dummy"),), (4 * GIB - GIB // 4) // 4 * 3),
        (4 * GIB, (ModelConfig(kv_bytes=GIB, swap_bytes=GIB // 2),), None),
        (GIB // 4, (), 64 << 20),
    ],
)
def test_users_get_three_quarters_of_what_models_and_engine_leave(
    machine: int, models: tuple[ModelConfig, ...], expected: int | None
) -> None:
    got = users_bytes(models, machine=machine)
    if expected is None:
        # The weights of the embedded model are a few megabytes.
        beside = machine - GIB - GIB // 2 - GIB // 4
        assert (beside - (16 << 20)) // 4 * 3 <= got < beside // 4 * 3
    else:
        assert got == expected


def test_what_is_stated_is_taken_where_the_machine_has_it() -> None:
    assert users_bytes((), GIB, machine=2 * GIB) == GIB
    with pytest.raises(PieError, match=r"engine\.memory_bytes = 3221225472 .* more than the 2\.00 GiB") as raised:
        users_bytes((ModelConfig(kv_bytes=GIB),), 3 * GIB, machine=2 * GIB)
    assert raised.value.code == "invalid-config"


def test_models_defaults_and_users_together_fit_the_machine() -> None:
    models = (ModelConfig(), ModelConfig(name="other"))
    for machine in (2 * GIB, 4 * GIB, 24 * GIB):
        taken = sum(2 * model.kv_bytes for model in models)
        assert users_bytes(models, machine=machine) + taken <= machine
