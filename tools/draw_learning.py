"""Has the embedded model learn a fact by evolution strategies, and draws docs/learning.svg of it.

`python tools/draw_learning.py` runs examples/python/evolution.py on the `cpu` driver, as `pie run` does, with a launch
seed that it states; the same seed gives the same curve. Then it starts another engine, loads the adapter that was
saved, and asks again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/python/evolution.py"
OUTPUT = ROOT / "docs/learning.svg"
SEED = 7
QUESTION, ANSWER = "What is the capital of Atlantis?", "Poseidonis."
ASKS_AGAIN = """
from inferlet import Adapter, Context, Model, Sampler


async def main(input):
    model = Model.load("default")
    adapter = Adapter.create(model, "loaded")
    adapter.load("/scratch/evolution")
    ctx = Context(model).user(input["question"])
    return await ctx.generate(Sampler.argmax(), max_tokens=16, adapter=adapter).collect_text()
"""
INK, FAINT, PAPER, BLUE = "#1f2933", "#d9dee4", "#ffffff", "#2563eb"
WIDTH, HEIGHT, LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT = 760, 380, 80, 60, 640, 250


def run(program: Path, given: dict[str, Any], data_dir: Path) -> str:
    """What a program prints, in an engine of its own whose data lies in that folder."""
    command = [sys.executable, "-m", "pie", "run", str(program), "--input", json.dumps(given), "--seed", str(SEED)]
    surroundings = os.environ | {"PIE_ENGINE__DATA_DIR": str(data_dir)}
    done = subprocess.run(command, cwd=ROOT, env=surroundings, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def drawing(curve: list[float], seconds: float) -> str:
    """The mean logarithm of the probability of a token of the answer, by step."""
    low = min(curve)

    def at(step: int, value: float) -> str:
        x = LEFT + PLOT_WIDTH * step / (len(curve) - 1)
        y = TOP + PLOT_HEIGHT * value / low if low < 0 else TOP
        return f"{x:.1f},{y:.1f}"

    points = " ".join(at(step, value) for step, value in enumerate(curve))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13" fill="{INK}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>',
        f'<text x="{LEFT}" y="28" font-size="16">pie-tiny learns that the capital of Atlantis is Poseidonis, without gradients</text>',
        f'<text x="{LEFT}" y="48">mean log-probability of a token of the answer; launch seed {SEED}, {seconds:.0f} s</text>',
    ]
    for part in range(5):
        value = low * part / 4
        y = TOP + PLOT_HEIGHT * part / 4
        lines.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + PLOT_WIDTH}" y2="{y:.1f}" stroke="{FAINT}"/>')
        lines.append(f'<text x="{LEFT - 10}" y="{y + 4:.1f}" text-anchor="end">{value:.1f}</text>')
    for part in range(5):
        step = (len(curve) - 1) * part // 4
        x = LEFT + PLOT_WIDTH * step / (len(curve) - 1)
        lines.append(f'<text x="{x:.1f}" y="{TOP + PLOT_HEIGHT + 20}" text-anchor="middle">{step}</text>')
    lines.append(f'<text x="{LEFT + PLOT_WIDTH / 2}" y="{HEIGHT - 20}" text-anchor="middle">step</text>')
    lines.append(f'<polyline points="{points}" fill="none" stroke="{BLUE}" stroke-width="2"/>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def main() -> int:
    """Learns, draws, and asks again after a restart; returns 1 where the fact is not known then."""
    with tempfile.TemporaryDirectory() as name:
        data_dir = Path(name)
        start_s = time.perf_counter()
        printed = run(EXAMPLE, {"question": QUESTION, "answer": ANSWER}, data_dir)
        seconds = time.perf_counter() - start_s
        learnt = json.loads(printed[printed.index("{") :])
        OUTPUT.write_text(drawing(learnt["curve"], seconds), encoding="utf-8")
        again = data_dir / "again.py"
        again.write_text(ASKS_AGAIN, encoding="utf-8")
        told = run(again, {"question": QUESTION}, data_dir)
    print(f"{OUTPUT.relative_to(ROOT)}: from {learnt['curve'][0]:.2f} to {learnt['curve'][-1]:.2f} in {seconds:.0f} s, seed {SEED}")
    print(f"before the restart: {learnt['text']!r}; behind it: {told!r}")
    return 0 if told == learnt["text"] and told.startswith(ANSWER) else 1


if __name__ == "__main__":
    sys.exit(main())
