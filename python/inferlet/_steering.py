"""What a generator asks of the program in each step: masks of its constraints, drafts of its speculator."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from typing import Any

from wit_world.imports import generation as _generation
from wit_world.imports import masks as _masks

from inferlet import _arguments
from inferlet._typed import Typed, is_type
from inferlet.constraint import Constraint, Schema
from inferlet.errors import host
from inferlet.grammar import GrammarConstraint, JsonSchema
from inferlet.model import Model
from inferlet.spec import Speculator

_Typed = type[Any] | types.UnionType | types.GenericAlias
"""A type whose documents are wanted."""
Constrain = Schema | Constraint | _Typed | Iterable[Schema | Constraint | _Typed] | None
"""What the option `constrain` takes."""

_ACCEPTED = "a constraint, a schema (JsonSchema, AnyJson, Regex, Ebnf), a type, or a list of them"


def constraints_of(given: Constrain, model: Model) -> list[Constraint]:
    """The constraints that are given, those of schemas made for the model."""
    if given is None:
        return []
    if isinstance(given, Schema | Constraint) or _is_typed(given):
        return [_constraint_of("constrain", given, model)]
    if isinstance(given, str | bytes | Mapping):
        # Both can be iterated over, and neither says of which kind of grammar it is.
        _arguments.refuse("constrain", given, f"{_ACCEPTED}: put a JSON Schema into JsonSchema(), a pattern into Regex()")
    if not isinstance(given, Iterable):
        _arguments.refuse("constrain", given, _ACCEPTED)
    return [_constraint_of(f"constrain[{index}]", one, model) for index, one in enumerate(given)]


def _is_typed(given: object) -> bool:
    """Whether it is a type whose documents are wanted, as `collect_json` takes one."""
    return hasattr(given, "model_json_schema") or (is_type(given) and not isinstance(given, Schema | Constraint))


def _constraint_of(name: str, given: Any, model: Model) -> Constraint:
    if _is_typed(given):
        tells = hasattr(given, "model_json_schema")
        given = JsonSchema(given.model_json_schema() if tells else Typed(given).schema)
    if isinstance(given, Schema):
        name, given = f"{name}.build_constraint()", given.build_constraint(model)
    if not isinstance(given, Constraint):
        _arguments.refuse(name, given, "a constraint, with the method step(accepted)")
    return given


def check_speculator(speculator: object) -> None:
    """Refuses what cannot propose tokens."""
    for method in ("draft", "accept"):
        if not callable(getattr(speculator, method, None)):
            _arguments.refuse("speculator", speculator, f"a speculator, with the method {method}")


class Steering:
    """The constraints and the speculator of one generator, and what they answered for the step that is open."""

    def __init__(self, raw: _generation.Generator, model: Model) -> None:
        self._raw = raw
        self._model = model
        self._constraints: list[Constraint] = []
        self.is_asked = False
        """Whether the program has a part in each step, so that the engine cannot go on alone."""
        self._speculator: Speculator | None = None
        self._accepted: list[int] = []
        """What the step before accepted."""
        self._masks: list[list[int]] = []
        """What the first of the constraints answered in this step: a step that runs again asks them no more."""
        self._n_drafted: int | None = None
        """How many tokens were proposed for this step; None: the speculator was not asked yet."""
        self._drawn: list[int] = []
        """Every token since the generator was made, for a speculator alone."""

    @property
    def has_speculator(self) -> bool:
        """Whether the program proposes tokens."""
        return self._speculator is not None

    def constrain(self, constraints: list[Constraint]) -> None:
        """Adds constraints: from now on each step waits for their mask. The engine asks grammars by itself."""
        asked = [constraint for constraint in constraints if type(constraint) is not GrammarConstraint]
        for constraint in constraints:
            if type(constraint) is GrammarConstraint:
                host(self._raw.constrain, constraint._matcher._raw)
        if asked:
            host(self._raw.ask_masks, True)
            self._constraints += asked
            self.is_asked = True

    def speculate(self, speculator: Speculator) -> None:
        """Has a speculator propose tokens in each step."""
        check_speculator(speculator)
        self._speculator = speculator
        self.is_asked = True
        self._call_if_there("reset")

    def start(self) -> _generation.FutureOutput:
        """Runs the open step. Constraints are asked while the device works.

        Where one throws, or the speculator does, the step is given up, and opened again later.
        """
        try:
            self._propose()
        except BaseException:
            self._raw.step().__exit__(None, None, None)
            raise
        future = self._raw.step()
        if self._constraints:
            try:
                host(self._raw.give_mask, self._mask())
            except BaseException:
                future.__exit__(None, None, None)
                raise
        return future

    def take(self, output: _generation.Output) -> None:
        """Notes what the step accepted, and tells the speculator."""
        self._accepted, self._masks = list(output.tokens), []
        n_drafted, self._n_drafted = self._n_drafted or 0, None
        if self._speculator is not None:
            n_rejected = n_drafted - output.speculation.accepted
            if n_rejected > 0:
                self._call_if_there("rollback", n_rejected)
            self._drawn += output.tokens
            self._speculator.accept(list(output.tokens))

    def replace(self, tokens: list[int]) -> None:
        """Other tokens stand in place of what the last step accepted. Only where some are taken back it begins anew."""
        n_before = len(self._accepted)
        if self._speculator is not None and tokens != self._accepted:
            del self._drawn[len(self._drawn) - n_before :]
            self._drawn += tokens
            if tokens[:n_before] == self._accepted:
                self._speculator.accept(tokens[n_before:])
            else:
                self._call_if_there("reset")
                self._speculator.accept(list(self._drawn))
        self._accepted = tokens

    def _propose(self) -> None:
        if self._speculator is None or self._n_drafted is not None:
            return
        draft = self._speculator.draft()
        if not isinstance(draft, tuple | list) or len(draft) != 2:
            _arguments.refuse("draft()", draft, "a pair: tokens and their positions")
        tokens = _arguments.tokens("draft()[0]", draft[0], _arguments.MAX_DRAFTS)
        positions = _arguments.counts("draft()[1]", draft[1], _arguments.MAX_DRAFTS)
        if tokens or positions:
            host(self._raw.draft, tokens, positions)
        self._n_drafted = len(tokens)

    def _mask(self) -> list[int]:
        """What all constraints allow in this step; the engine adds the mask of the options."""
        for constraint in self._constraints[len(self._masks) :]:
            given = constraint.step(list(self._accepted))
            self._masks.append([] if given is None else _arguments.runs("step()", given))
        if len(self._masks) == 1:
            return self._masks[0]
        return host(_masks.intersection, self._masks, self._model.tokenizer().vocab_size())

    def _call_if_there(self, method: str, *arguments: int) -> None:
        function = getattr(self._speculator, method, None)
        if function is not None:
            function(*arguments)
