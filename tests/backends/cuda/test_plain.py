"""What is recognized as a plain decode batch is one, and is right; what is wrong is never recognized."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from oracle.sampler import Sampler
from pie.backends.base import Capabilities, DriverError
from pie.backends.checks import check
from pie.backends.cuda.plain import Plain, PlainBatches
from pie.backends.cuda.rows import check_rows
from pie.backends.cuda.sampler_words import filtered_rows
from pie.backends.unsupported import unsupported
from pie.batch import Batch
from support.arenas import Draw, Feed, batch

LIMITS = Capabilities(
    backend="cuda", vocab_size=40, max_positions=64, page_size=4, n_pages=50, max_batch_tokens=8, host_pages=3, masks=True, positions=True,
    follows=True,
)  # fmt: skip
SAMPLERS = [
    Sampler(),
    Sampler(temperature=0.7),
    Sampler(temperature=0.7, top_k=1),
    Sampler(temperature=1.0, top_k=5),
    Sampler(0.5, top_p=0.5),
]


def decode(random: Random, n: int) -> Batch:
    """A decode batch that keeps to the limits; some of its pages are shared where nothing is written."""
    own = random.sample(range(10, LIMITS.n_pages), n)
    feeds = []
    for seq in range(n):
        start = random.randint(0, 15)
        pages = [*random.sample(range(10), 5)[: start // LIMITS.page_size], own[seq]]
        draw = Draw(random.choice(SAMPLERS), seed=random.getrandbits(64))
        follows = random.choice([None, random.randrange(8)])
        feeds.append(Feed([random.randrange(40)], pages, start=start, rows=[0], draws=[draw], follows=follows))
    return batch(feeds, page_size=LIMITS.page_size, batch_id=7, before=6)


def is_right(asked: Batch) -> bool:
    """By what checks batches of every kind."""
    try:
        check(asked, LIMITS)
        check_rows(asked, LIMITS.vocab_size)
        return not unsupported(asked, LIMITS)
    except DriverError:
        return False


def found(asked: Batch) -> Plain | None:
    return PlainBatches(LIMITS).find(asked)


def test_plain_batches_are_recognized_with_what_they_hold() -> None:
    for seed in range(200):
        random = Random(seed)
        asked = decode(random, random.randint(1, 8))
        plain, rows, spans = found(asked), check_rows(asked, LIMITS.vocab_size), check(asked, LIMITS)
        assert plain is not None
        sampler = asked.array("row_sampler").reshape(-1, 8)
        assert (plain.is_random, plain.n_filtered) == (len(rows.random) > 0, np.count_nonzero(filtered_rows(sampler[rows.random])))
        assert plain.pages.tolist() == [int(asked.kv_indices[end - 1]) for end in asked.kv_indptr[1:]]
        assert plain.most_followed == asked.seq_follows.max()
        assert (plain.kv_last_page_len.astype(np.int64) - 1 == spans.first_slot % LIMITS.page_size).all()


def test_no_batch_that_is_wrong_is_recognized() -> None:
    """Some words of the arena are changed; what is recognized still is what the full check accepts."""
    n_wrong = n_plain = 0
    for seed in range(6000):
        random = Random(seed)
        asked = decode(random, random.randint(1, 8))
        words = asked.words.copy()
        for _ in range(random.randint(1, 2)):
            # From the header's counts on; the number of words has to stay.
            at = random.randrange(5, len(words))
            words[at] = random.choice([0, 1, 2, 3, 4, 5, 8, 40, 50, 64, 0xFFFFFFFF, int(words[at]) + 1])
        changed = Batch(words)
        plain = found(changed)
        try:
            right = is_right(changed)
        except Exception:  # an array that leaves the arena
            right = False
        n_wrong, n_plain = n_wrong + (not right), n_plain + (plain is not None)
        if plain is not None:
            assert right, seed
            assert (changed.row_draws == 1).all()
            assert not changed.row_keep.any()
            assert not len(changed.mask_runs)
            assert not len(changed.row_mask_runs)
            assert not len(changed.copy_src)
            assert not changed.seq_reread.any()
    print(f"{n_wrong} of 6000 changed batches are wrong, {n_plain} are plain")
    assert n_wrong > 1000
    assert n_plain > 1000


@pytest.mark.parametrize(
    "feeds",
    [
        [Feed([1, 2], [0], rows=[1])],
        [Feed([1], [0], rows=[])],
        [Feed([1], [0], start=1, rows=[0], masks={0: [1, 1]})],
        [Feed([1], [0], start=1, rows=[0], draws=[Draw(mask=[1, 2])])],
        [Feed([1], [0], start=1, rows=[0], embeds=[0])],
        [Feed([1], [0], start=1, rows=[0], reread=True)],
        [Feed([1], [0], start=1, rows=[0], adapter=3)],
        [Feed([1], [0], start=1, rows=[0], media=3)],
        [Feed([1], [0, 1], start=4, rows=[0]), Feed([1], [1], start=1, rows=[0])],
        [Feed([1], [0, 0], start=4, rows=[0])],
    ],
)
def test_what_asks_for_more_is_not_plain(feeds: list[Feed]) -> None:
    assert found(batch(feeds, page_size=LIMITS.page_size)) is None


def test_copies_and_other_sizes_are_not_plain() -> None:
    feed = [Feed([1], [0], start=1, rows=[0])]
    assert found(batch(feed, page_size=4)) is not None
    assert found(batch(feed, page_size=8)) is None
    assert found(batch(feed, page_size=4, copies=[(1, 2)])) is None
    assert found(batch(feed, page_size=4, swap_outs=[(1, 2)])) is None
    assert found(batch(feed, page_size=4, swap_ins=[(1, 2)])) is None
    assert found(batch([], page_size=4)) is None
