"""The linears of a model that adapters may change, by their number (*slot*)."""

from __future__ import annotations

from dataclasses import dataclass

from pie.models.spec import DecoderSpec

MODULES = ("q", "k", "v", "o", "gate", "up", "down")
"""The linears of a layer, as `LayerNames` calls them; slot 7 * layer + i is the i-th of them in a layer."""

_WEIGHT = ".weight"


@dataclass(frozen=True)
class Module:
    """A linear that an adapter may change."""

    slot: int
    layer: int
    name: str
    """As the checkpoint calls it, without `.weight`: `model.layers.0.self_attn.q_proj`."""
    n_inputs: int
    n_outputs: int

    @property
    def short_name(self) -> str:
        """What `target_modules` calls it: `q_proj`."""
        return self.name.rpartition(".")[2]


def slot_of(layer: int, module: str) -> int:
    """The number of a linear of a layer."""
    return len(MODULES) * layer + MODULES.index(module)


def modules_of(spec: DecoderSpec) -> list[Module]:
    """All linears of a model that adapters may change, by their slots."""
    shapes = spec.shapes()
    found = []
    for layer in range(spec.n_layers):
        names = vars(spec.layer_names(layer))
        for module in MODULES:
            n_outputs, n_inputs = shapes[names[module]]
            found.append(Module(slot_of(layer, module), layer, names[module].removesuffix(_WEIGHT), n_inputs, n_outputs))
    return found
