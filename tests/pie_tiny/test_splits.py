"""What is measured was not taught: wordings, lexica, numbers and tools of the splits do not overlap."""

from __future__ import annotations

import re
from collections import Counter, deque
from functools import cache
from itertools import islice

import pytest

from tools.pie_tiny.conversation import Exchange, ask
from tools.pie_tiny.draw import SPLITS, draw, split_of
from tools.pie_tiny.evaluation import PER_SKILL, Item, make_items, sealed_items
from tools.pie_tiny.lexicon import pools
from tools.pie_tiny.mix import conversations, spoken
from tools.pie_tiny.skills import extract, formats, letters, new_tools, passage, sums
from tools.pie_tiny.words import coined_word

POOLS = {name: value for name, value in vars(pools).items() if isinstance(value, pools.Pool)}
N_CONVERSATIONS = 6000


@cache
def taught() -> tuple[frozenset[str], frozenset[str]]:
    """The messages of many training conversations and the words in them."""
    messages, words = set(), set()
    for conversation in islice(conversations(31, "train"), N_CONVERSATIONS):
        for message in conversation.messages:
            messages.add(message.content)
            words.update(re.findall(r"[a-z]+", message.content.lower()))
    return frozenset(messages), frozenset(words)


def asked(item: Item) -> str:
    return next(m["content"] for m in reversed(item.messages) if m["role"] == "user")


@pytest.mark.parametrize("name", POOLS)
def test_no_entry_is_in_two_splits(name: str) -> None:
    parts = (POOLS[name].train, POOLS[name].validation, POOLS[name].sealed)
    entries = Counter(entry.lower() for part in parts for entry in set(part))
    assert [entry for entry, count in entries.items() if count > 1] == []
    assert all(parts)


@pytest.mark.parametrize("name", POOLS)
def test_what_is_sealed_is_not_taught_elsewhere(name: str) -> None:
    _, words = taught()
    known = [entry for entry in POOLS[name].sealed if set(re.findall(r"[a-z]+", entry.lower().replace("_", " "))) <= words]
    # Words of two kinds of use: a quantity such as `interest rate` is made of words that stand in topics.
    assert len(known) <= len(POOLS[name].sealed) // 5, known


def test_every_lexicon_says_what_it_holds_out() -> None:
    assert {entry.lower() for pool in POOLS.values() for entry in (*pool.validation, *pool.sealed)} == pools.HELD_OUT


@pytest.mark.parametrize("name", POOLS)
def test_training_invents_nothing_that_a_lexicon_holds_out(name: str) -> None:
    rng = draw("invented", "train")
    invented = {rng.entry(POOLS[name]) for _ in range(500)} - set(POOLS[name].train)
    assert len(invented) > 100
    assert {entry for entry in invented if entry.lower() in pools.HELD_OUT} == set()


def test_no_sealed_question_is_a_training_message() -> None:
    messages, _ = taught()
    assert [asked(item) for item in sealed_items() if asked(item) in messages] == []


def test_validation_and_the_sealed_set_share_no_question() -> None:
    sealed = {asked(item) for item in sealed_items()}
    assert [asked(item) for item in make_items("1", "validation", 20) if asked(item) in sealed] == []


@pytest.mark.parametrize("split", SPLITS)
def test_numbers_keep_to_their_split(split) -> None:
    rng = draw("numbers", split)
    for _ in range(100):
        a, b = sums.operands(rng, "+")
        assert split_of(f"{a}+{b}") == split
    for _ in range(20):
        assert split_of(coined_word(rng)) == split


def test_a_wording_belongs_to_one_split() -> None:
    def wordings(split) -> set[str]:
        rng = draw("wordings", split)
        exchanges: list[Exchange] = [letters.spell(rng) for _ in range(500)]
        return {re.sub(re.escape(e.expects.replace("-", "")), "WORD", e.messages[0].content) for e in exchanges}

    found = [wordings(split) for split in SPLITS]
    assert [len(one) for one in found] == [216, 1, 3]
    assert not found[0] & found[1]
    assert not (found[0] | found[1]) & found[2]


def test_the_sealed_set_is_whole_and_says_what_it_expects() -> None:
    items = sealed_items()
    counts = Counter(item.skill for item in items)
    assert set(counts.values()) == {PER_SKILL}
    assert len(counts) == 19
    assert all(item.expected and item.messages[-1]["role"] in ("user", "tool") for item in items)


def test_a_changed_sealed_set_is_refused(tmp_path) -> None:
    changed = tmp_path / "sealed.jsonl"
    changed.write_text("{}\n")
    with pytest.raises(ValueError, match="not the sealed set"):
        sealed_items(changed)


def test_no_command_of_training_is_a_wording_that_is_held_out() -> None:
    rng = draw("commands", "train")
    asked = {
        rng.wording("Name it.", "Go on and spell pear!", "Could you, spell pear?", commands=("spell {}",), over="pear") for _ in range(1000)
    }
    assert {"Name it.", "Please spell pear.", "Now spell pear."} <= asked
    assert not asked & {"Go on and spell pear.", "Could you spell pear?"}


@pytest.mark.parametrize("over", ["b, a", "He is 3."])
def test_what_a_command_is_about_always_stands_in_it(over) -> None:
    rng = draw("over", "train")
    asked = {rng.wording("", "x", "x", commands=("sort these", "sort of {} now"), over=over) for _ in range(1000)} - {""}
    assert len(asked) > 100
    for text in asked:
        assert text.count(over.removesuffix(".")) == 1
        assert not re.search(r"[{}]|\.[.:]", text)


def test_a_request_that_is_said_otherwise_is_no_wording_that_is_held_out() -> None:
    rng = draw("rough", "train")
    exchange = ask("Add 3 and 4.", "7")
    freely = {spoken(rng, exchange)[0].content for _ in range(2000)}
    rng.hold_out("Please add 3 and 4!")
    bound = {spoken(rng, exchange)[0].content for _ in range(2000)}
    assert "Please add 3 and 4." in freely
    # What the exchange itself says is not undone.
    assert bound == {"Add 3 and 4."}


@pytest.mark.parametrize(
    ("skill", "count"),
    [
        *((skill, 600) for skill in (sums.plain_sum, sums.count, letters.sort_numbers, letters.sort_words, letters.spell)),
        *((skill, 600) for skill in (extract.extract, extract.read_back, formats.formatted)),
        *((skill, 100) for skill in (new_tools.choose_new_tool, new_tools.call_new_tool, passage.passage)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_no_request_of_training_holds_a_wording_that_is_held_out(skill, count: int) -> None:
    rng = draw("held out", "train")
    for _ in range(count):
        rng.held_out = deque()  # of any length, so that nothing is forgotten
        exchange = skill(rng)
        requests = [message.content for message in exchange.messages if message.role == "user"]
        said = [re.findall(r"[a-z0-9{}+*/-]+", text.lower()) for text in (spoken(rng, exchange)[0].content, *requests)]
        bare = [f" {' '.join(word for word in words if word != 'please')} " for words in said]
        for wording in {held for held in rng.held_out if held.count(" ") > 3}:
            assert not any(wording in text for text in bare), wording


def test_a_request_whose_letters_matter_stays_as_it_is() -> None:
    rng = draw("rough", "train")
    exchange = ask("Make this upper case, ab?", "AB", verbatim=True)
    assert {spoken(rng, exchange)[0].content for _ in range(300)} == {"Make this upper case, ab?"}
