"""P7: warm launches, from the call to the program's first instruction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from benchmarks.harness import ROUNDS, Figure, Goal, Row, rust_bench, save, show

AT_ONCE = (1, 100, 1000)
CASES = [f"{language} at {n}" for language in ("Rust", "JavaScript", "Python") for n in AT_ONCE]

ROW = Row(
    name="P7",
    title="Warm launch to the first instruction of the program, time for all that are launched at once",
    driver="none",
    path="Host::launch in Rust -> instance -> first instruction (Rust: entry of the component; sources: own first event read back)",
    peer="bare wasmtime: pooled InstancePre::instantiate of the same component (of the runtime's, for sources), one thread",
)


def goals_of(language: str, n: int) -> list[Goal]:
    """What the case should keep: microseconds for all, or a ratio."""
    if language == "Rust":
        return [Goal("ours", 15_000.0)] if n == 1000 else [Goal("ratio", 5.0)]
    return [Goal("ours", n * (600.0 if language == "JavaScript" else 2500.0))]


def measure() -> Iterator[Figure]:
    """The samples of `rust/host/benches/launch.rs`."""
    for line in rust_bench("launch", "--rounds", str(ROUNDS), timeout_s=900):
        # What binds a launch that misses its goal: the largest of them.
        phases = ", ".join(f"{name} {spent:,.1f} us" for name, spent in line["phases_us"].items())
        note = f"phases, in a run of their own: {phases}"
        show(f"P7 {line['case']}: {note}")
        yield Figure(line["case"], line["unit"], line["ours"], line["peer"], goals_of(line["language"], line["programs"]), note)


class WarmLaunch:
    """Time of so many launches at once, in microseconds."""

    params: ClassVar[list[str]] = CASES
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 900
    unit = "us"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_launch(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ours")
