"""A model folder without a chat template is served with the plain one, and a line says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pie.cli.progress import note_templates
from pie.config import EMBEDDED_FOLDER, Flags, load
from support.command import pie

TEMPLATES = {
    "chat_template.jinja": "{{ messages }}",
    "tokenizer_config.json": json.dumps({"chat_template": "{{ messages }}"}),
    "chat_template.json": json.dumps({"chat_template": "{{ messages }}"}),
}


def without_template(folder: Path) -> Path:
    """The embedded model without its template."""
    folder.mkdir()
    for path in EMBEDDED_FOLDER.iterdir():
        if path.name not in TEMPLATES:
            (folder / path.name).symlink_to(path)
    return folder


def test_a_run_says_that_the_template_is_missing(tmp_path: Path) -> None:
    folder = without_template(tmp_path / "bare")
    # It is said before the program is looked at, which here is none.
    (tmp_path / "p.wasm").write_bytes(b"\0asm\x0d\0\x01\0" + b"\0\x05\x04code")
    done = pie("run", str(tmp_path / "p.wasm"), "--model", str(folder), "--dummy")
    assert done.stderr.startswith(
        f"the model bare has no chat template, and gets the plain one: {folder} holds no chat_template.jinja "
        "and no tokenizer_config.json with a chat_template; fetch it again with all of its files\n"
    )


@pytest.mark.parametrize("name", TEMPLATES)
def test_nothing_is_said_of_a_model_that_has_one(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    folder = without_template(tmp_path / "whole")
    note_templates(load(Flags(models=(str(folder),)), variables={}))
    assert "the model whole has no chat template" in capsys.readouterr().err
    (folder / name).write_text(TEMPLATES[name])
    note_templates(load(Flags(models=(str(folder),)), variables={}))
    note_templates(load(Flags(models=("pie-tiny",)), variables={}))
    assert capsys.readouterr().err == ""
