"""Every test that the page on attacks names is there."""

from __future__ import annotations

import re
from pathlib import Path

from tools.siege import doors, programs, requests

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/internals/attacks.md"
NAMED = re.compile(r"`([\w./]+\.(?:py|rs))::(\w+)`")
SCRIPT = re.compile(r"`python (?:-m )?([\w./]+)")


def test_every_row_is_there_and_names_a_test_or_what_is_open() -> None:
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if re.match(r"\| [VR]\d+ ", line)]
    assert [row[1].split()[0] for row in rows] == [f"V{n}" for n in range(1, 27)] + [f"R{n}" for n in range(1, 37)]
    for row in rows:
        is_open = row[2].strip() == "in part"
        assert is_open or NAMED.search(row[-2]), row[1]


def test_every_test_that_is_named_is_there() -> None:
    missing = []
    for path, name in NAMED.findall(PAGE.read_text()):
        source = (ROOT / path).read_text() if (ROOT / path).is_file() else ""
        if not re.search(rf"\b(?:def|fn) {name}\(", source):
            missing.append(f"{path}::{name}")
    assert missing == []


def test_the_forty_attackers_are_forty_and_named() -> None:
    attacks = [attack.__name__ for attack in (*doors.ATTACKS, *requests.ATTACKS, *programs.ATTACKS)]
    assert len(set(attacks)) == len(attacks) == 40
    _, _, section = PAGE.read_text().partition("## The forty attackers")
    named = re.findall(r"`(\w+)`", section.partition("## Figures")[0])
    assert sorted(named) == sorted(attacks)


def test_every_command_that_is_named_is_there() -> None:
    commands = SCRIPT.findall(PAGE.read_text())
    assert commands
    for command in commands:
        path = ROOT / (command if command.endswith(".py") else command.replace(".", "/"))
        assert path.is_file() or path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), command
