"""Writes docs/benchmarks.md from what the last run of each row of `asv_benchmarks` left in build/bench/results.

A row that was not run here keeps its section.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools.generated import ROOT, wrapped

RESULTS = ROOT / "build/bench/results"
TARGET = ROOT / "docs/benchmarks.md"

INTRODUCTION = """# Benchmarks

Written by `make bench`; not edited by hand. Each figure is the median of the rounds of one run, with the smallest and
the largest in brackets. Ours and the peer run in turns (A B B A); a ratio or a difference is taken by round. Both do
the same work, which each benchmark checks (tokens, checksums). No test depends on a time.

To reproduce: `make bench`, or one row by `make bench ROWS=Tax` (the name of its class in `asv_benchmarks/benchmarks`).
"""


def main() -> int:
    """Writes the table; returns the exit code."""
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("*.json")]
    if not rows:
        print(f"there are no results in {RESULTS.relative_to(ROOT)}; run make bench", file=sys.stderr)
        return 1
    sections = written() | {content["row"]["name"]: section(content) for content in rows}
    TARGET.write_text("\n".join([INTRODUCTION, *(sections[name] for name in sorted(sections, key=natural))]), encoding="utf-8")
    missed = [f"{content['row']['name']} {figure['case']}" for content in rows for figure in content["figures"] if not met(figure)]
    print(f"{TARGET.relative_to(ROOT)}: {len(rows)} rows; goals missed: {', '.join(missed) or 'none'}")
    return 0


def written() -> dict[str, str]:
    """The sections that the page has, by the names of their rows."""
    text = TARGET.read_text(encoding="utf-8") if TARGET.exists() else ""
    _, *parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    return {part.removeprefix("## ").partition(":")[0]: part.rstrip("\n") + "\n" for part in parts}


def natural(name: str) -> list[tuple[bool, int, str]]:
    """A key that puts P5 before P10, and both before words."""
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", name)]


def section(content: dict[str, Any]) -> str:
    """A row of the goals as a section with a table."""
    row, environment = content["row"], content["environment"]
    lines = [
        f"## {row['name']}: {row['title']}",
        "",
        wrapped(f"Driver: {row['driver']}. Path: {row['path']}. Peer: {row['peer']}."),
        "",
        "| case | ours | peer | ratio | difference | goal | |",
        "|---|---|---|---|---|---|---|",
    ]
    for figure in content["figures"]:
        paired = bool(figure["peer"])
        cells = [
            figure["case"],
            spread(figure["ours"], figure["unit"]),
            spread(figure["peer"], figure["unit"]) if paired else "",
            spread(samples(figure, "ratio"), "x") if paired else "",
            spread(samples(figure, "difference"), figure["unit"]) if paired else "",
            "; ".join(goal_text(goal, figure["unit"]) for goal in figure["goals"]),
            "" if not figure["goals"] else "met" if met(figure) else "**missed**",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *(wrapped(f"{figure['case']}: {figure['note']}.") + "\n" for figure in content["figures"] if figure["note"])]
    machine = (
        f"{environment['cpu']}, {environment['n_cores']} cores, Linux {environment['kernel']}; pie {environment['pie']} at "
        f"{environment['commit']}, wasmtime {environment['wasmtime']}, Python {environment['python']}, numpy {environment['numpy']}; "
        f"{environment['date']}, load before {environment['load_before']}."
    )
    lines.append(wrapped(machine) + "\n")
    return "\n".join(lines)


def samples(figure: dict[str, Any], measure: str) -> list[float]:
    """The samples of a measure, by round."""
    if measure in ("ours", "peer"):
        return list(figure[measure])
    pairs = zip(figure["ours"], figure["peer"], strict=True)
    return [ours / peer if measure == "ratio" else ours - peer for ours, peer in pairs]


def met(figure: dict[str, Any]) -> bool:
    """Whether every goal of a figure is kept by its median."""
    for goal in figure["goals"]:
        median = statistics.median(samples(figure, goal["measure"]))
        if (median < goal["bound"]) if goal["at_least"] else (median > goal["bound"]):
            return False
    return True


def goal_text(goal: dict[str, Any], unit: str) -> str:
    """A goal as the table shows it."""
    what = "" if goal["measure"] == "ours" else goal["measure"] + " "
    return f"{what}{'≥' if goal['at_least'] else '≤'} {amount(goal['bound'], 'x' if goal['measure'] == 'ratio' else unit)}"


def spread(values: list[float], unit: str) -> str:
    """The median with the smallest and the largest."""
    middle, low, high = (amount(value, "") for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} {unit} ({low} to {high})".replace("  ", " ")


def amount(value: float, unit: str) -> str:
    """A number with three digits that count."""
    digits = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{digits} {unit}".strip()


if __name__ == "__main__":
    sys.exit(main())
