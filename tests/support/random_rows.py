"""Random rows of logits with random ways to draw from them, and what the engine draws from each.

`python tests/backends/cuda/sample_many.py` draws from a million of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from oracle.sampler import Sampler
from pie import _engine
from support.arenas import Draw, Feed, batch

PAGE_SIZE = 512


@dataclass(frozen=True)
class RandomRows:
    """Rows of one batch."""

    logits: np.ndarray
    """float32 [R, V]."""
    draws: list[Draw]
    n_draws: list[int]

    def arena(self):
        """A batch that wants these rows, one of each of R tokens of one sequence, so that their position is R."""
        n = len(self.draws)
        feed = Feed([1] * n, range(-(-n // PAGE_SIZE)), rows=range(n), draws=self.draws)
        made = batch([feed], page_size=PAGE_SIZE)
        made.words.setflags(write=True)
        made.row_draws[:] = self.n_draws
        return made

    def expected(self) -> list[int]:
        """What the engine draws, row by row; -1 where it draws nothing."""
        found = []
        for row, how, n in zip(self.logits, self.draws, self.n_draws, strict=True):
            sampler = (how.sampler.temperature, how.sampler.top_k, how.sampler.top_p, how.sampler.min_p)
            if not np.isfinite(row).all():
                found += [-1] * n
                continue
            drawn = _engine.draw(row, sampler, list(how.mask), seed=how.seed, position=len(self.draws), slot=how.slot, n_draws=n)
            found += np.frombuffer(drawn, np.uint32).tolist()
        return found


def random_rows(seed: int, n_rows: int, vocab_size: int) -> RandomRows:
    """All samplers, masks, ties, extreme logits, seeds and slots."""
    random, numbers = Random(seed), np.random.default_rng(seed)
    logits = np.array([_logits(random, numbers, vocab_size) for _ in range(n_rows)], np.float32)
    draws = [
        Draw(_sampler(random, vocab_size), _seed(random), random.choice([0, 0, 1, 7, 1 << 31]), _mask(random, vocab_size)) for _ in logits
    ]
    n_draws = [random.choice([1] * 12 + [0, 2, 5]) for _ in draws] if random.random() < 0.5 else [1] * n_rows
    return RandomRows(logits, draws, n_draws)


def _logits(random: Random, numbers: np.random.Generator, vocab_size: int) -> np.ndarray:
    kind = random.randrange(9)
    plain = numbers.standard_normal(vocab_size)
    if kind == 0:  # many ties
        return np.round(plain * 2) / 2
    if kind == 1:  # all equal, or zeros of both signs
        return np.where(plain > 0, 0.0, -0.0) if random.random() < 0.5 else np.full(vocab_size, plain[0])
    if kind == 2:  # as large as floats are
        return np.clip(plain * 10.0 ** random.randint(20, 38), -3.4e38, 3.4e38)
    if kind == 3:  # as small
        return plain * 10.0 ** random.randint(-45, -30)
    if kind == 4:  # one far above all others
        plain[random.randrange(vocab_size)] += 60.0
        return plain
    if kind == 5:  # neighbours among floats
        start = np.float32(plain[0] * 10)
        return np.nextafter(start, np.where(plain > 0, np.inf, -np.inf).astype(np.float32))
    if kind == 6 and random.random() < 0.2:  # a number that is none
        plain[random.randrange(vocab_size)] = random.choice([np.nan, np.inf, -np.inf])
        return plain
    return plain * random.choice([0.5, 2.0, 8.0, 30.0])


def _sampler(random: Random, vocab_size: int) -> Sampler:
    kind = random.randrange(8)
    if kind == 0:
        return Sampler()
    temperature = random.choice([1e-30, 0.1, 0.7, 1.0, 1.0, 1.3, 5.0, 1e30, random.uniform(0.01, 3.0)])
    top_k = random.choice([1, 2, random.randint(1, vocab_size), vocab_size, 1 << 31])
    top_p = random.choice([1e-9, 0.1, 0.5, 0.9, 0.999, 1.0, random.random() or 1.0])
    min_p = random.choice([0.0, 0.05, 1.0, random.random()])
    return {
        1: Sampler(temperature, top_p=top_p),
        2: Sampler(temperature, top_k=top_k),
        3: Sampler(temperature, min_p=min_p),
        4: Sampler(temperature, top_k=top_k, top_p=top_p),
        5: Sampler(temperature),
        6: Sampler(temperature, top_k=top_k, top_p=top_p, min_p=min_p),
        7: Sampler(0.0, top_k=top_k, top_p=top_p, min_p=min_p),
    }[kind]


def _seed(random: Random) -> int:
    return random.choice([0, (1 << 64) - 1, 1 << 32, random.getrandbits(64), random.getrandbits(32)])


def _mask(random: Random, vocab_size: int) -> list[int]:
    """Run lengths, forbidden first, that allow a token."""
    if random.random() < 0.6:
        return []
    if random.random() < 0.2:
        return [random.randrange(vocab_size), 1]
    allowed = random.randrange(1, vocab_size)
    forbidden = random.randrange(vocab_size - allowed)
    runs = [forbidden, allowed]
    while (left := vocab_size - sum(runs)) > 1 and random.random() < 0.7:
        runs.append(random.randint(1, left))
    return runs
