"""The training loop: what it weighs, that it learns, and that it goes on where it stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tools.pie_tiny.batches import Source, load_tokenizer, shard, stream
from tools.pie_tiny.checkpoint import Checkpoint
from tools.pie_tiny.train import Plan, train

RELEASE = Path(__file__).parents[2] / "python" / "pie" / "pie_tiny"


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(RELEASE)


def test_targets_are_the_next_tokens_of_the_batch(tokenizer) -> None:
    for batch in shard(tokenizer, "train", Source(1, 2048, 64), 0):
        flat = batch.tokens.flatten()
        width = batch.tokens.shape[1]
        inside = (batch.positions + 1) % width != 0
        followed = flat[(batch.positions[inside] + 1)]
        real = followed != tokenizer.token_to_id("<|endoftext|>")
        assert torch.equal(followed[real], batch.targets[inside][real])
        assert batch.tokens.numel() <= 2048 or batch.tokens.shape[0] == 1


def test_every_end_of_turn_of_the_assistant_is_learnt(tokenizer) -> None:
    end = tokenizer.token_to_id("<|im_end|>")
    batches = shard(tokenizer, "train", Source(2, 2048, 64), 0)
    assert sum(int((batch.targets == end).sum()) for batch in batches) >= 64


def test_a_stream_goes_on_from_a_position(tokenizer) -> None:
    source = Source(3, batch_tokens=1024, shard_conversations=64)
    from_start = stream(tokenizer, source)
    position, _ = next(from_start)
    (after, expected), (after_again, resumed) = next(from_start), next(stream(tokenizer, source, position))
    assert after == after_again
    assert torch.equal(expected.tokens, resumed.tokens)
    assert torch.equal(expected.targets, resumed.targets)


def test_training_resumes_to_the_same_weights(tmp_path) -> None:
    def plan(steps: int, source: str, target: str) -> Plan:
        return Plan(
            steps=steps, decay=False, source=tmp_path / source, target=tmp_path / target, release=RELEASE,
            data=Source(1, batch_tokens=64, shard_conversations=3), n_layers=1,
            niceness=0, compiled=False, validation_conversations=1,
        )  # fmt: skip

    whole = train(plan(4, "absent", "whole"))
    train(plan(2, "absent", "half"))
    resumed = train(plan(2, "half", "rest"))
    assert (resumed.step, resumed.n_tokens, resumed.position) == (whole.step, whole.n_tokens, whole.position)
    assert all(torch.equal(tensor, resumed.average[name]) for name, tensor in whole.average.items())
    assert Checkpoint.load(tmp_path / "rest").step == 4
