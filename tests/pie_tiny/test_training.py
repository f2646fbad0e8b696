"""The training loop: what it weighs, that it learns, and that it goes on where it stopped."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from itertools import takewhile
from pathlib import Path

import pytest
import torch

from tools.pie_tiny import workers
from tools.pie_tiny.batches import Source, load_tokenizer, shard, stream
from tools.pie_tiny.checkpoint import Checkpoint
from tools.pie_tiny.draw import Split
from tools.pie_tiny.model import MAX_POSITIONS, TINY
from tools.pie_tiny.train import Plan, Trainer, train

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


def _answers(tokenizer) -> Iterator[tuple[str, list[int], list[int]]]:
    """Each turn of the assistant in a shard of training: the text before it, its tokens, and the tokens before it."""
    header = tokenizer.encode("<|im_start|>assistant\n", add_special_tokens=False).ids
    ends = {tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")}
    for batch in shard(tokenizer, "train", Source(7, 4096, 150), 0):
        for tokens in batch.tokens.tolist():
            for at in range(len(tokens) - len(header)):
                if tokens[at : at + len(header)] == header:
                    start = at + len(header)
                    # The last token of a document is a target alone, and padding may stand in its place.
                    answer = list(takewhile(lambda token: token not in ends, tokens[start:]))
                    yield tokenizer.decode(tokens[:start], skip_special_tokens=False), answer, tokens[:at]


def test_what_must_be_produced_has_the_tokenizers_own_tokens(tokenizer) -> None:
    n_answers = 0
    for before, answer, _ in _answers(tokenizer):
        said = tokenizer.decode(answer, skip_special_tokens=False)
        # Letters that are learnt one by one (words backwards) stand apart on purpose.
        if not before.startswith("<|im_start|>user\nRepeat:") and "backwards" not in said:
            assert answer == tokenizer.encode(said, add_special_tokens=False).ids
            n_answers += 1
    assert n_answers > 150


def test_what_is_said_back_has_the_tokens_that_were_read(tokenizer) -> None:
    asked = tokenizer.encode("<|im_start|>user\nRepeat:", add_special_tokens=False).ids
    drills = [(answer, read) for before, answer, read in _answers(tokenizer) if before.startswith("<|im_start|>user\nRepeat:")]
    assert drills
    assert all(read[: len(asked)] == asked and read[len(asked) : len(asked) + len(answer)] == answer for answer, read in drills)


def test_what_is_read_is_cut_in_training_alone(tokenizer) -> None:
    end = tokenizer.token_to_id("<|im_end|>")

    def share_cut(split: Split) -> float:
        rows = [tokens for batch in shard(tokenizer, split, Source(8, 4096, 150), 0) for tokens in batch.tokens.tolist()]
        firsts = [tokens[: tokens.index(end)] for tokens in rows if end in tokens]
        usual = [tokenizer.encode(tokenizer.decode(ids, skip_special_tokens=False), add_special_tokens=False).ids for ids in firsts]
        return sum(ids != other for ids, other in zip(firsts, usual, strict=True)) / len(firsts)

    assert share_cut("validation") == 0
    assert 0.1 < share_cut("train") < 0.5


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


def _plan(folder: Path, steps: int, source: str, target: str, n_threads: int = 1) -> Plan:
    return Plan(
        steps=steps, decay=False, source=folder / source, target=folder / target, release=RELEASE,
        data=Source(1, batch_tokens=512, shard_conversations=24), shape=TINY._replace(layers=1), n_threads=n_threads,
        niceness=0, compiled=False, validation_conversations=1,
    )  # fmt: skip


def test_training_resumes_to_the_same_weights(tmp_path) -> None:
    train(_plan(tmp_path, 4, "absent", "whole"))
    train(_plan(tmp_path, 2, "absent", "half"))
    train(_plan(tmp_path, 2, "half", "rest"))
    whole, resumed = (Checkpoint.load(tmp_path / name) for name in ("whole", "rest"))
    assert (resumed.step, resumed.n_tokens, resumed.position) == (whole.step, whole.n_tokens, whole.position)
    assert all(torch.equal(tensor, resumed.average[name]) for name, tensor in whole.average.items())
    assert resumed.step == 4


def test_rows_of_a_batch_are_the_whole_batch(tokenizer) -> None:
    for batch in shard(tokenizer, "train", Source(4, 1024, 64), 0):
        parts = [batch.rows(first, 3) for first in range(3)]
        assert sorted(target for part in parts for target in part.targets.tolist()) == sorted(batch.targets.tolist())
        for first, part in enumerate(parts):
            inputs = part.tokens.flatten()[part.positions]
            chosen = batch.positions // batch.tokens.shape[1] % 3 == first
            assert torch.equal(inputs, batch.tokens.flatten()[batch.positions[chosen]])
            assert torch.equal(part.targets, batch.targets[chosen])


def test_two_workers_train_as_one_does(tmp_path) -> None:
    train(_plan(tmp_path, 3, "absent", "one"))
    train(_plan(tmp_path, 3, "absent", "two", n_threads=2))
    one, two = (Checkpoint.load(tmp_path / name) for name in ("one", "two"))
    assert (two.step, two.n_tokens, two.position) == (one.step, one.n_tokens, one.position)
    for name, tensor in one.weights.items():
        torch.testing.assert_close(two.weights[name], tensor, rtol=1e-3, atol=2e-4)


def test_workers_allocate_by_jemalloc_unless_the_environment_says_otherwise(monkeypatch) -> None:
    seen: list[str | None] = []
    monkeypatch.setattr(workers, "find_library", lambda _: "libjemalloc.so.2")
    monkeypatch.setattr(workers, "spawn", lambda *_, **__: seen.append(os.environ.get("LD_PRELOAD")))
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("LD_PRELOAD", "MALLOC_CONF"):
        monkeypatch.delenv(name, raising=False)
    workers.run(print, 2)
    assert "LD_PRELOAD" not in os.environ
    monkeypatch.setenv("MALLOC_CONF", "narenas:1")
    workers.run(print, 2)
    monkeypatch.delenv("MALLOC_CONF")
    monkeypatch.setattr(workers, "find_library", lambda _: None)
    workers.run(print, 2)
    assert seen == ["libjemalloc.so.2", None, None]


def test_plain_attention_has_the_gradients_of_the_other(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    trainer = Trainer(_plan(tmp_path, 1, "absent", "unused"))
    trainer.halved = True
    # A fresh model's attention adds nothing yet.
    torch.nn.init.normal_(trainer.model.model.layers[0].self_attn.o_proj.weight, std=0.1)
    _, batch = next(stream(trainer.tokenizer, trainer.plan.data))
    found = []
    for longest in (0, MAX_POSITIONS):
        monkeypatch.setattr("tools.pie_tiny.train._LONGEST_PLAIN", longest)
        trainer.model.zero_grad()
        loss = trainer.loss(batch)
        torch.autograd.backward(loss)
        found.append((float(loss.detach()), [p.grad.clone() for p in trainer.model.parameters()]))
    (sdpa_loss, sdpa), (plain_loss, plain) = found
    assert plain_loss == pytest.approx(sdpa_loss, rel=1e-3)
    for one, other in zip(plain, sdpa, strict=True):
        assert float((one - other).norm()) <= 0.05 * float(other.norm())


def _save_gradients(plan: Plan) -> None:
    trainer = Trainer(plan)
    trainer.halved = False
    _, batch = next(stream(trainer.tokenizer, plan.data))
    loss = trainer.gradients(batch)
    if workers.rank() == 0:
        torch.save((loss, {name: p.grad for name, p in trainer.model.named_parameters()}), plan.target)


def test_two_workers_have_the_loss_and_the_gradients_of_one(tmp_path, monkeypatch) -> None:
    # Workers are for processors; an accelerator has one process.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for count, name in enumerate(("one", "two"), 1):
        workers.run(partial(_save_gradients, _plan(tmp_path, 1, "absent", name)), count)
    (one_loss, one), (two_loss, two) = (torch.load(tmp_path / name, weights_only=True) for name in ("one", "two"))
    assert two_loss == pytest.approx(one_loss, rel=1e-5)
    for name, gradient in one.items():
        torch.testing.assert_close(two[name], gradient, rtol=1e-3, atol=1e-6)
