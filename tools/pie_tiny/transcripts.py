"""Twelve conversations with the released model, each from a program that `pie run` runs, as a page of the guide."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from .conversation import Tool
from .render import tools_text

_PROGRAM = """\
from inferlet import Context, Model, Sampler, runtime

async def main(input):
    ctx = Context(Model.load(runtime.models()[0]))
    if input["system"]:
        ctx.system(input["system"])
    answers = []
    for turn in input["turns"]:
        ctx.user(turn)
        answers.append(await ctx.generate(Sampler.argmax(), max_tokens=200).collect_text())
    return answers
"""

_WEATHER = Tool("get_weather", "Get the weather of a city.", {"city": "string"})
_PARCEL = Tool("locate_parcel", "Find out where a parcel is.", {"parcel_id": "integer"})
_PASSAGE = (
    "Ingrid lives in Uppsala. She works as a librarian. In March Ingrid travels to Toledo. Rain is water that falls from clouds. "
    "Norbert has been a roofer for years. The hobby of Norbert is bowling. Norbert is 51 years old. Every Friday Norbert meets Katya."
)


class _Talk(NamedTuple):
    title: str
    turns: tuple[str, ...]
    system: str = ""


_TALKS = (
    _Talk("Chat", ("Hello!", "Who are you?", "Thank you, goodbye!")),
    _Talk("Facts", ("What is the capital of Portugal?", "What does an owl eat?", "How many days are in April?")),
    _Talk("Form of the answer", ("What colour is snow? Answer in one word.", "What is the opposite of hot? Answer in capitals.")),
    _Talk("Sums", ("What is 345 + 278?", "What is 502 - 67?")),
    _Talk("Letters and lists", ("Spell garden.", "Reverse the word lemon.", "Sort these words: pear, apple, cherry.")),
    _Talk("Fields as JSON", ("Extract name, age and city as JSON: Hamish is 34 years old and lives in Dundee.",)),
    _Talk(
        "A tool",
        ("What is the weather in Nantes?", '<tool_response>\n{"temperature": 17, "sky": "cloudy"}\n</tool_response>'),
        tools_text((_WEATHER,)),
    ),
    _Talk("A tool that it never saw", ("Where is the parcel 4821?",), tools_text((_WEATHER, _PARCEL))),
    _Talk("Passage", (f"Read this text.\n\n{_PASSAGE}\n\nWhere does Ingrid travel?", "How old is Norbert?", "Whom does Norbert meet?")),
    _Talk("Memory", ("My name is Fergus.", "I have a dog called Pebbles.", "What is my dog called?", "What is my name?")),
    _Talk("Thinking", ("Think step by step. What is 468 + 357?",)),
    _Talk("A story, and what it does not know", ("Tell me a short story about a brave mouse.", "Who was king of Vornland in 1412?")),
)


def _answers(talk: _Talk, program: Path) -> list[str]:
    request: dict[str, Any] = {"system": talk.system, "turns": talk.turns}
    pie = "from pie.cli import main; main()"
    command = [sys.executable, "-c", pie, "run", str(program), "--input", json.dumps(request)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    answers: list[str] = json.loads(done.stdout)
    return answers


def _quoted(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def transcripts() -> str:
    """The page, in Markdown; the answers are the likeliest tokens, unedited."""
    with TemporaryDirectory() as folder:
        program = Path(folder) / "talk.py"
        program.write_text(_PROGRAM, encoding="utf-8")
        return _page({talk: _answers(talk, program) for talk in _TALKS})


def _page(answers: dict[_Talk, list[str]]) -> str:
    parts = [
        "# Twelve conversations with pie-tiny",
        "What the embedded model says, always its likeliest token, unedited: mistakes stand as they came.\n"
        "`python -m tools.pie_tiny transcripts` writes this page anew, with a program that `pie run` runs.\n"
        "How often it is right is in its model card: `pie model show pie-tiny`.",
    ]
    for talk, said in answers.items():
        parts.append(f"## {talk.title}")
        if talk.system:
            parts.append("System:\n\n" + _quoted(talk.system))
        for turn, answer in zip(talk.turns, said, strict=True):
            parts += [f"User:\n\n{_quoted(turn)}", f"pie-tiny:\n\n{_quoted(answer)}"]
    return "\n\n".join(parts) + "\n"
