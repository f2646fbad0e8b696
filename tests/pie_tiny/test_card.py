"""The model card that goes with a release."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tools.pie_tiny.card import Origin, model_card
from tools.pie_tiny.checkpoint import Checkpoint
from tools.pie_tiny.score import ScoreCard

RELEASED = Path(__file__).parents[2] / "python" / "pie" / "pie_tiny" / "MODEL_CARD.md"


@pytest.fixture
def card() -> str:
    checkpoint = Checkpoint(1200, 5_600_000, 7200.0, (0, 0), 1, {"a": torch.zeros(2, 3)}, {}, [], [(400, 1.5, 1.25), (450, 1.4, 0.0)])
    scores = ScoreCard({"facts": 0.5}, 0.5, 1.0, 1.0, 1.0, 1.0, 60)
    origin = Origin("a machine", "It began with other weights.\nTheir data were others.", "make it")
    return model_card(checkpoint, scores, origin, digest="0" * 64, n_bytes=12)


def test_a_card_says_how_its_weights_were_made(card) -> None:
    made = card.partition("## How it was made")[2].partition("## Limits")[0].splitlines()
    assert "- Training: 1,200 steps, 5.6 million tokens, 2.0 hours on a machine." in made
    assert made[-4:] == [
        "- It began with other weights.",
        "- Their data were others.",
        "- Command, from the root of the repository: `make it`.",
        "",
    ]
    assert any("1.250 nats a token" in line for line in made)


@pytest.mark.parametrize("heading", ["## What it can do", "## Limits"])
def test_the_released_card_says_what_the_next_one_will(card, heading) -> None:
    section = card.partition(heading)[2].partition("\n## ")[0].strip()
    assert section in RELEASED.read_text(encoding="utf-8")
