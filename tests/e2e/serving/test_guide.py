"""The guide to serving: each of its snippets runs, in order, and prints what the guide says."""

from __future__ import annotations

import asyncio
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pie.client import connect
from support.command import shell
from support.launching import ROOT
from support.serving import Served, serving

GUIDE = (ROOT / "docs/guide/serving.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
ADDRESS = "ws://127.0.0.1:8080"
PRINTED = {"talk.py": "Hello\nHEY\nreturned 1\n", "later.py": "returned 1\nunknown-process\n"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that has launched nothing."""
    with serving(tmp_path_factory.mktemp("guide")) as started:
        yield started


async def has_written(served: Served, pid: int) -> None:
    """Waits until a process has written something."""
    async with connect(served.url) as client:
        assert (await client.logs(pid, follow=True)).text


def run(line: str, folder: Path, served: Served) -> str:
    """What a line of a shell prints."""
    return shell(line.replace(ADDRESS, served.url), folder, PIE_CLIENT__URL=served.url)


def test_every_snippet_of_the_guide_runs(served: Served, tmp_path: Path) -> None:
    n_commands = 0
    numbers: dict[str, str] = {}
    for language, text in BLOCKS:
        if language == "python":
            name = text.splitlines()[0].removeprefix("# ")
            (tmp_path / name).write_text(text.replace(ADDRESS, served.url))
            if name in PRINTED:
                assert run(f"{sys.executable} {name}", tmp_path, served) == PRINTED[name]
            continue
        if language == "toml":
            tomllib.loads(text)
            continue
        assert language == "console", language
        for line, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
            if line == "pie serve":
                assert printed.splitlines()[-1] == f"serving at {ADDRESS}"
                continue
            for written, pid in numbers.items():
                line = line.replace(written, pid)  # noqa: PLW2901
            if line.startswith("pie logs "):
                asyncio.run(has_written(served, int(line.split()[2])))
            shown = run(line, tmp_path, served)
            n_commands += 1
            if " --detach " in line:
                numbers[printed.strip()] = shown.strip()
                assert shown.strip().isdigit()
                continue
            if line != "pie ps":
                assert shown == printed, line
            else:
                assert "shout@1.0" in shown
    assert n_commands == len(re.findall(r"^\$ ", GUIDE, re.MULTILINE)) - 1
    assert {name for name in PRINTED if not (tmp_path / name).exists()} == set()
