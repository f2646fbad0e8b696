"""The score card of a released model directory: greedy answers to a set of questions, judged by rule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.progress import track
from transformers import AutoModelForCausalLM, AutoTokenizer

from .evaluation import Item
from .judge import parsed_call, right

_BATCH = 60
MAX_TOKENS = 220
"""The longest answer."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An item with what the model said and whether it stopped by itself."""

    item: Item
    answer: str
    stopped: bool

    @property
    def right(self) -> bool:
        """Whether it is right and ended by itself."""
        return self.stopped and right(self.item.rule, self.answer, self.item.expected)


@dataclass(frozen=True, slots=True)
class ScoreCard:
    """Fractions from zero to one."""

    by_skill: dict[str, float]
    mean: float
    """The mean of the skills, each weighing the same."""
    well_formed_calls: float
    right_known_calls: float
    right_unseen_calls: float
    stops: float
    n_items: int

    def lines(self) -> list[str]:
        """The card as lines of a Markdown table and a summary."""
        rows = [f"| {skill} | {100 * share:.0f} % |" for skill, share in self.by_skill.items()]
        return [
            "| skill | right |",
            "|---|---|",
            *rows,
            f"| **mean of skills** | **{100 * self.mean:.1f} %** |",
            f"| tool calls well-formed | {100 * self.well_formed_calls:.1f} % |",
            f"| stops by itself | {100 * self.stops:.1f} % |",
        ]


class Answerer:
    """A model directory that answers many conversations at once, always the likeliest token."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, padding_side="left")
        self.model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        self.ends = self.model.generation_config.eos_token_id

    def prompt(self, item: Item) -> str:
        """The text that the model continues."""
        return str(
            self.tokenizer.apply_chat_template(
                item.messages, tools=item.tools or None, add_generation_prompt=True, enable_thinking=item.thinking, tokenize=False
            )
        )

    def continuations(self, items: Sequence[Item]) -> list[list[int]]:
        """The tokens that follow each prompt, with the one that ends the turn where it came."""
        inputs = self.tokenizer([self.prompt(item) for item in items], return_tensors="pt", padding=True, add_special_tokens=False)
        with torch.inference_mode():
            output = self.model.generate(
                input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], max_new_tokens=MAX_TOKENS,
                do_sample=False, temperature=None, top_p=None, top_k=None,
            )  # fmt: skip
        rows = output[:, inputs["input_ids"].shape[1] :].tolist()
        return [row[: next((i + 1 for i, token in enumerate(row) if token in self.ends), None)] for row in rows]

    def answer(self, items: Sequence[Item]) -> list[Answered]:
        """The answers in the order of the items."""
        answered = []
        for item, tokens in zip(items, self.continuations(items), strict=True):
            stopped = tokens[-1] in self.ends
            answered.append(Answered(item, str(self.tokenizer.decode(tokens[:-1] if stopped else tokens)), stopped))
        return answered


def answer_all(folder: Path, items: Sequence[Item]) -> list[Answered]:
    """Every item answered, those of a like length together; in the order of the items."""
    answerer = Answerer(folder)
    order = sorted(range(len(items)), key=lambda i: len(answerer.prompt(items[i])))
    groups = [order[i : i + _BATCH] for i in range(0, len(order), _BATCH)]
    found: dict[int, Answered] = {}
    for group in track(groups, description="answering"):
        found |= zip(group, answerer.answer([items[i] for i in group]), strict=True)
    return [found[i] for i in range(len(items))]


def score_card(answered: Iterable[Answered]) -> ScoreCard:
    """The shares of right answers."""
    by_skill: dict[str, list[Answered]] = defaultdict(list)
    for one in answered:
        by_skill[one.item.skill].append(one)
    shares = {skill: _share([one.right for one in group]) for skill, group in by_skill.items()}
    everything = [one for group in by_skill.values() for one in group]
    calls = [one for one in everything if one.item.rule == "call"]
    return ScoreCard(
        by_skill=shares,
        mean=sum(shares.values()) / len(shares),
        well_formed_calls=_share([parsed_call(one.answer) is not None for one in calls]),
        right_known_calls=shares["calling known tools"],
        right_unseen_calls=shares["calling unseen tools"],
        stops=_share([one.stopped for one in everything]),
        n_items=len(everything),
    )


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits)
