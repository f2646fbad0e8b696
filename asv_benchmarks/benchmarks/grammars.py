"""P12 and P13: masks of JSON schemas with a vocabulary of 128,000 tokens, beside llguidance and xgrammar alone.

xgrammar is measured where it is installed (`requirements/peers.in`).
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.harness import BUILD, ROUNDS, Figure, Goal, Row, rust_bench, save, show
from benchmarks.schemas import N_DOCUMENTS, N_SCHEMAS, VOCAB_SIZE, vocabulary, workload

MEASURES = {"mean": 0.0, "p50": 0.5, "p99": 0.99, "p99.9": 0.999}
FIRST = "first mask"
CASES = [f"{measure}, {state}" for measure in MEASURES for state in ("cold", "warm")] + [f"{FIRST}, cold", f"{FIRST}, cached"]
PEER = "xgrammar"

ROW = Row(
    name="P12",
    title=f"Masks of {N_SCHEMAS} JSON schemas with {N_DOCUMENTS} documents each, {VOCAB_SIZE:,} tokens",
    driver="none",
    path="Matcher::mask; Grammar::new -> Compiled::new -> Matcher::new -> mask; in Rust, on one core",
    peer="llguidance alone, the same documents; xgrammar alone beside it, where it is installed",
)


def _goals(case: str) -> list[Goal]:
    measure, _, state = case.partition(", ")
    if measure == FIRST:
        return [Goal("ratio", 1.1 if state == "cold" else 0.1)]
    ratio = Goal("ratio", 1.05 if state == "cold" else 0.5)
    most = {"p99": 100.0, "p99.9": 200.0}
    return [ratio, *([Goal("ours", most[measure])] if measure in most else [])]


def _xgrammar(tokenizer: Path, works: list[dict[str, Any]]) -> Iterator[Figure]:
    """What xgrammar takes for the same documents: it has no state that is seen before but its own caches."""
    if importlib.util.find_spec(PEER) is None:
        show("P12: xgrammar is not installed, and is left out")
        return
    from tokenizers import Tokenizer  # noqa: PLC0415 - where the peer is

    xgrammar = importlib.import_module(PEER)
    ids = Tokenizer.from_file(str(tokenizer))
    words = [text for text, _ in sorted(ids.get_vocab().items(), key=lambda item: item[1])]
    info = xgrammar.TokenizerInfo(words, xgrammar.VocabType.BYTE_LEVEL, vocab_size=len(words), stop_token_ids=[])
    mask = xgrammar.allocate_token_bitmask(1, len(words))
    documents = [[ids.encode(text).ids for text in work["documents"]] for work in works]
    masks: list[list[float]] = []
    firsts: list[float] = []
    for _ in range(ROUNDS):
        of_round, first_us = [], 0.0
        for work, tokens_of in zip(works, documents, strict=True):
            began = time.perf_counter()
            compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
            made = compiler.compile_json_schema(work["schema"], any_whitespace=False, separators=(",", ":"))
            matcher = xgrammar.GrammarMatcher(made, terminate_without_stop_token=True)
            matcher.fill_next_token_bitmask(mask)
            first_us += (time.perf_counter() - began) * 1e6
            for tokens in tokens_of:
                matcher = xgrammar.GrammarMatcher(made, terminate_without_stop_token=True)
                for token in tokens:
                    began = time.perf_counter()
                    matcher.fill_next_token_bitmask(mask)
                    of_round.append((time.perf_counter() - began) * 1e6)
                    if not matcher.accept_token(token):
                        raise RuntimeError(f"xgrammar refuses token {token} of a document of {work['schema']}")
        masks.append(sorted(of_round))
        firsts.append(first_us / len(works))
    for measure, share in MEASURES.items():
        samples = [statistics.mean(times) if measure == "mean" else times[int((len(times) - 1) * share)] for times in masks]
        yield Figure(f"{measure}, {PEER} alone", "us/token", samples)
    yield Figure(f"{FIRST}, {PEER} alone", "us/schema", firsts)


def measure() -> Iterator[Figure]:
    """The samples of `rust/text/benches/masks.rs`, and those of xgrammar."""
    tokenizer, works = vocabulary(), workload()
    listed = BUILD / "grammars/workload.json"
    listed.write_text(json.dumps(works), encoding="utf-8")
    for line in rust_bench("masks", str(tokenizer), str(listed), package="pie-text", timeout_s=900):
        figure = Figure(line["case"], line["unit"], line["ours"], line["peer"], _goals(line["case"]))
        show(f"P12: {figure.case}: {figure.median('ours'):.2f}, {figure.median('peer'):.2f} of llguidance, {figure.median('ratio'):.3f}x")
        yield figure
    for figure in _xgrammar(tokenizer, works):
        show(f"P12: {figure.case}: {figure.median('ours'):.2f}")
        yield figure


class Masks:
    """(Time of ours) / (time of llguidance) of a mask, and from the text of a schema to its first mask."""

    params: ClassVar[list[str]] = CASES
    param_names: ClassVar[list[str]] = ["case"]
    timeout = 1800
    unit = "of the time of llguidance"

    def setup_cache(self) -> dict[str, Figure]:
        """Measures all cases once."""
        return save(ROW, measure())

    def track_masks(self, figures: dict[str, Figure], case: str) -> float:
        """Median of the rounds."""
        return figures[case].median("ratio")
