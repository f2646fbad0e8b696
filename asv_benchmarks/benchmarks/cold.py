"""P8: cold starts of the command line."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

from benchmarks.harness import ROUNDS, Figure, Goal, Row, in_turns, save, show

FIRST_TOKEN = """
from inferlet import Context, Model, Sampler


async def main(input):
    ctx = Context(Model.load("default"))
    ctx.user("Hello!")
    async for step in ctx.generate(Sampler.argmax(), max_tokens=1):
        print((await step.execute()).tokens)
"""
EMPTY_TYPER = """
import typer

app = typer.Typer()


@app.command()
def main() -> None:
    pass


app()
"""
CASES = ["pie run to the first token", "pie --help"]

ROW = Row(
    name="P8",
    title="Cold: a Python program from the shell to its first token, and `pie --help`",
    driver="cpu, pie-tiny",
    path="start of the process -> engine, model and compiled runtime loaded -> one token printed",
    peer="`python -c pass` for the run; an empty typer program's `--help` for the help",
)


def seconds(command: list[str]) -> Callable[[], float]:
    """A measurement: from the start of a command to its first line, or to its end if it prints none.

    The command must succeed.
    """

    def run() -> float:
        start_s = time.perf_counter()
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert running.stdout is not None
        running.stdout.readline()
        spent_s = time.perf_counter() - start_s
        running.communicate()
        if running.returncode != 0:
            raise RuntimeError(f"{command} ended with {running.returncode}")
        return spent_s

    return run


def measure() -> Iterator[Figure]:
    """Runs the commands in turns, each once before."""
    with tempfile.TemporaryDirectory() as name:
        program, empty = Path(name, "first_token.py"), Path(name, "empty.py")
        program.write_text(FIRST_TOKEN, encoding="utf-8")
        empty.write_text(EMPTY_TYPER, encoding="utf-8")
        python = sys.executable
        pairs = {
            CASES[0]: (seconds([python, "-m", "pie", "run", str(program)]), seconds([python, "-c", "pass"]), Goal("ours", 0.5)),
            CASES[1]: (seconds([python, "-m", "pie", "--help"]), seconds([python, str(empty), "--help"]), Goal("ratio", 1.3)),
        }
        for case, (ours, peer, goal) in pairs.items():
            ours()
            peer()
            figure = Figure(case, "s", *in_turns(ours, peer, rounds=2 * ROUNDS), goals=[goal])
            show(f"P8 {case}: {figure.median('ours'):.3f} s, {figure.median('ratio'):.2f} x the peer")
            yield figure


class ColdStart:
    """Seconds from the start of the process."""

    params: ClassVar[list[str]] = CASES
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 300
    unit = "s"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_start(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ours")
