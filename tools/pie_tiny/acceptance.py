"""How often a draft model guesses the next token of the released one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.progress import track
from transformers import Qwen3ForCausalLM

from .checkpoint import Checkpoint
from .evaluation import Item
from .model import DRAFT, configuration, fresh_model
from .score import Answerer
from .tokenizer import END_OF_TEXT, TURN_END

_BATCH = 60


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Shares from zero to one, over all tokens of the greedy answers."""

    n_tokens: int
    single: float
    """Of drafts of one token, those accepted."""
    of_four: float
    """Of the tokens of drafts of four, those accepted: all up to the first wrong one."""


def draft_model(checkpoint: Checkpoint, answerer: Answerer) -> Qwen3ForCausalLM:
    """The draft model of a checkpoint, with the moving average of its weights."""
    end_of_text, turn_end = answerer.tokenizer.convert_tokens_to_ids([END_OF_TEXT, TURN_END])
    model = fresh_model(configuration(end_of_text_id=end_of_text, turn_end_id=turn_end, shape=DRAFT), checkpoint.seed)
    wanted = {name: parameter.shape for name, parameter in model.named_parameters()}
    found = {name: tensor.shape for name, tensor in checkpoint.average.items()}
    if found != wanted:
        wrong = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
        raise ValueError(
            f"this is not a checkpoint of the draft model: {len(wrong)} tensors are missing, unknown or of another shape, "
            f"such as {wrong[0]}"
        )
    # The output layer is the embedding, tied, and has no tensor of its own.
    model.load_state_dict(checkpoint.average, strict=False)
    return model


def matches(draft: Qwen3ForCausalLM, prompt: Sequence[int], answer: Sequence[int]) -> list[bool]:
    """For each token of the answer, whether the draft model holds it for the likeliest after all before it."""
    tokens = torch.tensor([*prompt, *answer])
    with torch.inference_mode():
        logits = draft(input_ids=tokens[None, :-1], use_cache=False).logits[0, len(prompt) - 1 :]
    return [bool(right) for right in logits.argmax(-1) == tokens[len(prompt) :]]


def accepted(matched: Sequence[bool], length: int) -> tuple[int, int]:
    """How many tokens of an answer are drafted and how many of these accepted, with drafts of `length` tokens.

    After each draft the large model's own next token follows; a draft ends with the answer.
    """
    drafted = taken = at = 0
    while at < len(matched):
        draft = matched[at : at + length]
        right = draft.index(False) if False in draft else len(draft)
        drafted += len(draft)
        taken += right
        at += right + 1
    return drafted, taken


def _share(pairs: Iterable[tuple[int, int]]) -> float:
    counted = list(pairs)
    return sum(taken for _, taken in counted) / max(1, sum(drafted for drafted, _ in counted))


def acceptance(checkpoint: Checkpoint, release: Path, items: Sequence[Item]) -> Acceptance:
    """What the draft model of the checkpoint guesses of the released model's greedy answers to the items."""
    answerer = Answerer(release)
    draft = draft_model(checkpoint, answerer)
    asked = [(answerer.tokenizer(answerer.prompt(item), add_special_tokens=False).input_ids, item) for item in items]
    asked.sort(key=lambda pair: len(pair[0]))
    found: list[list[bool]] = []
    for start in track(range(0, len(asked), _BATCH), description="answering"):
        group = asked[start : start + _BATCH]
        answers = answerer.continuations([item for _, item in group])
        found += [matches(draft, prompt, answer) for (prompt, _), answer in zip(group, answers, strict=True)]
    return Acceptance(sum(map(len, found)), _share(accepted(m, 1) for m in found), _share(accepted(m, 4) for m in found))
