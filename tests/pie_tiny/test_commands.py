"""The command that makes the model: mistakes are told in a line."""

from __future__ import annotations

import re
import sys

import pytest

from tools.pie_tiny.__main__ import main


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
