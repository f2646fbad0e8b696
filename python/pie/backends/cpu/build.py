"""From a spec and its weights to a plan."""

from __future__ import annotations

from dataclasses import dataclass

from pie.backends.adapters.modules import slot_of
from pie.backends.cpu.plan import NONE, Op, OpKind, Plan, Program
from pie.backends.cpu.rotary import rotary_tables
from pie.models.loader import Checkpoint
from pie.models.spec import LayerNames


@dataclass(frozen=True)
class _Stream:
    """Buffers that a layer works in: with a row a token, or with a row for each row of logits."""

    hidden: int
    normed: int
    attended: int
    gate_up: int
    activated: int


def build_plan(plan: Plan, checkpoint: Checkpoint) -> Program:
    """Packs the weights and seals the plan; returns the program that it now runs."""
    builder = _Builder(plan, checkpoint)
    builder.build()
    plan.seal(builder.program)
    return builder.program


class _Builder:
    """Packs weights and appends the operations that use them.

    Keys and values need every token; what follows the last attention is computed for the wanted rows alone.
    """

    def __init__(self, plan: Plan, checkpoint: Checkpoint) -> None:
        self.plan = plan
        self.spec = checkpoint.spec
        self.tensors = checkpoint.tensors
        self.program = Program()
        heads = self.spec.attention
        self.tokens, self.rows = self._stream(rows=False), self._stream(rows=True)
        self.qkv = self.program.buffer((heads.n_heads + 2 * heads.n_kv_heads) * heads.head_dim)

    def build(self) -> None:
        """The whole model."""
        spec, names, add = self.spec, self.spec.names, self.program.add
        self.plan.set_table(self.tensors[names.embedding])
        self.plan.set_rotary(*rotary_tables(spec.rotary, spec.attention.head_dim, self.plan.options.max_positions))
        tokens, rows = self.tokens, self.rows
        add(Op(OpKind.EMBED, dst=tokens.hidden, value=spec.embedding_scale))
        for layer in range(spec.n_layers):
            layer_names = spec.layer_names(layer)
            self._attention(layer, layer_names)
            stream = tokens
            if layer == spec.n_layers - 1:
                stream = rows
                add(Op(OpKind.SELECT_ROWS, src=tokens.hidden, dst=rows.hidden))
                add(Op(OpKind.SELECT_ROWS, src=tokens.attended, dst=rows.attended))
            self._linear(OpKind.LINEAR_ADD, stream.attended, stream.hidden, layer_names.o)
            self._adapted(stream.attended, stream.hidden, layer, o=spec.hidden_size)
            self._bias(stream.hidden, layer_names.o_bias)
            self._mlp(layer, layer_names, stream)
        self._norm(names.final_norm, rows)
        logits = self.plan.add_linear([self.tensors[names.embedding if spec.tied else names.output]])
        add(Op(OpKind.LOGITS, src=rows.normed, weight=logits))

    def _stream(self, *, rows: bool) -> _Stream:
        spec, buffer = self.spec, self.program.buffer
        return _Stream(
            hidden=buffer(spec.hidden_size, rows=rows),
            normed=buffer(spec.hidden_size, rounded=True, rows=rows),
            attended=buffer(spec.attention.n_heads * spec.attention.head_dim, rounded=True, rows=rows),
            gate_up=buffer(2 * spec.intermediate_size, rows=rows),
            activated=buffer(spec.intermediate_size, rounded=True, rows=rows),
        )

    def _attention(self, layer: int, names: LayerNames) -> None:
        epsilon, add = self.spec.norm_epsilon, self.program.add
        self._norm(names.input_norm, self.tokens)
        self._linear(OpKind.LINEAR, self.tokens.normed, self.qkv, names.q, names.k, names.v)
        heads = self.spec.attention
        q_width, kv_width = heads.n_heads * heads.head_dim, heads.n_kv_heads * heads.head_dim
        self._adapted(self.tokens.normed, self.qkv, layer, q=q_width, k=kv_width, v=kv_width)
        self._bias(self.qkv, names.q_bias, names.k_bias, names.v_bias)
        q_norm, k_norm = self._vector(names.q_norm), self._vector(names.k_norm)
        add(Op(OpKind.ROTARY_WRITE, dst=self.qkv, layer=layer, weight=q_norm, weight_2=k_norm, value=epsilon))
        add(Op(OpKind.ATTENTION, src=self.qkv, dst=self.tokens.attended, layer=layer, value=self.spec.attention.scale))

    def _mlp(self, layer: int, names: LayerNames, stream: _Stream) -> None:
        self._norm(names.mlp_norm, stream)
        self._linear(OpKind.LINEAR, stream.normed, stream.gate_up, names.gate, names.up)
        width = self.spec.intermediate_size
        self._adapted(stream.normed, stream.gate_up, layer, gate=width, up=width)
        self._bias(stream.gate_up, names.gate_bias, names.up_bias)
        self.program.add(Op(OpKind.SWIGLU, src=stream.gate_up, dst=stream.activated))
        self._linear(OpKind.LINEAR_ADD, stream.activated, stream.hidden, names.down)
        self._adapted(stream.activated, stream.hidden, layer, down=self.spec.hidden_size)
        self._bias(stream.hidden, names.down_bias)

    def _norm(self, name: str, stream: _Stream) -> None:
        weight, epsilon = self._vector(name), self.spec.norm_epsilon
        self.program.add(Op(OpKind.RMS_NORM, src=stream.hidden, dst=stream.normed, weight=weight, value=epsilon))

    def _linear(self, kind: OpKind, src: int, dst: int, *names: str) -> None:
        weight = self.plan.add_linear([self.tensors[name] for name in names])
        self.program.add(Op(kind, src=src, dst=dst, weight=weight))

    def _adapted(self, src: int, dst: int, layer: int, **widths: int) -> None:
        """What adapters change in linears of a layer, by their names, whose outputs lie side by side in `dst`."""
        column = 0
        for module, width in widths.items():
            self.program.add(Op(OpKind.LORA, src=src, dst=dst, layer=slot_of(layer, module), weight=column, weight_2=width))
            column += width

    def _bias(self, dst: int, *names: str | None) -> None:
        """Adds the biases of the linears whose outputs lie side by side in `dst`, where the model has them."""
        there = [self.tensors[name] for name in names if name is not None]
        if there:
            self.program.add(Op(OpKind.ADD_VECTOR, dst=dst, weight=self.plan.add_vector(*there)))

    def _vector(self, name: str | None) -> int:
        return NONE if name is None else self.plan.add_vector(self.tensors[name])
