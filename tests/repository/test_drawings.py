"""The drawing of the states of a pass in ARCHITECTURE.md says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PHASES = ROOT / "rust" / "core" / "src" / "context" / "phase.rs"
BEGIN = "Where a pass stands is its phase"

Arrows = set[tuple[str, str]]


def drawn(page: str) -> tuple[Arrows, Arrows]:
    """The arrows between the states of what was asked for, and of what runs ahead.

    Three blanks end what is drawn in a line.
    """
    _, _, rest = page.partition(BEGIN)
    block = re.search(r"\n\n((?:    .*\n|\n)+)", rest)
    assert block, f"no drawing behind {BEGIN!r}"
    asked: Arrows = set()
    ahead: Arrows = set()
    for line in block[1].splitlines():
        text = line.strip().partition("   ")[0]
        label, colon, states = text.rpartition(":")
        parts = re.split(r" (<?-+>?) ", states.strip())
        arrows = ahead if colon else asked
        assert len(parts) == 1 or label in ("", "ahead"), f"what is drawn here? {line!r}"
        for before, arrow, behind in zip(parts[::2], parts[1::2], parts[2::2], strict=False):
            pairs = {(one, other) for one in before.split(", ") for other in behind.split(", ")}
            arrows |= pairs if arrow.endswith(">") else set()
            arrows |= {(other, one) for one, other in pairs} if arrow.startswith("<") else set()
    return asked, ahead


def coded(code: str) -> tuple[Arrows, Arrows]:
    """The same by the table of transitions, but for those that begin or end what runs ahead."""
    rows = re.findall(r"^//! \| ([a-z, ]+) \| [a-z ]+ \| ([a-z, ]+) \|$", code, re.MULTILINE)[1:]
    asked = {row for row in rows if not any("ahead" in state for state in row) and row[0] != row[1]}
    runs = re.compile(r"(\w+) ahead")
    pairs = [[runs.fullmatch(state) for state in row] for row in rows]
    ahead = {(before[1], behind[1]) for before, behind in pairs if before and behind}
    return asked, ahead


def variants(code: str, name: str) -> set[str]:
    body = re.search(rf"enum {name} {{\n(.*?)\n}}", code, re.DOTALL)
    assert body, name
    return {variant.lower() for variant in re.findall(r"^    (\w+)\b", body[1], re.MULTILINE)}


def states(arrows: Arrows) -> set[str]:
    return {state for arrow in arrows for state in arrow}


def test_the_states_of_a_pass_are_drawn_as_they_are() -> None:
    code = PHASES.read_text(encoding="utf-8")
    asked, ahead = drawn((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert states(asked) == variants(code, "Phase") - {"ahead"}
    assert states(ahead) == variants(code, "Ahead")
    assert (asked, ahead) == coded(code)


def test_a_drawing_is_read() -> None:
    page = f"{BEGIN}:\n\n    a <----> b ----> c      by d\n    a, b ----> d\n\n    ahead:  a <---- b\n    e:  it ends\n\nText.\n"
    asked = {("a", "b"), ("b", "a"), ("b", "c"), ("a", "d"), ("b", "d")}
    assert drawn(page) == (asked, {("b", "a")})
