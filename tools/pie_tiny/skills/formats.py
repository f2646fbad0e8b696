"""Instructions on the form of the answer: one word, JSON, capitals, lower case."""

from __future__ import annotations

from ..conversation import Exchange, Message, compact_json, pick
from ..draw import Draw
from .facts import Fact, random_fact

_INSTRUCTIONS: dict[str, tuple[str, ...]] = {
    "word": (
        "Answer in one word.",
        "Use one word only.",
        "Reply with a single word.",
        "Just one word, please.",
        "Give only the answer.",
        "Answer with one word.",
        "Be as brief as possible.",
        "Short answer only.",
        "One word is enough.",
        "No sentence, only the answer.",
        "Say it in a single word.",
    ),
    "json": (
        'Answer in JSON with the key "answer".',
        'Reply as JSON: {"answer": ...}',
        'Answer with a JSON object that has the field "answer".',
        "Answer in JSON.",
        "Reply in JSON.",
        "Give the answer as JSON.",
        "Use JSON for your answer.",
        "Your answer must be JSON.",
        "I need the answer in JSON.",
    ),
    "capitals": (
        "Answer in capitals.",
        "Answer in capital letters.",
        "Use only capital letters.",
        "Reply in upper case.",
        "Write the answer in capitals.",
        "Answer in upper case.",
        "Please use capitals only.",
        "Write everything in capital letters.",
    ),
    "lower": (
        "Answer in lower case.",
        "Use only small letters.",
        "Reply without capital letters.",
        "Write the answer in lower case.",
        "Use lower case only.",
        "Write everything in small letters.",
    ),
    "sentence": (
        "Answer in a full sentence.",
        "Answer in one sentence.",
        "Reply with a whole sentence.",
        "Use one short sentence.",
        "Be concise.",
        "Give a full sentence.",
        "Write one sentence.",
        "Please answer with a complete sentence.",
    ),
}

_SEALED = {
    "word": ("Please answer with one word only.", "Give me just the word."),
    "json": ("Please reply with JSON.", "Write the answer as a JSON object."),
    "capitals": ("Answer using capital letters only.", "The answer must be in upper case."),
    "sentence": ("Use a complete sentence.",),
}


def _apply(form: str, fact: Fact) -> str:
    if form == "word":
        return fact.short
    if form == "json":
        value: str | int = int(fact.short) if fact.short.isdigit() else fact.short
        return compact_json({"answer": value})
    if form == "capitals":
        return fact.sentence.upper()
    if form == "lower":
        return fact.sentence.lower()
    return fact.sentence


def formatted(rng: Draw) -> Exchange:
    """A fact with an instruction on form, in the question or in the system turn."""
    form = rng.choices(tuple(_INSTRUCTIONS), (5, 4, 3, 1, 2))[0]
    instruction = rng.wording(*_INSTRUCTIONS[form], sealed=_SEALED.get(form, ()))
    fact = random_fact(rng)
    if form == "word" and " " in fact.short:
        form, instruction = "sentence", rng.wording(*_INSTRUCTIONS["sentence"], sealed=_SEALED["sentence"])
    answer = Message("assistant", _apply(form, fact))
    if rng.random() < 0.35:
        system = pick(
            rng,
            instruction,
            instruction,
            f"You are a helpful assistant. {instruction}",
            f"You answer questions. {instruction}",
        )
        turns = [Message("user", fact.question), answer]
        for _ in range(rng.randint(0, 2)):
            other = random_fact(rng)
            turns += [
                Message("user", other.question),
                Message("assistant", _apply(form, other)),
            ]
        return Exchange(tuple(turns), "", system=system)
    question = pick(rng, f"{fact.question} {instruction}", f"{instruction} {fact.question}")
    return Exchange((Message("user", question), answer), "")
