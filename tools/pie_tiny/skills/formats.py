"""Instructions on the form of the answer: one word, JSON, capitals, lower case; and text put into capitals."""

from __future__ import annotations

from ..capitals import capitalise
from ..conversation import Exchange, Message, ask, compact_json, pick
from ..draw import Draw
from ..lexicon.topics import TOPICS
from ..words import letter_word, person
from .facts import Fact, random_fact

_SENTENCES = tuple(TOPICS.values())

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
        *("No sentence.", "I need no sentence, one word will do.", "No whole sentence, just the word.", "Leave the sentence out."),
        *("Not a sentence, only a word.", "No sentence is needed.", "Skip the sentence and give the word.", "Without a sentence, please."),
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
        *("No single word: a sentence, please.", "A word is not enough, write a sentence.", "Not one word, but a sentence."),
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

_ASKED = (
    *("Answer {}.", "Reply {}.", "Respond {}.", "Say it {}.", "Write {}.", "Give the answer {}.", "Write your answer {}."),
    *("Please answer {}.", "Please reply {}.", "Please respond {}.", "Please say it {}.", "Please write {}.", "Answer {}, please."),
    *("Can you answer {}?", "Could you reply {}?", "Would you respond {}?", "Can you say that {}?", "Could you write the answer {}?"),
    *("I want the answer {}.", "I would like an answer {}.", "I need a reply {}.", "You should answer {}.", "You must reply {}."),
    *("Nothing else: answer {}.", "My wish is an answer {}.", "{}, please.", "{}.", "This time {}.", "It has to be {}.", "Let it be {}."),
    *("Always answer {}.", "Only answer {}.", "Make sure to answer {}.", "Remember to reply {}.", "Tell me {}.", "Let me have it {}."),
)
"""Ways to ask for the form of an answer, which `_HOW` names."""
_HOW = {
    "word": (
        *("in one word", "with one word", "with a single word", "in a single word", "with just one word", "using one word"),
        *("with only the answer", "with nothing but the answer", "without a sentence", "in no more than a word", "with the bare answer"),
        *("as briefly as possible", "with the shortest answer"),
    ),
    "json": (
        *("in JSON", "as JSON", "with JSON", "with a JSON object", "as a JSON object", "in the JSON format", "in JSON format"),
        *(
            'as JSON with the key "answer"',
            'with the field "answer" in JSON',
            "in valid JSON",
            "with nothing but JSON",
            "as an object in JSON",
        ),
    ),
    "capitals": (
        *("in capitals", "in capital letters", "in upper case", "in all caps", "with capital letters only", "in upper case letters"),
        *("with every letter a capital", "without small letters", "without any lower case", "in big letters", "using only capitals"),
        *("using upper case only", "with all letters upper case", "in nothing but capitals"),
    ),
    "lower": (
        *("in lower case", "in small letters", "without capitals", "with small letters only", "without any upper case"),
        *("in lower case letters", "using no capitals", "with every letter a small one", "in nothing but small letters"),
    ),
    "sentence": (
        *("in a sentence", "in a full sentence", "with a whole sentence", "in one short sentence", "with a complete sentence"),
        *("in complete sentences", "with one full sentence", "as a sentence"),
    ),
}


_CONTRARY = {"word": ("sentence",), "json": ("sentence",), "capitals": ("lower",), "lower": ("capitals",), "sentence": ("word", "json")}
"""The forms that an answer in this one cannot have as well."""


_CASED = {
    "capitals": ("capitals", "capital letters", "upper case letters", "big letters"),
    "lower": ("small letters", "lower case letters"),
}
"""What the letters of a form are called, in the plural."""
_CASES = {"capitals": ("upper case", "all caps"), "lower": ("lower case",)}
"""What their case is called."""
_WITH = (
    *("Please use {}.", "Please keep to {}.", "Please write in {}.", "Please answer in {} and nothing else."),
    *("Use {}.", "Use {}, please.", "Use nothing but {}.", "Use {} throughout.", "Use {} for all of it.", "Use {} everywhere.", "Only {}."),
    *("Keep to {}.", "Stick to {}.", "Write with {}.", "Just {}, please.", "All of it in {}.", "I like {}.", "{} for the answer, please."),
    *("{} only.", "{} only, please.", "Write {} only.", "Your answer should be {} only."),
    *("I want {} only.", "I can only read {}.", "Nothing but {} will do.", "The answer should have {} only.", "Please take {}."),
)
_WITHOUT = (
    *("Use no {}.", "Never use {}.", "Avoid {}.", "Avoid {}, please.", "Leave {} out.", "Please use no {}.", "I do not want {}."),
    *("Do without {}.", "There should be no {} in the answer.", "{} are not allowed.", "I cannot read {}.", "Write it free of {}."),
)
"""Ways to ask for letters, and to rule them out."""


def _about_letters(rng: Draw, form: str) -> str:
    """An instruction on case that names the letters that are wanted, or those that are not."""
    if rng.random() < 0.6:
        said = rng.choice(_WITH).format(rng.choice((*_CASED[form], *_CASES[form])))
    else:
        said = rng.choice(_WITHOUT).format(rng.choice(_CASED[_CONTRARY[form][0]]))
    return capitalise(said)


def _composed(rng: Draw, form: str) -> str:
    """An instruction of a verb and a manner, at times with a manner that is ruled out."""
    how = rng.choice(_HOW[form])
    if rng.random() < 0.3:
        contrary = rng.choice([how for how in _HOW[rng.choice(_CONTRARY[form])] if not how.startswith(("without", "using no"))])
        how = pick(rng, "{}, not {}", "{} and not {}", "{} rather than {}", "{} instead of {}").format(how, contrary)
    return capitalise(rng.choice(_ASKED).format(how))


def _instruction(rng: Draw, form: str) -> str:
    """One way to ask for the form; half of the time in training a verb and a manner put together."""
    composed = ""
    if rng.split == "train" and rng.random() < 0.5:
        composed = _about_letters(rng, form) if form in _CASED and rng.random() < 0.5 else _composed(rng, form)
    return rng.wording(*_INSTRUCTIONS[form], sealed=_SEALED.get(form, ()), composed=composed)


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
    form = rng.choices(tuple(_INSTRUCTIONS), (5, 4, 4, 3, 2) if rng.split == "train" else (5, 4, 3, 1, 2))[0]
    instruction = _instruction(rng, form)
    fact = random_fact(rng)
    if form == "word" and " " in fact.short:
        form, instruction = "sentence", _instruction(rng, "sentence")
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
        for _ in range(rng.randint(1, 4) if rng.split == "train" else rng.randint(0, 3)):
            other = random_fact(rng)
            turns += [
                Message("user", other.question),
                Message("assistant", _apply(form, other)),
            ]
        return Exchange(tuple(turns), "", system=system)
    question = pick(rng, f"{fact.question} {instruction}", f"{instruction} {fact.question}")
    return Exchange((Message("user", question), answer), "")


ANEW = {
    "word": (
        "Now in one word.",
        "The same in one word.",
        "Just the answer, please.",
        "Shorter, please: one word.",
        "And as a single word?",
    ),
    "json": (
        "Now in JSON.",
        "The same as JSON.",
        "Put that into JSON.",
        "As JSON, please.",
        "And as a JSON object?",
        "Give me JSON instead.",
    ),
    "capitals": ("Now in capitals.", "The same in upper case.", "Say that in capital letters.", "In capitals instead.", "And in all caps?"),
    "lower": (
        "Now in lower case.",
        "The same in small letters.",
        "Say that without capitals.",
        "In lower case instead.",
        "And in small letters?",
    ),
    "sentence": (
        "Now as a sentence.",
        "The same in a full sentence.",
        "Say that in a whole sentence.",
        "And in a sentence?",
        "A sentence instead.",
    ),
}
"""What asks for another form of the answer before."""


_AFTER_IT = {
    "word": ("json", "capitals", "lower", "sentence"),
    "json": ("word", "sentence"),
    "capitals": ("json", "lower"),
    "lower": ("json", "capitals"),
    "sentence": ("word", "json", "capitals", "lower"),
}
"""The forms in which an answer of this form can be asked for anew, where it is clear what the case would be."""


def _anew(before: str, form: str, fact: Fact) -> str:
    if before == "word" and form in ("capitals", "lower"):
        return fact.short.upper() if form == "capitals" else fact.short.lower()
    return _apply(form, fact)


def in_other_forms(rng: Draw) -> Exchange:
    """Several questions, each with a form of its own, or answers given anew in other forms."""
    turns: list[Message] = []
    form, fact = "", random_fact(rng)
    for _ in range(rng.randint(2, 5)):
        anew = [other for other in _AFTER_IT.get(form, ()) if other != "word" or " " not in fact.short]
        if anew and rng.random() < 0.5:
            before, form = form, rng.choice(anew)
            turns += [Message("user", rng.choice(ANEW[form])), Message("assistant", _anew(before, form, fact))]
            if before == "word" and form in ("capitals", "lower"):
                form = ""  # a word with a case of its own
        else:
            fact = random_fact(rng)
            form = rng.choice([form for form in _INSTRUCTIONS if form != "word" or " " not in fact.short])
            instruction = _instruction(rng, form)
            question = pick(rng, f"{fact.question} {instruction}", f"{instruction} {fact.question}")
            turns += [Message("user", question), Message("assistant", _apply(form, fact))]
    return Exchange(tuple(turns), "")


def recase(rng: Draw) -> Exchange:
    """Any words in capitals, in lower case or with capital initials."""
    words = [letter_word(rng) if rng.random() < 0.7 else person(rng) for _ in range(rng.randint(1, 6))]
    way = rng.choice(("capitals", "capitals", "lower", "title"))
    text = " ".join(words)
    if way != "title" and rng.random() < 0.5:
        text = random_fact(rng).sentence if rng.random() < 0.5 else rng.choice(rng.choice(_SENTENCES))
    if way == "capitals":
        question = rng.wording(
            *(f"Write this in capitals: {text}", f"{text} - in capitals, please.", f'Put "{text}" in capital letters.'),
            *(f"Make this upper case: {text}", f"Turn this into upper case: {text}", f"Can you write this in capital letters? {text}"),
            *(f"Capitals: {text}", f"Could you write '{text}' with capital letters only?", f"I want this text in all caps: {text}"),
            f"Show me this with all letters upper case: {text}",
            f"Convert to capital letters: {text}",
        )
        return ask(question, text.upper(), expects=text.upper(), verbatim=True)
    if way == "lower":
        question = rng.wording(
            *(f"Write this in lower case: {text.upper()}", f"{text.upper()} - in small letters, please."),
            *(f'Put "{text.upper()}" in lower case.', f"Make this lower case: {text}", f"Turn this into small letters: {text.upper()}"),
            *(f"Can you write this without capitals? {text}", f"I want this text in small letters: {text.upper()}"),
            f"Show me this with all letters lower case: {text.upper()}",
            f"Convert to small letters: {text.upper()}",
        )
        return ask(question, text.lower(), expects=text.lower(), verbatim=True)
    title = " ".join(word.capitalize() for word in words)
    given = title.lower()
    question = rng.wording(
        *(f"Begin each word with a capital: {given}", f"Write {given} with a capital at the start of each word."),
        *(f"Capitalize every word: {given}", f"Make a title of this: {given}", f"Can you capitalize each word of '{given}'?"),
        f"Give every word a capital initial: {given}",
        f"Put a capital letter at the start of each word: {given}",
    )
    return ask(question, title, expects=title, verbatim=True)
