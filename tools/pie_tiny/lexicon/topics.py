"""Short explanations and tips.

`topics.txt` beside this file holds a paragraph for each topic: its name, then sentences that
are each true on their own.
"""

from __future__ import annotations

from pathlib import Path


def _parse(paragraph: str) -> tuple[str, tuple[str, ...]]:
    topic, *sentences = paragraph.splitlines()
    return topic, tuple(sentences)


_TEXT = (Path(__file__).parent / "topics.txt").read_text(encoding="utf-8")

TOPICS: dict[str, tuple[str, ...]] = dict(_parse(paragraph) for paragraph in _TEXT.strip().split("\n\n"))
"""Topic to its sentences, the one that defines it first."""

TIPS: dict[str, tuple[str, ...]] = {
    "sleeping better": (
        "Go to bed at the same time every day.",
        "Keep your bedroom dark and cool.",
        "Put your phone away an hour before bed.",
        "Do not drink coffee in the evening.",
    ),
    "staying healthy": (
        "Eat fruit and vegetables every day.",
        "Take a walk each day.",
        "Drink plenty of water.",
        "Get enough sleep.",
    ),
    "learning a language": (
        "Practise a little every day.",
        "Talk with people who speak it.",
        "Write new words on small cards.",
        "Listen to songs in that language.",
    ),
    "saving money": (
        "Write down what you spend.",
        "Cook at home more often.",
        "Put a little aside each month.",
        "Wait a day before you buy something big.",
    ),
    "studying": (
        "Take short breaks.",
        "Put your phone in another room.",
        "Explain what you learnt to a friend.",
        "Begin with the hardest task.",
    ),
    "writing": (
        "Use short sentences.",
        "Read your text aloud.",
        "Write a little every day.",
        "Cut every word that is not needed.",
    ),
    "cooking": (
        "Taste the food while you cook.",
        "Read the whole recipe first.",
        "Keep your knives sharp.",
        "Use fresh herbs.",
    ),
    "programming": (
        "Give things clear names.",
        "Keep your functions short.",
        "Write a test for each bug.",
        "Read the error message twice.",
    ),
    "feeling less stressed": (
        "Take a few deep breaths.",
        "Go for a walk outside.",
        "Talk with a friend.",
        "Do one thing at a time.",
    ),
    "making friends": (
        "Smile and say hello.",
        "Ask people about themselves.",
        "Join a club that you like.",
        "Be a good listener.",
    ),
    "gardening": (
        "Water your plants in the morning.",
        "Give each plant enough space.",
        "Pull out weeds early.",
        "Feed the soil with compost.",
    ),
    "travelling": (
        "Pack only what you need.",
        "Keep a copy of your passport.",
        "Learn a few words of the language.",
        "Try the local food.",
    ),
}
