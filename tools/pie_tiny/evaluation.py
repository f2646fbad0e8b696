"""Questions with what a right answer holds: made for validation, and once for the sealed set.

The sealed set is a file beside this module. Only the scorer reads it; nothing is chosen by it.
Its wordings, names, words, numbers and tools are on the sealed side of every split (`draw.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .conversation import LETTER_JOINT, Exchange, Skill
from .draw import Draw, Split, draw
from .skills import extract, facts, formats, letters, memory, new_tools, passage, smalltalk, stories, sums, thinking, tools, unknown

SEALED = Path(__file__).parent / "sealed.jsonl"
SEALED_DIGEST = "ca01a88b73e819aa7d15fbbac6c662af9dcca02f271e96800c897006fa5945a8"
"""SHA-256 of the file, so that a change of it cannot go unseen."""

SEALED_SEED = "sealed-1"
PER_SKILL = 60


@dataclass(frozen=True, slots=True)
class Item:
    """One question.

    `rule` says how `expected` is compared (`judge.py`); messages and tools are as chat templates take them.
    """

    skill: str
    rule: str
    expected: Any
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    thinking: bool = False
    """Whether the generation prompt opens the thinking block."""


def _item(skill: str, rule: str, expected: Any, exchange: Exchange, n_messages: int) -> Item:
    messages = [message.as_template_input() for message in exchange.messages[:n_messages]]
    if exchange.system is not None:
        messages.insert(0, {"role": "system", "content": exchange.system})
    return Item(skill, rule, expected, messages, [tool.schema() for tool in exchange.tools], exchange.forced_thinking)


def _last(name: str, rule: str, *skills: Skill) -> Callable[[Draw], Item]:
    """The last answer of an exchange, compared with what it expects or with itself."""

    def make(rng: Draw) -> Item:
        while True:
            exchange = rng.choice(skills)(rng)
            if exchange.expects or rule == "exact":
                break
        answer = exchange.messages[-1].content.replace(LETTER_JOINT, "")
        return _item(name, rule, answer if rule == "exact" else exchange.expects, exchange, len(exchange.messages) - 1)

    return make


def _small_talk(rng: Draw) -> Item:
    exchange = (smalltalk.greeting if rng.random() < 0.2 else smalltalk.small_talk)(rng)
    return _item("small talk", "one of", list(smalltalk.answers_like(exchange.messages[-1].content)), exchange, 1)


def _format(rng: Draw) -> Item:
    exchange = formats.formatted(rng)
    answer = exchange.messages[-1].content
    return _item("form of the answer", "json" if answer.startswith("{") else "exact", answer, exchange, len(exchange.messages) - 1)


def _call(name: str, skill: Skill) -> Callable[[Draw], Item]:
    def make(rng: Draw) -> Item:
        exchange = skill(rng)
        call = exchange.messages[1].calls[0]
        return _item(name, "call", {"name": call.name, "arguments": dict(call.arguments)}, exchange, 1)

    return make


def _tool_answer(rng: Draw) -> Item:
    exchange = rng.choice((tools.call_tool, new_tools.call_new_tool))(rng)
    return _item("answer from a tool's result", "exact", exchange.messages[3].content, exchange, 3)


def _story(rng: Draw) -> Item:
    while True:
        exchange = stories.story(rng)
        if exchange.expects:
            return _item("short story", "story", exchange.expects, exchange, 1)


_MAKERS: tuple[Callable[[Draw], Item], ...] = (
    _small_talk,
    _format,
    _last("facts", "says", facts.fact),
    _last("sums and differences", "says", sums.plain_sum, sums.plain_sum, sums.plain_sum, sums.word_problem),
    _last("counting", "says", sums.count),
    _last("spelling", "says", letters.spell, letters.spell, letters.count_letters),
    _last("reversing", "says", letters.reverse_word),
    _last("sorting", "exact", letters.sort_words, letters.sort_numbers),
    _last("first and last of lists", "exact", letters.list_ends),
    _last("fields as JSON", "json", extract.extract),
    _call("calling known tools", tools.call_tool),
    _call("calling unseen tools", new_tools.call_new_tool),
    _last("tools not needed", "says", tools.ignore_tools, new_tools.ignore_new_tools),
    _tool_answer,
    _last("passage", "says", passage.passage),
    _last("memory over turns", "says", memory.remember),
    _story,
    _last("thinking", "thinks", thinking.think),
    _last("saying that it does not know", "says", unknown.unknown),
)


def make_items(seed: str, split: Split, per_skill: int = PER_SKILL) -> Iterator[Item]:
    """Different questions of every skill, as many of each."""
    for number, maker in enumerate(_MAKERS):
        rng = draw(f"evaluation/{seed}/{number}", split)
        seen: set[str] = set()
        for _ in range(100 * per_skill):
            item = maker(rng)
            shown = json.dumps([item.messages, item.tools])
            if shown not in seen:
                seen.add(shown)
                yield item
            if len(seen) == per_skill:
                break


def write_sealed(path: Path = SEALED) -> str:
    """Writes the sealed set and returns its digest; done once, before anything is scored on it.

    `FileExistsError` where it is there.
    """
    lines = [json.dumps(asdict(item), ensure_ascii=False) for item in make_items(SEALED_SEED, "sealed")]
    with path.open("x", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sealed_items(path: Path = SEALED) -> list[Item]:
    """The sealed set; `ValueError` where the file is not the one that was sealed."""
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != SEALED_DIGEST:
        raise ValueError(f"{path.name} is not the sealed set: its digest is not {SEALED_DIGEST}")
    return [Item(**json.loads(line)) for line in content.decode().splitlines()]
