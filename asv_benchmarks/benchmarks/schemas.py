"""Seeded JSON schemas with documents that fit them, and a vocabulary of 128,000 tokens, for the rows of grammars."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import BUILD

VOCAB_SIZE = 128_000
N_SCHEMAS = 24
N_DOCUMENTS = 4
N_WORDS = 220_000
"""Different words of the text from which the vocabulary is learnt: it has fewer tokens than they have merges."""
OPEN, VOWEL, CLOSE = ("", *"bcdfghjklmnprstvwz", "st", "tr", "sh", "ch"), ("a", "e", "i", "o", "u", "ea", "ou"), ("", *"nrstlmd")
SYLLABLES = ["".join(parts) for parts in itertools.product(OPEN, VOWEL, CLOSE)]
SCRIPTS = (range(0x430, 0x450), range(0x4E00, 0x4E40), (0xE4, 0xF6, 0xFC, 0xE9, 0xE8, 0xE0, 0xF1, 0xE7, 0xDF), range(0x627, 0x63B))
"""Letters of other scripts."""
MARKS = [
    ",",
    ".",
    ";",
    ":",
    "!",
    "?",
    "-",
    "...",
    "()",
    "();",
    "{",
    "},",
    "};",
    "==",
    "!=",
    "->",
    "::",
    '",',
    '":',
    '"}',
    '"],',
    "[[",
    "/*",
    "//",
]
SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
"""How texts are cut before they are merged, as by the tokenizer of Llama 3."""

Make = Callable[[random.Random], Any]


def vocabulary() -> Path:
    """A byte-level tokenizer.json; learnt once, and kept in the build folder."""
    path = BUILD / f"grammars/tokenizer-{VOCAB_SIZE}-2.json"
    if path.exists():
        return path
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: PLC0415 - for this alone

    made = Tokenizer(models.BPE())
    cut = pre_tokenizers.Split(Regex(SPLIT), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE, min_frequency=0, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    made.train_from_iterator(_lines(random.Random(1)), trainer)
    if made.get_vocab_size() != VOCAB_SIZE:
        raise RuntimeError(f"the vocabulary has {made.get_vocab_size()} tokens, not {VOCAB_SIZE}")
    path.parent.mkdir(parents=True, exist_ok=True)
    made.save(str(path), pretty=False)
    return path


def word(rng: random.Random) -> str:
    """A word that nobody knows."""
    return "".join(rng.choices(SYLLABLES, k=rng.choice((1, 2, 2, 3))))


def _lines(rng: random.Random) -> Any:
    """Words by Zipf's law, between marks, digits, code and JSON; and words of other scripts."""
    words = [word(rng) for _ in range(N_WORDS)]
    words += ["".join(map(chr, rng.choices(script, k=rng.randint(1, 5)))) for script in SCRIPTS for _ in range(8_000)]
    for start in range(0, len(words), 20):
        common = [words[min(int(rng.paretovariate(0.6)), len(words)) - 1] for _ in range(20)]
        spelled = [rng.choice((text, text, text.capitalize(), text.upper())) for text in words[start : start + 20]]
        yield " ".join([*spelled, *common]) + rng.choice(MARKS) + str(rng.randint(0, 9999)) + "\n" + " " * rng.randint(0, 12)
        if start % 400 == 0:
            yield json.dumps({text: [rng.random(), rng.choice(common)] for text in common}, indent=rng.choice((None, 1, 2, 4)))


def workload() -> list[dict[str, Any]]:
    """Schemas, each as text with the texts of its documents."""
    rng = random.Random(7)
    works = []
    for _ in range(N_SCHEMAS):
        schema, make = _record(rng, depth=0)
        documents = [json.dumps(make(rng), separators=(",", ":"), ensure_ascii=False) for _ in range(N_DOCUMENTS)]
        works.append({"schema": json.dumps(schema), "documents": documents})
    return works


def _record(rng: random.Random, depth: int) -> tuple[dict[str, Any], Make]:
    names = list(dict.fromkeys("_".join(word(rng) for _ in range(rng.choice((1, 1, 2)))) for _ in range(rng.randint(4, 9))))
    parts = {name: _value(rng, depth + 1) for name in names}
    required = [name for name in names if rng.random() < 0.8]
    schema = {
        "type": "object",
        "properties": {name: part for name, (part, _) in parts.items()},
        "required": required,
        "additionalProperties": False,
    }

    def make(rng: random.Random) -> Any:
        return {name: of_part(rng) for name, (_, of_part) in parts.items() if name in required or rng.random() < 0.5}

    return schema, make


def _value(rng: random.Random, depth: int) -> tuple[dict[str, Any], Make]:
    kinds: list[Callable[[random.Random], tuple[dict[str, Any], Make]]] = [_text, _text, _choice, _integer, _number, _flag, _optional]
    if depth < 3:
        kinds += [lambda rng: _record(rng, depth), lambda rng: _list(rng, depth)]
    return rng.choice(kinds)(rng)


def _text(rng: random.Random) -> tuple[dict[str, Any], Make]:
    sentence = lambda rng: " ".join(word(rng) for _ in range(rng.randint(2, 12))).capitalize() + "."  # noqa: E731 - a row of a table
    day = lambda rng: f"20{rng.randint(10, 29)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"  # noqa: E731 - so too
    code = lambda rng: "".join(rng.choices("ABCDEF", k=3)) + f"-{rng.randint(0, 9999):04}"  # noqa: E731 - so too
    forms: list[tuple[dict[str, Any], Make]] = [
        ({}, sentence),
        ({}, sentence),
        ({"maxLength": 200}, sentence),
        ({"format": "date"}, day),
        ({"pattern": "^[A-F]{3}-[0-9]{4}$"}, code),
    ]
    schema, make = rng.choice(forms)
    return {"type": "string"} | schema, make


def _choice(rng: random.Random) -> tuple[dict[str, Any], Make]:
    values = list(dict.fromkeys(word(rng) for _ in range(rng.randint(2, 12))))
    return {"enum": values}, lambda rng: rng.choice(values)


def _integer(rng: random.Random) -> tuple[dict[str, Any], Make]:
    most = rng.choice((9, 150, 100_000))
    return {"type": "integer", "minimum": 0, "maximum": most}, lambda rng: rng.randint(0, most)


def _number(rng: random.Random) -> tuple[dict[str, Any], Make]:
    scale = rng.choice((1, 1000))
    return {"type": "number"}, lambda rng: round(scale * rng.random() + 0.01, 3)


def _flag(_rng: random.Random) -> tuple[dict[str, Any], Make]:
    return {"type": "boolean"}, lambda rng: rng.random() < 0.5


def _optional(rng: random.Random) -> tuple[dict[str, Any], Make]:
    schema, make = rng.choice((_integer, _choice))(rng)
    return {"anyOf": [schema, {"type": "null"}]}, lambda rng: make(rng) if rng.random() < 0.7 else None


def _list(rng: random.Random, depth: int) -> tuple[dict[str, Any], Make]:
    schema, make = _value(rng, depth + 1)
    return {"type": "array", "items": schema, "maxItems": 8}, lambda rng: [make(rng) for _ in range(rng.randint(0, 4))]
