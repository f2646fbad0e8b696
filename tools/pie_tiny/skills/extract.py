"""Named fields of a sentence as JSON, and answers from a sentence in plain words."""

from __future__ import annotations

from ..conversation import Exchange, Message, ask, compact_json, join_and, pick
from ..draw import Draw
from .records import Record, any_record, record_with_answers

_QUESTIONS: dict[str, tuple[str, ...]] = {
    "name": (
        *("Who is it about?", "Who is named here?", "Which person is named?", "What is the name of the person?", "Who is this about?"),
        *("Tell me who it is about.", "About whom is it?", "Can you tell me the name of the person?", "Whose name is in the text?"),
        *("Name the person.", "I would like to know who it is about.", "Of whom do I speak?"),
        "Which name do you read here?",
        "Who is meant?",
    ),
    "age": (
        *("How old is the person?", "What is the age of the person?", "Which age is named?", "How many years old is the person?"),
        *("Tell me how old the person is.", "What age do you read here?", "Can you tell me the age?", "At what age is the person?"),
        *("I would like to know how old the person is.", "Which age does the person have?"),
        "Say the age of this person.",
        "What is the person's age?",
    ),
    "city": (
        *("Which city is named?", "What city is it?", "Which city do you read here?", "What is the name of the city?", "Name the city."),
        *("Can you tell me which city it is?", "In which city is that?", "Tell me the city.", "Which city do I speak of?"),
        *("I would like to know which city is named.", "What town is it about?"),
        "What place is mentioned?",
        "Of which city is it said?",
    ),
    "day": (
        *("Which day is it?", "On which day is it?", "What day is named?", "When is it: on which day?", "Tell me the day."),
        *("Can you tell me on which day it is?", "Which day of the week is it?", "Name the day.", "What day do you read here?"),
        *("I would like to know which day it is.", "The day, please?"),
        "Which weekday is mentioned?",
        "On what day does it happen?",
    ),
    "hour": (
        *("At what time is it?", "What time is it at?", "At which hour is it?", "When does it begin, by the clock?"),
        "Tell me the time of it.",
        *("Can you tell me at what time it is?", "Which hour is named?", "What is the hour?", "Name the hour."),
        *("I would like to know at what time it is.", "At how many o'clock is it?"),
        "Which time is mentioned?",
        "At what hour does it happen?",
    ),
    "count": (
        *("How many are there?", "How many are named?", "What number of them is it?", "How many of them are there?", "Count them."),
        *("Tell me how many there are.", "Can you tell me how many there are?", "Which number of things is named?", "How many is that?"),
        *("I would like to know how many there are.", "How many pieces are there?"),
        "What is their number?",
        "How many things does it speak of?",
    ),
    "price": (
        *("What is the price?", "How much is it?", "Which price is named?", "How many euros is it?", "Tell me the price."),
        *("Can you tell me the price?", "How much money is it?", "What does it cost?", "Name the price."),
        *("I would like to know the price.", "For how much money?", "How much is that in euros?"),
        "Which sum is mentioned?",
        "How many euros does it come to?",
    ),
}


def _some_fields(rng: Draw, record: Record, fewest: int = 2) -> list[str]:
    names = list(record.fields)
    wanted = rng.sample(names, rng.randint(min(fewest, len(names)), len(names)))
    if rng.random() < 0.6:
        wanted.sort(key=names.index)
    return wanted


def _fields_of(record: Record, wanted: list[str]) -> Message:
    return Message("assistant", compact_json({field: record.fields[field] for field in wanted}))


def _said(rng: Draw, fields: list[str]) -> str:
    return join_and(fields) if rng.random() < 0.75 else ", ".join(fields)


def extract(rng: Draw) -> Exchange:
    """Some fields of a sentence as a JSON object, in the order asked."""
    record = any_record(rng)
    wanted = _some_fields(rng, record)
    sentence = record.sentence
    asked = _said(rng, wanted)
    question = rng.wording(
        *(f"Extract {asked} as JSON: {sentence}", f"Give me {asked} as JSON. {sentence}"),
        *(f"{sentence} Extract the fields {asked} as JSON.", f"{sentence} Return {asked} as JSON."),
        *(f'Read the sentence and answer in JSON with {asked}: "{sentence}"', f"Extract {asked} from this sentence as JSON: {sentence}"),
        *(f"Make a JSON object with {asked} from this text: {sentence}", f'"{sentence}" Give {asked} in JSON.'),
        *(f"Find {asked} in this sentence and write JSON: {sentence}", f"{sentence} Give me a JSON object with the fields {asked}."),
        *(f"{sentence} I need {asked} as JSON.", f"Can you extract {asked} as JSON? {sentence}"),
        *(f"Could you read {asked} from this text into JSON: {sentence}", f"I would like {asked} in JSON format. {sentence}"),
        *(f"What are {asked} here? Answer in JSON. {sentence}", f"Text: {sentence} Write {asked} as JSON."),
        *(f"JSON with {asked}: {sentence}", f"Please give {asked} as a JSON object. {sentence}"),
        *(f"Parse this into JSON with the keys {asked}: {sentence}", f'Here is a sentence: "{sentence}" Put {asked} into JSON.'),
        *(f"Turn this sentence into JSON with {asked}: {sentence}", f"{sentence} Now show {asked} in the form of JSON."),
        *(f"Pull {asked} out of the text and output JSON. {sentence}", f"Read: {sentence} Then fill the JSON fields {asked}."),
        *(f'"{sentence}" Which {asked} does it name? Use JSON.', f"Output {asked} as JSON, nothing else: {sentence}"),
        *(f"Collect {asked} in JSON. {sentence}", f"{sentence} From that, make JSON with {asked}."),
        f"Put {asked} of this sentence into a JSON object: {sentence}",
        f"{sentence} Please write {asked} down as a JSON object.",
        sealed=(f"Return a JSON object with {asked}: {sentence}", f"From this sentence, extract {asked} in JSON: {sentence}"),
        commands=(
            *(f"extract {asked} as JSON", f"give me {asked} as JSON", f"write {asked} as JSON", f"find {asked} and return JSON"),
            *(
                f"make a JSON object with {asked}",
                f"put {asked} into JSON",
                f"turn this into JSON with {asked}",
                f"answer in JSON with {asked}",
            ),
            *(f"read {asked} out of this text into JSON", f"fill a JSON object with {asked}", f"return the fields {asked} in JSON"),
            *(f"collect {asked} in a JSON object", f"pick out {asked} and show JSON", f"tell me {asked} in the form of JSON"),
            f"make JSON of this sentence, with {asked}",
        ),
        over=sentence,
    )
    turns = [Message("user", question), _fields_of(record, wanted)]
    for _ in range(rng.randrange(4) if rng.split == "train" else 0):
        # More is learnt of a sentence that is read once; what is measured asks once.
        if rng.random() < 0.5:
            record = any_record(rng)
            question = pick(
                rng, f"And of this one? {record.sentence}", f"Another one: {record.sentence}", f"The next sentence: {record.sentence}"
            )
            wanted = [field for field in wanted if field in record.fields] or _some_fields(rng, record)
            question += pick(rng, " I need {}.", " Fields: {}.", " Give me {}.").format(_said(rng, wanted))
        else:
            wanted = _some_fields(rng, record, fewest=1)
            question = pick(rng, "Now only {}.", "And now {} in JSON.", "The same with {}.", "Now {} as JSON, please.", "Just {}, please.")
            question = question.format(_said(rng, wanted))
        turns += [Message("user", question), _fields_of(record, wanted)]
    return Exchange(tuple(turns), "", expects=turns[-1].content, verbatim=True)


def read_back(rng: Draw) -> Exchange:
    """One field of a sentence asked in plain words."""
    record = record_with_answers(rng)
    field = rng.choice(tuple(record.answers))
    return ask(f"{record.sentence} {rng.wording(*_QUESTIONS[field])}", record.answers[field])
