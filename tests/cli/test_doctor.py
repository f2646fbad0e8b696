"""What `pie doctor` says of a configuration, look by look."""

from __future__ import annotations

import importlib.util

import pytest

from pie.cli import machine
from pie.config import ModelConfig
from pie.config.tree import Config, ServerConfig
from pie.replicas.actors import LACKS_RAY


@pytest.fixture(autouse=True)
def _without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_gpus", list)


def test_a_model_on_a_gpu_needs_one() -> None:
    [found] = machine.gpu(Config(models=(ModelConfig(name="m", driver="cuda"),)))
    assert (found.verdict, found.what) == ("fail", "gpu")
    assert "m has the driver cuda; install the driver of the GPU" in found.detail


def test_the_cuda_driver_on_a_cpu_needs_none() -> None:
    [found] = machine.gpu(Config(models=(ModelConfig(name="m", driver="cuda", device="cpu"),)))
    assert found.verdict == "ok"


@pytest.mark.parametrize("is_there", [True, False])
def test_replicas_need_ray(monkeypatch: pytest.MonkeyPatch, *, is_there: bool) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if is_there and name == "ray" else None)
    config = Config(server=ServerConfig(replicas=2))
    [found] = machine.replicas(config)
    assert found.verdict == ("ok" if is_there else "fail")
    assert found.detail == ("2, and ray is installed" if is_there else LACKS_RAY)
    assert list(machine.replicas(Config())) == []
