"""Every call into FlashInfer and xgrammar fits the signatures of the packages, as `tools/cuda_signatures.py` recorded
them.
"""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from pie.backends.cuda import CudaDriver, CudaOptions
from pie.backends.cuda.calls import Calls, standin_calls
from pie.backends.cuda.share import Parts
from pie.backends.cuda.signatures import PARAMETERS
from pie.models.loader import load_checkpoint
from support.arenas import Draw, Feed, batch
from support.checkpoints import write_checkpoint
from support.recording import RecordingDevice, RecordingGraphs
from tools.cuda_signatures import differences

TABLE = json.loads((Path(__file__).parent / "signatures.json").read_text())
ATTENTION = "flashinfer.BatchPrefillWithPagedKVCacheWrapper"


def signature(function: str) -> inspect.Signature:
    """As the package has it."""
    return inspect.Signature(
        [
            inspect.Parameter(name, inspect._ParameterKind[kind], default=inspect.Parameter.empty if needed == "required" else None)
            for name, kind, needed in TABLE["calls"][function]
        ]
    )


class Bound:
    """The stand-ins, each call bound to the signature of the function in its place."""

    def __init__(self) -> None:
        self.n_calls: Counter[str] = Counter()
        self.given: dict[str, set[str]] = {}

    def bind(self, function: str, standin: Callable[..., Any], *, has_self: bool = False) -> Callable[..., Any]:
        expected = signature(function)

        def call(*args: Any, **kwargs: Any) -> Any:
            bound = expected.bind(*([None] if has_self else []), *args, **kwargs)
            self.n_calls[function] += 1
            self.given.setdefault(function, set()).update(set(bound.arguments) - {"self"})
            return standin(*args, **kwargs)

        return call

    def calls(self) -> Calls:
        plain = standin_calls()

        def attention(*args: Any, **kwargs: Any) -> Any:
            made = plain.attention(*args, **kwargs)
            for method in ("plan", "run", "reset_workspace_buffer"):
                setattr(made, method, self.bind(f"{ATTENTION}.{method}", getattr(made, method), has_self=True))
            return made

        flashinfer = [
            name.removeprefix("flashinfer.") for name in TABLE["calls"] if name.startswith("flashinfer.") and "Wrapper" not in name
        ]
        bound = {name: self.bind(f"flashinfer.{name}", getattr(plain, name)) for name in flashinfer}
        masking = self.bind("xgrammar.apply_token_bitmask_inplace", plain.apply_token_bitmask_inplace)
        return replace(plain, **bound, attention=self.bind(ATTENTION, attention), apply_token_bitmask_inplace=masking)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    torch.set_num_threads(1)
    return write_checkpoint(tmp_path_factory.mktemp("model"))


def test_every_call_fits_and_every_parameter_is_recorded(folder: Path) -> None:
    """Prefill and decode, masks of attention and of tokens, graphs and none, whether bits are fixed or not."""
    bound = Bound()
    for options in (CudaOptions(device="cpu", n_pages=8, graph_seqs=2), CudaOptions(device="cpu", n_pages=8, graph_seqs=0)):
        for deterministic in (True, False):
            own = replace(options, deterministic=deterministic)
            driver = CudaDriver(load_checkpoint(folder), own, parts=Parts(RecordingDevice(), bound.calls(), RecordingGraphs()))
            driver.run(batch([Feed([1, 2, 3], [0], rows=[2], masks={2: [1, 2]}, draws=[Draw(mask=[3, 9])])], page_size=16))
            driver.run(batch([Feed([4], [0], start=3, rows=[0])], page_size=16))
    print("checked against", ", ".join(f"{package} {version}" for package, version in TABLE["versions"].items()))
    for function, n in bound.n_calls.items():
        print(f"{function}: {n} calls with {', '.join(sorted(bound.given[function]))}")
    assert {function: set(names) for function, names in PARAMETERS.items()} == bound.given


@pytest.mark.parametrize(
    ("versions", "wrong"),
    [
        ({}, []),
        ({"xgrammar": "0.2.9", "flashinfer-python": "0.7.10.post2"}, []),
        ({"xgrammar": "0.3.0"}, ["xgrammar 0.3.0 is not served"]),
        ({"flashinfer-python": "0.7.1"}, ["flashinfer-python 0.7.1 is not served"]),
    ],
)
def test_installed_packages_may_be_of_every_version_that_is_served(versions: dict[str, str], wrong: list[str]) -> None:
    assert differences(TABLE, {**TABLE, "versions": TABLE["versions"] | versions}) == wrong


def test_installed_packages_have_the_signatures_that_were_recorded() -> None:
    other = {**TABLE["calls"], "flashinfer.rmsnorm": TABLE["calls"]["flashinfer.rmsnorm"][:-1]}
    assert differences(TABLE, {**TABLE, "calls": other}) == ["flashinfer.rmsnorm has other parameters"]


def test_a_call_that_does_not_fit_is_noticed() -> None:
    bound = Bound().calls()
    with pytest.raises(TypeError, match="epsilon"):
        bound.rmsnorm(torch.zeros(1, 4), torch.zeros(4), epsilon=1e-6)
