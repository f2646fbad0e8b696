"""From a model folder to a spec and its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pie.models.config import Config, invalid_model, read_json_object
from pie.models.families import spec_of
from pie.models.safetensors import Tensor, read_tensors
from pie.models.spec import DecoderSpec, DtypeName

_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
# Older checkpoints store the rotary frequencies, which follow from the config.
_BUFFER = ".rotary_emb.inv_freq"


@dataclass(frozen=True)
class Checkpoint:
    """A model folder whose weights fit its config."""

    folder: Path
    spec: DecoderSpec
    tensors: Mapping[str, Tensor]
    """The weights that the spec names, mapped."""

    @property
    def dtype(self) -> DtypeName:
        """The dtype that all weights can be had in without rounding: float32 for float16."""
        return "bfloat16" if all(tensor.dtype == "bfloat16" for tensor in self.tensors.values()) else "float32"


def read_config(folder: Path) -> DecoderSpec:
    """The spec of a model folder, from its `config.json` alone; PieError `invalid-model` where it cannot be served."""
    path = folder / "config.json"
    return spec_of(Config(path, read_json_object(path)))


def load_checkpoint(folder: Path) -> Checkpoint:
    """Maps the weights of a model folder and checks them against its config.

    Nothing is read but headers. PieError `invalid-model` names the file, the tensor, the shapes and what to do.
    """
    spec = read_config(folder)
    found = _read_all(folder)
    tensors = {}
    for name, shape in spec.shapes().items():
        tensor = found.get(name)
        if tensor is None:
            raise invalid_model(f"{folder}: the weights lack {name} of shape {list(shape)}; fetch the model again")
        if tensor.shape != shape:
            raise invalid_model(
                f"{tensor.path}: {name} has shape {list(tensor.shape)}, but {folder / 'config.json'} makes it {list(shape)}; "
                "config and weights are of different models"
            )
        tensors[name] = tensor
    for name in vars(spec.layer_names(spec.n_layers)).values():
        if name in found:
            raise invalid_model(
                f"{found[name].path}: {name} belongs to no layer, as {folder / 'config.json'} has num_hidden_layers {spec.n_layers}; "
                "config and weights are of different models"
            )
    _refuse_strangers(folder, found, tensors)
    return Checkpoint(folder, spec, tensors)


def _refuse_strangers(folder: Path, found: Mapping[str, Tensor], known: Mapping[str, Tensor]) -> None:
    """Weights of layers that the config does not make, as in biases that it denies, would be left out in silence."""
    for name, tensor in found.items():
        if name not in known and name.startswith("model.layers.") and not name.endswith(_BUFFER):
            raise invalid_model(
                f"{tensor.path}: {name} has no place in the model that {folder / 'config.json'} makes; "
                "config and weights are of different models"
            )


def weight_files(folder: Path) -> list[Path]:
    """The one weight file of a model, or the shards that its index names.

    Raises PieError `invalid-model` where the index is damaged.
    """
    return _files(folder, _weight_map(folder))


def _files(folder: Path, weight_map: Mapping[str, str] | None) -> list[Path]:
    return [folder / _SINGLE] if weight_map is None else [folder / shard for shard in sorted(set(weight_map.values()))]


def _weight_map(folder: Path) -> dict[str, str] | None:
    """The shard of each tensor, by the index; None where one file holds them all."""
    index = folder / _INDEX
    if (folder / _SINGLE).exists() or not index.exists():
        return None
    weight_map = read_json_object(index).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(shard, str) for shard in weight_map.values()):
        raise invalid_model(f"{index}: weight_map is missing or damaged; fetch the file again")
    for shard in weight_map.values():
        if shard in {"", ".", ".."} or any(mark in shard for mark in "/\\\0"):
            raise invalid_model(f"{index}: names the shard {shard!r}; a shard lies in the model folder itself")
    return weight_map


def _read_all(folder: Path) -> dict[str, Tensor]:
    """The tensors of the one weight file, or of the shards that the index names."""
    index, weight_map = folder / _INDEX, _weight_map(folder)
    if weight_map is None:
        return read_tensors(folder / _SINGLE)
    shards = {path.name: read_tensors(path) for path in _files(folder, weight_map)}
    tensors: dict[str, Tensor] = {}
    for shard, held in shards.items():
        for name, tensor in held.items():
            if name in tensors:
                raise invalid_model(f"{index}: {name} lies in {tensors[name].path.name} and in {shard}; fetch the model again")
            tensors[name] = tensor
    for name, shard in weight_map.items():
        if name not in shards[shard]:
            raise invalid_model(f"{folder / shard}: lacks {name}, which {index.name} places there; fetch the file again")
    return tensors
