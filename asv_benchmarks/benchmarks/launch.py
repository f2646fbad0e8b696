"""Warm launches: from the call to the program's first instruction, in three languages (rows P7 and P8)."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import ClassVar

from pie.engine import Engine, Program
from pie.programs import Component, Source

ROOT = Path(__file__).resolve().parents[2]
N_LAUNCHES = 200

PROGRAMS: dict[str, Program] = {
    "rust": Component(ROOT / "build/programs/hello.wasm"),
    "javascript": Source("javascript", (("main.js", b"export function main() { return null; }"),), "main.js"),
    "python": Source("python", (("main.py", b"def main(input):\n    return None\n"),), "main.py"),
}

FIRST_TOKEN = """
from inferlet import Context, Model, Sampler


async def main(input):
    ctx = Context(Model.load("default"))
    ctx.user("Hello!")
    async for step in ctx.generate(Sampler.argmax(), max_tokens=1):
        print((await step.execute()).tokens)
"""


class WarmLaunch:
    """Launches one after the other in an engine that has run the program before."""

    params: ClassVar[list[str]] = list(PROGRAMS)
    param_names: ClassVar[list[str]] = ["language"]
    unit = "us"

    def setup(self, language: str) -> None:
        """Starts an engine and launches once."""
        self.engine = Engine()
        self.engine.add_model(dummy=True)
        self.launch_us(language)

    def teardown(self, language: str) -> None:
        """Stops the engine."""
        self.engine.stop()

    def launch_us(self, language: str) -> float:
        """Launches once and waits for the end; answers the time from the launch to the entry of the component."""
        process = self.engine.launch(PROGRAMS[language], input={})
        while process.next_event() is not None:
            pass
        assert process.launch_s is not None
        return 1e6 * process.launch_s

    def whole_us(self, language: str) -> float:
        """Launches once; answers the time from the call to the end of the program, which bounds its first own instruction."""
        start_s = time.perf_counter()
        process = self.engine.launch(PROGRAMS[language], input={})
        while process.next_event() is not None:
            pass
        return 1e6 * (time.perf_counter() - start_s)

    def track_entry(self, language: str) -> float:
        """Launch to the entry of the component: the median, in microseconds."""
        return statistics.median(self.launch_us(language) for _ in range(N_LAUNCHES))

    def track_whole_run(self, language: str) -> float:
        """Launch to the end of a program that does nothing (for Rust: that generates a greeting): the median, in microseconds."""
        return statistics.median(self.whole_us(language) for _ in range(N_LAUNCHES))


class ColdRun:
    """`pie run` of a Python program from the shell, its runtime compiled before: start of the process to the first output."""

    unit = "s"

    def track_first_token(self) -> float:
        """The median of five runs, in seconds."""
        times_s = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "first_token.py")
            path.write_text(FIRST_TOKEN, encoding="utf-8")
            for _ in range(5):
                start_s = time.perf_counter()
                command = [sys.executable, "-m", "pie", "run", str(path)]
                running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
                assert running.stdout is not None
                running.stdout.readline()
                times_s.append(time.perf_counter() - start_s)
                running.communicate()
        return statistics.median(times_s)
