"""Answering from a passage: the sentence that says it stands among many that do not."""

from __future__ import annotations

from ..conversation import Exchange, Message
from ..draw import Draw
from ..lexicon.things import DAYS, MONTHS
from ..lexicon.topics import TOPICS
from ..words import coined_word, person
from .persons import OF_PERSONS
from .places import OF_PLACES
from .statement import Statement

_LENGTHS = (25, 60, 150, 300, 500, 750)
"""Bounds on the words of a passage; 750 words are up to 1,500 tokens."""
_LENGTH_WEIGHTS = (60, 70, 48, 28, 16, 9)
_WORDS_PER_QUESTION = 25
"""A long passage that is read costs less for each answer that is learnt where there are many."""
_FILLERS = tuple(sentence for sentences in TOPICS.values() for sentence in sentences)
_IDLE = (
    "The weather was fine that week.",
    "Nobody was in a hurry.",
    "It was a quiet year for all of them.",
    "Many things had changed since then.",
    "The old people still talk about it.",
    "Some days were better than others.",
    "There was much to do in the garden.",
    "In winter the evenings are long.",
)
BEFORE_SENTENCE = (
    *("As everybody knows, ", "I have heard that ", "People say that ", "It is well known that ", "By the way, ", "Also, ", "In fact, "),
    *("Somebody told me that ", "It turns out that ", "We all know that ", "You should know that ", "Note that ", "They say that "),
    *("I am sure that ", "Believe it or not, ", "Now, ", "Of course ", "As you may have heard, "),
)
_AFTER_SENTENCE = (
    *(", as they say.", ", I believe.", ", as you may know.", " (so they say).", ", of course.", ", and that is no secret.", "!"),
    *(", I am told.", ", as a friend told me.", ", which is a good thing.", ", and everybody knows it."),
)
_AROUND_QUESTION = (
    *("According to the text, {}", "And {}", "By the text, {}", "Another question: {}", "The next question: {}", "Please answer: {}"),
    *("{} Look at the text.", "{} It is in the text.", "{} Answer from the text.", "From what you have read: {}", "One more thing: {}"),
    *("I wonder: {}", "{} Do you know?", "{} The text says it.", "Look it up in the text: {}"),
)
_ASKING = ("Wh", "How ", "In ", "At ", "For ", "Of ", "With ", "Since ", "From ", "To ", "By ", "As ", "During ")
"""How questions begin behind which and before which more may stand."""
_AROUND_SHARE = 0.3


def _begun(before: str, text: str, kept: tuple[str, ...]) -> str:
    """The text behind an opening.

    It then begins with a small letter unless it begins with one of those that are kept.
    """
    small = before.endswith(" ") and not before.endswith(": ") and not text.startswith(kept)
    return before + (text[:1].lower() + text[1:] if small else text)


def told(rng: Draw, sentence: str, kept: tuple[str, ...]) -> str:
    """The same statement with more around it, so that what counts is found wherever it stands."""
    if rng.split == "train" and not sentence.startswith(("Do ", "If ")) and ":" not in sentence:
        if rng.random() < _AROUND_SHARE:
            sentence = _begun(rng.choice(BEFORE_SENTENCE), sentence, kept)
        if rng.random() < _AROUND_SHARE and sentence.endswith("."):
            sentence = sentence[:-1] + rng.choice(_AFTER_SENTENCE)
    return sentence


def _asked(rng: Draw, question: str) -> str:
    """The same question with more around it, if it is a plain one."""
    if rng.split != "train" or rng.random() >= _AROUND_SHARE or not question.startswith(_ASKING):
        return question
    before, after = rng.choice(_AROUND_QUESTION).split("{}")
    return _begun(before, question, ()) + after


def _paragraphs(rng: Draw, n_words: int) -> tuple[list[str], list[Statement]]:
    statements: list[Statement] = []
    sentences: list[str] = []
    filler_share = rng.choice((0.0, 0.2, 0.5))
    names: set[str] = set()
    while sum(len(sentence.split()) for sentence in sentences) < n_words:
        place = rng.random() < 0.25
        name = coined_word(rng).capitalize() if place else person(rng)
        if name in names:
            continue
        names.add(name)
        makers = OF_PLACES if place else OF_PERSONS
        for maker in rng.sample(makers, rng.randint(1, min(4, len(makers)))):
            statement = maker(rng, name)
            if statement.value in names:
                continue
            # Whoever is met is nobody else's friend, so that "Whom does Anna meet?" has one answer.
            names.add(statement.value)
            statements.append(statement)
            sentences.append(told(rng, statement.sentence, (name, statement.value, *DAYS, *MONTHS, "I ")))
            while rng.random() < filler_share:
                sentences.append(rng.choice(_FILLERS if rng.random() < 0.7 else _IDLE))
    return sentences, statements


def passage(rng: Draw) -> Exchange:
    """A passage of about twelve to 750 words and up to five questions about it, in training up to thirty."""
    # Short ones teach as well and cost less; what is measured has as many of each length.
    n_words = rng.choices(_LENGTHS, _LENGTH_WEIGHTS if rng.split == "train" else None)[0]
    sentences, statements = _paragraphs(rng, rng.randint(n_words // 2, n_words))
    text = ""
    for sentence in sentences:
        text += ("\n\n" if text and rng.random() < 0.06 else " " if text else "") + sentence
    most = max(5, n_words // _WORDS_PER_QUESTION) if rng.split == "train" else 5
    chosen = rng.sample(statements, min(len(statements), rng.randint(2, most)))
    first = chosen[0].question
    opening = rng.wording(
        *(f"Read this text.\n\n{text}\n\n{first}", f"{text}\n\n{first}", f"Here is a text:\n\n{text}\n\nQuestion: {first}"),
        *(f"Answer from the text.\n\n{text}\n\n{first}", f"{first}\n\n{text}", f"Use this passage to answer.\n\n{text}\n\n{first}"),
        *(f"Text: {text}\n\n{first}", f"{text}\n\nNow tell me: {first}", f"{text}\n\nI have a question about this text. {first}"),
        *(f"{first} You find the answer here:\n\n{text}", f"Please read this:\n\n{text}\n\nNow my question: {first}"),
        *(f"I have a text for you.\n\n{text}\n\n{first}", f"Look at the text and answer: {first}\n\n{text}"),
        *(f"Below is a text. {first}\n\n{text}", f'"{text}"\n\n{first}'),
        *(f"By this text: {first}\n\n{text}", f"Read carefully.\n\n{text}\n\n{first}"),
        *(f"Question: {first}\n\nText: {text}", f"Context: {text}\n\nQuestion: {first}"),
        *(f"Can you answer a question about this?\n\n{text}\n\n{first}", f"{text}\n\nAnswer from what you have just read: {first}"),
        f"Please read the passage and answer the question.\n\n{text}\n\n{first}",
        f"This is what I read today:\n\n{text}\n\nTell me: {first}",
        sealed=(f"Answer the question by the text below.\n\n{text}\n\nQuestion: {first}", f"Passage:\n{text}\n\n{first}"),
    )
    turns = [Message("user", opening), Message("assistant", chosen[0].answer)]
    for statement in chosen[1:]:
        turns += [Message("user", _asked(rng, statement.question)), Message("assistant", statement.answer)]
    return Exchange(tuple(turns), "", opens=True, expects=chosen[-1].value)
