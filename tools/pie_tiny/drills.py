"""Exercises beside the conversations: reading and writing any tokens at all, and sums without many words.

Conversations hold few of the ways in which tokens make up words. What a model has seldom
read in pieces it copies badly, above all where a copy has other tokens than what was read:
` doormat` is ` door` and `mat`, but `"doormat` is `do`, `or` and `mat`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tokenizers import Tokenizer

from .capitals import capitalise
from .conversation import compact_json
from .draw import Draw
from .lexicon.pools import HELD_OUT
from .skills.sums import calculation

_MOST_SPELT = 8
_MOST_WRITTEN = 12
_MOST_SORTED = 6
_MOST_ENTRIES = 9
_MOST_CALCULATED = 24
_LONGEST_COPY = 80
_JOINTS = frozenset(("and", "of", "is", "the", "has"))
"""Words that stand between others in a drill, so none to begin one with."""
_BETWEEN = (" ", " ", ", ", ", ", "\n", " and ", "; ")


class Drill(NamedTuple):
    """What is read and what is to be written; tokens where no text has them in this order.

    What `given` matches, a pattern, is not learnt although it stands in the answer.
    """

    read: str
    answer: str | list[int]
    given: str = ""


def learnt_pieces(answer: str, given: str) -> list[tuple[str, bool]]:
    """The text of an answer in pieces, each with whether it is learnt: what `given` matches is not."""
    found = re.split(f"({given})", answer) if given else [answer]
    return [(piece, at % 2 == 0) for at, piece in enumerate(found)]


class Vocabulary:
    """The tokens from which drills are made."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokens = {i: tokenizer.id_to_token(i) or "" for i in range(tokenizer.get_vocab_size())}
        self.letters: list[int] = [i for i, text in tokens.items() if re.fullmatch("Ġ?[A-Za-z]+", text)]
        """The ids of all tokens of letters alone."""
        beginnings = [text[1:] for text in tokens.values() if re.fullmatch("Ġ[A-Za-z][a-z]+", text)]
        self.beginnings: list[str] = [text for text in beginnings if text not in _JOINTS]
        self._tokens = tokens
        self.endings: list[str] = [text for text in tokens.values() if re.fullmatch("[a-z]+", text)]

    def text(self, drill: Drill) -> str:
        """All words of a drill."""
        if isinstance(drill.answer, str):
            return f"{drill.read}\n{drill.answer}"
        return "".join(self._tokens[number] for number in drill.answer).replace("Ġ", " ")


def made_word(rng: Draw, beginnings: Sequence[str], endings: Sequence[str]) -> str:
    """One of the beginnings and up to two endings; none that a lexicon holds out or that falls on another split."""
    while True:
        word = rng.choice(beginnings) + "".join(rng.choices(endings, k=rng.choice((0, 0, 1, 2))))
        if word.lower() not in HELD_OUT and rng.falls_here(word):
            return word


def _words(rng: Draw, vocabulary: Vocabulary, fewest: int, most: int) -> list[str]:
    words: dict[str, None] = {}
    wanted = rng.randint(fewest, most)
    while len(words) < wanted:
        words[made_word(rng, vocabulary.beginnings, vocabulary.endings)] = None
    return list(words)


def _copied(rng: Draw, vocabulary: Vocabulary) -> Drill:
    """Any tokens said back."""
    return Drill("Repeat:", rng.choices(vocabulary.letters, k=rng.randint(2, _LONGEST_COPY)))


def _spelt(rng: Draw, vocabulary: Vocabulary) -> Drill:
    """Words letter by letter."""
    words = _words(rng, vocabulary, 1, _MOST_SPELT)
    return Drill(f"Spell these words: {' '.join(words)}", "\n".join(f"{word}: {'-'.join(word)}" for word in words))


class _Form(NamedTuple):
    """A label that asks for words in another form, how they are read and what is to be written."""

    label: str
    written: Callable[[list[str]], str]
    read: Callable[[str], str] = str


_FORMS = (
    _Form("JSON list", compact_json),
    _Form("JSON objects", lambda words: "\n".join(compact_json({"name": word}) for word in words)),
    _Form("JSON keys", lambda words: compact_json({word: at for at, word in enumerate(words, 1)})),
    _Form("One in a line", "\n".join),
    _Form("In quotes", lambda words: " ".join(f'"{word}"' for word in words)),
    _Form("Without the s", ", ".join, lambda word: f"{word}s"),
    _Form("With an s", lambda words: ", ".join(f"{word}s" for word in words)),
    _Form("First letter large", lambda words: " ".join(capitalise(word) for word in words), str.lower),
    _Form("Large letters", lambda words: " ".join(words).upper()),
    _Form("Small letters", " ".join, str.upper),
    _Form("With underscores", "_".join),
    _Form("From underscores", " ".join, lambda word: f"_{word}_"),
    _Form("In a row backwards", lambda words: ", ".join(words[::-1])),
    _Form("Every other one, from the first", lambda words: ", ".join(words[::2])),
)


def _written(rng: Draw, vocabulary: Vocabulary) -> Drill:
    """Words in another form, most often one that has other tokens."""
    form = rng.choice(_FORMS)
    words = _words(rng, vocabulary, 2, _MOST_WRITTEN)
    if form.label == "Small letters":
        words = [word.lower() for word in words]
    given = rng.choice(_BETWEEN).join(map(form.read, words))
    return Drill(f"{form.label}: {given}", form.written(words))


def _number(rng: Draw) -> int:
    return rng.randint(0, int(10 ** rng.choice((1, 2, 2, 3, 3, 4))) - 1)


def _ordered_lists(rng: Draw, vocabulary: Vocabulary) -> list[list[str]]:
    """Lists of words or numbers, each in rising order."""
    lists: list[list[str]] = []
    for _ in range(rng.randint(1, _MOST_SORTED)):
        if rng.random() < 0.5:
            lists.append([str(number) for number in sorted({_number(rng) for _ in range(rng.randint(2, 6))})])
        else:
            lists.append(sorted({word.lower() for word in _words(rng, vocabulary, 2, 5)}))
    return lists


def _shuffled(rng: Draw, lists: list[list[str]]) -> str:
    return _lines([rng.sample(items, len(items)) for items in lists])


def _lines(lists: list[list[str]]) -> str:
    return "\n".join(", ".join(items) for items in lists)


def _sorted(rng: Draw, vocabulary: Vocabulary) -> Drill:
    """Lists of words or numbers, each put in order."""
    down = rng.random() < 0.3
    ordered = [items[:: -1 if down else 1] for items in _ordered_lists(rng, vocabulary)]
    return Drill(f"Each line {'downwards' if down else 'upwards'}:\n{_shuffled(rng, ordered)}", _lines(ordered))


def _ends_of_orders(rng: Draw, vocabulary: Vocabulary) -> Drill:
    """Of each list of words or numbers the one with which its order begins or ends.

    In sorting that is the hardest choice.
    """
    ordered = _ordered_lists(rng, vocabulary)
    which, at = rng.choice((("First", 0), ("Last", -1)))
    return Drill(f"{which} of each line in order:\n{_shuffled(rng, ordered)}", "\n".join(items[at] for items in ordered))


def _calculated(rng: Draw, vocabulary: Vocabulary) -> Drill:
    """Many sums and differences, of which the results alone are learnt."""
    signs = rng.choices("+-", k=rng.randint(4, _MOST_CALCULATED))
    lines = (f"{written} = {result}" for written, result in (calculation(rng, sign) for sign in signs))
    return Drill("Calculate.", "\n".join(lines), given=r"\d+ [+-] \d+ =")


_ENTRIES = ("{a} {b}: {value}", "{b} of {a}: {value}", "{value} is the {b} of {a}", "{a} has the {b} {value}", "{b}, {a}: {value}")


def _looked_up(rng: Draw, vocabulary: Vocabulary) -> Drill:
    """Some entries of a table of two keys, where either key alone may lead to several."""
    firsts, seconds = (_words(rng, vocabulary, 2, 4) for _ in range(2))
    pairs = [(a, b) for a in firsts for b in seconds]
    kept = rng.sample(pairs, rng.randint(3, min(len(pairs), _MOST_ENTRIES)))
    made = _words(rng, vocabulary, 1, len(kept))
    values = [*made, *(str(_number(rng)) for _ in range(len(kept) - len(made)))]
    rng.shuffle(values)
    table = dict(zip(kept, values, strict=True))
    entry = rng.choice(_ENTRIES)
    lines = "\n".join(entry.format(a=a, b=b, value=value) for (a, b), value in table.items())
    asked = rng.sample(kept, rng.randint(1, len(kept)))
    wanted = ", ".join(f"{b} of {a}" for a, b in asked)
    return Drill(f"Look up: {wanted}\n\n{lines}", "\n".join(f"{b} of {a}: {table[a, b]}" for a, b in asked))


_KINDS: Mapping[Callable[[Draw, Vocabulary], Drill], int] = {
    _copied: 3,
    _spelt: 4,
    _written: 6,
    _sorted: 7,
    _ends_of_orders: 4,
    _calculated: 10,
    _looked_up: 5,
}
"""The exercises and how often each is drawn, in parts of the sum."""


def drill(rng: Draw, vocabulary: Vocabulary) -> Drill:
    """One exercise of any kind, in which no word is held out."""
    while True:
        made = rng.choices(tuple(_KINDS), tuple(_KINDS.values()))[0](rng, vocabulary)
        if not any(word in HELD_OUT for word in re.findall("[a-z]+", vocabulary.text(made).lower())):
            return made
