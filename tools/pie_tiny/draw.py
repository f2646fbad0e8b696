"""Random choices that keep the splits apart.

A `Draw` knows for which split it draws. What must not be shared has three forms: wordings
(`wording`), entries of a lexicon (`entry` and `some` of a `Pool`), and contents such as the
operands of a sum, which are told apart by their hash (`split_of`).
"""

from __future__ import annotations

import re
import zlib
from collections import deque
from random import Random
from typing import Literal

from .capitals import capitalise
from .lexicon.parts import PARTS
from .lexicon.pools import HELD_OUT, Pool

Split = Literal["train", "validation", "sealed"]

SPLITS: tuple[Split, ...] = ("train", "validation", "sealed")
_INVENTED_SHARE = 0.5
_COMPOUND_SHARE = 0.5
"""Of the invented entries, those put together from parts of English words."""
_COMPOSED_SHARE = 0.5
"""Of the wordings in training, those put together from a command and the way it is given."""
_LOOSE_SHARE = 0.15
"""Of the other wordings in training that say what they are about, those without grammar."""
_MOST_BEFORE = 5
_MOST_BETWEEN = 2
_MOST_HELD_OUT = 128
_SHORT_WORDING = 3
"""Wordings of fewer words than this may stand in others."""
_HELD_OUT_OF = 25
"""Of this many contents one belongs to validation and one to the sealed set."""


_GIVEN = (
    *("{}.", "{}!", "Please {}.", "{}, please.", "Now {}.", "Next, {}.", "Can you {}?", "Could you {}?", "Would you {}?", "Will you {}?"),
    *("Could you please {}?", "Would you please {}?", "Are you able to {}?", "Is it possible for you to {}?", "May I ask you to {}?"),
    *("I want you to {}.", "I would like you to {}.", "I need you to {}.", "I ask you to {}.", "You should {}.", "You have to {}."),
    *("Your task is to {}.", "Your job: {}.", "Here is your task: {}.", "Try to {}.", "Do me a favour and {}."),
    *("Go on and {}.", "Would you be so kind as to {}?", "I am sure that you can {}.", "It would be nice if you could {}."),
    *("First of all, {}.", "What I need: {}."),
)
"""Ways to give a command."""
_GIVEN_AS_HELP = ("Help me to {}.", "Let me see whether you can {}.", "I do not know how to {}. Please do it for me.")
"""Ways to give a command that says nothing of `me` or `you`."""
_OVER = ("{} {}", '{} "{}"', "{}\n{}", "{1}\n{0}", "{}\n\n{}")
_OVER_INSIDE = ("{1}: {0}", "{1}. {0}", '"{1}": {0}')
"""Where what a command is about may stand, beside the command's end; inside, its own full stop is left out."""

_FILLERS = (
    *("a", "about", "again", "all", "also", "and", "any", "anyway", "as", "be", "because", "been", "but", "can", "could", "did", "do"),
    *("does", "else", "even", "exactly", "find", "get", "give", "go", "got", "had", "has", "have", "hello", "help", "here", "hm", "how"),
    *("I", "if", "is", "it", "just", "know", "let", "like", "look", "make", "may", "maybe", "me", "might", "must", "my", "need", "now"),
    *("of", "oh", "once", "one", "or", "our", "please", "possible", "quickly", "really", "right", "say", "see", "she", "should", "show"),
    *("so", "some", "somebody", "soon", "still", "such", "sure", "take", "tell", "thanks", "that", "the", "them", "then", "there", "they"),
    *("think", "this", "to", "today", "too", "try", "us", "use", "very", "want", "was", "we", "well", "were", "what", "when"),
    *("which", "who", "will", "with", "would", "yes", "you", "your"),
)
"""Words of questions and requests that do not say what these are about."""
_ENDS = (".", "?", "?", "!", "")


def split_of(content: str) -> Split:
    """The side on which this content falls."""
    place = zlib.crc32(content.lower().encode()) % (2 * _HELD_OUT_OF)
    return "validation" if place == 0 else "sealed" if place == 1 else "train"


def _bare(text: str) -> str:
    """The words of a text, without case, punctuation and `please`, between spaces."""
    found = re.findall(r"[a-z0-9{}+*/-]+", text.lower())
    return f" {' '.join(word for word in found if word != 'please')} "


class Draw(Random):
    """A seeded source of choices for one split."""

    split: Split = "train"

    def __init__(self, seed: str | None = None) -> None:
        """The choices of a seed, for training until `split` says otherwise."""
        super().__init__(seed)
        self.held_out: deque[str] = deque(maxlen=_MOST_HELD_OUT)
        """The words of the wordings that the latest draws kept for validation and the sealed set."""

    def wording(
        self,
        *options: str,
        sealed: tuple[str, ...] = (),
        commands: tuple[str, ...] = (),
        over: str = "",
        about: tuple[str, ...] = (),
        composed: str = "",
    ) -> str:
        """One way to ask.

        The last wording and `sealed` are for the sealed set alone, the one before the last for validation, all others
        for training.

        Training also gives `commands` in many ways, such as `spell {}` as `Could you spell pear?`;
        `over` stands in the place of `{}`, or before or behind a command that has none. Sometimes it says
        no more than what the request is `about`. Whoever puts wordings together in another way gives one
        as `composed`, which is taken if it may be said.
        """
        if self.split == "train":
            self.hold_out(*options[-2:], *sealed)
        if self.split == "sealed":
            return self.choice((options[-1], *sealed))
        if self.split == "validation":
            return options[-2]
        if commands and self.random() < _COMPOSED_SHARE:
            composed = self._given(self.choice(commands), over)
        elif about and self.random() < _LOOSE_SHARE:
            composed = self._loosely(about)
        if composed and self.may_say(composed):
            return composed
        # Some that are for training hold one that is not.
        taught = options[:-2]
        for option in self.sample(taught, len(taught)):
            if self.may_say(option):
                return option
        raise ValueError(f"every wording for training holds one that is held out, such as {taught[0]!r}")

    def _given(self, command: str, over: str) -> str:
        alone = re.search(r"\b(me|you|your)\b", command) is None
        said = self.choice((*_GIVEN, *_GIVEN_AS_HELP) if alone else _GIVEN).format(command)
        said = capitalise(said)
        if not over:
            return said
        if "{}" in said:
            return said.replace("{}", over)
        if self.random() < 0.5:
            return f"{said[:-1]}: {over}{'' if over.endswith('.') else said[-1]}"
        place = self.choice((*_OVER, *_OVER_INSIDE))
        return place.format(said, over.removesuffix(".") if place in _OVER_INSIDE else over)

    def _loosely(self, about: tuple[str, ...]) -> str:
        """The phrases in any order, among words that say little.

        Whoever must find what a request is about among any words at all finds it in wordings
        that were never learnt.
        """
        words = self.choices(_FILLERS, k=self.randint(0, _MOST_BEFORE))
        for phrase in self.sample(about, len(about)):
            words += [phrase, *self.choices(_FILLERS, k=self.randint(0, _MOST_BETWEEN))]
        said = " ".join(words)
        return (capitalise(said) if self.random() < 0.7 else said) + self.choice(_ENDS)

    def hold_out(self, *wordings: str) -> None:
        """Keeps these for the other splits."""
        self.held_out.extend(map(_bare, wordings))

    def may_say(self, text: str) -> bool:
        """Whether training may say this.

        It may where no wording that the latest draws held out stands in it, however it is written.
        """
        said = _bare(text)
        return not any(held == said or (held.count(" ") > _SHORT_WORDING and held in said) for held in self.held_out)

    def falls_here(self, content: str) -> bool:
        """Whether this split may use the content."""
        return split_of(content) == self.split

    def entries(self, pool: Pool) -> tuple[str, ...]:
        """What of a lexicon this split may use."""
        of_split: dict[Split, tuple[str, ...]] = {"train": pool.train, "validation": pool.validation, "sealed": pool.sealed}
        return of_split[self.split]

    def entry(self, pool: Pool) -> str:
        """One entry of a lexicon.

        In training it is often one that the lexicon does not hold, so that it is copied, not recalled.
        """
        if self.split == "train" and self.random() < _INVENTED_SHARE:
            return self._invented(pool)
        return self.choice(self.entries(pool))

    def some(self, pool: Pool, count: int) -> list[str]:
        """`count` different entries of a lexicon, or all where it has fewer."""
        wanted = min(count, len(self.entries(pool)))
        found: dict[str, None] = {}
        while len(found) < wanted:
            found[self.entry(pool)] = None
        return list(found)

    def _invented(self, pool: Pool) -> str:
        """The beginning of one entry with the end of another, or parts of English words in a row."""
        while True:
            first, second = self.choices(pool.train, k=2)
            if len(first) < 2 or len(second) < 2:
                continue
            if self.random() < _COMPOUND_SHARE:
                made = "".join(self.choices(PARTS, k=self.choice((2, 2, 3))))
                made = made.capitalize() if first[0].isupper() else made
            else:
                made = first[: self.randint(1, len(first) - 1)].rstrip() + second[self.randint(1, len(second) - 1) :]
            if len(made) > 2 and made.lower() not in HELD_OUT and self.falls_here(made):
                return made


def draw(seed: str, split: Split) -> Draw:
    """The choices of a seed for a split."""
    source = Draw(f"pie-tiny/{split}/{seed}")
    source.split = split
    return source
