"""Model folders whose chat template or tokenizer wants too much: what stands in their files, and what becomes of
them.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

MESSAGES = "{% for m in messages %}{{ m.content }}{% endfor %}"
# What a template holds that shares its parts: 120 lists, which walked one by one are 2^60.
SHARED = "{% set ns = namespace(s=[1, 2]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}"
TWICE = (
    "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}"
)
NESTED = "{% set ns = namespace(s=[]) %}{% for i in range(100000) %}{% set ns.s = [ns.s] %}{% endfor %}"
LONG = "{% set k = 1000 %}{% set long = 'a' * k * k %}"
EVER = "{% for i in range(100000) %}{% for j in range(100000) %}", "{% endfor %}{% endfor %}"


def doubled(operation: str, start: str) -> str:
    """A template that doubles `ns.s` sixty times."""
    return f"{{% set ns = namespace(s={start}) %}}{{% for i in range(60) %}}{{% set ns.s = {operation} %}}{{% endfor %}}{{{{ ns.s }}}}"


def repeated(operation: str, start: str = "[1, 2]") -> str:
    """A template that makes `ns.s` of itself a hundred thousand times."""
    return f"{{% set ns = namespace(s={start}) %}}{{% for i in range(100000) %}}{{% set ns.s = {operation} %}}{{% endfor %}}{{{{ ns.s }}}}"


TEMPLATES: dict[str, str] = {
    # What the parser would descend into.
    "a chain of not": "{{ " + "not " * 100_000 + "1 }}",
    "a chain of plus": "{{ " + "1+" * 200_000 + "1 }}",
    "a chain of minus signs": "{{ " + "- " * 100_000 + "1 }}",
    "a chain of attributes": "{{ a" + ".b" * 100_000 + " }}",
    "a chain of filters": "{{ a" + "|trim" * 100_000 + " }}",
    "as many elif as there may be": "{% if a %}" + "{% elif a %}" * 16_000 + "{% endif %}",
    "more elif": "{% if a %}" + "{% elif a %}" * 60_000 + "{% endif %}",
    "as many not as there may be": "{{ " + "not " * 4_090 + "1 }}",
    "as many plus as there may be": "{{ x" + "+1" * 2_040 + " }}",
    "brackets": "{{ " + "[" * 50_000 + "]" * 50_000 + " }}",
    "nested ifs": "{% if 1 %}" * 10_000 + "{% endif %}" * 10_000,
    "endless tags": "{{ " * 100_000,
    "two megabytes": "x" * (2 << 20),
    # What the compiler would compute.
    "constants multiplied": "{{ " + " ~ ".join(["'a' * 100000000"] * 200) + " }}",
    "sums of constants multiplied": "{{ 'a' * (1" + "+1" * 600 + ") * (1" + "+1" * 600 + ") * (1" + "+1" * 600 + ") }}",
    "constants sought": "{{ 7 in [1] * 10 ** 18 }}",
    # What is nested while it runs.
    "a list nested": NESTED + "x",
    "a nested list printed": NESTED + "{{ ns.s }}",
    "a nested list as json": NESTED + "{{ ns.s|tojson }}",
    "slices of slices": repeated("ns.s[0:]"),
    "reversed again and again": repeated("ns.s|reverse"),
    "chained again and again": repeated("ns.s|chain([1])"),
    "grouped again and again": repeated("ns.s|groupby('x')"),
    "a namespace in itself": "{% set ns = namespace(s=1) %}{% set ns.s = [ns] %}{{ ns }}",
    "a loop in a namespace": "{% set ns = namespace(s=1) %}{% for i in range(3) %}{% set ns.s = loop %}{% endfor %}",
    "macros without end": "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}",
    # What grows.
    "a text doubled by ~": doubled("ns.s ~ ns.s", "'ab'"),
    "a text doubled by +": doubled("ns.s + ns.s", "'ab'"),
    "a text doubled by *": doubled("ns.s * 2", "'ab'"),
    "a list doubled by +": doubled("ns.s + ns.s", "[1, 2]"),
    "captured text doubled": (
        "{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set y %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = y %}{% endfor %}"
    ),
    "text written for ever": EVER[0] + "x" * 500_000 + EVER[1],
    "macros that write": "{% macro a(n) %}{% if n %}{{ a(n - 1) }}{{ a(n - 1) }}{% endif %}" + "x" * 1000 + "{% endmacro %}{{ a(60) }}",
    "macros made for ever": EVER[0] + "{% macro a() %}{{ j }}{% endmacro %}" + EVER[1],
    "replaced": "{% set k = 1000 %}{{ ('a' * k * 3000)|replace('a', 'b' * k) }}",
    "replaced by a method": LONG + "{{ long.replace('', long) }}",
    "indented": "{{ 'a\\nb'|indent(1000000000) }}",
    "joined": LONG + "{{ ([1] * k * 100)|join(long) }}",
    "joined by a method": LONG + "{{ long.join(['a'] * k * 100) }}",
    "formatted": "{{ '%1000000000d'|format(1) }}",
    "formatted by a method": "{{ '{:>1000000000}'.format(1) }}",
    "formatted again and again": LONG + "{{ ('{0}' * k).format(long) }}",
    "batches": "{{ range(10)|batch(10000000000) }}",
    "slices": "{{ range(10)|slice(10000000000) }}",
    "characters listed": LONG + "{% set l = (long * 9)|list %}",
    "arguments spread": "{% macro a() %}{% endmacro %}{% set k = 100000 %}{% set l = [1] * k %}" + EVER[0] + "{{ a(*l, *l) }}" + EVER[1],
    # What shares its parts, walked.
    "shared parts as json": SHARED + "{{ ns.s|tojson(indent=64) }}",
    "shared parts printed": SHARED + "{{ ns.s }}",
    "shared parts put together": SHARED + "{{ ns.s ~ '' }}",
    "shared parts compared": TWICE + "{{ ns.a == ns.b }}",
    "shared parts compared in a chain": TWICE + "{{ ns.a == ns.b == ns.a }}",
    "shared parts sought": TWICE + "{{ ns.a in [ns.b] }}",
    "shared parts as a key": SHARED + "{% set x = {ns.s: 1} %}",
    "shared parts sorted": TWICE + "{{ [ns.a, ns.b]|sort }}",
    "shared parts that changed": TWICE + "{% for i in range(2) %}{{ loop.changed(ns.a if i else ns.b) }}{% endfor %}",
    "shared parts included": SHARED + "{% include ns.s %}",
    # What takes for ever.
    "loops": EVER[0] + EVER[1],
    "names looked up through many frames": "{% with a = 1 %}" * 70 + EVER[0] + "{{ z }}" + EVER[1] + "{% endwith %}" * 70,
    "items of a range": EVER[0] + "{{ range(100000)[99999] }}" + EVER[1],
    "a long date": "{% set k = 1000 %}{{ strftime_now('%c' * k * k * 4) }}",
    "more than may be written": "x" * 200_000 + "{% for i in range(12) %}" + "x" * 200_000 + "{% endfor %}",
    "characters counted": LONG + EVER[0] + "{{ long[-5] }}" + EVER[1],
    "characters walked": LONG + EVER[0] + "{% for c in long %}{% break %}{% endfor %}" + EVER[1],
    "characters sought": LONG + EVER[0] + "{% if 'b' in long %}{% endif %}" + EVER[1],
    "characters trimmed": LONG + "{{ long.strip('bcdefghij' * k * 100 ~ 'a') }}",
}

SERVED: dict[str, str] = {
    "an empty text counted": "{{ 'abc'.count('') }}" + MESSAGES,
    "a long line": "{{ '-' * 80 }}" + MESSAGES,
    "a sum in a loop": "{% set ns = namespace(s='') %}{% for m in messages %}{% set ns.s = ns.s + m.content %}{% endfor %}{{ ns.s }}",
}
"""Templates that look alike and are served."""

Json = dict[str, Any]


def with_normalizer(*steps: Json) -> Callable[[Json], Json]:
    """A tokenizer that takes these steps first."""
    return lambda tokenizer: tokenizer | {"normalizer": {"type": "Sequence", "normalizers": list(steps)}}


def with_split(*steps: Json) -> Callable[[Json], Json]:
    """A tokenizer that splits by these steps before its own."""
    return lambda tokenizer: tokenizer | {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [*steps, tokenizer["pre_tokenizer"]]}}


def replace(pattern: Json, content: str) -> Json:
    """A step of a normalizer."""
    return {"type": "Replace", "pattern": pattern, "content": content}


def precompiled(texts: bytes, n_trie_bytes: int = 8) -> Json:
    """A step of sentencepiece's, with these replacements behind a trie that is too small to find them."""
    charsmap = n_trie_bytes.to_bytes(4, "little") + bytes(8) + texts
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}


def nested(step: Json, depth: int) -> Json:
    """A step inside so many sequences."""
    for _ in range(depth):
        step = {"type": "Sequence", "normalizers": [step]}
    return step


def with_added(n_bytes: int, n_tokens: int) -> Callable[[Json], Json]:
    """A tokenizer with long added tokens, each of whose letters its normalizer makes a hundred of."""

    def change(tokenizer: Json) -> Json:
        added = [
            {
                "id": 90_000 + i,
                "content": "a" * n_bytes + str(i),
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": True,
                "special": False,
            }
            for i in range(n_tokens)
        ]
        changed = with_normalizer(replace({"String": "a"}, "a" * 100))(tokenizer)
        return changed | {"added_tokens": tokenizer["added_tokens"] + added}

    return change


def with_model(**fields: Any) -> Callable[[Json], Json]:
    """A tokenizer whose model has other fields."""
    return lambda tokenizer: tokenizer | {"model": tokenizer["model"] | fields}


NFKD: Json = {"type": "NFKD"}
BYTES: Json = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False}
META: Json = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": False}

TOKENIZERS: dict[str, Callable[[Json], Json | str | bytes]] = {
    "a letter becomes a million": with_normalizer(replace({"String": "a"}, "a" * 1_000_000)),
    "a letter becomes two, forty times": with_normalizer(*[replace({"String": "a"}, "aa")] * 40),
    "nothing becomes something": with_normalizer(replace({"Regex": ""}, "abc" * 10_000)),
    "every letter becomes many": with_normalizer(replace({"Regex": "."}, "a" * 5_000)),
    "ten megabytes before each text": with_normalizer({"type": "Prepend", "prepend": "x" * 10_000_000}),
    "decomposed again and again": with_normalizer(*[NFKD] * 60),
    "more steps than there may be": with_normalizer(*[{"type": "Strip", "strip_left": True, "strip_right": True}] * 70),
    "steps deep in steps": lambda tokenizer: json.dumps(tokenizer | {"normalizer": nested(NFKD, 200)}),
    "bytes of bytes": with_split(*[BYTES] * 30),
    "spaces before spaces": with_split(*[META] * 40),
    "added tokens that grow": with_added(1_000, 1_000),
    "a long replacement": with_normalizer(precompiled(b"x" * 1_000_000 + b"\0")),
    "a map that is no base64": with_normalizer({"type": "Precompiled", "precompiled_charsmap": "?" * 100}),
    "a map whose trie is longer": with_normalizer(precompiled(b"x\0", 1 << 31)),
    "a map of nothing": with_normalizer({"type": "Precompiled", "precompiled_charsmap": ""}),
    "a vocabulary of zeroes": with_model(vocab=[0] * 5_000_000),
    "merges of zeroes": with_model(merges=[[0, 0]] * 1_500_000),
    "zeroes beside the model": lambda tokenizer: tokenizer | {"padding": [0] * 600_000},
    "an id far away": lambda tokenizer: with_model(vocab=tokenizer["model"]["vocab"] | {"far": 4_000_000_000})(tokenizer),
    "an id below zero": lambda tokenizer: with_model(vocab=tokenizer["model"]["vocab"] | {"low": -1})(tokenizer),
    "merges of unknown tokens": with_model(merges=[["\u0416", "\u0416"]]),
    "an expression that is huge": with_split(
        {"type": "Split", "pattern": {"Regex": "(((a{999}){999}){999}){999}"}, "behavior": "Isolated", "invert": False}
    ),
    "an expression within an expression": with_split(
        {"type": "Split", "pattern": {"Regex": "(" * 2_000 + "a" + ")" * 2_000}, "behavior": "Isolated", "invert": False}
    ),
    "not UTF-8": lambda _: b'{"model": "\xff\xfe"}',
    "cut off": lambda tokenizer: json.dumps(tokenizer)[:-100],
    "a list": lambda _: "[]",
    "brackets": lambda _: "[" * 1_000_000,
    "seventy megabytes": lambda _: b"{" + b" " * (70 << 20) + b"}",
    "a model of another kind": lambda tokenizer: tokenizer | {"model": {"type": "Unigram", "vocab": [], "unk_id": 7}},
}
"""Each is refused when it is loaded, or at the first text."""

HARMLESS: dict[str, Callable[[Json], Json | str | bytes]] = {
    "a letter becomes a thousand": with_normalizer(replace({"String": "a"}, "a" * 1_000)),
    "steps in steps": with_normalizer(nested(NFKD, 40)),
    "an expression that goes back": with_split(
        {"type": "Split", "pattern": {"Regex": r"(?=(a|a a|a a a)+\z)(a+)+b"}, "behavior": "Isolated", "invert": False}
    ),
}
"""Each is refused or served."""


def fifo(path: Path) -> None:
    """A pipe that nobody writes."""
    os.mkfifo(path)


def zeroes(path: Path) -> None:
    """A link to a device that never ends."""
    path.symlink_to("/dev/zero")


def loop(path: Path) -> None:
    """A link to itself."""
    path.symlink_to(path)


def sparse(path: Path) -> None:
    """A file of a tebibyte that takes no place."""
    with path.open("wb") as file:
        file.truncate(1 << 40)


def folder(path: Path) -> None:
    """A folder."""
    path.mkdir()


STRANGE: dict[str, Callable[[Path], None]] = {"fifo": fifo, "zeroes": zeroes, "loop": loop, "sparse": sparse, "folder": folder}
STRANGE_FILES = ("tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja")
"""Each of these files is tried as each of these things."""
