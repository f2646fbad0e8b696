"""Grammars: what a model may write, by a JSON Schema, a regular expression or an EBNF text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from wit_world.imports import grammar as _grammar

from inferlet import _arguments, _json
from inferlet.errors import ErrorCode, host
from inferlet.model import Model, Tokenizer

__all__ = ["AnyJson", "Ebnf", "Grammar", "GrammarConstraint", "JsonSchema", "Matcher", "Regex"]


def _schema_text(name: str, schema: object) -> str:
    """A JSON Schema as text; an object is written as JSON."""
    if isinstance(schema, Mapping | bool):
        return _json.dumps(dict(schema) if isinstance(schema, Mapping) else schema, name, ErrorCode.INVALID_ARGUMENT)
    if not isinstance(schema, str):
        _arguments.refuse(name, schema, "a JSON Schema as text or as a dict")
    return _arguments.text(name, schema)


class Grammar:
    """A grammar that was checked. It belongs to no model.

    A source that does not parse, cannot be enforced, or takes too much is the error `invalid-grammar`, which says
    where.
    """

    def __init__(self, raw: _grammar.Grammar) -> None:
        self._raw = raw

    @classmethod
    def _of(cls, source: _grammar.Source) -> Grammar:
        return cls(host(_grammar.Grammar.create, source))

    @classmethod
    def from_json_schema(cls, schema: str | Mapping[str, Any] | bool) -> Grammar:
        """Documents that fit a JSON Schema, without white space between their signs."""
        return cls._of(_grammar.Source_JsonSchema(_schema_text("schema", schema)))

    @classmethod
    def json(cls) -> Grammar:
        """Documents of any JSON, without white space between their signs."""
        return cls._of(_grammar.Source_AnyJson())

    @classmethod
    def from_regex(cls, pattern: str) -> Grammar:
        """Texts that match a regular expression as a whole."""
        return cls._of(_grammar.Source_Regex(_arguments.text("pattern", pattern)))

    @classmethod
    def from_ebnf(cls, source: str) -> Grammar:
        """Texts of a grammar in EBNF: the dialect of Lark, or that of `root ::=`."""
        return cls._of(_grammar.Source_Ebnf(_arguments.text("source", source)))


class Matcher:
    """Walks a text of a grammar by the tokens of a model, from its beginning on.

    A grammar that takes too much with the vocabulary is the error `invalid-grammar`, that of the calls of another model
    `invalid-argument`.
    """

    def __init__(self, grammar: Grammar, tokenizer: Tokenizer) -> None:
        _arguments.of_type("grammar", grammar, Grammar)
        _arguments.of_type("tokenizer", tokenizer, Tokenizer)
        self._raw = host(grammar._raw.matcher, tokenizer._raw)

    def accept_tokens(self, ids: Iterable[int]) -> None:
        """Goes on by tokens, 65,536 at most; where one does not continue the text, none is taken: `grammar-mismatch`.

        A document beyond a megabyte or 120 levels is the error `invalid-grammar`.
        """
        host(self._raw.accept, _arguments.tokens("ids", ids))

    def next_token_logit_mask(self) -> list[int]:
        """The tokens that may follow, as run lengths (`inferlet.brle`); after the end it is `grammar-mismatch`."""
        return list(host(self._raw.mask))

    def forced_tokens(self) -> list[int]:
        """The tokens that must follow, as the tokenizer writes them; empty where there is a choice."""
        return list(host(self._raw.forced))

    @property
    def is_terminated(self) -> bool:
        """Whether the text has ended: a stop token was accepted, or nothing else could follow."""
        return self._raw.is_terminated()

    def reset(self) -> None:
        """Goes back to the beginning of the text."""
        host(self._raw.reset)

    def fork(self) -> Matcher:
        """A copy at the same place, which goes on by itself."""
        copy = Matcher.__new__(Matcher)
        copy._raw = host(self._raw.fork)
        return copy


class GrammarConstraint:
    """A constraint by a grammar. The engine walks it by itself: the program has no part in a step.

    It begins where the matcher stands. A source that cannot be enforced is the error `invalid-grammar`.
    """

    def __init__(self, matcher: Matcher) -> None:
        _arguments.of_type("matcher", matcher, Matcher)
        self._matcher = matcher

    @classmethod
    def from_grammar(cls, grammar: Grammar, model: Model) -> GrammarConstraint:
        """A constraint by a grammar that was checked."""
        _arguments.of_type("model", model, Model)
        return cls(Matcher(grammar, model.tokenizer()))

    @classmethod
    def from_json_schema(cls, schema: str | Mapping[str, Any] | bool, model: Model) -> GrammarConstraint:
        """A constraint to documents that fit a JSON Schema, as text or as a dict."""
        return cls.from_grammar(Grammar.from_json_schema(schema), model)

    @classmethod
    def json(cls, model: Model) -> GrammarConstraint:
        """A constraint to documents of any JSON."""
        return cls.from_grammar(Grammar.json(), model)

    @classmethod
    def from_regex(cls, pattern: str, model: Model) -> GrammarConstraint:
        """A constraint to texts that match a regular expression as a whole."""
        return cls.from_grammar(Grammar.from_regex(pattern), model)

    @classmethod
    def from_ebnf(cls, source: str, model: Model) -> GrammarConstraint:
        """A constraint to texts of a grammar in EBNF: the dialect of Lark, or that of `root ::=`."""
        return cls.from_grammar(Grammar.from_ebnf(source), model)

    def step(self, accepted: list[int]) -> list[int]:
        """Goes on by what the step before accepted; returns the mask of the tokens that may follow."""
        self._matcher.accept_tokens(accepted)
        return self._matcher.next_token_logit_mask()


@dataclass(frozen=True)
class AnyJson:
    """Documents of any JSON, for the option `constrain`."""

    def build_constraint(self, model: Model) -> GrammarConstraint:
        """A fresh constraint, at the beginning of a text; a source that cannot be enforced is `invalid-grammar`."""
        return GrammarConstraint.json(model)


@dataclass(frozen=True)
class JsonSchema:
    """Documents that fit a JSON Schema, as text or as a dict, for the option `constrain`."""

    schema: str | Mapping[str, Any] | bool

    def build_constraint(self, model: Model) -> GrammarConstraint:
        """A fresh constraint, at the beginning of a text; a source that cannot be enforced is `invalid-grammar`."""
        return GrammarConstraint.from_json_schema(self.schema, model)


@dataclass(frozen=True)
class Regex:
    """Texts that match a regular expression as a whole, for the option `constrain`."""

    pattern: str

    def build_constraint(self, model: Model) -> GrammarConstraint:
        """A fresh constraint, at the beginning of a text; a source that cannot be enforced is `invalid-grammar`."""
        return GrammarConstraint.from_regex(self.pattern, model)


@dataclass(frozen=True)
class Ebnf:
    """Texts of a grammar in EBNF, for the option `constrain`: the dialect of Lark, or that of `root ::=`."""

    source: str

    def build_constraint(self, model: Model) -> GrammarConstraint:
        """A fresh constraint, at the beginning of a text; a source that cannot be enforced is `invalid-grammar`."""
        return GrammarConstraint.from_ebnf(self.source, model)
