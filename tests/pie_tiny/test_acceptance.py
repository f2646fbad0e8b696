"""The share of a draft model's guesses that are accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tools.pie_tiny.acceptance import acceptance, accepted, draft_model, matches
from tools.pie_tiny.checkpoint import Checkpoint
from tools.pie_tiny.evaluation import make_items
from tools.pie_tiny.model import DRAFT, configuration, fresh_model
from tools.pie_tiny.score import Answerer

RELEASE = Path(__file__).parents[2] / "python" / "pie" / "pie_tiny"


@pytest.mark.parametrize(
    ("matched", "length", "expected"),
    [
        ("11111", 4, (4, 4)),  # the fifth token is the large model's own
        ("11111", 1, (3, 3)),
        ("0000", 1, (4, 0)),
        ("0000", 4, (10, 0)),
        ("110111", 4, (7, 5)),
        ("", 4, (0, 0)),
    ],
)
def test_a_draft_counts_up_to_its_first_wrong_token(matched, length, expected) -> None:
    assert accepted([mark == "1" for mark in matched], length) == expected


def test_the_draft_model_is_small_and_random_weights_guess_nothing() -> None:
    model = fresh_model(configuration(end_of_text_id=4085, turn_end_id=4087, shape=DRAFT), seed=1)
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    assert sum(parameter.numel() for parameter in weights.values()) * torch.bfloat16.itemsize <= 1_000_000
    checkpoint = Checkpoint(0, 0, 0.0, (0, 0), 1, weights, weights, [])
    found = acceptance(checkpoint, RELEASE, list(make_items("draft", "validation", 1))[:4])
    assert found.n_tokens > 4
    assert found.single < 0.1
    assert found.of_four <= found.single


def test_a_model_guesses_all_that_it_says_itself() -> None:
    answerer = Answerer(RELEASE)
    items = list(make_items("itself", "validation", 1))[:5]
    for item, answer in zip(items, answerer.continuations(items), strict=True):
        prompt = answerer.tokenizer(answerer.prompt(item), add_special_tokens=False).input_ids
        assert all(matches(answerer.model, prompt, answer))


def test_a_checkpoint_of_another_shape_is_refused() -> None:
    answerer = Answerer(RELEASE)
    weights = {name: parameter.detach() for name, parameter in answerer.model.named_parameters()}
    checkpoint = Checkpoint(0, 0, 0.0, (0, 0), 1, weights, weights, [])
    with pytest.raises(ValueError, match=r"not a checkpoint of the draft model.*such as model\.embed_tokens\.weight"):
        draft_model(checkpoint, answerer)
