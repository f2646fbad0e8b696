"""Adapters on the cpu and reference back ends: what they compute, that rows never meet, and what is refused."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pie.backends import open_driver
from pie.backends.adapters.noise import noise
from pie.backends.base import (
    AdapterName,
    ChangeAdapter,
    CommandedDriver,
    CopyAdapter,
    CreateAdapter,
    Driver,
    DriverError,
    DriverOptions,
    DropAdapter,
    FailedSequencesError,
    LoadAdapter,
    RefusedAdapterError,
)
from pie.backends.cpu import CpuDriver, CpuOptions
from pie.models.loader import Checkpoint, load_checkpoint
from pie.models.spec import DecoderSpec
from support.adapters import config, weights, write_adapter
from support.arenas import Feed, batch
from support.checkpoints import write_checkpoint, write_safetensors
from support.kernels import isas

TOKENS = np.random.default_rng(3).integers(0, 160, 40).tolist()
PAGES = range(3)
ONE, TWO = AdapterName(7, 1), AdapterName(7, 2)
BACKENDS = ("cpu", "reference")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return load_checkpoint(write_checkpoint(tmp_path_factory.mktemp("model"), dtype="F32"))


def opened(backend: str, folder: Path, library: Path, **options: Any) -> Driver:
    sizes: dict[str, Any] = {"n_pages": 256, "max_batch_tokens": 512, **options}
    return open_driver(backend, folder, CpuOptions(**sizes, library=library) if backend == "cpu" else DriverOptions(**sizes))


@pytest.fixture(params=BACKENDS)
def driver(request: pytest.FixtureRequest, checkpoint: Checkpoint, library: Path) -> Iterator[Driver]:
    driver = opened(request.param, checkpoint.folder, library)
    yield driver
    driver.close()


def command(driver: Driver, *commands: Any) -> None:
    assert isinstance(driver, CommandedDriver)
    for one in commands:
        driver.command(one)


def rows(driver: Driver, name: AdapterName | None = None, **more: Any) -> np.ndarray:
    """All rows of a text, computed with an adapter or without."""
    asks = {} if name is None else {"adapter": name.id, "adapter_version": name.version}
    answer = driver.run(batch([Feed(TOKENS, PAGES, rows=range(len(TOKENS)), **asks, **more)], page_size=16))
    assert isinstance(answer, np.ndarray)
    return answer.copy()


def merged(folder: Path, checkpoint: Checkpoint, changed: dict[str, np.ndarray], scale: float) -> Path:
    """The model with the adapter in its weights."""
    folder.mkdir()
    shutil.copy(checkpoint.folder / "config.json", folder)
    found = {name: tensor.float32() for name, tensor in checkpoint.tensors.items()}
    for name, b in changed.items():
        if ".lora_B." in name:
            weight = name.removeprefix("base_model.model.").replace(".lora_B", "")
            found[weight] = found[weight] + scale * b @ changed[name.replace(".lora_B.", ".lora_A.")]
    write_safetensors(folder / "model.safetensors", found, "F32")
    return folder


def spread(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / expected.std())


@pytest.mark.parametrize(
    "case",
    [
        (("q_proj", "v_proj"), {}, 2.0),
        (("k_proj", "o_proj"), {"lora_alpha": 3.5}, 3.5 / 4),
        (("gate_proj", "up_proj", "down_proj"), {"use_rslora": True}, 4.0),
        (("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"), {"target_modules": "all-linear"}, 2.0),
    ],
)
def test_an_adapter_computes_what_the_merged_model_does(
    tmp_path: Path, checkpoint: Checkpoint, library: Path, driver: Driver, case: tuple[tuple[str, ...], dict[str, Any], float]
) -> None:
    targets, changes, scale = case
    plain = rows(driver)
    command(driver, LoadAdapter(ONE, str(write_adapter(tmp_path / "adapter", checkpoint.spec, targets=targets, **changes))))
    whole = opened("cpu", merged(tmp_path / "merged", checkpoint, weights(checkpoint.spec, 4, 0, targets), scale), library)
    expected = rows(whole)
    assert spread(rows(driver, ONE), expected) < 1e-4
    assert spread(plain, expected) > 0.1
    assert np.array_equal(rows(driver), plain)


@pytest.mark.parametrize("dtype", ["BF16", "F32"])
def test_bfloat16_matrices_are_the_same_widened(tmp_path: Path, checkpoint: Checkpoint, driver: Driver, dtype: str) -> None:
    narrow = write_adapter(tmp_path / "narrow", checkpoint.spec, dtype="BF16")
    cut = {name: (values.view("<u4") & 0xFFFF0000).view("<f4") for name, values in weights(checkpoint.spec, 4, 0).items()}
    wide = write_adapter(tmp_path / "wide", checkpoint.spec)
    write_safetensors(wide / "adapter_model.safetensors", cut, dtype)
    command(driver, LoadAdapter(ONE, str(narrow)), LoadAdapter(TWO, str(wide)))
    assert np.array_equal(rows(driver, ONE), rows(driver, TWO))


def same(driver: Driver, found: np.ndarray, expected: np.ndarray) -> bool:
    """Whether rows are equal; those of torch may depend on where its matrices lie."""
    return np.array_equal(found, expected) if driver.capabilities.backend == "cpu" else spread(found, expected) < 1e-5


N_SEQS, N_ADAPTERS = 64, 8


def mixed() -> list[dict[str, Any]]:
    """What 64 sequences are computed with: eight adapters, some perturbed, and none."""
    asks: list[dict[str, Any]] = []
    for seq_idx in range(N_SEQS):
        one = {} if seq_idx % 9 == 8 else {"adapter": 1 + seq_idx % 9 % N_ADAPTERS, "adapter_version": 3}
        asks.append(one | ({"zo_seed": seq_idx % 5} if one and seq_idx % 3 == 0 else {}))
    return asks


@pytest.mark.parametrize("dtype", ["BF16", "F32"])
def test_sixty_four_mixed_sequences_are_as_alone(tmp_path: Path, library: Path, dtype: str) -> None:
    """Bit by bit: a prompt and a step of each, on every instruction set and on any threads."""
    folder = write_checkpoint(tmp_path / "model", dtype=dtype)
    spec = load_checkpoint(folder).spec
    for seed in range(N_ADAPTERS):
        write_adapter(tmp_path / str(seed), spec, rank=1 + 3 * seed, seed=seed, dtype=dtype)
    texts = [np.random.default_rng(seq_idx).integers(0, 160, 6).tolist() for seq_idx in range(N_SEQS)]
    asks = mixed()
    expected: list[np.ndarray] | None = None
    for isa, n_threads in [("auto", 1), *((isa, 3) for isa in isas(library))]:
        driver = CpuDriver(
            load_checkpoint(folder), CpuOptions(n_pages=N_SEQS, max_batch_tokens=512, isa=isa, n_threads=n_threads, library=library)
        )
        for seed in range(N_ADAPTERS):
            driver.command(LoadAdapter(AdapterName(1 + seed, 3), str(tmp_path / str(seed))))
        if expected is None:
            expected = []
            for text, ask in zip(texts, asks, strict=True):
                prompt = driver.run(batch([Feed(text[:5], [0], rows=range(5), **ask)], page_size=16))
                step = driver.run(batch([Feed(text[5:], [0], start=5, rows=[0], **ask)], page_size=16))
                expected.append(np.concatenate([prompt, step]))
            assert len({found[4].tobytes() for found in expected}) == N_SEQS
        prompts = [Feed(text[:5], [idx], rows=range(5), **ask) for idx, (text, ask) in enumerate(zip(texts, asks, strict=True))]
        steps = [Feed(text[5:], [idx], start=5, rows=[0], **ask) for idx, (text, ask) in enumerate(zip(texts, asks, strict=True))]
        found = driver.run(batch(prompts, page_size=16)).reshape(N_SEQS, 5, -1)
        found = np.concatenate([found, driver.run(batch(steps, page_size=16))[:, None]], axis=1)
        for seq_idx, rows_alone in enumerate(expected):
            assert np.array_equal(found[seq_idx], rows_alone), (isa, seq_idx)
        driver.close()


def test_noise_has_the_same_bits_in_the_kernels_and_in_numpy(checkpoint: Checkpoint, library: Path) -> None:
    driver = opened("cpu", checkpoint.folder, library)
    assert isinstance(driver, CpuDriver)
    for seed in (0, 1, 7 << 40, (1 << 64) - 1):
        for stream, n in ((0, 1), (5, 4), (1 << 31, 1023), (3, 300_001)):
            assert np.array_equal(driver.plan.noise(seed, stream, n), noise(seed, stream, n))
    numbers = noise(11, 3, 1 << 18)
    assert abs(float(numbers.mean())) < 0.01
    assert abs(float(numbers.var()) - 1) < 0.01


def test_a_perturbed_pass_is_that_of_the_adapter_with_its_noise_added(tmp_path: Path, checkpoint: Checkpoint, driver: Driver) -> None:
    """Bit by bit, and nothing of it stays."""
    command(driver, LoadAdapter(ONE, str(write_adapter(tmp_path / "adapter", checkpoint.spec))))
    plain = rows(driver, ONE)
    command(driver, ChangeAdapter(ONE, TWO, str(tmp_path / "changed"), None, (((1 << 64) - 3, 0.02),)))
    perturbed = rows(driver, ONE, zo_seed=(1 << 64) - 3)
    assert same(driver, perturbed, rows(driver, TWO))
    assert not np.array_equal(perturbed, plain)
    assert not np.array_equal(perturbed, rows(driver, ONE, zo_seed=3))
    assert np.array_equal(rows(driver, ONE), plain)


def test_a_new_adapter_changes_nothing_until_it_is_changed(tmp_path: Path, checkpoint: Checkpoint, driver: Driver) -> None:
    plain = rows(driver)
    command(driver, CreateAdapter(ONE, str(tmp_path / "new"), rank=3, alpha=6.0, sigma=0.5))
    assert np.array_equal(rows(driver, ONE), plain)
    command(driver, ChangeAdapter(ONE, TWO, str(tmp_path / "changed"), 0.25, ((5, 0.5), (6, -0.5))))
    assert not np.array_equal(rows(driver, TWO), plain)
    assert np.array_equal(rows(driver, ONE), plain)
    again = AdapterName(9, 9)
    command(driver, LoadAdapter(again, str(tmp_path / "changed")), DropAdapter(ONE))
    assert same(driver, rows(driver, again, zo_seed=8), rows(driver, TWO, zo_seed=8))
    with pytest.raises(FailedSequencesError, match="is not loaded"):
        rows(driver, ONE)


def test_both_back_ends_make_the_same_files(tmp_path: Path, checkpoint: Checkpoint, library: Path) -> None:
    source = write_adapter(tmp_path / "source", checkpoint.spec, dtype="BF16")
    for backend in BACKENDS:
        driver = opened(backend, checkpoint.folder, library)
        folder = tmp_path / backend
        folder.mkdir()
        command(driver, CreateAdapter(ONE, str(folder / "new"), 5, 2.0, 0.1), LoadAdapter(TWO, str(source)))
        changes = tuple((seed * 977, 0.125 * seed - 0.3) for seed in range(6))
        command(driver, ChangeAdapter(TWO, ONE, str(folder / "changed"), 0.7, changes))
        driver.close()
    for made in ("new", "changed"):
        for file in ("adapter_config.json", "adapter_model.safetensors"):
            assert (tmp_path / "cpu" / made / file).read_bytes() == (tmp_path / "reference" / made / file).read_bytes()


def test_rows_beside_one_whose_adapter_is_not_loaded_are_as_alone(tmp_path: Path, checkpoint: Checkpoint, driver: Driver) -> None:
    plain = rows(driver)
    feeds = [Feed(TOKENS, range(3, 6), rows=[39], adapter=5), Feed(TOKENS, PAGES, rows=range(40))]
    with pytest.raises(FailedSequencesError) as caught:
        driver.run(batch(feeds, page_size=16))
    assert list(caught.value.reasons) == [0]
    answer = caught.value.answer
    assert isinstance(answer, np.ndarray)
    assert spread(answer[1:], plain) < 1e-5


Spoil = Callable[[Path, DecoderSpec], object]


def cut(folder: Path, _spec: DecoderSpec) -> None:
    path = folder / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-5])


def rewritten(change: Callable[[dict[str, np.ndarray]], object]) -> Spoil:
    """The tensors changed, of the adapter that all of these begin with."""

    def rewrite(folder: Path, spec: DecoderSpec) -> None:
        found = weights(spec, 4, 0)
        change(found)
        write_safetensors(folder / "adapter_model.safetensors", found, "F32")

    return rewrite


def configured(**changes: Any) -> Spoil:
    return lambda folder, _spec: (folder / "adapter_config.json").write_text(json.dumps(config(4, **changes)))


def pickled(folder: Path, _spec: DecoderSpec) -> None:
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")


def headed(folder: Path, _spec: DecoderSpec) -> None:
    text = b" " * (4 << 20) + b"{}"
    (folder / "adapter_model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)


FIRST = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
BAD: dict[str, tuple[Spoil, str]] = {
    "wrong shape": (rewritten(lambda found: found.update({FIRST: found[FIRST][:3]})), r"has shape \[3, 48\], but the rank 4"),
    "missing tensor": (rewritten(lambda found: found.pop(FIRST)), "lacks base_model.*q_proj.lora_A.weight"),
    "missing linear": (
        rewritten(lambda found: [found.pop(name) for name in list(found) if "layers.1.mlp.up_proj" in name]),
        "lacks base_model.model.model.layers.1.mlp.up_proj.lora_A.weight, which adapter_config.json names",
    ),
    "unknown linear": (
        rewritten(lambda found: found.update({FIRST.replace("layers.0", "layers.9"): found[FIRST]})),
        "has no place in this model",
    ),
    "unknown tensor": (rewritten(lambda found: found.update({"magnitude": found[FIRST]})), "magnitude, which has no place"),
    "not finite": (rewritten(lambda found: found[FIRST].fill(np.inf)), "holds a number that is not finite"),
    "no tensor": (rewritten(lambda found: found.clear()), "holds no tensor|lacks"),
    "unknown module": (configured(target_modules=["q_proj", "lm_head"]), "names 'lm_head', which adapters of this model cannot change"),
    "no modules": (configured(target_modules=[]), r"target_modules is \[\]"),
    "an endless name": (configured(target_modules=["q_proj", "x" * 100_000]), "names 'xxxx"),
    "exclusion without a name": (configured(exclude_modules=[{}]), r"exclude_modules is \[{}\]; it must be a list of names"),
    "rank 0": (configured(r=0), "r is 0; it must be an integer from 1 to 512"),
    "rank 100,000": (configured(r=100_000), "r is 100000; it must be an integer from 1 to 512"),
    "rank as text": (configured(r="4"), "r is '4'"),
    "no rank": (configured(r=None), "r is missing"),
    "alpha": (configured(lora_alpha=10**400), "lora_alpha is 1000"),
    "dora": (configured(use_dora=True), "use_dora is True, which is not supported"),
    "a kind that comes later": (configured(use_other=True), "use_other is True, which is not supported"),
    "biases": (configured(bias="all"), "bias is 'all', which is not supported"),
    "ranks by pattern": (configured(rank_pattern={"q_proj": 8}), "rank_pattern is"),
    "whole modules": (configured(modules_to_save=["lm_head"]), "modules_to_save is"),
    "another kind": (configured(peft_type="IA3"), "peft_type is 'IA3'"),
    "a changed model": (configured(init_lora_weights="pissa_niter_4"), "which changes the model itself"),
    "pickled": (pickled, "adapter_model.bin is pickled"),
    "cut off": (cut, "fetch it again"),
    "a long header": (headed, "has a header of 4194306 bytes, and the limit is 4194304"),
    "not JSON": (lambda folder, _spec: (folder / "adapter_config.json").write_text("{"), "not JSON"),
    "no config": (lambda folder, _spec: (folder / "adapter_config.json").unlink(), "there is no adapter_config.json"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_taken_is_refused_by_name_and_changes_nothing(
    tmp_path: Path, checkpoint: Checkpoint, driver: Driver, kind: str
) -> None:
    spoil, message = BAD[kind]
    folder = write_adapter(tmp_path / "adapter", checkpoint.spec)
    command(driver, LoadAdapter(ONE, str(folder)))
    before = rows(driver, ONE)
    spoiled = write_adapter(tmp_path / "spoiled", checkpoint.spec)
    spoil(spoiled, checkpoint.spec)
    with pytest.raises(RefusedAdapterError, match=message) as caught:
        command(driver, LoadAdapter(ONE, str(spoiled)))
    assert caught.value.code == "invalid-adapter"
    assert str(tmp_path) not in str(caught.value)
    assert len(str(caught.value)) < 1100
    print(f"{kind}: {caught.value}")
    assert np.array_equal(rows(driver, ONE), before)


def test_adapters_stay_within_their_bytes(tmp_path: Path, checkpoint: Checkpoint, library: Path) -> None:
    folder = write_adapter(tmp_path / "adapter", checkpoint.spec)
    n_bytes = sum(values.nbytes for values in weights(checkpoint.spec, 4, 0).values())
    for backend in BACKENDS:
        driver = opened(backend, checkpoint.folder, library, adapter_bytes=2 * n_bytes)
        command(driver, LoadAdapter(ONE, str(folder)), CopyAdapter(ONE, TWO))
        for refused in (LoadAdapter(AdapterName(8, 1), str(folder)), CopyAdapter(ONE, AdapterName(8, 1))):
            with pytest.raises(RefusedAdapterError, match="raise adapter_bytes") as caught:
                command(driver, refused)
            assert caught.value.code == "limit-adapters"
        made = tmp_path / f"{backend} made"
        with pytest.raises(RefusedAdapterError, match="raise adapter_bytes"):
            command(driver, CreateAdapter(AdapterName(8, 1), str(made), 4, 8.0, 0.1))
        assert not made.exists()
        # In the place of another one there is room, and behind it.
        command(driver, LoadAdapter(TWO, str(folder)), DropAdapter(ONE), LoadAdapter(AdapterName(8, 1), str(folder)))
        with pytest.raises(DriverError, match="is not loaded"):
            command(driver, DropAdapter(ONE))
        driver.close()


def test_a_change_that_leaves_no_numbers_is_refused(tmp_path: Path, checkpoint: Checkpoint, driver: Driver) -> None:
    command(driver, CreateAdapter(ONE, str(tmp_path / "new"), 2, 4.0, 0.1))
    with pytest.raises(RefusedAdapterError, match="not finite; give smaller factors"), np.errstate(over="ignore", invalid="ignore"):
        command(driver, ChangeAdapter(ONE, TWO, str(tmp_path / "changed"), None, ((1, 3e38), (1, 3e38))))
    assert not (tmp_path / "changed").exists()
    assert math.isfinite(float(rows(driver, ONE).sum()))
