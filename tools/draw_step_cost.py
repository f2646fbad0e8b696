"""Draws docs/step-cost.svg from what the last `make bench ROWS=StepBesideMany` measured.

It shows what a step costs beside contexts and pages.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "build/bench/results/scale.json"
OUTPUT = ROOT / "docs/step-cost.svg"

CASE = re.compile(r"(\d+) sequences beside (\d+) contexts with (\d+) pages")
INK, FAINT, PAPER = "#1f2933", "#d9dee4", "#ffffff"
COLOURS = {1: "#2563eb", 64: "#15803d", 512: "#b45309"}
WIDTH, HEIGHT, LEFT, TOP, GAP, PLOT_WIDTH, PLOT_HEIGHT = 900, 400, 70, 70, 70, 360, 250


@dataclass(frozen=True)
class Sample:
    """What a step of `width` sequences took, in microseconds.

    The median, with the smallest and the largest of the rounds.
    """

    width: int
    n_contexts: int
    n_pages: int
    median: float
    low: float
    high: float


def samples(content: dict[str, Any]) -> list[Sample]:
    """The measured steps."""
    found = []
    for figure in content["figures"]:
        if case := CASE.fullmatch(figure["case"]):
            ours = figure["ours"]
            width, n_contexts, n_pages = map(int, case.groups())
            found.append(Sample(width, n_contexts, n_pages, statistics.median(ours), min(ours), max(ours)))
    return found


@dataclass(frozen=True)
class Panel:
    """A plot on two logarithmic axes."""

    left: int
    title: str
    x_decades: tuple[int, int]
    y_decades: tuple[int, int]

    def x(self, value: float) -> float:
        """Where a number of contexts or pages stands."""
        low, high = self.x_decades
        return self.left + PLOT_WIDTH * (math.log10(value) - low) / (high - low)

    def y(self, value: float) -> float:
        """Where a time stands."""
        low, high = self.y_decades
        return TOP + PLOT_HEIGHT * (1 - (math.log10(value) - low) / (high - low))

    def frame(self) -> list[str]:
        """The axes with their decades."""
        parts = [f'<text x="{self.left + PLOT_WIDTH / 2}" y="{TOP + PLOT_HEIGHT + 44}" class="axis">{self.title}</text>']
        for decade in range(self.x_decades[0], self.x_decades[1] + 1):
            x = self.x(10**decade)
            parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{TOP + PLOT_HEIGHT}" stroke="{FAINT}"/>')
            parts.append(f'<text x="{x:.1f}" y="{TOP + PLOT_HEIGHT + 20}" class="tick">{10**decade:,}</text>')
        for decade in range(self.y_decades[0], self.y_decades[1] + 1):
            y = self.y(10**decade)
            parts.append(f'<line x1="{self.left}" y1="{y:.1f}" x2="{self.left + PLOT_WIDTH}" y2="{y:.1f}" stroke="{FAINT}"/>')
            parts.append(f'<text x="{self.left - 8}" y="{y + 4:.1f}" class="tick end">{10.0**decade:g}</text>')
        return parts

    def line(self, width: int, points: list[tuple[int, Sample]]) -> list[str]:
        """The medians of one width, with what lies between the smallest and the largest."""
        colour, points = COLOURS[width], sorted(points, key=lambda point: point[0])
        path = " ".join(f"{self.x(n):.1f},{self.y(sample.median):.1f}" for n, sample in points)
        parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>']
        for n, sample in points:
            x = self.x(n)
            parts.append(
                f'<line x1="{x:.1f}" y1="{self.y(sample.low):.1f}" x2="{x:.1f}" y2="{self.y(sample.high):.1f}" stroke="{colour}"/>'
                f'<circle cx="{x:.1f}" cy="{self.y(sample.median):.1f}" r="3.5" fill="{colour}"/>'
            )
        last, sample = points[-1]
        parts.append(
            f'<text x="{self.x(last):.1f}" y="{self.y(sample.median) - 9:.1f}" class="name end" style="fill:{colour}">'
            f"{width} sequence{'s' * (width > 1)}: {sample.median:.3g} us</text>"
        )
        return parts


def draw(content: dict[str, Any]) -> str:
    """The picture."""
    steps = samples(content)
    times = [time for step in steps for time in (step.low, step.high)]
    y_decades = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    by_contexts = [(step.n_contexts, step) for step in steps if step.n_pages == 10 * step.n_contexts]
    by_pages = [(step.n_pages, step) for step in steps if step.n_contexts == 1_000]
    second = LEFT + PLOT_WIDTH + GAP
    panels = [
        (Panel(LEFT, "idle contexts, of 10 pages each", (2, 4), y_decades), by_contexts),
        (Panel(second, "pages of 1,000 idle contexts", (3, 6), y_decades), by_pages),
    ]
    environment = content["environment"]
    parts = [
        f'<text x="{LEFT}" y="26" class="title">A step costs what its batch costs, whatever else is there</text>',
        f'<text x="{LEFT}" y="46" class="note">microseconds of the engine a step, driver that answers at once; '
        f"{environment['cpu']}, {environment['n_cores']} cores, {environment['date']}</text>",
    ]
    for panel, points in panels:
        parts += panel.frame()
        for width in COLOURS:
            parts += panel.line(width, [(n, step) for n, step in points if step.width == width])
    style = (
        f"text{{font-family:sans-serif;font-size:12px;fill:{INK}}}.title{{font-size:16px;font-weight:bold}}.note{{font-size:11px}}"
        ".axis,.tick{text-anchor:middle}.end{text-anchor:end}.name{font-weight:bold}"
    )
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">\n'
        f'<style>{style}</style>\n<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>\n{body}\n</svg>\n'
    )


def main() -> int:
    """Draws; returns the exit code."""
    if not SOURCE.exists():
        print(f"there is no {SOURCE.relative_to(ROOT)}; run make bench ROWS=StepBesideMany", file=sys.stderr)
        return 1
    OUTPUT.write_text(draw(json.loads(SOURCE.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
