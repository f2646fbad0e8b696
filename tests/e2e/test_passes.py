"""Forward passes, probes and pages: the snippets of the reference documents in JavaScript and Rust, run as printed."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from pie import _engine
from pie.batch import Batch
from pie.engine import Engine
from pie.programs import load_program
from support.launching import ROOT, example, run

PROGRAMS = {"javascript": ROOT / "tests/e2e/passes/passes.ts", "rust": ROOT / "build/programs/passes.wasm"}
both = pytest.mark.parametrize("language", PROGRAMS)


def value_of(engine: Engine, language: str, snippet: str) -> Any:
    """What a snippet returns."""
    outcome = run(engine, load_program(PROGRAMS[language]), snippet, seed=7)
    assert outcome.code is None, outcome.message
    return outcome.value


@pytest.mark.rows("JS-080..082 JS-086 JS-090 JS-092 RS-087..089 RS-093 RS-097 RS-100")
@both
def test_a_pass_draws_behind_the_token_that_its_index_names(dummy: Engine, language: str) -> None:
    value = value_of(dummy, language, "forward")
    assert value["token"] == value["expected"]


@pytest.mark.rows("JS-087 JS-094..097 JS-108..113 RS-094 RS-102..105 RS-120..126")
@both
def test_probes_read_one_row(tiny: Engine, language: str) -> None:
    value = value_of(tiny, language, "probes")
    assert abs(value.pop("difference")) < 1e-4
    assert value.pop("aligned", True)
    assert value["top"][0] == value.pop("likeliest")
    assert len(set(value.pop("top"))) == 3
    assert value == {"one": True, "entropy": True}


def test_probes_read_the_same_in_both_languages(tiny: Engine) -> None:
    javascript, rust = (value_of(tiny, language, "probes") for language in PROGRAMS)
    assert javascript["top"] == rust["top"]


@pytest.mark.rows("JS-085 JS-093 RS-092 RS-101 RS-138")
@both
def test_a_mask_is_run_lengths_of_what_is_forbidden_and_allowed(dummy: Engine, language: str) -> None:
    value = value_of(dummy, language, "masks")
    assert value == {"mask": [2, 3], "allowed": [2, 3, 4], "drawn": [1234, 1234]}


@pytest.mark.rows("JS-090 RS-097")
@both
def test_passes_of_several_contexts_run_at_once(dummy: Engine, language: str) -> None:
    tokens = value_of(dummy, language, "together")
    assert len(set(tokens)) == 3
    assert tokens == value_of(dummy, "rust", "together")


class Held:
    """An observer that holds the first batch until all passes are in it or wait behind it."""

    def __init__(self, n_passes: int) -> None:
        self.n_passes = n_passes
        self.widths: list[int] = []
        self.model: _engine.Model | None = None

    def __call__(self, batch: Batch, _logits: Any) -> None:
        n_seqs = len(batch.qo_indptr) - 1
        self.widths.append(n_seqs)
        deadline = time.monotonic() + 60
        while len(self.widths) == 1 and n_seqs + self._n_waiting() < self.n_passes and time.monotonic() < deadline:
            time.sleep(0.001)

    def _n_waiting(self) -> int:
        assert self.model is not None
        return self.model.stats()["n_waiting"]


@both
def test_passes_of_several_contexts_share_a_batch(language: str) -> None:
    """The first may have a batch of its own, since it comes first; the others do not."""
    held = Held(3)
    with Engine() as engine:
        held.model = engine.add_model(observe=held)
        engine.start()
        assert len(set(value_of(engine, language, "together"))) == 3
    print(f"{language}: batches of {held.widths} passes")
    assert sum(held.widths) == 3
    assert len(held.widths) <= 2


@pytest.mark.rows("JS-042..043 JS-090 RS-052..053 RS-097")
@both
def test_a_pass_that_is_given_up_leaves_its_context_as_it_was(dummy: Engine, language: str) -> None:
    assert value_of(dummy, language, "cancelled") == {"first": "timer", "length": 0, "buffer": [60, 61], "flushed": 2}


@pytest.mark.rows("JS-123 JS-141")
def test_the_interfaces_are_types_alone(dummy: Engine) -> None:
    assert value_of(dummy, "javascript", "interfaces") == {"mask": [102, 1], "drafts": [[], []]}


@pytest.mark.rows("RS-054..062")
def test_pages_are_reserved_cut_committed_released_and_dropped(dummy: Engine) -> None:
    value = value_of(dummy, "rust", "pages")
    size = value["size"]
    # Committed pages, working pages, the tokens in the last of these, and all tokens.
    assert value["seen"] == [
        [0, 3, 0, 0],
        [0, 3, 3, 2 * size + 3],
        [0, 3, 3, size + 3],
        [1, 2, 3, size + 3],
        [1, 1, 3, size + 3],
        [1, 0, 0, size],
        [0, 0, 0, 0],
    ]


def test_operations_on_pages_that_do_not_fit_change_nothing(dummy: Engine) -> None:
    value = value_of(dummy, "rust", "page limits")
    assert value["codes"] == ["invalid-argument", "truncate-range", "truncate-range"]
    assert (value["whole"], value["truncate"], value["released"]) == (True, "truncate-range", "context-released")


@pytest.mark.rows("RS-055")
def test_a_raw_pass_leaves_its_pages_to_the_program_and_runs_once(dummy: Engine) -> None:
    assert value_of(dummy, "rust", "raw pass") == {"read": True, "again": "invalid-argument"}


@pytest.mark.rows("RS-127")
def test_a_schema_says_why_it_makes_no_constraint(dummy: Engine) -> None:
    assert value_of(dummy, "rust", "schema") == "this schema makes nothing for pie-tiny"


@pytest.mark.rows("RS-074")
def test_the_engine_is_asked_to_propose_before_the_first_step(dummy: Engine) -> None:
    assert value_of(dummy, "rust", "late speculation") == "invalid-argument"


@pytest.mark.rows("RS-073..074")
def test_two_cannot_both_propose(dummy: Engine) -> None:
    assert value_of(dummy, "rust", "both propose") == "invalid-argument"


@both
def test_the_languages_search_the_same_beams(tiny: Engine, language: str) -> None:
    given = {"beams": 3, "max_tokens": 12}
    name = {"javascript": "typescript"}.get(language, language)
    first, again = (run(tiny, example("beam_search", name), given) for _ in range(2))
    assert first.code is None, first.message
    assert len(set(first.value)) == len(first.value) == 3
    assert first.value == again.value == run(tiny, example("beam_search", "rust"), given).value


@both
def test_the_languages_find_a_watermark_in_what_it_marked_alone(tiny: Engine, language: str) -> None:
    found = run(tiny, example("watermark", {"javascript": "typescript"}.get(language, language)), {"max_tokens": 48})
    assert found.code is None, found.message
    assert found.value["green"]["marked"] == 1.0
    assert 0.25 < found.value["green"]["plain"] < 0.75


@both
def test_the_speculators_of_the_languages_change_no_token(tiny: Engine, language: str) -> None:
    given = {"prompt": "one two three one two three one two three", "max_tokens": 48}
    found = run(tiny, example("ngram_speculator", {"javascript": "typescript"}.get(language, language)), given)
    assert found.code is None, found.message
    value = found.value
    assert value["same"]
    assert value["accepted"] <= value["drafted"]
    assert value["steps"] + value["accepted"] >= 48


@pytest.mark.rows("RS-072 RS-128..134 RS-139..144 RS-153 RS-186")
def test_rust_writes_what_its_schemas_allow(dummy: Engine) -> None:
    told = value_of(dummy, "rust", "grammars")
    schemas, constraints, code = told[:4], told[4:-1], told[-1]
    assert re.fullmatch(r'\{"a":[0-9]\}', schemas[0][0])
    assert schemas[0][1] == "constraint"
    assert re.fullmatch("[a-c]{3}", schemas[1][0])
    assert schemas[2][0] in ("x", "yy")
    anything, pairs, document, word, digit, again, borrowed = constraints
    assert anything == again == schemas[3][0]
    assert document == schemas[0][0]
    assert word == schemas[1][0]
    assert re.fullmatch("a+b+", pairs)
    assert borrowed == pairs
    assert re.fullmatch("[0-9]", digit)
    assert code == "invalid-grammar"


@pytest.mark.rows("RS-071")
def test_a_grammar_within_a_constraint_says_why_a_text_cannot_go_on(dummy: Engine) -> None:
    assert value_of(dummy, "rust", "wrapped") == "grammar-mismatch"


@pytest.mark.rows("RS-145..152")
def test_rust_walks_a_text_by_hand(dummy: Engine) -> None:
    n_first, *told = value_of(dummy, "rust", "matcher")
    assert n_first >= 1
    assert told == [False, True, False, False, "grammar-mismatch"]
