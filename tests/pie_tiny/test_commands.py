"""The command that makes the model: mistakes are told in a line, and `all` is resumable."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import torch

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
        (["--work", "absent", "decay"], "there is no checkpoint absent/trunk.pt to go on from: train first, or begin with the released"),
        (["transcripts", "--page", "absent/page.md"], "there is no folder absent to write page.md into"),
        (["score", "--mistakes"], "--mistakes prints validation questions, never those of the sealed set: add --validation N"),
    ],
)
def test_what_is_missing_is_named(tmp_path, monkeypatch, arguments: list[str], said: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["pie_tiny", *arguments])
    with pytest.raises(SystemExit, match=re.escape(said)):
        main()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["data", "--count", "-1"], "argument --count: -1 is less than 1"),
        (["score", "--validation", "-3"], "argument --validation: -3 is less than 1"),
        (["train", "--steps", "-5"], "argument --steps: -5 is less than 1"),
        (["all", "--threads", "0"], "argument --threads: 0 is less than 1"),
        (["train", "--minutes", "-1"], "argument --minutes: -1 is not above 0 and finite"),
        (["decay", "--rate", "nan"], "argument --rate: nan is not above 0 and finite"),
    ],
)
def test_a_number_out_of_range_is_refused(monkeypatch, capsys, arguments: list[str], said: str) -> None:
    monkeypatch.setattr(sys, "argv", ["pie_tiny", *arguments])
    with pytest.raises(SystemExit):
        main()
    assert said in capsys.readouterr().err


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path, monkeypatch) -> None:
    other = tmp_path / "other.pt"
    torch.save({"step": 1}, other)
    junk = tmp_path / "junk.pt"
    junk.write_text("just text", encoding="utf-8")
    for path in (other, junk):
        monkeypatch.setattr(sys, "argv", ["pie_tiny", "curve", "--checkpoint", str(path)])
        with pytest.raises(SystemExit, match=r"\.pt is not a checkpoint of this program: name another"):
            main()


def test_a_curve_needs_a_measured_loss(tmp_path, monkeypatch) -> None:
    Checkpoint(1, 0, 0.0, (0, 0), 1, {}, {}, []).save(tmp_path / "a.pt")
    monkeypatch.setattr(sys, "argv", ["pie_tiny", "curve", "--checkpoint", str(tmp_path / "a.pt"), "--picture", str(tmp_path / "a.svg")])
    with pytest.raises(SystemExit, match=r"a\.pt: the checkpoint holds no measured loss yet"):
        main()


class _Made:
    """Runs `all` of 800 steps in a folder, with a training that is ended at a step, and tells what it did."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.work = folder / "work"
        self.release = folder / "release"
        self.release.mkdir()
        self.patch = monkeypatch

    def run(self, ended_at: int, *options: str) -> list[object]:
        done: list[object] = []

        def train(plan: Plan) -> None:
            begun = Checkpoint.load(plan.source).step if plan.source.exists() else 0
            step = min(begun + plan.steps, ended_at)
            Checkpoint(step, 0, 0.0, (0, 0), plan.data.seed, {}, {}, []).save(plan.target)
            done.append((plan.decay, plan.source.name, plan.steps, plan.rate))
            if step == ended_at < 800:
                raise KeyboardInterrupt

        def make_tokenizer(_: object) -> None:
            (self.release / "tokenizer.json").touch()
            done.append("tokenizer")

        self.patch.setattr("tools.pie_tiny.__main__.train", train)
        self.patch.setattr("tools.pie_tiny.__main__._make_tokenizer", make_tokenizer)
        self.patch.setattr("tools.pie_tiny.__main__._export", lambda *_: done.append("export"))
        folders = ["--release", str(self.release), "--work", str(self.work)]
        self.patch.setattr(sys, "argv", ["pie_tiny", *folders, *options, "all", "--steps", "800"])
        with suppress(KeyboardInterrupt):
            main()
        return done


@pytest.fixture
def made(tmp_path, monkeypatch) -> _Made:
    return _Made(tmp_path, monkeypatch)


def test_all_goes_on_where_it_was_ended(made: _Made) -> None:
    assert made.run(60) == ["tokenizer", (False, "trunk.pt", 100, 1.0)]
    assert made.run(300) == [(False, "trunk.pt", 40, 1.0), (True, "trunk.pt", 700, 1.0)]
    assert made.run(800) == [(True, "decayed.pt", 500, 500 / 700), "export"]
    assert made.run(800) == ["export"]


@pytest.mark.parametrize(
    ("trunk", "decayed", "options"),
    [(101, None, ()), (60, 300, ()), (None, 300, ()), (100, 801, ()), (100, 300, ("--seed", "2"))],
    ids=["longer", "decayed too early", "no stable part", "finished beyond", "another seed"],
)
def test_all_does_not_go_on_with_another_run(made: _Made, trunk: int | None, decayed: int | None, options: tuple[str, ...]) -> None:
    for name, step in (("trunk.pt", trunk), ("decayed.pt", decayed)):
        if step is not None:
            Checkpoint(step, 0, 0.0, (0, 0), 1, {}, {}, []).save(made.work / name)
    with pytest.raises(SystemExit, match="holds the training of a run with other options"):
        made.run(800, *options)
    assert list(made.release.iterdir()) == []


def test_all_needs_the_tokenizer_that_it_was_begun_with(made: _Made) -> None:
    made.run(300)
    (made.release / "tokenizer.json").unlink()
    with pytest.raises(SystemExit, match=r"has no tokenizer\.json"):
        made.run(800)
