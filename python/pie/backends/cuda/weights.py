"""The weights of a model in the memory of a device, read there file by file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from pie.models.loader import Checkpoint
from pie.models.safetensors import Tensor as StoredTensor
from pie.models.spec import DecoderSpec, LayerNames

_PIECE_BYTES = 64 << 20
"""Of the host's memory, through which weights go to the device."""
_STORED = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


@dataclass(frozen=True, eq=False)
class Layer:
    """The weights of a layer; None where the model has none. Linears that have one input are one matrix."""

    input_norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    q_norm: Tensor | None
    k_norm: Tensor | None
    o: Tensor
    o_bias: Tensor | None
    mlp_norm: Tensor
    gate_up: Tensor
    gate_up_bias: Tensor | None
    down: Tensor
    down_bias: Tensor | None


@dataclass(frozen=True, eq=False)
class Weights:
    """All weights of a model. Matrices are [outputs, inputs]."""

    embedding: Tensor
    layers: list[Layer]
    final_norm: Tensor
    output: Tensor
    """The embedding itself where they are tied."""


def load_weights(checkpoint: Checkpoint, dtype: torch.dtype, device: torch.device) -> Weights:
    """Reads the weights into the memory of the device, one file after the other, rounded to `dtype`."""
    places = _Places(checkpoint.spec, dtype, device)
    weights = places.weights()
    stored = sorted(checkpoint.tensors.values(), key=lambda tensor: (tensor.path, tensor.data.ctypes.data))
    for tensor in stored:
        _read(tensor, places.of[tensor.name])
    return weights


def _read(stored: StoredTensor, place: Tensor) -> None:
    """Copies a tensor to its place, in pieces: a table of embeddings may be larger than the host's free memory."""
    kind = _STORED[stored.dtype]
    n_rows = max(1, _PIECE_BYTES * len(place) // max(1, len(stored.data)))
    row_bytes = len(stored.data) // len(place)
    for first in range(0, len(place), n_rows):
        rows = place[first : first + n_rows]
        # The copy is aligned, as the bytes of the file need not be, and may be written to, as torch wants it.
        piece = stored.data[first * row_bytes : (first + len(rows)) * row_bytes].copy()
        rows.copy_(torch.from_numpy(piece).view(kind).reshape(rows.shape))


class _Places:
    """Where each tensor of a checkpoint goes: a tensor on the device, or some rows of one."""

    def __init__(self, spec: DecoderSpec, dtype: torch.dtype, device: torch.device) -> None:
        self.of: dict[str, Tensor] = {}
        self._spec = spec
        self._shapes: Mapping[str, tuple[int, ...]] = spec.shapes()
        self._dtype = dtype
        self._device = device

    def weights(self) -> Weights:
        spec, names = self._spec, self._spec.names
        embedding = self._tensor(names.embedding)
        layers = [self._layer(spec.layer_names(layer)) for layer in range(spec.n_layers)]
        output = embedding if spec.tied else self._tensor(names.output)
        return Weights(embedding, layers, self._tensor(names.final_norm), output)

    def _layer(self, names: LayerNames) -> Layer:
        return Layer(
            input_norm=self._tensor(names.input_norm),
            qkv=self._tensor(names.q, names.k, names.v),
            qkv_bias=self._bias((names.q, names.q_bias), (names.k, names.k_bias), (names.v, names.v_bias)),
            q_norm=None if names.q_norm is None else self._tensor(names.q_norm),
            k_norm=None if names.k_norm is None else self._tensor(names.k_norm),
            o=self._tensor(names.o),
            o_bias=self._bias((names.o, names.o_bias)),
            mlp_norm=self._tensor(names.mlp_norm),
            gate_up=self._tensor(names.gate, names.up),
            gate_up_bias=self._bias((names.gate, names.gate_bias), (names.up, names.up_bias)),
            down=self._tensor(names.down),
            down_bias=self._bias((names.down, names.down_bias)),
        )

    def _tensor(self, *names: str) -> Tensor:
        """A tensor that holds those of the checkpoint one below the other."""
        shapes = [self._shapes[name] for name in names]
        tensor = torch.empty((sum(shape[0] for shape in shapes), *shapes[0][1:]), dtype=self._dtype, device=self._device)
        for name, part in zip(names, torch.split(tensor, [shape[0] for shape in shapes]), strict=True):
            self.of[name] = part
        return tensor

    def _bias(self, *linears: tuple[str, str | None]) -> Tensor | None:
        """The biases of linears side by side, zeros for those that have none; None where none has."""
        if all(bias is None for _, bias in linears):
            return None
        sizes = [self._shapes[weight][0] for weight, _ in linears]
        tensor = torch.zeros(sum(sizes), dtype=self._dtype, device=self._device)
        for (_, bias), part in zip(linears, torch.split(tensor, sizes), strict=True):
            if bias is not None:
                self.of[bias] = part
        return tensor
