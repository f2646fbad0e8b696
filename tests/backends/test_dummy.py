"""The dummy driver answers what the oracle computes, whatever a batch may ask for."""

from random import Random

import numpy as np
import pytest

from oracle.dummy import Write, append, logits
from pie.backends.base import DriverError
from pie.backends.dummy import DummyDriver
from pie.errors import PieError
from support.arenas import Feed, batch

VOCAB_SIZE = 50
PAGE_SIZE = 4
N_TURNS = 12


def special(random: Random) -> dict[str, int | None]:
    """An adapter and media, often none."""
    adapter = random.choice([0, 0, 1, 2, 1 << 40])
    return {
        "adapter": adapter,
        "adapter_version": random.randint(0, 1) if adapter else 0,
        "zo_seed": random.choice([None, 0, 1, (1 << 64) - 1]) if adapter else None,
        "media": random.choice([0, 0, 1 << 50]),
    }


def mask(random: Random, own: int, length: int) -> list[int]:
    """Runs over the slots of a row that show at least one up to its own; sometimes none."""
    if random.random() < 0.5:
        return []
    first = random.randint(0, own)
    runs = [first, random.randint(1, length - first)]
    while random.random() < 0.6:
        runs.append(random.randint(0, length - sum(runs)))
    return runs


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_those_of_the_oracle(seed: int) -> None:
    """Two sequences grow by chunks under changing adapters, media, positions and masks; some of the last tokens are
    read again.
    """
    random = Random(seed)
    driver = DummyDriver("model", vocab_size=VOCAB_SIZE, n_pages=40, page_size=PAGE_SIZE)
    order = random.sample(range(40), 40)
    pages, hashes = [order[:20], order[20:]], [[], []]
    for _turn in range(N_TURNS):
        feeds, expected = [], []
        for seq_idx in random.sample(range(2), random.randint(1, 2)):
            known, asks = hashes[seq_idx], special(random)
            reread = bool(known) and random.random() < 0.3
            n = 1 if reread else random.randint(1, 6)
            start = len(known) - 1 if reread else len(known)
            before = known[:start]
            tokens = [random.randrange(VOCAB_SIZE) for _ in range(n)]
            positions = [random.randrange(1 << 20) for _ in range(n)]
            masks = {idx: runs for idx in range(n) if (runs := mask(random, start + idx, start + n))}
            for idx, (token, position) in enumerate(zip(tokens, positions, strict=True)):
                version, zo_seed = asks["adapter_version"], asks["zo_seed"]
                append(before, Write(token, position, masks.get(idx, ()), asks["adapter"], version, zo_seed, asks["media"]))
            expected += [logits("model", VOCAB_SIZE, hash_) for hash_ in before[start:]]
            feeds.append(Feed(tokens, pages[seq_idx], start=start, rows=range(n), masks=masks, positions=positions, reread=reread, **asks))
            if not reread:
                hashes[seq_idx] = before
        assert np.array_equal(driver.run(batch(feeds, page_size=PAGE_SIZE)), np.array(expected))


def test_sizes_are_checked() -> None:
    for sizes in ({"n_pages": 0, "page_size": 1}, {"n_pages": 1, "page_size": 0}):
        with pytest.raises(PieError, match="= 0 is outside 1 to") as caught:
            DummyDriver("model", vocab_size=10, **sizes)
        assert caught.value.code == "invalid-argument"
    driver = DummyDriver("model", vocab_size=10, n_pages=1, page_size=1)
    with pytest.raises(DriverError, match="token 10 is outside the vocabulary of 10"):
        driver.run(batch([Feed([10], [0])], page_size=1))
