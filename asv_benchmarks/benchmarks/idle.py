"""P9: the memory of programs that live and wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from benchmarks.harness import Figure, Goal, Row, rust_bench, save

PROGRAMS = {"Rust": 10_000, "JavaScript": 1_000, "Python": 1_000}
GOALS_BYTES = {"Rust": 32 << 10, "JavaScript": 400_000, "Python": 3_000_000}
CASES = [f"{n} {language}" for language, n in PROGRAMS.items()]
REPEATS = 3
"""Processes that are measured for each figure: memory does not vary as time does."""

ROW = Row(
    name="P9",
    title="Private memory of each live idle program (it waits for a message)",
    driver="none",
    path="Host::launch in Rust; growth of Private_* in /proc/self/smaps_rollup by program",
    peer="bare wasmtime: live pooled instances of the same component (of the runtime's, for sources), never entered",
)


def measure() -> Iterator[Figure]:
    """The samples of `rust/host/benches/idle.rs`, each from a process of its own."""
    for language, n in PROGRAMS.items():
        arguments = ("--language", language, "--programs", str(n))
        pairs = [
            (rust_bench("idle", *arguments, timeout_s=300)[0], rust_bench("idle", *arguments, "--bare", timeout_s=300)[0])
            for _ in range(REPEATS)
        ]
        ours, peer = ([line["ours"][0] for line in lines] for lines in zip(*pairs, strict=True))
        last = pairs[-1][0]
        note = f"{last['live_bytes'] / 1e6:.0f} MB in all, {last['n_maps']:,} regions of memory"
        yield Figure(f"{n} {language}", "bytes", ours, peer, [Goal("ours", GOALS_BYTES[language])], note)


class IdleMemory:
    """Private bytes of one idle program."""

    params: ClassVar[list[str]] = CASES
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 900
    unit = "bytes"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_memory(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the processes."""
        return figures[case].median("ours")
