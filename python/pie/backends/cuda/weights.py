"""The weights of a model, or of the share of a rank, in the memory of a device, read there file by file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from pie.backends.cuda.layout import WHOLE, Part, Share
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

    def matrices(self) -> list[Tensor]:
        """One of each shape that linears have, with the last one, which is not one of a layer's."""
        first = self.layers[0]
        return [first.qkv, first.o, first.gate_up, first.down, self.output]


def load_weights(checkpoint: Checkpoint, dtype: torch.dtype, device: torch.device, share: Share = WHOLE) -> Weights:
    """Reads the weights of a share into the memory of the device, one file after the other, rounded to `dtype`.

    Of each weight, only the part of the share is read.
    """
    places = _Places(checkpoint.spec, dtype, device, share)
    weights, parts = places.weights(), share.parts(checkpoint.spec)
    stored = sorted(checkpoint.tensors.values(), key=lambda tensor: (tensor.path, tensor.data.ctypes.data))
    for tensor in stored:
        n_rows = tensor.shape[0]
        _read(tensor, places.of[tensor.name], parts.get(tensor.name, Part(0, 0, n_rows)))
    return weights


def _read(stored: StoredTensor, place: Tensor, part: Part) -> None:
    """Copies a part to its place, in pieces: a table of embeddings may be larger than the host's free memory."""
    kind = _STORED[stored.dtype]
    row_bytes = len(stored.data) // stored.shape[0]
    first_row, end_row = (part.start, part.stop) if part.dim == 0 else (0, stored.shape[0])
    columns = slice(part.start, part.stop) if part.dim == 1 else slice(None)
    per_piece = max(1, _PIECE_BYTES // max(1, row_bytes))
    for first in range(first_row, end_row, per_piece):
        end = min(first + per_piece, end_row)
        # The copy is aligned, as the bytes of the file need not be, and may be written to, as torch wants it.
        piece = torch.from_numpy(stored.data[first * row_bytes : end * row_bytes].copy()).view(kind).reshape(end - first, *stored.shape[1:])
        place[first - first_row : end - first_row].copy_(piece[:, columns] if part.dim == 1 else piece)


class _Places:
    """Where each tensor of a checkpoint goes: a tensor on the device, or some rows of one."""

    def __init__(self, spec: DecoderSpec, dtype: torch.dtype, device: torch.device, share: Share) -> None:
        self.of: dict[str, Tensor] = {}
        self._spec = spec
        self._shapes: Mapping[str, tuple[int, ...]] = share.shapes(spec)
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
        # Zeros for the tokens that the last share has too many.
        tensor = torch.zeros((sum(shape[0] for shape in shapes), *shapes[0][1:]), dtype=self._dtype, device=self._device)
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
