"""Draws docs/life-of-a-token.svg, the picture of the README: through which modules a token goes, down and up."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

OUTPUT = Path(__file__).resolve().parent.parent / "docs" / "life-of-a-token.svg"

BOX_WIDTH, BOX_HEIGHT, GAP_X = 150, 58, 34
INK, PAPER = "#1f2933", "#ffffff"


@dataclass(frozen=True)
class Box:
    """One station: its column, its y, a name, what it does, and the colour of who owns it."""

    column: int
    y: int
    name: str
    what: str
    fill: str

    @property
    def x(self) -> int:
        """The left edge."""
        return 24 + self.column * (BOX_WIDTH + GAP_X)

    @property
    def middle(self) -> tuple[int, int]:
        """The centre."""
        return self.x + BOX_WIDTH // 2, self.y + BOX_HEIGHT // 2

    def svg(self) -> str:
        """The drawn box."""
        x, y = self.middle
        return (
            f'<rect x="{self.x}" y="{self.y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="8" fill="{self.fill}" stroke="{INK}"/>'
            f'<text x="{x}" y="{y - 4}" class="name">{self.name}</text><text x="{x}" y="{y + 14}" class="what">{self.what}</text>'
        )


GUEST, HOST, CORE, DRIVER = "#fde68a", "#bfdbfe", "#c7f0d2", "#fbcfe8"
DOWN = [
    Box(0, 60, "program", "await step.execute()", GUEST),
    Box(1, 60, "host", "WIT call, limits", HOST),
    Box(2, 60, "inbox", "the only queue", HOST),
    Box(3, 60, "plan", "who goes, how much", CORE),
    Box(4, 60, "pages", "room for its keys", CORE),
    Box(5, 60, "batch", "one arena of words", CORE),
]
TURN = Box(5, 150, "driver", "one forward pass", DRIVER)
UP = [
    Box(4, 240, "sample", "seed and position", CORE),
    Box(3, 240, "commit", "pages keep it", CORE),
    Box(2, 240, "generator", "stop? go on?", CORE),
    Box(1, 240, "future", "wakes the program", HOST),
    Box(0, 240, "program", "out.tokens", GUEST),
]
LEGEND = [("WebAssembly sandbox", GUEST), ("rust/host", HOST), ("rust/core, pure", CORE), ("python/pie, kernels", DRIVER)]


def arrow(start: Box, end: Box) -> str:
    """A line between the nearest edges of two boxes."""
    (x1, y1), (x2, y2) = start.middle, end.middle
    if start.column == end.column:
        half = BOX_HEIGHT // 2
        return f'<path d="M{x1} {y1 + half} L{x2} {y2 - half - 6}"/>'
    if start.y != end.y:
        return f'<path d="M{x1} {y1 + BOX_HEIGHT // 2} L{x1} {y2} L{x2 + BOX_WIDTH // 2 + 6} {y2}"/>'
    half = BOX_WIDTH // 2 if x2 > x1 else -BOX_WIDTH // 2
    return f'<path d="M{x1 + half} {y1} L{x2 - half - (6 if half > 0 else -6)} {y2}"/>'


def picture() -> str:
    """The whole drawing."""
    stations = [*DOWN, TURN, *UP]
    arrows = "".join(arrow(start, end) for start, end in pairwise(stations))
    boxes = "".join(box.svg() for box in stations)
    legend = "".join(
        f'<rect x="{24 + 190 * idx}" y="326" width="16" height="16" fill="{fill}" stroke="{INK}"/>'
        f'<text x="{46 + 190 * idx}" y="339" class="legend">{label}</text>'
        for idx, (label, fill) in enumerate(LEGEND)
    )
    width = 24 * 2 + 6 * BOX_WIDTH + 5 * GAP_X
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 360" font-family="sans-serif" fill="{INK}">
<style>
.name {{ font-size: 15px; font-weight: bold; text-anchor: middle }} .what {{ font-size: 12px; text-anchor: middle }}
.legend {{ font-size: 13px }} .title {{ font-size: 17px; font-weight: bold }}
path {{ stroke: {INK}; stroke-width: 1.6; fill: none; marker-end: url(#tip) }}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="2" refY="4" markerWidth="6" markerHeight="6" orient="auto">
<polygon points="0,0 8,4 0,8" fill="{INK}"/></marker></defs>
<rect width="{width}" height="360" fill="{PAPER}"/>
<text x="24" y="34" class="title">The life of a token</text>
{arrows}{boxes}{legend}
</svg>
"""


if __name__ == "__main__":
    OUTPUT.write_text(picture(), encoding="utf-8")
