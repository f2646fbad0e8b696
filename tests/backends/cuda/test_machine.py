"""What a machine lacks is told in one clear error, before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import torch

from pie.backends.cuda import CudaDriver, CudaOptions, machine, share
from pie.backends.cuda.device import HostDevice
from pie.backends.cuda.layout import WHOLE, Share
from pie.backends.cuda.machine import check_machine
from pie.backends.cuda.memory import WRAPPER_BYTES, check_memory, needed, plan_bytes, workspace_bytes
from pie.backends.cuda.prefixes import MOST_PREFIXES
from pie.backends.cuda.share import Plan
from pie.backends.cuda.signatures import PARAMETERS
from pie.backends.sizes import capabilities
from pie.errors import PieError
from pie.models.loader import load_checkpoint
from pie.models.spec import Attention
from support.checkpoints import write_checkpoint


@dataclass(frozen=True)
class Standin:
    """A machine that has all, unless a test says otherwise."""

    cuda: str | None = "13.0"
    serves: str | None = "13.1"
    devices: int = 2
    is_of: tuple[int, int] = (9, 0)
    versions: dict[str, str] = field(default_factory=lambda: {"flashinfer-python": "0.7.2.post1", "xgrammar": "0.2.8"})
    takes: dict[str, Sequence[str]] = field(default_factory=lambda: dict(PARAMETERS))
    broken: str = ""
    """What importing the packages raises."""
    has_c: bool = True
    has_cuda: bool = True

    def toolkit(self) -> str | None:
        return self.cuda

    def driver(self) -> str | None:
        return self.serves

    def n_devices(self) -> int:
        return self.devices

    def capability(self, device: int) -> tuple[int, int]:
        return self.is_of

    def version(self, package: str) -> str | None:
        return self.versions.get(package)

    def parameters(self, function: str) -> Sequence[str] | None:
        if self.broken:
            raise ImportError(self.broken)
        return self.takes.get(function)

    def compiles_c(self) -> bool:
        return self.has_c

    def has_kernels(self) -> bool:
        return self.has_cuda


ATTENTION = "flashinfer.BatchPrefillWithPagedKVCacheWrapper.plan"
OLD_ATTENTION = {**PARAMETERS, ATTENTION: [name for name in PARAMETERS[ATTENTION] if name != "disable_split_kv"]}
LACKS = {
    "the torch that is installed was built without CUDA": Standin(cuda=None),
    "there is no NVIDIA driver, so cuda:0 cannot be used": Standin(serves=None),
    "the NVIDIA driver serves CUDA 12.8, and torch needs 13.0; install a newer driver": Standin(serves="12.8"),
    'there is no CUDA device, so cuda:0 cannot be used; set driver = "cpu", or see what hides it': Standin(devices=0),
    "cuda:0 has compute capability 7.5, and 8.0 is the least that is served": Standin(is_of=(7, 5)),
    "flashinfer-python is not installed, which the cuda back end needs: pip install": Standin(versions={"xgrammar": "0.2.8"}),
    "flashinfer-python is of version 0.6.13; 0.7.2 and later below 0.8 are served": Standin(
        versions={"flashinfer-python": "0.6.13", "xgrammar": "0.2.8"}
    ),
    "xgrammar is of version 0.3.0; 0.2.8 and later below 0.3 are served": Standin(
        versions={"flashinfer-python": "0.7.3", "xgrammar": "0.3.0"}
    ),
    "flashinfer.rmsnorm is not there in the version that is installed": Standin(
        takes={name: parameters for name, parameters in PARAMETERS.items() if name != "flashinfer.rmsnorm"}
    ),
    "flashinfer is installed and cannot be imported (libtvm_ffi.so: undefined symbol); install it again": Standin(
        broken="libtvm_ffi.so: undefined symbol\nand much more"
    ),
    "there is no C compiler, with which Triton makes what launches its kernels; install gcc or clang": Standin(has_c=False),
    "there is no nvcc, by which FlashInfer compiles its kernels at first use; install the CUDA toolkit": Standin(has_cuda=False),
    f"{ATTENTION} has no disable_split_kv in the version that is installed": Standin(takes=OLD_ATTENTION),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("model"), head_dim=64)


@pytest.mark.parametrize("message", LACKS)
def test_each_thing_that_a_machine_lacks_is_named(folder: Path, message: str) -> None:
    with pytest.raises(PieError) as caught:
        CudaDriver(load_checkpoint(folder), CudaOptions(), machine=LACKS[message])
    print(f"{caught.value.code}: {caught.value.message}")
    assert caught.value.code == "invalid-config"
    assert message in caught.value.message


@pytest.mark.parametrize("newest", ["13.0", "13.2", "14.0"])
def test_a_machine_that_has_all_is_accepted(folder: Path, newest: str) -> None:
    check_machine(Standin(serves=newest), "cuda:1", load_checkpoint(folder).spec, "bfloat16")


@pytest.mark.parametrize(
    ("device", "code", "message"),
    [
        ("cuda:2", "invalid-config", "there is no cuda:2: this machine has 2 CUDA devices; give cuda:0 to cuda:1"),
        ("gpu", "invalid-argument", "device is 'gpu'; give cuda:0, cuda:1 and so on, or cpu"),
        ("cuda:x", "invalid-argument", "device is 'cuda:x'; give cuda:0, cuda:1 and so on, or cpu"),
    ],
)
def test_a_device_that_there_is_not_is_named(folder: Path, device: str, code: str, message: str) -> None:
    with pytest.raises(PieError) as caught:
        CudaDriver(load_checkpoint(folder), CudaOptions(device=device), machine=Standin())
    assert (caught.value.code, caught.value.message, caught.value.details) == (code, message, {"option": "device"})


def test_a_rank_without_a_device_is_named(folder: Path) -> None:
    with pytest.raises(PieError, match="there is no cuda:2: this machine has 2 CUDA devices") as caught:
        CudaDriver(load_checkpoint(folder), CudaOptions(device="cuda:1", tensor_parallel=2), machine=Standin())
    print(caught.value.message)
    assert caught.value.code == "invalid-config"


def test_a_share_needs_a_part_of_the_memory(folder: Path) -> None:
    checkpoint, own = load_checkpoint(folder), CudaOptions(n_pages=64)
    whole, half = (
        needed(checkpoint.spec, share, capabilities("cuda", replace(checkpoint, spec=share.spec(checkpoint.spec)), "bfloat16", own), 2, own)
        for share in (WHOLE, Share(1, 2))
    )
    assert half.page * 2 == whole.page
    assert whole.weights / 2 < half.weights < whole.weights * 0.55


def test_the_workspace_holds_every_split_of_a_graph() -> None:
    """Of 256 sequences and 64 heads, 8 of keys and values: 383 items of 512 KiB, more than FlashInfer asks for."""
    heads = Attention(64, 8, 128, 1.0, head_norms=False)
    assert workspace_bytes(heads, CudaOptions()) == 128 << 20
    found = workspace_bytes(heads, CudaOptions(deterministic=False))
    assert found >= 383 * 64 * 16 * (128 + 1) * 4
    # And of a prompt on a device of 160 processors, in tiles of 128 rows.
    assert found >= 2 * 160 // 8 * 64 * 128 * (128 + 1) * 4


@pytest.mark.parametrize("n_seqs", [64, 256, 4096])
@pytest.mark.parametrize(("n_heads", "n_kv_heads"), [(64, 8), (64, 64), (32, 1)])
def test_the_workspace_holds_every_split_of_shared_prefixes(n_seqs: int, n_heads: int, n_kv_heads: int) -> None:
    """Each of 32 leaves a tile of 128 rows unfilled."""
    found = workspace_bytes(Attention(n_heads, n_kv_heads, 128, 1.0, head_norms=False), CudaOptions(deterministic=False, graph_seqs=n_seqs))
    n_items = max(2 * 160 // n_kv_heads, -(-n_seqs * n_heads // n_kv_heads // 128) + 31)
    assert found >= n_items * n_heads * 128 * (128 + 1) * 4


def test_what_sequences_share_takes_memory_only_where_bits_may_depend_on_the_batch(folder: Path) -> None:
    """Another wrapper, states of 512 tokens and of 4 heads: as they are asked by, of the prefix and in order; pages."""
    checkpoint, own = load_checkpoint(folder), CudaOptions(n_pages=8)
    limits, heads = capabilities("cuda", checkpoint, "bfloat16", own), checkpoint.spec.attention
    fixed, free = (needed(checkpoint.spec, WHOLE, limits, 2, replace(own, deterministic=fixed)).work for fixed in (True, False))
    states = 512 * heads.n_heads * 3 * (heads.head_dim * 2 + 4)
    assert free - fixed >= WRAPPER_BYTES + states + 32 * 4 * checkpoint.spec.max_positions // 16


def test_head_sizes_that_flashinfer_lacks_are_named(tmp_path: Path) -> None:
    spec = load_checkpoint(write_checkpoint(tmp_path / "model", head_dim=48)).spec
    with pytest.raises(PieError, match=r"the model has heads of 48, and FlashInfer serves 64, 128, 256; set dtype = \"float32\""):
        check_machine(Standin(), "cuda:0", spec, "bfloat16")
    check_machine(Standin(has_c=False, has_cuda=False), "cuda:0", spec, "float32")


def test_compilers_are_looked_for_where_the_libraries_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`CC` and `CUDA_HOME` come before the path, and FlashInfer's compiled kernels before all."""
    here, empty, tools = machine.ThisMachine(), tmp_path / "empty", tmp_path / "cuda" / "bin"
    monkeypatch.setattr(machine.util, "find_spec", lambda _name: None)
    for folder in (empty, tools):
        folder.mkdir(parents=True)
    for name in ("CC", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    for name in ("gcc", "nvcc"):
        (tools / name).write_text("#!/bin/sh\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(empty))
    assert not here.compiles_c()
    monkeypatch.setenv("CC", "tcc")
    assert not here.compiles_c()
    monkeypatch.setenv("CC", f"{tools / 'gcc'} -O2")
    assert here.compiles_c()
    monkeypatch.setenv("CUDA_HOME", str(empty))
    assert not here.has_kernels()
    monkeypatch.setenv("CUDA_HOME", str(tools.parent))
    assert here.has_kernels()
    for name in ("CC", "CUDA_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", str(tools))
    assert here.compiles_c()
    assert here.has_kernels()
    monkeypatch.setenv("CUDA_HOME", str(empty))
    monkeypatch.setattr(machine.util, "find_spec", lambda name: name == "flashinfer_jit_cache" or None)
    assert here.has_kernels()


def test_pages_are_those_of_who_computes_alike(folder: Path) -> None:
    """Free bits are not fixed ones, though the model, the device and the libraries are the same."""
    makers = []
    for deterministic in (True, True, False):
        driver = CudaDriver(load_checkpoint(folder), CudaOptions(device="cpu", n_pages=8, deterministic=deterministic))
        makers.append(driver.capabilities.pages_made_by)
        driver.close()
    assert makers[0] == makers[1]
    assert makers[2].removesuffix("free bits") == makers[0].removesuffix("fixed bits")
    assert makers[2] != makers[0]
    assert f"torch {torch.__version__}" in makers[0]


def test_this_machine_is_looked_at() -> None:
    """On one without a GPU or the packages too: every question has an answer."""
    here = machine.ThisMachine()
    assert here.toolkit() == torch.version.cuda
    assert here.n_devices() == torch.cuda.device_count()
    assert (here.driver() is None) == (torch.cuda.device_count() == 0)
    assert here.version("torch") == torch.__version__.partition("+")[0]
    assert here.version("no-such-package") is None
    assert here.parameters("json.dumps.no_such_name") is None
    assert here.parameters("textwrap.fill") == ["text", "width", "kwargs"]


@pytest.mark.parametrize(
    ("free", "options", "option", "remedy"),
    [
        (0.5, {"kv_bytes": 1 << 40}, "kv_bytes", lambda fits: f"lower kv_bytes to {fits}, which fits"),
        (0.5, {"n_pages": 1 << 20}, "n_pages", lambda fits: f"lower n_pages to {fits}, which fits"),
        (0.0, {"n_pages": 1}, "graph_bytes", lambda fits: "lower graph_bytes, or set graph_seqs to 0"),
        (0.0, {"n_pages": 1, "graph_seqs": 0}, "max_batch_tokens", lambda fits: "lower max_batch_tokens, or use a smaller model"),
    ],
)
def test_too_little_memory_is_told_with_what_would_fit(
    folder: Path, free: float, options: dict[str, int], option: str, remedy: Callable[[int], str]
) -> None:
    checkpoint, own = load_checkpoint(folder), CudaOptions(**options)
    limits = capabilities("cuda", checkpoint, "bfloat16", own)
    need = needed(checkpoint.spec, WHOLE, limits, 2, own)
    free_bytes = int((need.total - need.pages) + free * (1 << 30)) if free else need.weights
    with pytest.raises(PieError) as caught:
        check_memory(need, free_bytes, limits, own)
    print(caught.value.message)
    assert (caught.value.code, caught.value.details) == ("invalid-argument", {"option": option})
    fits = int(caught.value.message.split(f"{option} to ")[1].split(",")[0]) if free else 0
    assert remedy(fits) in caught.value.message
    if free:
        # What is said to fit does, and a page more does not.
        more = fits + need.page if option == "kv_bytes" else fits + 1
        for value, is_enough in ((fits, True), (more, False)):
            changed = replace(own, **{option: value})
            limits = capabilities("cuda", checkpoint, "bfloat16", changed)
            assert (needed(checkpoint.spec, WHOLE, limits, 2, changed).total <= free_bytes) == is_enough


@pytest.mark.parametrize(("options", "option"), [({"n_pages": 1 << 40}, "n_pages"), ({"kv_bytes": 1 << 62}, "kv_bytes")])
def test_pages_that_the_host_has_no_memory_for_are_told_with_their_option(folder: Path, options: dict[str, int], option: str) -> None:
    """On a CPU, where nothing is counted before."""
    with pytest.raises(PieError, match=rf"the model does not fit into the memory of cpu \(.*\); lower {option}$") as caught:
        CudaDriver(load_checkpoint(folder), CudaOptions(device="cpu", swap_bytes=0, **options))
    assert (caught.value.code, caught.value.details) == ("invalid-argument", {"option": option})


def test_graphs_that_there_are_not_take_no_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float32."""
    checkpoint, own = load_checkpoint(folder), CudaOptions(n_pages=8, dtype="float32", graph_bytes=1 << 40)
    limits = capabilities("cuda", checkpoint, "float32", own)
    free = needed(checkpoint.spec, WHOLE, limits, 4, replace(own, graph_seqs=0)).total

    class Device(HostDevice):
        def __init__(self, name: str) -> None:
            super().__init__()

        def free_bytes(self) -> int:
            return free

    monkeypatch.setattr(share, "CudaDevice", Device)
    assert Plan.of(checkpoint, own, WHOLE).parts().recorder is None
    with pytest.raises(PieError, match="lower graph_bytes, or set graph_seqs to 0"):
        Plan.of(checkpoint, replace(own, dtype="bfloat16"), WHOLE).parts()


@pytest.mark.parametrize("n_seqs", [1, 64, 256, 512, 4096])
@pytest.mark.parametrize("heads", [(64, 8), (16, 16), (20, 1), (128, 1)])
def test_a_plan_of_a_graph_has_room(n_seqs: int, heads: tuple[int, int]) -> None:
    """Counted as FlashInfer allocates it: five arrays of items of work, ends of sums, each from a multiple of 16 on."""
    n_heads, n_kv_heads = heads
    group = n_heads // n_kv_heads
    tile = 16 if group <= 16 else 64 if group <= 64 else 128
    n_items = max(2 * 256 // n_kv_heads, -(-n_seqs * group // tile) + n_seqs - 1)
    arrays = [4 * n_items] * 3 + [4 * (n_seqs + 1), 4, 4, 4 * (n_seqs + 1), n_items]
    assert plan_bytes(n_seqs) >= sum(-(-n_bytes // 16) * 16 for n_bytes in arrays)
    # And one of prefixes, as many as there may be, whose rows are those sequences; heads of 256 have tiles of 64 rows.
    n_prefixes = max(1, min(MOST_PREFIXES, n_seqs // 2))
    for tile in (16, 64, 128) if group <= 16 else (64, 128):
        n_items = max(2 * 256 // n_kv_heads, -(-n_seqs * group // tile) + n_prefixes - 1)
        arrays = [4 * n_items] * 3 + [4 * (n_prefixes + 1), 4, 4, 4 * (n_seqs + 1), n_items]
        assert plan_bytes(n_seqs + MOST_PREFIXES) >= sum(-(-n_bytes // 16) * 16 for n_bytes in arrays)
