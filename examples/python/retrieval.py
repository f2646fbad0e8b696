"""Answers from notes that earlier launches have kept under /scratch: finds the note, and has the model read it.

pie run examples/python/retrieval.py -- --keep '{"owls": "An owl eats mice. It sleeps in the day."}'
pie run examples/python/retrieval.py -- --question "What does an owl eat?"
"""

import math
import re
from collections import Counter
from pathlib import Path

from inferlet import Context, Model, Sampler

NOTES = Path("/scratch/retrieval")
NAME = re.compile(r"[a-z0-9-]{1,64}")


async def main(input):
    NOTES.mkdir(exist_ok=True)
    for name, text in (input.get("keep") or {}).items():
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot be the name of a note; use 1 to 64 of a-z, 0-9 and -")
        (NOTES / f"{name}.txt").write_text(text)
    if "question" not in input:
        return sorted(path.stem for path in NOTES.glob("*.txt"))
    found = best(input["question"], {path.stem: path.read_text() for path in NOTES.glob("*.txt")})[: input.get("notes", 1)]
    if not found:
        return {"notes": [], "answer": None}
    passage = "\n\n".join(text for _, text in found)
    with Context(Model.load("default")) as ctx:
        ctx.user(f"Read this text.\n\n{passage}\n\n{input['question']}")
        answer = await ctx.generate(Sampler.argmax(), max_tokens=input.get("max_tokens", 48)).collect_text()
    return {"notes": [name for name, _ in found], "answer": answer}


def best(question, notes):
    """The notes that have words of the question, the best first: a word that few notes have counts most (BM25)."""
    counts = {name: Counter(words(text)) for name, text in notes.items()}
    usual = sum(each.total() for each in counts.values()) / max(1, len(counts))

    def score(name):
        of_note = counts[name]
        total = 0.0
        for word in set(words(question)):
            n_notes = sum(word in each for each in counts.values())
            weight = math.log(1 + (len(counts) - n_notes + 0.5) / (n_notes + 0.5))
            total += weight * of_note[word] * 2.2 / (of_note[word] + 1.2 * (0.25 + 0.75 * of_note.total() / usual))
        return total

    scores = {name: score(name) for name in notes if set(words(question)) & counts[name].keys()}
    return [(name, notes[name]) for name in sorted(scores, key=lambda name: (-scores[name], name))]


def words(text):
    return re.findall(r"\w+", text.lower())
