"""The picture of a run's losses."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools.pie_tiny.curve import draw_curve

_LABEL = re.compile(r'text-anchor="end"[^>]*>([^<]+)<')


@pytest.mark.parametrize(("first", "last", "expected"), [(0.36, 0.14, ["0.15", "0.2", "0.3"]), (8.3, 2.0, ["2", "3", "5", "7"])])
def test_the_scale_of_a_short_run_can_be_read(first: float, last: float, expected: list[str], tmp_path: Path) -> None:
    picture = tmp_path / "loss.svg"
    draw_curve([(50, first, 0.0), (100, last, last)], picture)
    text = picture.read_text(encoding="utf-8")
    assert _LABEL.findall(text) == expected
    assert [line.tag.rpartition("}")[2] for line in ElementTree.fromstring(text)].count("polyline") == 2


def test_a_run_without_a_measured_loss_has_no_picture(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="train for some hundred steps first"):
        draw_curve([], tmp_path / "loss.svg")
