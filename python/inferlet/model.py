"""Models that the engine has loaded, and their tokenizers."""

from __future__ import annotations

from collections.abc import Iterable

from wit_world.imports import model as _model
from wit_world.imports import tokenizer as _tokenizer

from inferlet import _arguments
from inferlet.errors import host

__all__ = ["Model", "Tokenizer"]


class Tokenizer:
    """The tokenizer of a model; `Model.tokenizer()` makes it."""

    def __init__(self, raw: _tokenizer.Tokenizer) -> None:
        if isinstance(raw, str | Model):
            _arguments.refuse("the argument of Tokenizer", raw, "left to the engine: Model.load(name).tokenizer() makes one")
        self._raw = raw

    def encode(self, text: str) -> list[int]:
        """Text to token ids. Control tokens in the text are parsed; no token is added at the front or the end.

        A text of more than 4 MiB is the error `limit-message`: encode it in parts.
        """
        return list(host(self._raw.try_encode, _arguments.text("text", text)))

    def decode(self, tokens: Iterable[int]) -> str:
        """Token ids to text, control tokens included; bytes that are not UTF-8 become U+FFFD.

        An id outside the vocabulary is the error `invalid-token`.
        """
        return host(self._raw.decode, _arguments.tokens("tokens", tokens))

    def vocab_size(self) -> int:
        """How many ids there are: V, the width of a row of logits."""
        return self._raw.vocab_size()

    def vocabs(self) -> tuple[list[int], list[bytes]]:
        """Every id with its raw bytes, as two lists of `[V]`, in id order."""
        return self._raw.vocabs()

    def special_tokens(self) -> tuple[list[int], list[bytes]]:
        """The control tokens with their bytes, as two lists of the same length, in id order."""
        return self._raw.special_tokens()

    def split_regex(self) -> str:
        """The regular expression that splits text before byte-pair encoding; empty where the tokenizer has none."""
        return self._raw.split_regex()


class Model:
    """A model that the engine has loaded; `Model.load` binds to it."""

    def __init__(self, raw: _model.Model) -> None:
        if isinstance(raw, str):
            _arguments.refuse("the argument of Model", raw, f"left to the engine: Model.load({raw!r}) binds to a model")
        self._raw = raw

    @classmethod
    def load(cls, name: str) -> Model:
        """Binds to the model of that name; `default` names the first one.

        An unknown name is the error `unknown-model`.
        """
        return cls(host(_model.Model.load, _arguments.text("name", name)))

    @property
    def name(self) -> str:
        """The name of the model in the configuration."""
        return self._raw.name()

    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the model."""
        return Tokenizer(self._raw.tokenizer())

    def __repr__(self) -> str:
        return f"Model({self.name!r})"
