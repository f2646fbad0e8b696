"""Short stories from a small grammar: somebody, a place, a wish, a trouble, an end."""

from __future__ import annotations

from typing import NamedTuple

from ..capitals import capitalise
from ..conversation import Exchange, a_or_an, ask, pick
from ..draw import Draw
from ..lexicon.pools import PERSONS
from ..words import person

_ANIMALS = (
    *("fox", "rabbit", "bear", "cat", "dog", "mouse", "owl", "hedgehog", "squirrel", "frog"),
    *("wolf", "duck", "turtle", "pig", "horse", "bird", "lion", "elephant", "penguin", "bee"),
    *("deer", "otter", "whale", "monkey", "goat"),
)
_OTHERS = (
    *("dragon", "robot", "princess", "king", "wizard", "knight", "pirate", "ghost", "giant"),
    *("baker", "farmer", "sailor", "teacher", "girl", "boy", "astronaut", "cloud", "snowman"),
    *("computer", "witch", "queen", "fisherman", "painter"),
)
_TRAITS = (
    *("little", "young", "clever", "brave", "curious", "shy", "friendly", "kind", "lonely"),
    *("old", "happy", "quiet", "small", "hungry"),
)
_PLACES = (
    *("in a green forest", "by a wide river", "on a small island", "at the edge of a village"),
    *("high in the mountains", "near a quiet lake", "in a big city", "in an old castle"),
    *("in a house by the sea", "under a tall oak tree", "on a farm", "in a sunny valley"),
)


class _Cast(NamedTuple):
    hero: str
    """The noun of the hero, with its trait where one was drawn."""
    noun: str
    name: str
    helper: str
    place: str


def _wish(rng: Draw, cast: _Cast) -> list[str]:
    wish, found = rng.choice(
        (
            ("to see the sea", "saw the blue sea for the first time"),
            ("to learn to sing", "sang a song that everybody loved"),
            ("to touch a star", "saw a star fall softly into the grass"),
            ("to find a friend", "had found a true friend"),
            ("to bake the best cake of all", "baked a cake that smelled of honey"),
            ("to fly above the clouds", "flew above the clouds in a big balloon"),
            ("to see snow", "felt the first snow on the nose"),
            ("to dance at the summer feast", "danced until the moon came out"),
        )
    )
    return [
        f"More than anything, {cast.name} wanted {wish}.",
        pick(
            rng,
            f"One morning {cast.name} packed some bread and set out.",
            f"One day {cast.name} decided to try it.",
            f"So {cast.name} said goodbye and left home.",
        ),
        pick(
            rng,
            f"The way was long, but {a_or_an(cast.helper)} came along and helped.",
            f"On the way {cast.name} met {a_or_an(cast.helper)}, and they went on together.",
            f"Soon it began to rain, and a kind {cast.helper} offered a dry place.",
        ),
        f"In the end {cast.name} {found}.",
    ]


def _lost(rng: Draw, cast: _Cast) -> list[str]:
    thing = pick(rng, "red hat", "golden key", "little bell", "warm scarf", "silver ring", "map")
    spot = pick(rng, "under a stone", "in an old tree", "behind the mill", "at the lake")
    return [
        pick(
            rng,
            f"One day {cast.name} lost a {thing}.",
            f"One morning the {thing} of {cast.name} was gone.",
        ),
        pick(
            rng,
            f"{cast.name} looked everywhere, but could not find it.",
            f"{cast.name} searched the whole day and grew very sad.",
        ),
        pick(
            rng,
            f'Then {a_or_an(cast.helper)} came by and asked, "Can I help you?"',
            f'"Do not cry," said {a_or_an(cast.helper)}. "We will look together."',
        ),
        f"Together they found the {thing} {spot}.",
        pick(
            rng,
            f"{cast.name} was so glad that they shared a big cake.",
            f"{cast.name} thanked the {cast.helper} with a big hug.",
        ),
    ]


def _danger(rng: Draw, cast: _Cast) -> list[str]:
    danger, rescue = rng.choice(
        (
            ("a great storm came", "found a dry cave where all could hide"),
            ("the river rose higher and higher", "built a bridge of branches"),
            ("a fire broke out", "carried water until the fire was out"),
            ("the winter was very cold", "shared the warm house with everybody"),
            ("all the lights went out", "lit a lamp and showed the way"),
            ("a child was lost in the fog", "rang a bell until the child came home"),
        )
    )
    return [
        f"One night {danger}.",
        pick(
            rng,
            "Everybody was afraid.",
            "Nobody knew what to do.",
            f"The {cast.helper} shook with fear.",
        ),
        pick(
            rng,
            f"But {cast.name} stayed calm and had an idea.",
            f'"Follow me," said {cast.name}.',
            f"Only {cast.name} was not afraid.",
        ),
        f"{cast.name} {rescue}.",
        pick(
            rng,
            f"From that day on, everybody called {cast.name} a hero.",
            f"The next morning all of them thanked {cast.name}.",
        ),
    ]


def _friend(rng: Draw, cast: _Cast) -> list[str]:
    game = pick(rng, "hide and seek", "in the snow", "with a red ball", "music", "by the water")
    return [
        pick(
            rng,
            f"{cast.name} had nobody to play with.",
            f"Every day {cast.name} sat alone and watched the clouds.",
        ),
        pick(
            rng,
            f"One day {a_or_an(cast.helper)} moved in next door.",
            f"One afternoon {a_or_an(cast.helper)} knocked at the door.",
        ),
        pick(
            rng,
            f"At first {cast.name} was too shy to speak.",
            "At first the two did not know what to say.",
        ),
        pick(
            rng,
            f'Then the {cast.helper} smiled and asked, "Shall we play?"',
            f'Then {cast.name} said, "Would you like some apple pie?"',
        ),
        f"They played {game} until the sun went down.",
    ]


_PLOTS = (_wish, _lost, _danger, _friend)
_ENDINGS = (
    "From then on they were best friends.",
    "And they all lived happily.",
    "That night {name} slept very well.",
    "And {name} never forgot that day.",
    "{name} went home with a happy heart.",
    "And that is the end of the story.",
)


def story(rng: Draw) -> Exchange:
    """A story of five to seven sentences about who or what was asked for."""
    noun = rng.choice(_ANIMALS if rng.random() < 0.6 else _OTHERS)
    trait, place = rng.choice(_TRAITS), rng.choice(_PLACES)
    helper = rng.choice([animal for animal in _ANIMALS if animal != noun])
    asked = noun
    kind = rng.random()
    name = person(rng) if 0.75 < kind <= 0.85 else rng.entry(PERSONS)
    if kind < 0.25:
        asked = f"{trait} {noun}"
    length = pick(rng, "short story", "short story", "story", "little story", "tale")
    question = rng.wording(
        *(f"Tell me a {length} about {a_or_an(asked)}.", f"Tell me a {length} about {a_or_an(asked)}."),
        *(f"Write a {length} about {a_or_an(asked)}.", f"Write me a {length} about {a_or_an(asked)}."),
        *(f"Can you tell me a {length} about {a_or_an(asked)}?", f"I want to hear a {length} about {a_or_an(asked)}."),
        *(f"Please tell me a {length} about {a_or_an(asked)}.", f"Give me a {length} about {a_or_an(asked)}."),
        *(f"Make up a {length} about {a_or_an(asked)}.", f"A {length} about {a_or_an(asked)}, please."),
        *(f"Could you tell me a {length} about {a_or_an(asked)}?", f"Can you write a {length} about {a_or_an(asked)}?"),
        *(f"I would like to hear a {length} about {a_or_an(asked)}.", f"I want you to write a {length} about {a_or_an(asked)}."),
        *(f"Do you know a {length} about {a_or_an(asked)}?", f"Let me hear a {length} about {a_or_an(asked)}."),
        *(f"Write a {length} in which {a_or_an(asked)} appears.", f"Please write a {length} with {a_or_an(asked)} in it."),
        *(f"My child wants a {length} about {a_or_an(asked)}.", f"Think of a {length} about {a_or_an(asked)}."),
        *(f"Invent a {length} with {a_or_an(asked)}.", f"I need a {length} about {a_or_an(asked)}."),
        *(f"Tell a {length} that has {a_or_an(asked)} in it.", f"{capitalise(length)} about {a_or_an(asked)}, please."),
        f"I would love a {length} about {a_or_an(asked)}.",
        f"Could you invent a {length} about {a_or_an(asked)}?",
    )
    if kind > 0.85:
        question = rng.wording(
            *(f"Tell me a {length}.", f"Write a {length}.", f"Do you know a {length}?"),
            *(f"A {length}, please.", f"Can you tell me a {length}?", f"Could you write a {length} for me?"),
            *(f"I want to hear a {length}.", f"Please tell me a {length}.", f"Give me a {length}."),
            *(f"I need a {length}.", f"Tell me any {length} that you like.", f"Invent a {length}."),
            *(f"Let me hear a {length}.", f"Read me a {length}.", f"Have you got a {length} for me?"),
            f"Make up a {length}.",
            f"I would like to hear a {length}.",
        )
    elif kind > 0.75:
        question = rng.wording(
            *(f"Tell me a {length} about {a_or_an(asked)} called {name}.", f"Write a {length} about {name} the {noun}."),
            *(f"Tell me a {length} about {name} the {noun}.", f"Can you tell me a {length} about {name} the {noun}?"),
            *(f"Could you write a {length} about {name}, {a_or_an(asked)}?", f"Please tell me a {length} about the {noun} {name}."),
            *(f"A {length} about {name} the {noun}, please.", f"I would like a {length} about {name} the {noun}."),
            f"Make up a {length} about {a_or_an(asked)} called {name}.",
            f"Write me a {length} in which {a_or_an(asked)} is called {name}.",
            *(f"Give me a {length} about {a_or_an(asked)} named {name}.", f"{name} is {a_or_an(asked)}. Tell me a {length} about {name}."),
            *(f"Let me hear a {length} about {name} the {noun}.", f"Tell a {length} with {name}, {a_or_an(asked)}, in it."),
            f"Do you know a {length} about {name} the {noun}?",
            f"I want a {length} about {a_or_an(asked)} with the name {name}.",
            f"Could you invent a {length} about {a_or_an(asked)} whose name is {name}?",
        )
    cast = _Cast(f"{trait} {noun}", noun, name, helper, place)
    opening = pick(
        rng,
        f"Once upon a time there was {a_or_an(cast.hero)} called {name}, who lived {place}.",
        f"Once there was {a_or_an(cast.hero)} called {name}, who lived {place}.",
        f"{name} was {a_or_an(cast.hero)} who lived {place}.",
        f"Long ago, {place}, there lived {a_or_an(cast.hero)} called {name}.",
    )
    plot = rng.choice(_PLOTS)(rng, cast)
    ending = rng.choice(_ENDINGS).format(name=name)
    return ask(question, " ".join([opening, *plot, ending]), expects=name if 0.75 < kind <= 0.85 else "" if kind > 0.85 else noun)


def one_sentence_story(rng: Draw) -> Exchange:
    """A story in a single sentence."""
    noun, place = rng.choice(_ANIMALS + _OTHERS), rng.choice(_PLACES)
    about = a_or_an(noun)
    question = pick(
        rng,
        *(f"Tell me a story about {about} in one sentence.",) * 3,
        *(f"Can you tell a story about {about} in one sentence?", f"Write a story of one sentence about {about}."),
        *(f"I would like a one-sentence story about {about}.", f"In one sentence, tell me a story about {about}."),
        *(f"Give me a very short story about {about}, just one sentence.", f"A story about {about} in a single sentence, please."),
        *(f"Could you write one sentence that is a story about {about}?", f"Tell me a story with {about}. Use one sentence."),
    )
    end = pick(
        rng,
        "found a golden key and made a new friend",
        "dreamed of the sea and one day saw it",
        "lost a hat and found a friend",
        "sang so well that even the moon listened",
    )
    return ask(question, f"Once {a_or_an(noun)} who lived {place} {end}.")
