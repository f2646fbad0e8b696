"""How a model is laid out over ranks: which part of each weight a rank has.

Linears that begin a block are cut by their outputs (queries, keys and values by heads, gate and up by units), those
that end it by their inputs, so that a block needs one sum over ranks. Embeddings and the last linear are cut by tokens.
Where a model has fewer heads of keys and values than there are ranks, ranks have the same ones. It is a property of
specs: no family knows of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from pie.backends.sizes import invalid
from pie.models.spec import DecoderSpec, Shape

_UNITS = 16
"""Units of a block stay together in so many: kernels read several numbers at once."""


class Part(NamedTuple):
    """Which part of a stored weight a rank has."""

    dim: int
    """The dimension that it is cut along."""
    start: int
    stop: int


@dataclass(frozen=True)
class Share:
    """What rank `rank` of `size` has of a model."""

    rank: int
    size: int

    def check(self, spec: DecoderSpec) -> None:
        """PieError `invalid-argument` where a model cannot be cut into so many shares."""
        heads = spec.attention
        most = min(spec.vocab_size, spec.intermediate_size // self._grain(spec))
        groups = heads.n_kv_heads
        if heads.n_heads % self.size or (groups % self.size and self.size % groups) or self.size > most:
            fits = [n for n in range(1, heads.n_heads + 1) if heads.n_heads % n == 0 and not (groups % n and n % groups) and n <= most]
            raise invalid(
                f"tensor_parallel is {self.size}, and a model of {heads.n_heads} heads, {groups} of keys and values, and "
                f"{spec.intermediate_size} units cannot be cut into as many; give one of {', '.join(map(str, fits))}",
                "tensor_parallel",
            )

    def spec(self, spec: DecoderSpec) -> DecoderSpec:
        """The model as this rank computes it: fewer heads and units, the same tokens."""
        heads = spec.attention
        n_kv_heads = max(1, heads.n_kv_heads // self.size)
        start, stop = self._units(spec)
        attention = replace(heads, n_heads=heads.n_heads // self.size, n_kv_heads=n_kv_heads)
        return replace(spec, attention=attention, intermediate_size=stop - start)

    def shapes(self, spec: DecoderSpec) -> dict[str, Shape]:
        """The shape of every weight of this rank. Tokens that there are not, in the last share, have zeros."""
        if self.size == 1:
            return spec.shapes()
        shapes = self.spec(spec).shapes()
        for name in {spec.names.embedding, spec.names.output} & set(shapes):
            shapes[name] = (self._tokens(spec), *shapes[name][1:])
        return shapes

    def parts(self, spec: DecoderSpec) -> Mapping[str, Part]:
        """The parts, by the name of the weight; those that are whole are left out."""
        if self.size == 1:
            return {}
        heads = spec.attention
        n_queries, n_keys = (heads.head_dim * n for n in (heads.n_heads // self.size, max(1, heads.n_kv_heads // self.size)))
        first_key = self.rank * heads.n_kv_heads // self.size * heads.head_dim
        queries = (n_queries * self.rank, n_queries * (self.rank + 1))
        keys = (first_key, first_key + n_keys)
        units, per = self._units(spec), self._tokens(spec)
        tokens = (min(per * self.rank, spec.vocab_size), min(per * (self.rank + 1), spec.vocab_size))
        outputs = {"q": queries, "k": keys, "v": keys, "gate": units, "up": units}
        parts = {name: Part(0, *tokens) for name in (spec.names.embedding, spec.names.output)}
        for layer in range(spec.n_layers):
            names = vars(spec.layer_names(layer))
            for linear, place in outputs.items():
                parts |= {names[name]: Part(0, *place) for name in (linear, f"{linear}_bias") if names[name] is not None}
            parts |= {names["o"]: Part(1, *queries), names["down"]: Part(1, *units)}
        return parts

    def _tokens(self, spec: DecoderSpec) -> int:
        """Tokens of each share; the last ones may be none of the vocabulary."""
        return -(-spec.vocab_size // self.size)

    def _units(self, spec: DecoderSpec) -> tuple[int, int]:
        grain = self._grain(spec)
        n_grains = spec.intermediate_size // grain
        return n_grains * self.rank // self.size * grain, n_grains * (self.rank + 1) // self.size * grain

    @staticmethod
    def _grain(spec: DecoderSpec) -> int:
        return _UNITS if spec.intermediate_size % _UNITS == 0 else 1


WHOLE = Share(0, 1)
"""That of a rank that has all."""
