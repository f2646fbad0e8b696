"""A user with one program beside a user with a hundred greedy ones: counted from the batches that the driver gets.

Batches are shared by tokens where no bound on their time holds, and by time where one does. The bound of the second is
shorter than any batch, so that it holds in each, and what is asked of the batches holds whatever they take.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from e2e.test_same_answer import wait_until
from pie.backends.dummy import DummyDriver
from pie.batch import Batch
from pie.config import ModelConfig
from pie.engine import Engine
from support.launching import LANGUAGES, PATIENCE_S, finish, load_interpreter

N_GREEDY = 100
N_WARM_UP = 20
PROMPT, N_DRAWN = 1_500, 60
MARK = 4000
"""The first token of the one program's prompt, and of no other."""


def marked(batch: Batch) -> int | None:
    """The context whose first token a batch holds, where that is the mark: what is drawn may be that token too, but is
    nowhere the first.
    """
    starts = batch.qo_indptr.tolist()
    for idx, (token, position) in enumerate(zip(batch.tokens.tolist(), batch.positions.tolist(), strict=True)):
        if position == 0 and token == MARK:
            return int(batch.seq_context[sum(start <= idx for start in starts) - 1])
    return None


def ops(prompt: list[int], n_drawn: int) -> dict[str, Any]:
    """The input of a program that prefills and then generates to the end."""
    return {
        "ops": [
            {"op": "context", "as": "c"},
            {"op": "append", "ctx": "c", "tokens": prompt},
            {"op": "generate", "ctx": "c", "as": "g", "sampler": {"kind": "argmax"}, "max_tokens": n_drawn},
            {"op": "ignore_eos", "gen": "g", "value": True},
            {"op": "collect_tokens", "gen": "g"},
        ]
    }


def varied(salt: int, n: int) -> list[int]:
    """A prompt that begins as no other does."""
    return [salt, *((salt * 31 + token * 7) % 3000 for token in range(n - 1))]


@dataclass
class Shares:
    """The driver's view: tokens and rows of each context by batch.

    After some batches it waits, so that one program more can come in.
    """

    tokens: list[Counter[int]] = field(default_factory=list)
    drawing: list[set[int]] = field(default_factory=list)
    marked: int | None = None
    warm: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    def __call__(self, batch: Batch, _logits: Any) -> None:
        """Takes a batch down."""
        contexts = [int(context) for context in batch.seq_context]
        starts = batch.qo_indptr.tolist()
        self.tokens.append(Counter({context: starts[idx + 1] - starts[idx] for idx, context in enumerate(contexts)}))
        self.drawing.append({contexts[sum(start <= token for start in starts) - 1] for token in batch.row_token.tolist()})
        if self.marked is None:
            self.marked = marked(batch)
        if len(self.tokens) == N_WARM_UP:
            self.warm.set()
            assert self.go_on.wait(PATIENCE_S)


@pytest.mark.parametrize("shared_step_s", [0.0, 1e-6], ids=["by tokens", "by time"])
@pytest.mark.parametrize(("greedy_prompt", "max_batch_seqs"), [(1_500, 128), (8, 128), (8, 32), (1_000, 32)])
def test_one_program_has_its_share_beside_a_hundred_of_another_user(greedy_prompt: int, max_batch_seqs: int, shared_step_s: float) -> None:
    shares, budget = Shares(), 128
    n_pages = N_GREEDY * (greedy_prompt // 16 + 60) + 200
    driver = DummyDriver("pie-tiny", vocab_size=4096, n_pages=n_pages)
    options = ModelConfig(max_batch_tokens=budget, prefill_chunk=budget, max_batch_seqs=max_batch_seqs, shared_step_s=shared_step_s)
    with Engine() as engine:
        model = engine.add_model(driver=driver, options=options, observe=shares)
        greedy = [
            engine.launch(load_interpreter(LANGUAGES[salt % 3]), input=ops(varied(salt + 1, greedy_prompt), 4_000), username="many")
            for salt in range(N_GREEDY)
        ]
        wait_until(lambda: model.stats()["n_requests"] == N_GREEDY)
        engine.start()
        assert shares.warm.wait(PATIENCE_S)
        single = engine.launch(load_interpreter("rust"), input=ops([MARK, *varied(0, PROMPT - 1)], N_DRAWN), username="one")
        wait_until(lambda: model.stats()["n_requests"] == N_GREEDY + 1)
        shares.go_on.set()
        outcome = finish(single)
        assert not any(process.ended for process in greedy), "the greedy ones should have been greedy to the end"
        for process in greedy:
            process.cancel()
    assert outcome.code is None, outcome.message
    assert len(outcome.value[-1]) == N_DRAWN

    one = shares.marked
    assert one is not None
    first = next(idx for idx, tokens in enumerate(shares.tokens) if one in tokens)
    drew = [idx for idx, drawing in enumerate(shares.drawing) if one in drawing]
    prefilled = [tokens[one] for tokens in shares.tokens[first : drew[0]]]
    print(f"prefill of {PROMPT}: {prefilled} of {budget} in each batch; {N_DRAWN} tokens drawn in {drew[-1] - drew[0] + 1} batches")
    assert first == N_WARM_UP
    assert drew == list(range(drew[0], drew[0] + N_DRAWN))
    if shared_step_s == 0:
        assert sum(prefilled) >= 0.4 * budget * len(prefilled)
        return
    # Each of the two goes on in each batch, and the one who prefills has a part of them that one can see: the time of a
    # token of a prefill depends on how many there are before it, so that equal times are not equal numbers.
    beside = [tokens.total() - tokens[one] for tokens in shares.tokens[first : drew[-1] + 1]]
    assert min(prefilled) >= 1
    assert min(beside) >= 1
    assert sum(prefilled) >= 0.1 * (sum(prefilled) + sum(beside[: len(prefilled)]))
