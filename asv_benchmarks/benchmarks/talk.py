"""What decoders cost a token, and what a turn costs behind a long conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from benchmarks.harness import Figure, Goal, Row, rust_bench, save

DECODERS = ("text", "thoughts", "calls")
TURNS = ("a turn behind 100 turns, and behind 2", "a turn behind 1000 turns, and behind 100")
GOALS = {case: [Goal("ours", 2.0)] for case in DECODERS} | {case: [Goal("ratio", 1.1)] for case in TURNS}

ROW = Row(
    name="talk",
    title="Decoders of text, thoughts and calls, fed a token at a time; and a turn behind turns of 20 tokens",
    driver="none",
    path="ChatDecoder, ReasoningDecoder, ToolDecoder; Chat::fill, in Rust, on one core",
    peer="of a turn: the same turn behind fewer",
)


def measure() -> Iterator[Figure]:
    """The samples of `rust/text/benches/talk.rs`."""
    for line in rust_bench("talk", package="pie-text", timeout_s=300):
        yield Figure(line["case"], line["unit"], line["ours"], line["peer"], GOALS[line["case"]])


class Talk:
    """Microseconds a token of each decoder; of a turn, (time behind many turns) / (time behind few)."""

    params: ClassVar[list[str]] = [*DECODERS, *TURNS]
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 600
    unit = "us, or of the time behind few turns"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_talk(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ratio" if case in TURNS else "ours")
