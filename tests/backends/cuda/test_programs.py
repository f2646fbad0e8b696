"""Programs on the cuda back end, whose batches follow each other: the tokens are the engine's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from pie.backends import open_driver
from pie.backends.base import Capabilities, Driver
from pie.backends.cuda import CudaDriver, CudaOptions
from pie.backends.cuda.calls import standin_calls
from pie.backends.cuda.device import HostDevice
from pie.backends.cuda.share import Parts
from pie.batch import Batch
from pie.config import EMBEDDED_FOLDER, Flags, load
from pie.engine import Engine
from pie.errors import PieError
from pie.models.loader import load_checkpoint
from support.checkpoints import write_shallow_copy
from support.conformance import RowsOf
from support.engines import started
from support.isolated import COLLECTING, STEPPING
from support.launching import Outcome, finish, load_interpreter

N_PROGRAMS, N_TOKENS = 6, 12
SAMPLERS = [
    {"kind": "argmax"},
    {"kind": "top_p", "temperature": 1.0, "p": 0.9},
    {"kind": "top_k", "temperature": 1.3, "k": 20},
    {"kind": "min_p", "temperature": 0.8, "p": 0.05},
    {"kind": "top_k_top_p", "temperature": 1.0, "k": 30, "p": 0.8},
    {"kind": "multinomial", "temperature": 0.9, "draws": 1},
]


@pytest.fixture(autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded model with its first layer alone."""
    return write_shallow_copy(tmp_path_factory.mktemp("model"), EMBEDDED_FOLDER, [0])


class Answering:
    """The driver with every row answered: the engine draws, and no batch follows another."""

    def __init__(self, driver: Driver) -> None:
        self._rows = RowsOf(driver)
        self.capabilities = Capabilities(**vars(driver.capabilities) | {"follows": False})

    def run(self, batch: Batch) -> np.ndarray:
        return self._rows.run(batch)

    def close(self) -> None:
        self._rows.close()


def opened(folder: Path) -> Driver:
    return open_driver("cuda", folder, CudaOptions(device="cpu", n_pages=40, swap_bytes=1 << 20))


def operations(sampler: dict[str, object], n: int, prompt: str = "Once upon a time ") -> dict[str, object]:
    return {
        "ops": [
            {"op": "context", "as": "c"},
            {"op": "append_text", "ctx": "c", "text": f"{prompt}{n}"},
            {"op": "generate", "ctx": "c", "as": "g", "sampler": sampler, "max_tokens": N_TOKENS, "seed": n},
            {"op": "ignore_eos", "gen": "g", "value": True},
            {"op": "collect_tokens", "gen": "g"},
        ]
    }


def outcomes(folder: Path, driver: Driver) -> tuple[list[Outcome], dict[str, int]]:
    """What programs answer that run side by side on few pages, and what the engine counted."""
    engine, program = Engine(), load_interpreter("rust")
    model = engine.add_model(folder, driver=driver)
    with started(engine):
        processes = [engine.launch(program, input=operations(sampler, n)) for n, sampler in enumerate(SAMPLERS)]
        prompts = [{"prompt": [5, 6, 7 + n], "n": N_TOKENS, "seed": n} for n in range(N_PROGRAMS)]
        processes += [engine.launch((STEPPING, COLLECTING)[n % 2], input=given) for n, given in enumerate(prompts)]
        ends = [finish(process) for process in processes]
        stats = model.stats()
    assert [end.code for end in ends] == [None] * len(ends), [end.message for end in ends if end.code]
    return ends, stats


def test_what_the_device_draws_is_what_the_engine_draws(folder: Path) -> None:
    following, counted = outcomes(folder, opened(folder))
    answering, others = outcomes(folder, Answering(opened(folder)))
    print(f"{counted['n_followers']} of the sequences of {counted['n_batches']} batches followed the batch before")
    assert counted["n_followers"] > N_TOKENS
    assert others["n_followers"] == 0
    assert [end.value for end in following] == [end.value for end in answering]


def answers_behind_one_prompt(folder: Path, cascade_bytes: int) -> tuple[list[object], int]:
    """The tokens of programs behind a prompt whose pages are stored, and how many tokens were merged with a prefix."""
    plain, merged = standin_calls(), 0

    def noting(v: torch.Tensor, s: torch.Tensor, v_other: torch.Tensor, s_other: torch.Tensor, mask: torch.Tensor) -> None:
        nonlocal merged
        merged += int(mask.sum())
        plain.merge_state_in_place(v, s, v_other, s_other, mask)

    options = CudaOptions(device="cpu", dtype="float32", n_pages=40, swap_bytes=1 << 20, deterministic=False, cascade_bytes=cascade_bytes)
    parts = Parts(HostDevice(), replace(plain, merge_state_in_place=noting), None)
    driver = CudaDriver(load_checkpoint(folder), options, parts=parts)
    merged = 0  # of opening the driver
    engine, program = Engine(), load_interpreter("rust")
    engine.add_model(folder, driver=driver)
    prompt = "Once upon a time there was a fox who lived by the sea. " * 4
    with started(engine):
        first = finish(engine.launch(program, input=operations(SAMPLERS[0], 0, prompt)))
        processes = [engine.launch(program, input=operations(sampler, n, prompt)) for n, sampler in enumerate(SAMPLERS)]
        ends = [first, *(finish(process) for process in processes)]
    assert [end.code for end in ends] == [None] * len(ends), [end.message for end in ends if end.code]
    return [end.value for end in ends], merged


def test_programs_behind_one_prompt_read_its_pages_together(folder: Path) -> None:
    """They give the tokens that they give where each reads them by itself."""
    together, n_merged = answers_behind_one_prompt(folder, 0)
    apart, n_none = answers_behind_one_prompt(folder, 1 << 50)
    print(f"{n_merged} tokens were merged with a prefix")
    assert n_merged > N_TOKENS
    assert n_none == 0
    assert together == apart


def test_a_configuration_names_the_driver_and_its_options(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[model.pie-tiny]\ndriver = "cuda"\ndevice = "cpu"\nkv_bytes = "1MiB"\nswap_bytes = "64KiB"\ngraph_seqs = 0\n')
    with Engine.from_config(load(Flags(file=path), variables={})) as engine:
        assert engine.models[0].name == "pie-tiny"
    path.write_text('[model.pie-tiny]\ndriver = "cuda"\ndevice = "gpu"\n')
    with pytest.raises(PieError) as caught:
        Engine.from_config(load(Flags(file=path), variables={}))
    expected = f"{path}:3: model.pie-tiny.device is not possible: device is 'gpu'; give cuda:0, cuda:1 and so on, or cpu"
    assert (caught.value.code, caught.value.message) == ("invalid-config", expected)
