"""The loss of a run as a picture.

The SVG file is written by hand, so that it needs no library and repeats byte for byte.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

_WIDTH, _HEIGHT = 720, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 24, 44
_COLOURS = {"training": "#1f77b4", "validation": "#d62728"}


def _ticks(low: float, high: float) -> list[float]:
    """Round values within the bounds: few enough for four powers of ten, many enough for a third of one."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [factor * 10.0**e for e in exponents for factor in (1, 1.5, 2, 3, 5, 7) if low <= factor * 10.0**e <= high]


def draw_curve(losses: Sequence[tuple[int, float, float]], picture: Path) -> None:
    """Draws (step, training loss, validation loss) rows, in nats, on a logarithmic scale.

    A loss of zero was not measured.
    """
    curves = {
        "training": [(step, train) for step, train, _ in losses if train > 0],
        "validation": [(step, held_out) for step, _, held_out in losses if held_out > 0],
    }
    values = [value for points in curves.values() for _, value in points]
    if not values:
        raise ValueError("the checkpoint holds no measured loss yet; train for some hundred steps first")
    low, high, last = min(values) / 1.1, max(values) * 1.1, max(step for step, _, _ in losses)

    def x(step: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * step / last

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (math.log(high) - math.log(value)) / (math.log(high) - math.log(low))

    text = 'font-family="sans-serif" font-size="12" fill="#333"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for value in _ticks(low, high):
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end" {text}>{value:g}</text>')
    for i in range(6):
        step = last * i / 5
        parts.append(f'<text x="{x(step):.1f}" y="{_HEIGHT - 24}" text-anchor="middle" {text}>{step:,.0f}</text>')
    parts.append(f'<text x="{_WIDTH / 2:.0f}" y="{_HEIGHT - 6}" text-anchor="middle" {text}>steps</text>')
    parts.append(f'<text x="{_LEFT}" y="14" {text}>loss, nats a token</text>')
    for i, (name, points) in enumerate(curves.items()):
        line = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in points)
        colour = _COLOURS[name]
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(
            f'<text x="{_WIDTH - 90}" y="{_TOP + 16 * (i + 1)}" font-family="sans-serif" font-size="12" fill="{colour}">{name}</text>'
        )

    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")
