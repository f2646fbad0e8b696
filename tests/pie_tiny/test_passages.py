"""What passages say and ask: the answer stands in the text, once, in sentences that are English."""

from __future__ import annotations

import re

import pytest

from tools.pie_tiny.conversation import a_or_an
from tools.pie_tiny.draw import SPLITS, draw
from tools.pie_tiny.lexicon.things import DAYS, MONTHS
from tools.pie_tiny.skills import passage
from tools.pie_tiny.skills.persons import OF_PERSONS
from tools.pie_tiny.skills.places import OF_PLACES

MAKERS = {maker.__name__.strip("_"): maker for maker in (*OF_PERSONS, *OF_PLACES)}


@pytest.mark.parametrize("name", MAKERS)
def test_a_sentence_says_what_its_question_asks(name: str) -> None:
    rng = draw(name, "train")
    for _ in range(300):
        said = MAKERS[name](rng, "Zork")
        assert said.value in said.sentence
        assert said.value in said.answer
        assert all("Zork" in text for text in (said.sentence, said.question, said.answer))
        assert said.sentence.endswith(".")
        for article, noun in re.findall(r"\b(an?) ([a-z]+)", f"{said.sentence} {said.question} {said.answer}"):
            assert a_or_an(noun) == f"{article} {noun}", said


@pytest.mark.parametrize("name", MAKERS)
def test_behind_an_opening_only_names_are_large(name: str) -> None:
    rng = draw(name, "train")
    n_opened = 0
    for _ in range(300):
        said = MAKERS[name](rng, "Zork")
        kept = ("Zork", said.value, *DAYS, *MONTHS, "I ")
        told = passage.told(rng, said.sentence, kept)
        for opening in passage.BEFORE_SENTENCE:
            if told.startswith(opening) and not said.sentence.startswith(opening):
                rest = told.removeprefix(opening)
                assert not rest[0].isupper() or rest.startswith(kept), told
                n_opened += 1
    assert n_opened > 30


@pytest.mark.parametrize("split", SPLITS)
def test_every_answer_to_a_passage_stands_in_it(split) -> None:
    rng = draw("passages", split)
    for _ in range(60):
        exchange = passage.passage(rng)
        text = exchange.messages[0].content
        answers = [m.content for m in exchange.messages if m.role == "assistant"]
        assert exchange.expects in answers[-1]
        for answer in answers:
            content = [word for word in re.findall(r"\w+", answer.removeprefix("The ")) if word[0].isupper() or word.isdigit()]
            assert content
            assert all(word in text for word in content), (answer, text)


@pytest.mark.parametrize("split", SPLITS)
def test_nobody_meets_themselves_or_somebody_elses_friend(split) -> None:
    rng = draw("friends", split)
    for _ in range(60):
        met = dict(re.findall(r"^(\w+) meets (\w+)\.$", "\n".join(m.content for m in passage.passage(rng).messages), re.MULTILINE))
        assert not set(met) & set(met.values())
        assert len(set(met.values())) == len(met)
