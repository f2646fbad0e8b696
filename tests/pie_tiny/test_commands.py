"""The command that makes the model: mistakes are told in a line, and `all` is resumable."""

from __future__ import annotations

import re
import sys

import pytest

from tools.pie_tiny.__main__ import main
from tools.pie_tiny.checkpoint import Checkpoint
from tools.pie_tiny.train import Plan


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["curve", "--checkpoint", "absent.pt"], "there is no checkpoint absent.pt: train first"),
        (["--work", "absent", "curve"], "there is no checkpoint absent/trunk.pt: train first"),
        (
            ["--work", "absent", "acceptance"],
            "there is no checkpoint absent/draft-decayed.pt: train first (`train --draft`, then `decay --draft`)",
        ),
        (["export", "--checkpoint", "absent.pt"], "there is no checkpoint absent.pt: train first"),
        (["--release", "absent", "score"], "absent has no model.safetensors: name the folder of a released model with --release"),
        (["--release", "absent", "acceptance"], "absent has no model.safetensors: name the folder of a released model with --release"),
        (["--release", "absent", "train", "--warm"], "absent has no model.safetensors: name the folder of a released model with --release"),
        (["--release", "absent", "decay"], "absent has no tokenizer.json: name the folder of a released model with --release"),
        (["--release", "absent", "export"], "absent has no tokenizer.json: name the folder of a released model with --release"),
        (["--release", "absent", "train"], "absent has no tokenizer.json: name the folder of a released model with --release"),
    ],
)
def test_what_is_missing_is_named(tmp_path, monkeypatch, arguments: list[str], said: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["pie_tiny", *arguments])
    with pytest.raises(SystemExit, match=re.escape(said)):
        main()
    assert list(tmp_path.iterdir()) == []


def test_all_goes_on_where_it_was_ended(tmp_path, monkeypatch) -> None:
    def plans_of_a_run(ended_at: int) -> list[tuple[bool, str, int, float]]:
        plans: list[Plan] = []

        def run(plan: Plan) -> None:
            plans.append(plan)
            begun = Checkpoint.load(plan.source).step if plan.source.exists() else 0
            Checkpoint(min(begun + plan.steps, ended_at), 0, 0.0, (0, 0), 1, {}, {}, []).save(plan.target)

        monkeypatch.setattr("tools.pie_tiny.__main__.train", run)
        main()
        return [(plan.decay, plan.source.name, plan.steps, plan.rate) for plan in plans]

    for step in ("_make_tokenizer", "_export"):
        monkeypatch.setattr(f"tools.pie_tiny.__main__.{step}", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["pie_tiny", "--work", str(tmp_path), "all", "--steps", "800"])
    assert plans_of_a_run(ended_at=300) == [(False, "trunk.pt", 100, 1.0), (True, "trunk.pt", 700, 1.0)]
    assert plans_of_a_run(ended_at=800) == [(True, "decayed.pt", 500, 500 / 700)]
    assert plans_of_a_run(ended_at=800) == []
