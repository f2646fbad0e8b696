"""Drills and cut tokens: the answers are right, and the text of what is read stays the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from tools.pie_tiny.batches import load_tokenizer
from tools.pie_tiny.draw import Draw, split_of
from tools.pie_tiny.drills import Vocabulary, drill, learnt_pieces, made_word
from tools.pie_tiny.lexicon.pools import HELD_OUT
from tools.pie_tiny.mix import conversations
from tools.pie_tiny.render import full_text
from tools.pie_tiny.splitter import Splitter

RELEASE = Path(__file__).parents[2] / "python" / "pie" / "pie_tiny"


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(RELEASE)


def _put_in_order(line: str, down: bool = False) -> list[str]:
    return sorted(line.split(", "), key=lambda item: (int(item), "") if item.isdigit() else (0, item), reverse=down)


def _lines_in_order(read: str, answer: str, down: bool) -> bool:
    return [_put_in_order(line, down) for line in read.splitlines()] == [line.split(", ") for line in answer.splitlines()]


def _first_of_lines(read: str, answer: str, down: bool) -> bool:
    return [_put_in_order(line, down)[0] for line in read.splitlines()] == answer.splitlines()


def _spelt(read: str, answer: str) -> bool:
    lines = [line.split(": ") for line in answer.splitlines()]
    return [word for word, _ in lines] == read.split(" ") and all(letters.split("-") == list(word) for word, letters in lines)


def _looked_up(read: str, answer: str) -> bool:
    wanted, table = read.split("\n\n")
    asked = [tuple(one.split(" of ")) for one in wanted.split(", ")]
    said = [re.split(" of |: ", line) for line in answer.splitlines()]
    lines = [set(re.split(r"[ ,:]+", line)) for line in table.splitlines()]
    found = [sum({b, a, value} <= line for line in lines) == 1 for b, a, value in said]
    return [(b, a) for b, a, _ in said] == asked and all(found)


def _words(text: str) -> list[str]:
    return [word for word in re.split(r" and |[,;]? |\n", text) if word]


def _calculated(read: str, answer: str) -> bool:
    lines = [re.fullmatch(r"(\d+) ([+-]) (\d+) = (\d+)", line) for line in answer.splitlines()]
    return read == "" and all(line and int(line[4]) == int(line[1]) + int(f"{line[2]}{line[3]}") for line in lines)


RIGHT: dict[str, Callable[[str, str], bool]] = {
    "Spell these words: ": _spelt,
    "JSON list: ": lambda read, answer: json.loads(answer) == _words(read),
    "JSON objects: ": lambda read, answer: [json.loads(line)["name"] for line in answer.splitlines()] == _words(read),
    "JSON keys: ": lambda read, answer: json.loads(answer) == {word: at + 1 for at, word in enumerate(_words(read))},
    "One in a line: ": lambda read, answer: answer.splitlines() == _words(read),
    "In quotes: ": lambda read, answer: re.findall('"([A-Za-z]+)"', answer) == _words(read),
    "Without the s: ": lambda read, answer: [f"{word}s" for word in _words(answer)] == _words(read),
    "With an s: ": lambda read, answer: _words(answer) == [f"{word}s" for word in _words(read)],
    "First letter large: ": lambda read, answer: _words(answer) == [word.title() for word in _words(read)],
    "Large letters: ": lambda read, answer: _words(answer) == [word.upper() for word in _words(read)],
    "Small letters: ": lambda read, answer: _words(read) == [word.upper() for word in _words(answer)] and answer.islower(),
    "With underscores: ": lambda read, answer: answer.split("_") == _words(read),
    "From underscores: ": lambda read, answer: [f"_{word}_" for word in _words(answer)] == _words(read),
    "In a row backwards: ": lambda read, answer: _words(answer)[::-1] == _words(read),
    "Every other one, from the first: ": lambda read, answer: _words(answer) == [word for at, word in enumerate(_words(read), 1) if at % 2],
    "Look up: ": _looked_up,
    "Calculate.": _calculated,
    "First of each line in order:\n": lambda read, answer: _first_of_lines(read, answer, down=False),
    "Last of each line in order:\n": lambda read, answer: _first_of_lines(read, answer, down=True),
    "Each line upwards:\n": lambda read, answer: _lines_in_order(read, answer, down=False),
    "Each line downwards:\n": lambda read, answer: _lines_in_order(read, answer, down=True),
}


def test_the_answer_of_every_drill_is_right(tokenizer) -> None:
    rng, vocabulary = Draw("1"), Vocabulary(tokenizer)
    seen = set()
    for _ in range(1500):
        read, answer, _ = drill(rng, vocabulary)
        if isinstance(answer, list):
            assert set(answer) <= set(vocabulary.letters)
            continue
        label = next(label for label in RIGHT if read.startswith(label))
        seen.add(label)
        assert RIGHT[label](read.removeprefix(label), answer), (read, answer)
    assert seen == set(RIGHT)


def test_of_a_calculation_the_result_alone_is_learnt_in_its_usual_tokens(tokenizer) -> None:
    rng, vocabulary = Draw("4"), Vocabulary(tokenizer)
    made = [one for one in (drill(rng, vocabulary) for _ in range(200)) if one.given]
    assert made
    for _, answer, given in made:
        parts = learnt_pieces(answer, given)
        assert [part.strip() for part, learnt in parts if learnt and part] == re.findall(r"= (\d+)", answer)
        ids = [number for part, _ in parts for number in tokenizer.encode(part, add_special_tokens=False).ids]
        assert ids == tokenizer.encode(answer, add_special_tokens=False).ids


def test_drills_hold_nothing_that_is_held_out(tokenizer) -> None:
    rng, vocabulary = Draw("2"), Vocabulary(tokenizer)
    for _ in range(8000):
        text = vocabulary.text(drill(rng, vocabulary))
        assert not HELD_OUT.intersection(re.findall("[a-z]+", text.lower()))
        assert {split_of("".join(pair)) for pair in re.findall(r"(\d+) ([+-]) (\d+)", text)} <= {"train"}


def test_made_words_are_for_training_alone() -> None:
    held_out = sorted(HELD_OUT)[:5]
    rng = Draw("1")
    assert [word for word in ("sho", "pond") if split_of(word) == "train"] == []
    assert {made_word(rng, ["sho", "pond", "xyz"], [""]) for _ in range(300)} == {"xyz"}
    assert {made_word(rng, [*held_out, "xyz"], [""]) for _ in range(300)} == {"xyz"}
    assert {made_word(rng, ["x", held_out[0][:2]], [held_out[0][2:]]) for _ in range(300)} >= {"x", held_out[0][:2], "x" + held_out[0][2:]}


@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_cut_tokens_make_up_the_same_text(tokenizer, share: float) -> None:
    splitter, rng = Splitter(tokenizer), Random(3)
    texts = [full_text(conversation) for conversation in islice(conversations(4, "train"), 50)]
    before = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    after = [splitter.split(rng, ids, share) for ids in before]
    assert [tokenizer.decode(ids, skip_special_tokens=False) for ids in after] == texts
    assert sum(map(len, after)) > sum(map(len, before))


def test_at_share_one_letters_stand_alone_but_for_who_speaks(tokenizer) -> None:
    text = "<|im_start|>user\nCould you spell strawberries 12 times?<|im_end|>\n<|im_start|>assistant\n"
    cut = Splitter(tokenizer).split(Random(5), tokenizer.encode(text, add_special_tokens=False).ids, 1.0)
    words = [token for token in map(tokenizer.id_to_token, cut) if re.fullmatch("[A-Za-z]{2,}", token)]
    assert words == ["user", "assistant"]


def test_at_share_zero_nothing_is_cut(tokenizer) -> None:
    ids = tokenizer.encode("Could you spell strawberries?", add_special_tokens=False).ids
    assert Splitter(tokenizer).split(Random(6), ids, 0.0) == ids
