"""Forward passes that a program puts together by itself."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import Any, Protocol, overload

from wit_world.imports import context as _context
from wit_world.imports import forward as _forward

from inferlet import _arguments
from inferlet._wait import resolve
from inferlet.adapter import Adapter, raw_adapter
from inferlet.errors import ErrorCode, InvalidArgumentError, host
from inferlet.output import Output, PassSlots, ProbeHandle, SampleHandle
from inferlet.probe import Probe
from inferlet.sampler import Sampler, check_sampler

__all__ = ["Forward", "ForwardPass", "Output", "ProbeHandle", "SampleHandle"]


class _Owner(Protocol):
    """The context of a pass, which the pass keeps alive."""

    @property
    def page_size(self) -> int: ...

    @property
    def _raw(self) -> _context.Context: ...


class Forward:
    """A pass over the pending token of a context, its buffer, and tokens of its own, in this order.

    `Context.forward` makes it, `execute` runs it, once. Indices and attention masks count the tokens of its own; where
    it has none, the pending and buffered ones. Masks are run lengths (`inferlet.brle`). A pass that fails or is
    cancelled leaves the context as it was. Several passes under way, of several contexts, share batches.
    """

    def __init__(self, context: _Owner) -> None:
        raw = getattr(context, "_raw", None)
        if not isinstance(raw, _context.Context):
            _arguments.of_type("context", context, _context.Context)
        self._context = context
        self._raw = host(_forward.ForwardPass.create, context._raw)
        self._slots = PassSlots()

    def input(self, tokens: Iterable[int]) -> Forward:
        """Adds tokens, each at the position that is its index in the context.

        An id outside the vocabulary is the error `invalid-token`.
        """
        host(self._raw.input, _arguments.tokens("tokens", tokens))
        return self

    def input_at(self, tokens: Iterable[int], positions: Iterable[int]) -> Forward:
        """Adds tokens at positions of their own, which may repeat, jump and go back; as many positions as tokens."""
        host(self._raw.input_at, _arguments.tokens("tokens", tokens), _arguments.counts("positions", positions))
        return self

    def attention_mask(self, masks: Iterable[Iterable[int]]) -> Forward:
        """What each token attends to, over the slots of the context after the pass, together with causality.

        A mask for each token. It replaces those that were given before.
        """
        host(self._raw.attention_mask, _arguments.masks("masks", masks))
        return self

    def mask(self, brle: Iterable[int]) -> Forward:
        """The tokens that samplers may draw; probes do not see it. It replaces the one that was given before."""
        host(self._raw.logit_mask, _arguments.runs("brle", brle))
        return self

    @overload
    def sample(self, indices: Iterable[int], sampler: Sampler) -> SampleHandle: ...

    @overload
    def sample(self, indices: Iterable[int], sampler: Probe) -> ProbeHandle: ...

    def sample(self, indices: Iterable[int], sampler: Sampler | Probe) -> SampleHandle | ProbeHandle:
        """Draws from the rows behind these tokens; parameters out of range are the error `invalid-sampler`.

        In place of a sampler a probe may stand, as older programs have it (`Sampler.dist`, `Sampler.embedding`): then
        there is one index.
        """
        places = _arguments.counts("indices", indices)
        if not isinstance(sampler, Probe):
            check_sampler(sampler)
            return SampleHandle(self._slots, host(self._raw.sample, places, sampler._raw))
        if len(places) != 1:
            message = f"{type(sampler).__name__} reads one row and got {len(places)} indices; give one, and a probe for each row"
            raise InvalidArgumentError(ErrorCode.INVALID_ARGUMENT, message, {"indices": len(places)})
        return self.probe(places[0], sampler)

    def probe(self, idx: int, probe: Probe) -> ProbeHandle:
        """Reads the row behind this token; parameters out of range are the error `invalid-probe`."""
        _arguments.of_type("probe", probe, Probe)
        return ProbeHandle(self._slots, host(self._raw.probe, _arguments.count("idx", idx), probe._raw))

    def adapter(self, a: Adapter) -> Forward:
        """Computes all tokens with an adapter."""
        host(self._raw.set_adapter, raw_adapter("a", a))
        return self

    def zo_seed(self, seed: int) -> Forward:
        """Perturbs the adapter by this seed; without an adapter the pass fails with `invalid-argument`."""
        host(self._raw.set_zo_seed, _arguments.signed("seed", seed))
        return self

    def start_position(self) -> int:
        """The position of the first token of its own: all that the context holds, its buffer included."""
        return host(self._raw.start_position)

    @property
    def page_size(self) -> int:
        """How many tokens a page of the context holds."""
        return self._context.page_size

    def execute(self) -> Coroutine[Any, Any, Output]:
        """Begins the pass, and returns what to await for its output: what is appended later is not part of it.

        Errors: `invalid-argument` where it was executed before, where there is nothing to compute, and for what does
        not fit together; `context-busy`, `context-full`, `out-of-pages`, `unsupported`, `driver-failed`.
        """
        return self._finish(self._raw.execute())

    async def _finish(self, future: _forward.FuturePassOutput) -> Output:
        return Output._of_pass(await resolve(future), self._slots)


ForwardPass = Forward
"""Another name of `Forward`, of older programs."""
