"""Folders in the format of PEFT: `adapter_config.json` and `adapter_model.safetensors`.

Whatever in a config changes what is computed and is not known here is refused by its name. Nothing is unpickled.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pie.backends.adapters.modules import Module
from pie.backends.base import RefusedAdapterError
from pie.errors import PieError
from pie.models.config import MAX_JSON_BYTES, Config, read_json_object
from pie.models.safetensors import Tensor, read_metadata, read_tensors
from pie.models.spec import DtypeName

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
PICKLED = "adapter_model.bin"
MAX_RANK = 512
_MAX_ALPHA = 1e9
_MAX_HEADER_BYTES = 4 << 20
_MAX_MESSAGE = 1000
"""Characters of an error."""
DEFAULT_SIGMA = 0.02
"""By how much an adapter is perturbed whose file does not say it."""

_SIGMA = "pie.sigma"
"""Where the file of weights says it: in its metadata, which PEFT leaves alone."""
_PREFIX = "base_model.model."
_A, _B = ".lora_A.weight", ".lora_B.weight"
_ABSENT_OR_EMPTY = (
    "rank_pattern",
    "alpha_pattern",
    "modules_to_save",
    "layers_pattern",
    "layer_replication",
    "megatron_config",
    "trainable_token_indices",
    "target_parameters",
    "arrow_config",
    "alora_invocation_tokens",
)
_ABSENT_OR_FALSE = ("use_dora", "fan_in_fan_out", "lora_bias", "use_qalora")
_CHANGED_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga")
"""Initialisations that change the weights of the model itself."""


@dataclass(frozen=True)
class LowRank:
    """What an adapter changes in one linear: y becomes y + scale * (x A^T) B^T."""

    slot: int
    rank: int
    scale: float
    a: Tensor
    """[rank, inputs]; of the dtype of `b`, bfloat16 or float32."""
    b: Tensor
    """[outputs, rank]"""

    @property
    def dtype(self) -> DtypeName:
        """That of both matrices."""
        return self.a.dtype

    @property
    def n_bytes(self) -> int:
        """Bytes of both matrices."""
        return self.a.data.nbytes + self.b.data.nbytes


@dataclass(frozen=True)
class Adapter:
    """An adapter that fits a model; its matrices are mapped where they were read from a file."""

    config: Mapping[str, Any]
    """The fields of `adapter_config.json`."""
    sigma: float
    """By how much it is perturbed where a sequence asks for that."""
    changes: tuple[LowRank, ...]
    """By their slots."""

    @property
    def n_bytes(self) -> int:
        """Bytes of all matrices."""
        return sum(change.n_bytes for change in self.changes)


def refused(message: str) -> RefusedAdapterError:
    """The error of everything that is wrong with an adapter. What a folder says may be long, and is cut."""
    is_long = len(message) > _MAX_MESSAGE
    return RefusedAdapterError("invalid-adapter", f"{message[:_MAX_MESSAGE]}..." if is_long else message)


def read_adapter(folder: Path, modules: list[Module], limit_bytes: int) -> Adapter:
    """Maps an adapter and checks it against the linears of a model.

    Raises RefusedAdapterError `invalid-adapter`, and `limit-adapters` where its weights have more than `limit_bytes`.
    The messages name files without their folders.
    """
    try:
        path = folder / WEIGHTS
        _check_files(folder)
        fields = Config(Path(CONFIG), read_json_object(folder / CONFIG))
        rank, scale = _rank_and_scale(fields)
        wanted = _wanted(fields, modules)
        n_bytes = path.stat().st_size
        if n_bytes > limit_bytes + MAX_JSON_BYTES:
            raise too_large(n_bytes, limit_bytes)
        _check_header(path)
        tensors = read_tensors(path)
        sigma = _sigma(read_metadata(path))
    except PieError as error:
        raise refused(error.message.replace(f"{folder}/", "")) from None
    except OSError as error:
        raise refused(f"{WEIGHTS} cannot be read ({error.strerror}); save the adapter again") from None
    factors = _factors(tensors, {module.name: module for module in modules})
    for name in wanted:
        if name not in factors:
            raise refused(f"{WEIGHTS} lacks {_PREFIX}{name}{_A}, which {CONFIG} names; save the adapter again")
    if not factors:
        raise refused(f"{WEIGHTS} holds no tensor; save the adapter again")
    changes = (_change(module, a, b, rank, scale) for module, a, b in factors.values())
    return Adapter(fields.fields, sigma, tuple(sorted(changes, key=lambda change: change.slot)))


def too_large(n_bytes: int, limit_bytes: int) -> RefusedAdapterError:
    """The error of an adapter for which there is no room."""
    return RefusedAdapterError(
        "limit-adapters",
        f"the adapter needs {n_bytes} bytes, and {max(0, limit_bytes)} are left of those that the driver has for adapters; "
        "destroy adapters that nobody needs, or raise adapter_bytes of the model",
    )


def write_adapter(folder: Path, adapter: Adapter) -> None:
    """Writes an adapter; `folder` is made, and must not be there. Raises OSError."""
    folder.mkdir()
    (folder / CONFIG).write_text(json.dumps(dict(adapter.config), indent=2), encoding="utf-8")
    header: dict[str, Any] = {"__metadata__": {"format": "pt", _SIGMA: repr(adapter.sigma)}}
    end, pieces = 0, []
    for change in adapter.changes:
        for tensor in (change.a, change.b):
            kind = "BF16" if tensor.dtype == "bfloat16" else "F32"
            header[tensor.name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [end, end + tensor.data.nbytes]}
            end += tensor.data.nbytes
            pieces.append(tensor.data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with (folder / WEIGHTS).open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for piece in pieces:
            file.write(piece.tobytes())


def new_config(rank: int, alpha: float, modules: list[Module]) -> dict[str, Any]:
    """The config of an adapter that changes all linears."""
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": None,
        "inference_mode": True,
        "r": rank,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "use_rslora": False,
        "use_dora": False,
        "fan_in_fan_out": False,
        "bias": "none",
        "init_lora_weights": True,
        "target_modules": sorted({module.short_name for module in modules}),
    }


def float32_tensor(name: str, values: npt.NDArray[np.float32]) -> Tensor:
    """A tensor of float32 numbers in memory."""
    values = np.ascontiguousarray(values)
    return Tensor(name, Path(WEIGHTS), "float32", values.shape, values.reshape(-1).view(np.uint8))


def tensor_names(module: Module) -> tuple[str, str]:
    """What the matrices of a linear are called in a file."""
    return _PREFIX + module.name + _A, _PREFIX + module.name + _B


def _check_files(folder: Path) -> None:
    if not (folder / WEIGHTS).is_file():
        if (folder / PICKLED).exists():
            raise refused(f"{PICKLED} is pickled, and pickles run code of whoever made them; save the adapter as {WEIGHTS}")
        raise refused(f"there is no {WEIGHTS}; give a folder that PEFT or `Adapter.save` wrote")
    if not (folder / CONFIG).is_file():
        raise refused(f"there is no {CONFIG}; give a folder that PEFT or `Adapter.save` wrote")


def _check_header(path: Path) -> None:
    """Refuses a header that would take long to read, and that no adapter has."""
    with path.open("rb") as file:
        n_bytes = int.from_bytes(file.read(8), "little")
    if _MAX_HEADER_BYTES < n_bytes < path.stat().st_size:
        raise refused(f"{WEIGHTS} has a header of {n_bytes} bytes, and the limit is {_MAX_HEADER_BYTES}; save the adapter again")


def _rank_and_scale(config: Config) -> tuple[int, float]:
    config.only("peft_type", "LORA")
    config.only("bias", "none")
    # Later versions of PEFT may know more kinds of LoRA.
    kinds = [name for name in config.fields if name.startswith("use_") and name != "use_rslora"]
    for name in (*_ABSENT_OR_FALSE, *kinds):
        config.only(name, False)
    for name in _ABSENT_OR_EMPTY:
        if config.fields.get(name):
            raise config.error(f"{name} is {config.fields[name]!r}, which is not supported; leave it out")
    initialised = config.fields.get("init_lora_weights")
    if isinstance(initialised, str) and initialised.lower().startswith(_CHANGED_BASE):
        raise config.error(f"init_lora_weights is {initialised!r}, which changes the model itself; convert the adapter to plain LoRA")
    rank, alpha = config.size("r", most=MAX_RANK), config.fields.get("lora_alpha", 8)
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not -_MAX_ALPHA <= alpha <= _MAX_ALPHA:
        raise config.error(f"lora_alpha is {alpha!r}; it must be a number from {-_MAX_ALPHA:g} to {_MAX_ALPHA:g}")
    divisor = math.sqrt(rank) if config.flag("use_rslora", False) else rank
    return rank, float(np.float32(alpha / divisor))


def _wanted(config: Config, modules: list[Module]) -> dict[str, Module]:
    """The linears that the config names, by their names; a pattern is not evaluated and names none."""
    targets = config.fields.get("target_modules")
    layers = config.fields.get("layers_to_transform")
    layers = [layers] if isinstance(layers, int) and not isinstance(layers, bool) else layers
    if layers is not None and not (isinstance(layers, list) and all(isinstance(layer, int) for layer in layers)):
        raise config.error(f"layers_to_transform is {layers!r}; it must be a list of numbers")
    numbers = None if layers is None else set(layers)
    there = [module for module in modules if numbers is None or module.layer in numbers]
    if targets == "all-linear":
        return {module.name: module for module in there}
    if isinstance(targets, str):
        return {}
    if not isinstance(targets, list) or not targets or not all(isinstance(target, str) for target in targets):
        raise config.error(f"target_modules is {targets!r}; it must be a list of names")
    excluded = config.fields.get("exclude_modules") or []
    if not isinstance(excluded, list) or not all(isinstance(name, str) for name in excluded):
        raise config.error(f"exclude_modules is {excluded!r}; it must be a list of names")
    # Sets, so that a long list takes no longer for each linear.
    left_out, wanted = set(excluded), set(targets)
    there_are = {name for module in modules for name in _names(module)}
    for target in targets:
        if target not in there_are:
            known = ", ".join(sorted({module.short_name for module in modules}))
            raise config.error(
                f"target_modules names {target!r}, which adapters of this model cannot change; they change {known}: train it for these"
            )
    return {module.name: module for module in there if not _names(module).isdisjoint(wanted) and _names(module).isdisjoint(left_out)}


def _names(module: Module) -> set[str]:
    """What a config may call a linear: its name from any part on."""
    parts = module.name.split(".")
    return {".".join(parts[start:]) for start in range(len(parts))}


def _sigma(metadata: Mapping[str, str]) -> float:
    text = metadata.get(_SIGMA)
    if text is None:
        return DEFAULT_SIGMA
    try:
        sigma = float(text)
    except ValueError:
        sigma = math.nan
    if not 0 <= sigma < math.inf:
        raise refused(f"{WEIGHTS} has {_SIGMA} {text!r} in its metadata; it must be a finite number of at least 0")
    return sigma


def _factors(tensors: Mapping[str, Tensor], modules: Mapping[str, Module]) -> dict[str, tuple[Module, Tensor, Tensor]]:
    """Both matrices of each linear, by its name."""
    pairs: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        suffix = next((suffix for suffix in (_A, _B) if name.endswith(suffix)), None)
        module = name.removeprefix(_PREFIX).removesuffix(suffix or "")
        if suffix is None or not name.startswith(_PREFIX) or module not in modules:
            known = ", ".join(sorted({module.short_name for module in modules.values()}))
            raise refused(f"{WEIGHTS} holds {name}, which has no place in this model; adapters of it change {known}: train it for these")
        pairs.setdefault(module, {})[suffix] = tensor
    for module, pair in pairs.items():
        for suffix in (_A, _B):
            if suffix not in pair:
                raise refused(f"{WEIGHTS} lacks {_PREFIX}{module}{suffix}; save the adapter again")
    return {name: (modules[name], pair[_A], pair[_B]) for name, pair in pairs.items()}


def _change(module: Module, a: Tensor, b: Tensor, rank: int, scale: float) -> LowRank:
    for tensor, shape in ((a, (rank, module.n_inputs)), (b, (module.n_outputs, rank))):
        if tensor.shape != shape:
            raise refused(
                f"{WEIGHTS}: {tensor.name} has shape {list(tensor.shape)}, but the rank {rank} and the model make it {list(shape)}; "
                "use an adapter of this model"
            )
        if not tensor.is_finite():
            raise refused(f"{WEIGHTS}: {tensor.name} holds a number that is not finite; train the adapter again")
    if a.dtype == b.dtype == "bfloat16":
        return LowRank(module.slot, rank, scale, a, b)
    return LowRank(module.slot, rank, scale, _widened(a), _widened(b))


def _widened(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype == "float32" else float32_tensor(tensor.name, tensor.float32())
