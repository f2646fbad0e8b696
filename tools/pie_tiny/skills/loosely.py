"""Requests without grammar: what they are about, in any order, among words that say little."""

from __future__ import annotations

from ..conversation import capitalise
from ..draw import Draw

_SHARE = 0.15
_MOST_BEFORE = 5
_MOST_BETWEEN = 2
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


def loosely(rng: Draw, *phrases: str) -> str:
    """In some draws for training these phrases in any order, with words between them that say little, else nothing.

    Whoever must find what a request is about among any words at all finds it in wordings that
    were never learnt.
    """
    if rng.split != "train" or rng.random() >= _SHARE:
        return ""
    words = rng.choices(_FILLERS, k=rng.randint(0, _MOST_BEFORE))
    for phrase in rng.sample(phrases, len(phrases)):
        words += [phrase, *rng.choices(_FILLERS, k=rng.randint(0, _MOST_BETWEEN))]
    said = " ".join(words)
    return (capitalise(said) if rng.random() < 0.7 else said) + rng.choice(_ENDS)
