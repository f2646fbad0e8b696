"""Instructions on the form of the answer: one word, JSON, capitals, lower case."""

from __future__ import annotations

from ..conversation import Exchange, Message, compact_json, pick
from ..draw import Draw
from .facts import Fact, random_fact

_INSTRUCTIONS: dict[str, tuple[str, ...]] = {
    "word": (
        *("Answer in one word.", "Use one word only.", "Reply with a single word.", "Just one word, please."),
        *("Give only the answer.", "Answer with one word.", "Be as brief as possible.", "Short answer only."),
        *("One word is enough.", "Only one word.", "In one word, please.", "In a single word."),
        *("Do not answer with more than one word.", "Your answer should be one word long.", "I want just one word."),
        *("Can you answer in one word?", "Could you say that in one word?", "Nothing but the answer, please."),
        *("Limit your reply to one word.", "Just the answer.", "The answer alone is enough.", "Please keep it to a single word."),
        *("I would like a one-word answer.", "Leave out everything but the answer.", "One word is all I need.", "As short as you can."),
        *("No explanation, just a word.", "Reply using one word and nothing else.", "A sentence is not needed."),
        "The shortest answer, please.",
        "Say no more than one word.",
        "No sentence, only the answer.",
        "Say it in a single word.",
    ),
    "json": (
        *('Answer in JSON with the key "answer".', 'Reply as JSON: {"answer": ...}'),
        *('Answer with a JSON object that has the field "answer".', "Answer in JSON.", "Reply in JSON.", "Give the answer as JSON."),
        *("Use JSON for your answer.", "Format: JSON.", "JSON only.", "In JSON, please."),
        *('I want a JSON object with the key "answer".', "Can you answer in JSON?", "Could you give me that as JSON?"),
        *("The reply should be a JSON object.", "Output JSON.", "Return JSON.", 'Return a JSON object with the key "answer".'),
        *("Please put your answer into JSON.", "Respond with JSON only.", "Only JSON, no other text.", "Format your reply as JSON."),
        *("The output has to be valid JSON.", "I would like to get JSON back.", "Say it as a JSON object.", "Use the JSON format."),
        *('As JSON, please, under the key "answer".', 'Let the answer be the field "answer" of a JSON object.'),
        *("My program reads JSON, so reply in that form.", "Wrap what you say in JSON."),
        "Your answer must be JSON.",
        "I need the answer in JSON.",
    ),
    "capitals": (
        *("Answer in capitals.", "Answer in capital letters.", "Use only capital letters.", "Reply in upper case."),
        *("Write the answer in capitals.", "Answer in upper case.", "In capitals, please.", "All caps."),
        *("Use all capitals.", "I want it in capital letters.", "Can you answer in capitals?", "Could you write that in upper case?"),
        *("Capital letters only.", "Please reply in capitals.", "Your reply should be all upper case.", "Respond in all caps."),
        *("Only upper case letters, please.", "Make every letter a capital.", "I would like the answer in big letters."),
        *("Write in upper case.", "Put your answer in capital letters.", "No small letters.", "Say it in capitals."),
        *("Type the reply with all letters upper case.", "Upper case, please.", "The whole answer in capitals."),
        "Do not use small letters.",
        "Please use capitals only.",
        "Write everything in capital letters.",
    ),
    "lower": (
        *("Answer in lower case.", "Use only small letters.", "Reply without capital letters.", "Write the answer in lower case."),
        *("In lower case, please.", "All lower case.", "No capital letters.", "Do not use capitals."),
        *("I want it in small letters.", "Can you answer in lower case?", "Could you write that in lower case?", "Small letters only."),
        *("Your reply should be all lower case.", "Respond without any capitals.", "Please leave out capital letters."),
        *("Make every letter a small one.", "I would like an answer in lower case letters.", "Say it in small letters."),
        *("Type the reply with all letters lower case.", "Reply in lower case.", "No upper case."),
        "Use lower case only.",
        "Write everything in small letters.",
    ),
    "sentence": (
        *("Answer in a full sentence.", "Answer in one sentence.", "Reply with a whole sentence.", "Use one short sentence."),
        *("Be concise.", "Give a full sentence.", "In a full sentence, please.", "Just one sentence, please."),
        *("One sentence, please.", "I want a whole sentence.", "Can you answer in a full sentence?", "Could you say that in one sentence?"),
        *("Your reply should be a full sentence.", "Form a whole sentence.", "Please keep to one sentence."),
        *("I would like a complete sentence as the answer.", "Reply with one sentence.", "Say it in a whole sentence."),
        *("Respond in complete sentences.", "Not just a word, but a full sentence.", "Make it a complete sentence."),
        *("Do not answer with a single word.", "Tell me in one short sentence.", "Give your answer as one sentence."),
        "A sentence will do.",
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
