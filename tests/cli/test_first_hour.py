"""The first hour of a newcomer: commands of `first_hour.toml`, and what each says."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.command import PATIENCE_S, environment, squeezed
from support.serving import Served, serving

TABLE = tomllib.loads(Path(__file__).with_name("first_hour.toml").read_text(encoding="utf-8"))

# For machines without curl: what a server says, whatever the status.
CURL = (
    "-c 'import sys, http.client, urllib.parse; at = urllib.parse.urlsplit(sys.argv[1]); "
    'ask = http.client.HTTPConnection(at.netloc); ask.request("GET", at.path); print(ask.getresponse().read().decode())\''
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served")) as running:
        yield running


@pytest.mark.parametrize("row", TABLE["row"], ids=[f"{row['id']}: {row['command']}" for row in TABLE["row"]])
def test_what_a_newcomer_types(served: Served, tmp_path: Path, row: dict[str, Any]) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for name, text in TABLE["files"].items():
        (work / name).write_text(text)
    names = {"{server}": served.url, "{port}": str(served.port), "{data}": str(served.folder / "data")}

    def filled(text: str) -> str:
        for name, value in names.items():
            text = text.replace(name, value)
        return text

    variables = {name: filled(value) for name, value in row.get("variables", {}).items()}

    def run(line: str) -> subprocess.CompletedProcess[str]:
        line = re.sub(r"^curl -s (\S+)$", rf"{sys.executable} {CURL} \1", filled(line))
        # Wide, so that no box of help folds a word.
        return subprocess.run(
            ["bash", "-c", re.sub(r"^pie (?=\S)", f"{sys.executable} -m pie ", line)],
            cwd=work,
            env=environment() | {"COLUMNS": "200"} | variables,
            input=row.get("stdin", ""),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    for line in row.get("first", []):
        before = run(line)
        assert before.returncode == 0, (line, before.stderr)
    done = run(row["command"])
    printed = done.stdout + done.stderr
    print(f"\n{row['id']}: {row['command']}\n  before: {row['before']}\n  now ({done.returncode}):\n{printed}")
    assert done.returncode == row.get("exit", 0), printed
    missing = [words for words in map(filled, row["says"]) if squeezed(words) not in squeezed(printed)]
    assert not missing, printed
    assert not [words for words in row.get("never", []) if words in printed], printed
    assert not [name for name in row.get("lacks", []) if (work / name).exists()]
