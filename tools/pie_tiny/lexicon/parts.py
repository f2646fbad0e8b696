"""Short English words and parts of words, from which training invents words that no lexicon holds."""

from __future__ import annotations

from pathlib import Path

PARTS = tuple((Path(__file__).parent / "parts.txt").read_text(encoding="utf-8").split())
