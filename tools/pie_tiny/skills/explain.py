"""Short explanations, tips, sentences and rhymes about a topic."""

from __future__ import annotations

from ..capitals import capitalise
from ..conversation import Exchange, a_or_an, ask, pick
from ..draw import Draw
from ..lexicon.animals import ANIMALS
from ..lexicon.people import PET_NAMES, PETS
from ..lexicon.things import WORDS
from ..lexicon.topics import TIPS, TOPICS


def explain(rng: Draw) -> Exchange:
    """A topic in one to three sentences."""
    topic = rng.choice(tuple(TOPICS))
    first, *rest = TOPICS[topic]
    brief = rng.random() < 0.3
    if brief:
        question = pick(
            rng,
            f"What is {topic}? Answer in one sentence.",
            f"Explain {topic} in one sentence.",
            f"Describe {topic} in one sentence.",
            f"Tell me one thing about {topic}.",
            f"Give me one fact about {topic}.",
            *(f"In one sentence, what is {topic}?", f"Can you explain {topic} in one sentence?", f"Say one sentence about {topic}."),
            *(f"What is {topic}, in a sentence?", f"I would like one sentence about {topic}.", f"Briefly, what is {topic}?"),
            *(f"Tell me in one sentence what {topic} is.", f"Just one fact about {topic}, please."),
        )
        return ask(question, first)
    question = pick(
        rng,
        *(f"What is {topic}?",) * 2,
        *(f"Tell me about {topic}.",) * 3,
        *(f"Explain {topic}.",) * 2,
        f"Explain what {topic} is.",
        f"What do you know about {topic}?",
        f"Can you explain {topic} to me?",
        f"Can you tell me about {topic}?",
        f"Describe {topic}.",
        f"Tell me something about {topic}.",
        f"Write a few sentences about {topic}.",
        f"Explain {topic} to a child.",
        f"Explain {topic} in simple words.",
        f"Write a short text about {topic}.",
        *(f"Could you explain {topic}?", f"Could you tell me what {topic} is?", f"Please explain {topic}."),
        *(f"I would like to know more about {topic}.", f"I want to learn about {topic}.", f"Do you know what {topic} is?"),
        *(f"What should I know about {topic}?", f"Give me an idea of {topic}.", f"Teach me something about {topic}."),
        *(f"What can you tell me about {topic}?", f"Help me to understand {topic}.", f"Say something about {topic}."),
        *(f"What do people mean by {topic}?", f"Give a short explanation of {topic}.", f"How would you describe {topic}?"),
    )
    return ask(question, " ".join([first, *rest]))


def describe_animal(rng: Draw) -> Exchange:
    """What is known of an animal, in a few sentences."""
    animal = rng.choice(ANIMALS)
    name = a_or_an(animal.name)
    parts = [f"{capitalise(name)} is {a_or_an(animal.kind)}."]
    parts.append(f"It lives {animal.home}.")
    parts.append(f"It eats {animal.food}.")
    if animal.young:
        parts.append(f"Its young is called {a_or_an(animal.young)}.")
    question = pick(
        rng,
        f"Tell me about the {animal.name}.",
        f"What is {name}?",
        f"Describe {name}.",
        f"Tell me about {name}.",
        f"What do you know about the {animal.name}?",
        f"Tell me something about {name}.",
        f"Tell me a fact about the {animal.name}.",
        *(f"Can you describe {name}?", f"Could you tell me about {name}?", f"I would like to know more about the {animal.name}."),
        *(f"What can you tell me about {name}?", f"Write a few sentences about {name}.", f"Please describe the {animal.name}."),
        *(f"What should I know about the {animal.name}?", f"Explain what {name} is.", f"Teach me something about the {animal.name}."),
        *(f"Give me a fact about the {animal.name}.", f"Say something about {name}.", f"What sort of creature is {name}?"),
    )
    if "a fact" in question:
        return ask(question, f"{capitalise(name)} eats {animal.food}.")
    return ask(question, " ".join(parts))


def give_tips(rng: Draw) -> Exchange:
    """One, two or three tips."""
    topic = rng.choice(tuple(TIPS))
    wanted = rng.randint(1, 3)
    chosen = rng.sample(TIPS[topic], wanted)
    if wanted == 1:
        question = pick(
            rng,
            f"Give me a tip for {topic}.",
            f"Give me one tip for {topic}.",
            f"Do you have a tip for {topic}?",
            f"What helps with {topic}?",
            *(f"Can you give me a tip for {topic}?", f"I need a tip for {topic}.", f"What would you advise for {topic}?"),
            *(f"One tip for {topic}, please.", f"Could you help me with {topic}? One tip is enough.", f"What is a good tip for {topic}?"),
        )
        return ask(question, chosen[0], key="")
    amount = ("two", "three")[wanted - 2]
    question = pick(
        rng,
        f"Give me {amount} tips for {topic}.",
        f"What are {amount} good tips for {topic}?",
        f"Name {amount} tips for {topic}.",
        *(f"Can you give me {amount} tips for {topic}?", f"I need {amount} tips for {topic}.", f"List {amount} tips for {topic}."),
        *(f"Do you have {amount} tips for {topic}?", f"{capitalise(amount)} tips for {topic}, please."),
        *(f"I would like {amount} tips for {topic}.", f"Could you write down {amount} tips for {topic}?"),
    )
    lines = [f"{i}. {tip}" for i, tip in enumerate(chosen, 1)]
    return ask(question, "\n".join(lines), key="")


def name_pet(rng: Draw) -> Exchange:
    """A name for a pet."""
    pet, name = rng.choice(PETS), rng.choice(PET_NAMES)
    question = pick(
        rng,
        f"Suggest a name for a {pet}.",
        f"Give me a name for my {pet}.",
        f"What shall I call my {pet}?",
        f"I have a new {pet}. What should its name be?",
        f"What is a good name for a {pet}?",
        *(f"Can you think of a name for my {pet}?", f"Could you suggest a name for my {pet}?", f"I need a name for my {pet}."),
        *(f"Find a name for our {pet}.", f"How should I name my {pet}?", f"My {pet} has no name yet. Any idea?"),
        *(f"Which name would suit a {pet}?", f"A name for a {pet}, please.", f"I am looking for a name for a {pet}."),
    )
    answer = pick(rng, f"How about {name}?", f"You could call it {name}.", f"{name} is a good name.")
    return ask(question, answer, key="")


_SENTENCES = (
    "The {w} is in the garden.",
    "I saw a {w} this morning.",
    "My sister told me about the {w}.",
    "There is a picture of a {w} on the wall.",
    "We talked about the {w} all day.",
    "Nobody knew where the {w} was.",
)


def write_sentence(rng: Draw) -> Exchange:
    """A sentence that holds a given word."""
    word = rng.choice(WORDS)
    question = pick(
        rng,
        f"Write a sentence with the word {word}.",
        f"Use the word {word} in a sentence.",
        f"Make a sentence with {word}.",
        f"Write one sentence about a {word}.",
        *(f"Can you write a sentence with the word {word}?", f"Could you use {word} in a sentence?", f"Give me a sentence with {word}."),
        *(f"Form a sentence in which the word {word} stands.", f"I need a sentence that has the word {word} in it."),
        *(f"How would you use {word} in a sentence?", f"Please make a sentence that contains {word}."),
        *(f"A sentence with the word {word}, please.", f"Take the word {word} and write a sentence."),
    )
    return ask(question, rng.choice(_SENTENCES).format(w=word))


_RHYMES = (
    ("The {t} is calm, the {t} is bright,", "it fills my day with quiet light."),
    ("I think of the {t} when the day is long,", "and in my heart I hear a song."),
    ("Oh {t}, oh {t}, so far, so near,", "I always smile when you are here."),
    ("The wind is soft, the sky is blue,", "dear {t}, I sing this song for you."),
    ("By day I walk, by night I dream", "of the {t} beside the stream."),
    ("Come sun, come rain, come ice, come snow,", "the {t} is the best I know."),
)
_POEM_TOPICS = (
    *("sea", "moon", "sun", "rain", "snow", "wind", "star", "river", "forest", "flower", "cat"),
    *("dog", "bird", "fox", "night", "morning", "garden", "mountain", "tree", "ocean", "spring"),
    *("summer", "autumn", "winter", "rose", "cloud", "train", "book", "computer", "sky"),
)


def poem(rng: Draw) -> Exchange:
    """Two rhyming couplets about a topic."""
    topic = rng.choice(_POEM_TOPICS)
    form = pick(rng, "poem", "short poem", "little poem", "rhyme", "song", "haiku", "poem")
    question = pick(
        rng,
        f"Write a {form} about the {topic}.",
        f"Write me a {form} about the {topic}.",
        f"Can you write a {form} about a {topic}?",
        f"A {form} about the {topic}, please.",
        f"Write a {form} about {topic}.",
        *(f"Could you write a {form} about the {topic}?", f"I would like a {form} about the {topic}."),
        f"Make up a {form} about the {topic}.",
        *(f"Give me a {form} about the {topic}.", f"Compose a {form} about the {topic}.", f"Do you know a {form} about the {topic}?"),
        *(f"Please write a {form} on the {topic}.", f"The {topic} deserves a {form}. Write one.", f"Invent a {form} about the {topic}."),
    )
    lines = [line.format(t=topic) for couplet in rng.sample(_RHYMES, 2) for line in couplet]
    return ask(question, "\n".join(capitalise(line) for line in lines))
