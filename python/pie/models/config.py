"""Typed reading of a checkpoint's `config.json`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pie.errors import PieError

MAX_SIZE = 1 << 24
"""No size in a config is larger: far beyond any model, far below an overflow."""

MAX_JSON_BYTES = 64 << 20
"""No config or index is larger."""


def invalid_model(message: str) -> PieError:
    """The one error of everything that is wrong with a model folder."""
    return PieError("invalid-model", message)


def check_regular(path: Path) -> None:
    """PieError `invalid-model` where there is no regular file: reading a pipe would wait for ever."""
    try:
        is_other = path.exists() and not path.is_file()
    except OSError as error:
        raise invalid_model(f"{path}: cannot be read ({error.strerror}); give a folder in the Hugging Face format") from error
    if is_other:
        raise invalid_model(f"{path}: is not a file; give a folder in the Hugging Face format")


def parse_json_object(path: Path, text: bytes, what: str = "") -> dict[str, Any]:
    """A JSON object without repeated names, from (a part of) a file; PieError `invalid-model` where there is none."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            repeated = counts.most_common(1)[0][0]
            raise invalid_model(f"{path}: {what}names {repeated!r} twice; fetch the file again")
        return fields

    try:
        value = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise invalid_model(f"{path}: {what}not JSON ({error}); fetch the file again") from None
    if not isinstance(value, dict):
        raise invalid_model(f"{path}: {what}holds a {type(value).__name__}, not an object; fetch the file again")
    return value


def read_json_object(path: Path) -> dict[str, Any]:
    """A JSON object from a file; PieError `invalid-model` where there is none."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            text = file.read(MAX_JSON_BYTES + 1)
    except OSError as error:
        raise invalid_model(f"{path}: cannot be read ({error.strerror}); give a folder in the Hugging Face format") from None
    if len(text) > MAX_JSON_BYTES:
        raise invalid_model(f"{path}: is larger than {MAX_JSON_BYTES} bytes; fetch the file again")
    return parse_json_object(path, text)


@dataclass(frozen=True)
class Config:
    """The fields of a config, with the file they stand in for messages."""

    path: Path
    fields: dict[str, Any]

    def error(self, message: str) -> PieError:
        """An error about this config."""
        return invalid_model(f"{self.path}: {message}")

    def size(self, name: str, default: int | None = None, most: int = MAX_SIZE) -> int:
        """A positive integer up to `most`; without a default, one that must be there."""
        value = self.fields.get(name)
        if value is None:
            if default is None:
                raise self.error(f"{name} is missing")
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= most:
            raise self.error(f"{name} is {value!r}; it must be an integer from 1 to {most}")
        return value

    def positive(self, name: str, default: float | None = None) -> float:
        """A positive number."""
        value = self.fields.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
            raise self.error(f"{name} is {value!r}; it must be a positive number")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.fields.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(f"{name} is {value!r}; it must be true or false")
        return value

    def section(self, name: str) -> Config:
        """An object inside the config; empty where it is absent."""
        value = self.fields.get(name) or {}
        if not isinstance(value, dict):
            raise self.error(f"{name} is {value!r}; it must be an object")
        return Config(self.path, value)

    def only(self, name: str, *supported: object) -> None:
        """Refuses a value of which the kernels know nothing; an absent field is fine."""
        value = self.fields.get(name)
        if value is not None and value not in supported:
            raise self.error(f"{name} is {value!r}, which is not supported; supported: {', '.join(map(repr, supported))}")
