"""What every driver keeps of `docs/reference/driver.md`.

A driver of one's own is asked by `pytest tests/backends/test_conformance.py --driver module:function`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from oracle.sampler import Sampler, draw
from pie.backends.base import (
    AdapterName,
    CommandedDriver,
    CopyAdapter,
    Drawn,
    Driver,
    DriverError,
    DropAdapter,
    ExportPages,
    FailedSequencesError,
    FollowingDriver,
    ImportPages,
    LoadAdapter,
    RefusedAdapterError,
    UnsupportedError,
)
from pie.batch import Batch
from pie.batch_layout import ARRAYS
from support import arenas
from support.arenas import Draw, Feed
from support.checkpoints import write_checkpoint
from support.conformance import MAX_TOKENS, N_HOST_PAGES, N_PAGES, PAGE_SIZE, VOCAB_SIZE, Subject, Text, expectations_of, subject

LENGTH = 45
N_EACH = -(-LENGTH // PAGE_SIZE)
"""Pages of a text."""


def tokens(seed: int, n: int = LENGTH) -> list[int]:
    return np.random.default_rng(seed).integers(0, VOCAB_SIZE, n).tolist()


TEXT = Text(tokens(0))


def masked(seed: int) -> Text:
    """A text of which a third of the tokens have masks, some of them in many runs."""
    random, masks = Random(seed), {}
    for slot in random.sample(range(1, LENGTH), LENGTH // 3):
        n_seen = random.randint(1, slot + 1)
        seen = np.array([random.random() < 0.5 for _ in range(n_seen)])
        seen[random.randrange(n_seen)] = True
        masks[slot] = runs_of(seen)
    return Text(tokens(seed), masks=masks)


def runs_of(seen: np.ndarray) -> list[int]:
    """Run lengths, forbidden first."""
    turns = np.flatnonzero(np.diff(np.concatenate([[False], seen])))
    return np.diff(np.concatenate([[0], turns, [len(seen)]])).tolist()


def batch(*feeds: Feed, **copies: Any) -> Batch:
    return arenas.batch(feeds, page_size=PAGE_SIZE, **copies)


@pytest.fixture(scope="module")
def asked(driver_name: str, tmp_path_factory: pytest.TempPathFactory, library: Path) -> Subject:
    return subject(driver_name, write_checkpoint(tmp_path_factory.mktemp("model"), **expectations_of(driver_name).model), library)


@pytest.fixture
def driver(asked: Subject) -> Iterator[Driver]:
    opened = asked.rows()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def whole(asked: Subject) -> Callable[[Text], np.ndarray]:
    """All rows of a text, alone on a fresh driver, in one batch."""
    known: dict[str, np.ndarray] = {}

    def rows(text: Text) -> np.ndarray:
        if repr(text) not in known:
            opened = asked.rows()
            known[repr(text)] = opened.run(batch(text.feed(range(N_EACH), 0, len(text.tokens))))
            opened.close()
        return known[repr(text)]

    return rows


Whole = Callable[[Text], np.ndarray]


def test_it_declares_what_it_serves(driver: Driver) -> None:
    limits = driver.capabilities
    assert (limits.vocab_size, limits.page_size, limits.n_pages) == (VOCAB_SIZE, PAGE_SIZE, N_PAGES)
    assert limits.host_pages == N_HOST_PAGES
    assert limits.max_batch_tokens >= MAX_TOKENS
    assert limits.masks
    assert limits.positions
    assert limits.copy_page_ns > 0 or limits.backend == "dummy"


def test_rows_are_float32_in_order_and_true(asked: Subject, driver: Driver) -> None:
    logits = driver.run(batch(TEXT.feed([5, 3, 9, 0, 1, 7], 0, LENGTH, rows=[0, 1, 17, 44])))
    assert (logits.dtype, logits.shape) == (np.float32, (4, VOCAB_SIZE))
    assert logits.flags.c_contiguous
    assert asked.is_true(logits, asked.truth(TEXT)[[0, 1, 17, 44]])
    assert driver.run(batch(Feed([1], [2]))).shape == (0, VOCAB_SIZE)


def test_it_answers_hidden_states_in_the_place_of_rows(asked: Subject, whole: Whole) -> None:
    """The other rows are as they were; a state is followed by zeros."""
    opened = asked.open()
    n_values, states = opened.capabilities.embeddings, asked.states(TEXT)
    if n_values:
        rows = [3, 17, 17, 44]
        answer = opened.run(batch(TEXT.feed(range(N_EACH), 0, LENGTH, rows=rows, embeds=[1, 3])))
        answered = answer.logits if isinstance(answer, Drawn) else answer[[1, 3]]
        assert answered.shape == (2, VOCAB_SIZE)
        assert asked.is_true(answered[:, :n_values], states[[17, 44]])
        assert not answered[:, n_values:].any()
        if isinstance(answer, Drawn):
            assert len(answer.tokens) == 2
        else:
            assert asked.same(answer[[0, 2]], whole(TEXT)[[3, 17]])
    opened.close()
    assert n_values in (0, states.shape[1])


def test_a_token_may_want_several_rows(asked: Subject, driver: Driver, whole: Whole) -> None:
    rows = [0, 5, 5, 5, 30]
    assert asked.same(driver.run(batch(TEXT.feed(range(N_EACH), 0, LENGTH, rows=rows))), whole(TEXT)[rows])


@pytest.mark.parametrize("text", [TEXT, masked(1), masked(2)], ids=["causal", "masks", "other masks"])
@pytest.mark.parametrize("chunk", [1, 3, 8, 20])
def test_chunks_do_not_matter(asked: Subject, driver: Driver, whole: Whole, text: Text, chunk: int) -> None:
    expected = whole(text)
    for start in range(0, LENGTH, chunk):
        end = min(start + chunk, LENGTH)
        assert asked.same(driver.run(batch(text.feed(range(N_EACH), start, end))), expected[start:end])


@pytest.mark.parametrize("seed", range(6))
def test_neither_company_nor_order_nor_pages_matter(asked: Subject, driver: Driver, whole: Whole, seed: int) -> None:
    """Sequences advance by chunks of any size, some in each batch and in any order, over pages in any order."""
    random = Random(seed)
    texts = [TEXT, masked(3 + seed), Text(tokens(9), positions=random.choices(range(512), k=LENGTH))]
    expected = [whole(text) for text in texts]
    order, done = random.sample(range(N_PAGES), N_PAGES), [0] * len(texts)
    while unfinished := [idx for idx in range(len(texts)) if done[idx] < LENGTH]:
        feeds, wanted = [], []
        for idx in random.sample(unfinished, random.randint(1, len(unfinished))):
            n = min(random.choice([1, 1, random.randint(2, 20)]), LENGTH - done[idx])
            rows = sorted(random.sample(range(n), random.randint(1, n)))
            feeds.append(texts[idx].feed(order[idx * N_EACH : (idx + 1) * N_EACH], done[idx], done[idx] + n, rows=rows))
            wanted += [expected[idx][done[idx] + row] for row in rows]
            done[idx] += n
        assert asked.same(driver.run(batch(*feeds)), np.array(wanted))


def test_masks_are_true(asked: Subject, whole: Whole) -> None:
    for seed in range(4):
        assert asked.is_true(whole(masked(seed)), asked.truth(masked(seed)))


def test_a_mask_that_allows_all_is_none(asked: Subject, whole: Whole) -> None:
    masks = {slot: runs for slot in range(LENGTH) for runs in [[0, slot + 1], [0, 1, 0, slot]][slot % 2 : slot % 2 + 1]}
    assert asked.same(whole(Text(TEXT.tokens, masks=masks)), whole(TEXT))


def test_what_a_mask_hides_does_not_matter(asked: Subject, driver: Driver) -> None:
    """Hidden slots hold other tokens, a hidden page another text; how the runs are cut does not matter either."""
    other = [*tokens(7, 2), *TEXT.tokens[2:8], *tokens(8, 8), *TEXT.tokens[16:40]]
    rows = []
    for text, cut in ((TEXT.tokens[:40], [2, 6, 8, 25]), (other, [2, 6, 8, 25]), (other, [2, 3, 0, 3, 8, 5, 0, 20])):
        pages = [0, 1, 2, 3, 4, 5]
        hiding = {slot: [2, min(slot + 1, 8) - 2, *([8, slot - 15] if slot > 15 else [])] for slot in range(2, 40) if not 8 <= slot < 16}
        driver.run(batch(Text(text, masks=hiding).feed(pages, 0, 40, rows=[])))
        rows.append(driver.run(batch(Feed([TEXT.tokens[40]], pages, start=40, rows=[0], masks={0: cut}))))
    assert np.array_equal(rows[0], rows[1])
    assert np.array_equal(rows[0], rows[2])


@pytest.mark.parametrize("positions", [[4] * LENGTH, range(450, 450 + LENGTH), range(LENGTH)[::-1], [0, 511, *range(3, LENGTH + 1)]])
def test_positions_may_repeat_jump_and_reorder(asked: Subject, driver: Driver, whole: Whole, positions: list[int]) -> None:
    text = Text(TEXT.tokens, positions=positions)
    expected = whole(text)
    assert asked.is_true(expected, asked.truth(text))
    for start, end in ((0, 11), (11, 12), (12, LENGTH)):
        assert asked.same(driver.run(batch(text.feed(range(N_EACH), start, end))), expected[start:end])


def test_forks_by_copies_of_pages(asked: Subject, driver: Driver, whole: Whole) -> None:
    """Two go on from 20 tokens: full pages are shared, the third, which both write, is copied in the batch that writes
    it.
    """
    branches = [TEXT, Text([*TEXT.tokens[:20], *tokens(5, 25)])]
    driver.run(batch(TEXT.feed(range(3), 0, 20)))
    feeds = [branches[0].feed([0, 1, 2, 3], 20, 30), branches[1].feed([0, 1, 8, 9], 20, 30)]
    logits = driver.run(batch(*feeds, copies=[(2, 8)]))
    assert asked.same(logits, np.concatenate([whole(branch)[20:30] for branch in branches]))


def test_a_reread_gives_the_row_again_and_writes_nothing(asked: Subject, driver: Driver, whole: Whole) -> None:
    expected = whole(TEXT)
    driver.run(batch(TEXT.feed(range(N_EACH), 0, 16)))
    reread = TEXT.feed([0, 1], 15, 16, reread=True)
    assert asked.same(driver.run(batch(reread, reread)), np.repeat(expected[15:16], 2, axis=0))
    # Another token there, and another position: computed, not written.
    driver.run(batch(Feed([TEXT.tokens[15] ^ 1], [0, 1], start=15, rows=[0], positions=[3], reread=True)))
    assert asked.same(driver.run(batch(TEXT.feed(range(N_EACH), 16, 20))), expected[16:20])


def test_a_page_comes_back_from_host_memory(asked: Subject, driver: Driver, whole: Whole) -> None:
    expected, other = whole(TEXT), Text(tokens(4))
    driver.run(batch(TEXT.feed(range(3), 0, 20)))
    assert driver.run(batch(swap_outs=[(0, 5), (1, 0), (2, 3)])).shape == (0, VOCAB_SIZE)
    assert asked.same(driver.run(batch(other.feed(range(3), 0, 20))), whole(other)[:20])
    # To other pages, in the batch that goes on with them; the second one needs it twice.
    swap_ins = [(5, 10), (0, 11), (3, 12), (3, 13)]
    feeds = [TEXT.feed([10, 11, 12, 14], 20, 30), TEXT.feed([10, 11, 13, 15], 20, 25)]
    logits = driver.run(batch(*feeds, swap_ins=swap_ins))
    assert asked.same(logits, np.concatenate([expected[20:30], expected[20:25]]))
    assert asked.same(driver.run(batch(other.feed(range(4), 20, 22))), whole(other)[20:22])


def test_copies_are_made_in_order(asked: Subject, driver: Driver, whole: Whole) -> None:
    """One batch: what it swaps out is what was there before; copies see what was swapped in; tokens are written
    last.
    """
    first, second, third = TEXT, Text(tokens(4)), Text(tokens(6))
    driver.run(batch(*(text.feed([page], 0, 8) for text, page in ((first, 0), (second, 1), (third, 2)))))
    driver.run(batch(swap_outs=[(0, 0)]))
    # Page 1 goes out, the first text comes in to it and is copied to page 2, which goes out too; page 3 is swapped out
    # unwritten, then copied to from page 0; page 0 goes out and is written again.
    again = second.feed([0], 0, 8)
    logits = driver.run(
        batch(
            again,
            first.feed([2, 6], 8, 10),
            swap_outs=[(1, 1), (2, 2), (0, 4), (3, 5)],
            swap_ins=[(0, 1)],
            copies=[(1, 2), (0, 3)],
        )
    )
    assert asked.same(logits, np.concatenate([whole(second)[:8], whole(first)[8:10]]))
    driver.run(batch(swap_ins=[(1, 10), (2, 11), (4, 12)]))
    holds = {0: second, 1: first, 2: first, 3: first, 10: second, 11: third, 12: first}
    for page, text in holds.items():
        assert asked.same(driver.run(batch(text.feed([page, 15], 8, 9))), whole(text)[8:9]), page


def test_a_batch_may_be_empty_or_consist_of_copies_alone(asked: Subject, driver: Driver, whole: Whole) -> None:
    driver.run(batch(TEXT.feed([0], 0, 8)))
    for nothing in (batch(), batch(copies=[(0, 4)]), batch(swap_outs=[(0, 2)], copies=[(4, 5)]), batch(swap_ins=[(2, 6)])):
        logits = driver.run(nothing)
        assert (logits.dtype, logits.shape) == (np.float32, (0, VOCAB_SIZE))
    for page in (0, 4, 5, 6):
        assert asked.same(driver.run(batch(TEXT.feed([page, 7], 8, 10))), whole(TEXT)[8:10]), page


def test_a_sequence_fails_alone(asked: Subject, driver: Driver, whole: Whole) -> None:
    other = Text(tokens(4))
    with pytest.raises(FailedSequencesError) as caught:
        driver.run(batch(TEXT.feed([0, 1, 2], 0, 20), asked.failing, other.feed([3, 4], 0, 10)))
    failed = caught.value
    assert list(failed.reasons) == [1]
    assert failed.reasons[1]
    assert failed.answer.shape == (20 + len(asked.failing.rows) + 10, VOCAB_SIZE)
    assert asked.same(failed.answer[:20], whole(TEXT)[:20])
    assert asked.same(failed.answer[-10:], whole(other)[:10])
    # The pages of the one that failed serve again.
    assert asked.same(driver.run(batch(TEXT.feed([0, 1, 20, 21], 16, 30, rows=range(4, 14)))), whole(TEXT)[20:30])
    assert asked.same(driver.run(batch(other.feed([21, 20], 0, 10))), whole(other)[:10])


def with_words(good: Batch, name: str, values: dict[int, int]) -> Batch:
    """The batch with some words of an array replaced."""
    words = good.words.copy()
    first = int(words[16 + 2 * ARRAYS.index(name)])
    for index, value in values.items():
        words[first + index] = value
    return Batch(words)


def without_last(good: Batch, name: str) -> Batch:
    """The batch whose header says that an array is shorter by one word."""
    words = good.words.copy()
    words[17 + 2 * ARRAYS.index(name)] -= 1
    return Batch(words)


GOOD = batch(
    Text(tokens(4), masks={9: [3, 4]}).feed([5, 6], 8, 12),
    TEXT.feed([7, 8], 9, 10),
    copies=[(0, 10), (1, 11)],
    swap_outs=[(2, 0), (3, 1)],
    swap_ins=[(2, 12), (3, 13)],
)
"""What the mistakes are made in."""

NONSENSE = {
    "a token that is none": with_words(GOOD, "tokens", {0: VOCAB_SIZE}),
    "a page that is none": with_words(GOOD, "kv_indices", {1: N_PAGES}),
    "a page copied from that is none": with_words(GOOD, "copy_src", {0: N_PAGES}),
    "a page copied to that is none": with_words(GOOD, "copy_dst", {0: 1 << 31}),
    "a page swapped out that is none": with_words(GOOD, "swap_out_src", {1: N_PAGES}),
    "a page swapped in to that is none": with_words(GOOD, "swap_in_dst", {1: N_PAGES}),
    "a host slot swapped out to that is none": with_words(GOOD, "swap_out_dst", {1: N_HOST_PAGES}),
    "a host slot swapped in from that is none": with_words(GOOD, "swap_in_src", {0: N_HOST_PAGES}),
    "a row of no token": with_words(GOOD, "row_token", {4: 5}),
    "rows in the wrong order": with_words(GOOD, "row_token", {0: 3}),
    "tokens of no sequence": with_words(GOOD, "qo_indptr", {0: 1}),
    "a sequence without tokens": with_words(GOOD, "qo_indptr", {1: 0}),
    "sequences backwards": with_words(GOOD, "qo_indptr", {1: 9}),
    "a sequence without pages": with_words(GOOD, "kv_indptr", {1: 0}),
    "pages of no sequence": with_words(GOOD, "kv_indptr", {2: 3}),
    "an empty last page": with_words(GOOD, "kv_last_page_len", {0: 0}),
    "an overfull last page": with_words(GOOD, "kv_last_page_len", {0: PAGE_SIZE + 1}),
    "more tokens than slots": with_words(batch(TEXT.feed([5], 0, 3)), "kv_last_page_len", {0: 2}),
    "a mask longer than its row": with_words(GOOD, "mask_runs", {1: 10}),
    "a mask that allows nothing": with_words(GOOD, "mask_runs", {1: 0}),
    "a mask that causality leaves nothing of": with_words(GOOD, "mask_runs", {0: 11, 1: 1}),
    "masks of no token": with_words(GOOD, "mask_indptr", {0: 1}),
    "a page that two write": with_words(GOOD, "kv_indices", {3: 6}),
    "a page that one writes and another reads": with_words(GOOD, "kv_indices", {2: 6}),
    "a re-read of several tokens": with_words(GOOD, "seq_reread", {0: 1}),
    "a page copied to twice": with_words(GOOD, "copy_dst", {1: 10}),
    "a page copied to and from": with_words(GOOD, "copy_src", {1: 10}),
    "a page copied and swapped in to": with_words(GOOD, "swap_in_dst", {0: 10}),
    "a page swapped in to twice": with_words(GOOD, "swap_in_dst", {0: 13}),
    "a host slot swapped out to twice": with_words(GOOD, "swap_out_dst", {0: 1}),
    "a host slot swapped out to and in from": with_words(GOOD, "swap_in_src", {0: 1}),
    **{
        f"too few {name}": without_last(GOOD, name)
        for name in ARRAYS
        if not name.startswith(("seq_context", "seq_request", "row_")) and name not in {"seq_adapter_version", "seq_zo_seed"}
    },
    "pages of another size": arenas.batch([TEXT.feed([5], 0, 8)], page_size=PAGE_SIZE * 2),
}


def test_the_mistakes_are_made_in_a_good_batch(driver: Driver) -> None:
    driver.run(batch(Text(tokens(4)).feed([5], 0, 8), Text(tokens(4)).feed([7, 8], 0, 9)))
    assert driver.run(GOOD).shape == (5, VOCAB_SIZE)


@pytest.mark.parametrize("mistake", NONSENSE)
def test_nonsense_is_refused_and_changes_nothing(asked: Subject, driver: Driver, whole: Whole, mistake: str) -> None:
    pages = range(N_EACH)
    driver.run(batch(TEXT.feed(pages, 0, 40), Text(tokens(4)).feed([10, 11, 12, 13], 0, 32)))
    driver.run(batch(swap_outs=[(2, 0), (3, 1)]))
    with pytest.raises(DriverError) as caught:
        driver.run(NONSENSE[mistake])
    assert str(caught.value)
    # All that the copies and tokens of that batch would have changed.
    assert asked.same(driver.run(batch(TEXT.feed(pages, 40, LENGTH))), whole(TEXT)[40:])
    assert asked.same(driver.run(batch(Text(tokens(4)).feed([10, 11, 12, 13, 14], 32, 36))), whole(Text(tokens(4)))[32:36])
    logits = driver.run(batch(TEXT.feed([0, 1, 20, 21, 22, 23], 32, 40), swap_ins=[(0, 20), (1, 21)], copies=[(4, 22)]))
    assert asked.same(logits, whole(TEXT)[32:40])


def test_limits_are_kept(driver: Driver) -> None:
    limits = driver.capabilities
    if limits.max_positions <= 1 << 20:
        with pytest.raises(DriverError, match=str(limits.max_positions)):
            driver.run(batch(Feed([1], [0], positions=[limits.max_positions])))
    pages, n = range(N_PAGES), N_PAGES * PAGE_SIZE
    if limits.max_batch_tokens < n:
        with pytest.raises(DriverError, match=str(limits.max_batch_tokens)):
            driver.run(batch(Feed([1] * (limits.max_batch_tokens + 1), pages)))
        with pytest.raises(DriverError, match=str(limits.max_batch_tokens)):
            driver.run(batch(Feed([1], pages, rows=[0] * (limits.max_batch_tokens + 1))))


def test_a_closed_driver_refuses(driver: Driver) -> None:
    driver.close()
    driver.close()
    with pytest.raises(DriverError, match="closed"):
        driver.run(batch(Feed([1], [0], rows=[0])))


def test_adapters_and_media_are_part_of_a_token_where_they_are_served(asked: Subject, driver: Driver) -> None:
    """Each of them changes the row, or fails its sequence alone, as does an adapter that is not loaded."""
    limits = driver.capabilities
    plain = driver.run(batch(Feed([1, 2], [0], rows=[1])))
    # The dummy needs no more of an adapter than its name.
    named = limits.adapters and asked.name.endswith("dummy")
    for served, asks in (
        (named, {"adapter": 5}),
        (named, {"adapter": 5, "adapter_version": 1}),
        (named, {"adapter": 5, "zo_seed": 0}),
        (named, {"adapter": 5 << 32}),
        (limits.media, {"media": 9}),
    ):
        special = batch(Feed([1, 2], [0], rows=[1], **asks))
        if not served:
            with pytest.raises(FailedSequencesError) as caught:
                driver.run(batch(Feed([1, 2], [0], rows=[1], **asks), Feed([1, 2], [1], rows=[1])))
            assert list(caught.value.reasons) == [0]
            answer = caught.value.answer
            assert isinstance(answer, Drawn) or asked.same(answer[1:], plain)
            continue
        row = driver.run(special)
        assert not np.array_equal(row, plain)
        assert np.array_equal(driver.run(special), row)


DRAWS = [
    Draw(),
    Draw(Sampler(0.8, top_p=0.9), seed=1 << 40),
    Draw(Sampler(1.5, top_k=7), seed=7, slot=3),
    Draw(Sampler(1.2, min_p=0.05), seed=9),
    Draw(Sampler(1.0, top_k=1), seed=3),
    Draw(Sampler(2.0), seed=(1 << 64) - 1, mask=[VOCAB_SIZE // 2, 9]),
    Draw(mask=[3, 1]),
    # Models that tell tokens apart sharply are drawn from widely only so.
    Draw(Sampler(60.0), seed=5),
    Draw(Sampler(90.0, top_k=100), seed=6, mask=[1, VOCAB_SIZE - 1]),
    Draw(Sampler(40.0, top_p=0.95, min_p=0.1), seed=8),
]
PROMPT = [5, 6, 7]


def test_sequences_follow_rows_of_the_batch_before_where_that_is_served(asked: Subject, driver: Driver) -> None:
    """Each token is the one that the engine would draw from the row; where the driver draws nothing, the sequences fail
    alone.
    """
    prompts = [Feed(PROMPT, [n], rows=[2], draws=[drawn]) for n, drawn in enumerate(DRAWS)]
    # Backwards: a row is named, and not the place of a sequence.
    followers = [Feed([0], [n], start=3, rows=[0], follows=n) for n in reversed(range(len(DRAWS)))]
    alone = Feed(PROMPT, [len(DRAWS)], rows=[2])
    follower = batch(*followers, alone, batch_id=8, before=7)
    if not driver.capabilities.follows:
        driver.run(batch(*prompts, batch_id=7))
        with pytest.raises(FailedSequencesError) as caught:
            driver.run(follower)
        assert set(caught.value.reasons) == set(range(len(followers)))
        return
    assert isinstance(driver, FollowingDriver)
    answers = [driver.launch(batch(*prompts, batch_id=7)), driver.launch(follower)]
    rows, followed = (answer() for answer in answers)
    drawn = [token(row, how) for row, how in zip(rows, DRAWS, strict=True)]
    assert len(set(drawn)) > 3
    known = [Feed([*PROMPT, token], [n], rows=[3]) for n, token in enumerate(drawn)]
    assert asked.same(driver.run(batch(*reversed(known), alone)), followed)
    with pytest.raises(FailedSequencesError) as caught:
        driver.run(follower)
    assert set(caught.value.reasons) == set(range(len(followers))), "another batch ran since"


def test_a_driver_that_draws_answers_tokens_and_only_the_rows_that_are_wanted(asked: Subject, driver: Driver) -> None:
    """The tokens are those that the engine would draw from the rows."""
    prompts = [Feed(PROMPT, [n], rows=[2], draws=[drawn]) for n, drawn in enumerate(DRAWS)]
    plain = batch(*prompts)
    kept = plain.words.copy()
    Batch(kept).row_keep[[1, 4]] = 1
    rows = driver.run(plain)
    opened = asked.open()
    answer = opened.run(Batch(kept))
    opened.close()
    if not driver.capabilities.follows:
        assert asked.same(answer, rows)
        return
    assert isinstance(answer, Drawn)
    assert answer.tokens.tolist() == [token(row, how) for row, how in zip(rows, DRAWS, strict=True)]
    assert asked.same(answer.logits, rows[[1, 4]])


def test_a_driver_takes_commands_or_says_that_it_has_no_adapters(asked: Subject) -> None:
    """What it refuses changes nothing."""
    opened = asked.open()
    first, second = AdapterName(1, 0), AdapterName(1, 7)
    if not isinstance(opened, CommandedDriver):
        return
    if not opened.capabilities.adapters:
        with pytest.raises(UnsupportedError, match="no adapters on this driver"):
            opened.command(LoadAdapter(first, "/adapter"))
    elif asked.name.endswith("dummy"):
        opened.command(LoadAdapter(first, "/adapter"))
        opened.command(CopyAdapter(first, second))
        opened.command(DropAdapter(first))
        opened.command(DropAdapter(second))
        for command in (DropAdapter(second), CopyAdapter(first, second)):
            with pytest.raises(DriverError, match="is not loaded"):
                opened.command(command)
    else:
        with pytest.raises(RefusedAdapterError, match=r"there is no adapter_model\.safetensors"):
            opened.command(LoadAdapter(first, "/adapter"))
        for refused in (DropAdapter(first), CopyAdapter(first, second)):
            with pytest.raises(DriverError, match="is not loaded"):
                opened.command(refused)
    assert opened.run(batch(Feed(PROMPT, [0]))) is not None
    opened.close()


def test_pages_that_one_driver_gives_away_are_those_of_the_next(asked: Subject, whole: Whole) -> None:
    """Their bits are the same in whichever place; one that is not there, or a file that is too short, is refused."""
    first, second = asked.open(), asked.open()
    limits = first.capabilities
    if not limits.page_bytes:
        return
    assert limits.pages_made_by
    assert second.capabilities.pages_made_by == limits.pages_made_by
    assert isinstance(first, CommandedDriver)
    assert isinstance(second, CommandedDriver)
    memory = os.memfd_create("pages")
    path = f"/proc/{os.getpid()}/fd/{memory}"
    try:
        os.ftruncate(memory, 4 * limits.page_bytes)
        first.run(batch(TEXT.feed(range(3), 0, 20)))
        first.command(ExportPages(((0, 0), (3, 1)), path))
        second.command(ImportPages(((3, 4), (0, 9)), path))
        for command in (ExportPages(((0, limits.n_pages),), path), ImportPages(((4, 5),), path), ImportPages(((0, 5),), "/absent")):
            with pytest.raises(DriverError):
                second.command(command)
        pages = [9, 4, *range(10, 8 + N_EACH)]
        assert asked.same(asked.rows_of(second).run(batch(TEXT.feed(pages, 16, LENGTH))), whole(TEXT)[16:])
    finally:
        os.close(memory)
        first.close()
        second.close()


def token(row: np.ndarray, how: Draw) -> int:
    """What is drawn from a row."""
    allowed, end = np.full(VOCAB_SIZE, not how.mask), 0
    for index, run in enumerate(how.mask):
        allowed[end : end + run] = index % 2 == 1
        end += run
    return draw(np.where(allowed, row, -np.inf).astype(np.float32), how.sampler, how.seed, 3, slot=how.slot)
