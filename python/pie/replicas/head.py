"""The head of a connection: the request of HTTP by which a WebSocket begins."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

MAX_BYTES = 8 << 10
MAX_FIELDS = 64
MAX_PREFIX_CHARACTERS = 256
FORWARDED_FOR = "x-forwarded-for"
_END = b"\r\n\r\n"
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_START = re.compile(r"([A-Z]{1,16}) (/[!-~]*) HTTP/1\.1")


class BadHeadError(Exception):
    """A head that is not one, or asks for what there is not; the message says what."""


@dataclass(frozen=True)
class Head:
    """A request without its body."""

    method: str
    path: str
    query: str
    fields: tuple[tuple[str, str], ...]
    """Names as they came, and values."""

    def values(self, name: str) -> list[str]:
        """The values of a field, whose name is in lower case."""
        return [value for found, value in self.fields if found.lower() == name]

    @property
    def is_upgrade(self) -> bool:
        """Whether a WebSocket is asked for."""
        return bool(self.values("upgrade"))

    @property
    def is_for_program(self) -> bool:
        """Whether a program is asked by HTTP, whose query is its own."""
        return self.path.startswith("/http/")

    def prefix(self) -> str | None:
        """By what the session shares prefixes, as its address says: `/?prefix=agents`; None where it says nothing.

        Raises BadHeadError for anything else behind the question mark.
        """
        if not self.query or self.is_for_program:
            return None
        try:
            pairs = parse_qsl(self.query, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=2)
        except ValueError:
            pairs = []
        if len(pairs) != 1 or pairs[0][0] != "prefix" or not 0 < len(pairs[0][1]) <= MAX_PREFIX_CHARACTERS:
            raise BadHeadError(f"behind the question mark stands prefix=TEXT alone, a text of 1 to {MAX_PREFIX_CHARACTERS} characters")
        return pairs[0][1]

    def without_query(self) -> Head:
        """The same request of the same path."""
        return replace(self, query="")

    def without(self, name: str) -> Head:
        """The same without a field, whose name is in lower case."""
        return replace(self, fields=tuple(field for field in self.fields if field[0].lower() != name))

    def with_field(self, name: str, value: str) -> Head:
        """The same with one more field."""
        return replace(self, fields=(*self.fields, (name, value)))

    def written(self) -> bytes:
        """As it is sent."""
        target = f"{self.path}?{self.query}" if self.query else self.path
        lines = [f"{self.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in self.fields)]
        return "\r\n".join(lines).encode("latin-1") + _END


def read(raw: bytes) -> Head:
    """The head that these bytes are, its end included. Raises BadHeadError."""
    first, *lines = raw.removesuffix(_END).decode("latin-1").split("\r\n")
    start = _START.fullmatch(first)
    if start is None:
        raise BadHeadError("this is not a request of HTTP/1.1")
    if len(lines) > MAX_FIELDS:
        raise BadHeadError(f"the request has {len(lines)} header fields, and {MAX_FIELDS} are possible")
    fields = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _NAME.fullmatch(name) or any(character in value for character in "\r\n\0"):
            raise BadHeadError("a header field is not a name and a value")
        fields.append((name, value.strip(" \t")))
    path, _, query = start[2].partition("?")
    return Head(start[1], path, query, tuple(fields))
