"""How often the engine draws each token, against probabilities that numpy computes by itself: a chi-square test each.

Seeds are fixed, so a case fails always or never. The reference sorts the whole row and works in doubles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from pie import _engine

N_DRAWS = 100_000
LEAST_P = 0.001
SEED = 1_000_000
"""The seeds of the cases follow it. Of 111 cases one is below 0.001 at every ninth choice of it, by chance; that the
chance is no greater is what `test_the_deviations_of_many_seeds_are_those_of_chance` shows.
"""
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Filters:
    """A sampler: 0 or 1 switch a filter off."""

    temperature: float
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0


SAMPLERS = {
    "argmax": Filters(0.0),
    "argmax by top-k": Filters(1.0, top_k=1),
    "multinomial": Filters(1.0),
    "cold multinomial": Filters(0.3),
    "hot multinomial": Filters(4.0),
    "top-k": Filters(0.9, top_k=12),
    "top-p": Filters(1.1, top_p=0.8),
    "min-p": Filters(1.0, min_p=0.05),
    "top-k and top-p": Filters(0.8, top_k=20, top_p=0.7),
}


def _rows() -> dict[str, npt.NDArray[np.float32]]:
    random = np.random.default_rng(23)
    plain = random.normal(0, 2, 400)
    extreme = np.concatenate([random.normal(0, 1, 60), [-3e38, 3.0, -1e30, 3.5, -200.0, 2.5]])
    return {
        "plain": plain.astype(np.float32),
        "ties": np.round(plain).astype(np.float32),
        "all alike": np.full(50, -7.25, np.float32),
        "extreme": extreme.astype(np.float32),
        "far above 0": (plain[:100] + 3000).astype(np.float32),
    }


ROWS = _rows()


def _mask(n: int) -> list[int]:
    """Runs over a row, most of which forbid the greatest logits of some of the rows."""
    return [n // 8, n // 4, n // 8, n // 5]


def _allowed(mask: Sequence[int], n: int) -> npt.NDArray[np.bool_]:
    if not mask:
        return np.ones(n, bool)
    allowed = np.repeat(np.arange(len(mask)) % 2 == 1, mask)
    return np.concatenate([allowed, np.zeros(n - len(allowed), bool)])


def probabilities(logits: npt.NDArray[np.float32], filters: Filters, mask: Sequence[int]) -> Array:
    """Of each token: temperature, softmax, top-k, then top-p or min-p over what is left; ties to the lowest id."""
    values = np.where(_allowed(mask, len(logits)), logits.astype(np.float64), -np.inf)
    order = np.argsort(-values, kind="stable")
    if filters.temperature == 0:
        return (np.arange(len(logits)) == order[0]).astype(np.float64)
    ranked = np.exp((values[order] - values[order[0]]) / np.float64(np.float32(filters.temperature)))
    if filters.top_k:
        ranked[filters.top_k :] = 0
    ranked /= ranked.sum()
    if filters.top_p < 1:
        ranked[1:][np.cumsum(ranked)[:-1] >= np.float64(np.float32(filters.top_p))] = 0
    ranked[ranked < filters.min_p * ranked[0]] = 0
    shares = np.empty_like(ranked)
    shares[order] = ranked / ranked.sum()
    return shares


def chi_square_p(counts: npt.NDArray[np.int64], shares: Array) -> float:
    """How probable counts are that lie at least so far from these shares; the rare tokens are one class."""
    expected = shares * counts.sum()
    rare = expected < 10
    observed = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum())
    is_class = wanted >= 10
    if not is_class[-1]:
        # Too few for a class of their own: they must be about as few.
        assert observed[-1] <= wanted[-1] + 6 * math.sqrt(wanted[-1]) + 3
    observed, wanted = observed[is_class], wanted[is_class]
    return _survival(float(((observed - wanted) ** 2 / wanted).sum()), len(wanted) - 1)


def _survival(x: float, n_free: int) -> float:
    """The upper tail of the chi-square distribution: the regularised upper incomplete gamma function, by its series or
    by its continued fraction (Numerical Recipes, 6.2).
    """
    if n_free == 0 or x == 0:
        return 1.0
    a, x = n_free / 2, x / 2
    scale = math.exp(-x + a * math.log(x) - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        for n in range(1, 2000):
            term *= x / (a + n)
            total += term
        return 1 - total * scale
    b = x + 1 - a
    c, d = 1e300, 1 / b
    h = d
    for n in range(1, 2000):
        factor = -n * (n - a)
        b += 2
        d = 1 / (factor * d + b)
        c = b + factor / c
        h *= d * c
    return h * scale


def test_the_tail_is_that_of_tables() -> None:
    for x, n_free, p in [(3.841, 1, 0.05), (18.307, 10, 0.05), (29.588, 10, 0.001), (4.865, 10, 0.9), (149.449, 100, 0.001)]:
        assert _survival(x, n_free) == pytest.approx(p, rel=2e-3)


@pytest.mark.parametrize("masked", [False, True], ids=["any token", "masked"])
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_tokens_are_drawn_as_often_as_they_are_probable(sampler: str, row: str, masked: bool) -> None:
    filters, logits = SAMPLERS[sampler], ROWS[row]
    mask = _mask(len(logits)) if masked else []
    seed = SEED + 1000 * list(SAMPLERS).index(sampler) + 10 * list(ROWS).index(row) + masked
    words = (filters.temperature, filters.top_k, filters.top_p, filters.min_p)
    drawn = _engine.draw(logits, words, mask, seed=seed, position=5, n_draws=N_DRAWS)
    counts = np.bincount(np.frombuffer(drawn, np.uint32), minlength=len(logits))
    shares = probabilities(logits, filters, mask)
    assert counts.sum() == N_DRAWS
    assert not counts[shares == 0].any()
    assert chi_square_p(counts, shares) > LEAST_P


WIDE = 151_936
"""The vocabulary of a large model."""
WIDE_SAMPLERS = {
    "multinomial": Filters(1.0),
    "top-k": Filters(0.9, top_k=200),
    "top-p": Filters(1.1, top_p=0.8),
    "min-p": Filters(1.0, min_p=0.002),
    "top-k and top-p": Filters(0.8, top_k=1000, top_p=0.9),
}


def _wide_rows() -> dict[str, npt.NDArray[np.float32]]:
    random = np.random.default_rng(29)
    plain = random.normal(0, 3, WIDE)
    return {"plain": plain.astype(np.float32), "ties": (np.round(2 * plain) / 2).astype(np.float32)}


@pytest.mark.parametrize("masked", [False, True], ids=["any token", "masked"])
@pytest.mark.parametrize("row", ["plain", "ties"])
@pytest.mark.parametrize("sampler", WIDE_SAMPLERS)
def test_tokens_of_a_wide_row_are_drawn_as_often_as_they_are_probable(sampler: str, row: str, masked: bool) -> None:
    """Rows as wide as those of large models, which are not sorted, are drawn from in other ways than narrow ones."""
    filters, logits = WIDE_SAMPLERS[sampler], _wide_rows()[row]
    mask = _mask(WIDE) if masked else []
    seed = SEED + 100_000 + 1000 * list(WIDE_SAMPLERS).index(sampler) + 10 * (row == "ties") + masked
    words = (filters.temperature, filters.top_k, filters.top_p, filters.min_p)
    drawn = np.frombuffer(_engine.draw(logits, words, mask, seed=seed, position=5, n_draws=N_DRAWS), np.uint32)
    counts, shares = np.bincount(drawn, minlength=WIDE), probabilities(logits, filters, mask)
    assert np.count_nonzero(shares * N_DRAWS >= 10) >= 100
    assert not counts[shares == 0].any()
    assert chi_square_p(counts, shares) > LEAST_P
    # One draw looks its token up otherwise than many do: it is the first of them.
    for position in range(20):
        one, many = (_engine.draw(logits, words, mask, seed=seed, position=position, n_draws=n) for n in (1, 3))
        assert one == many[:4]


@pytest.mark.parametrize(("sampler", "row"), [("cold multinomial", "ties"), ("top-p", "plain"), ("top-k", "extreme")])
def test_the_deviations_of_many_seeds_are_those_of_chance(sampler: str, row: str) -> None:
    """Where counts deviate by chance alone, every p is as probable as every other."""
    filters, logits = SAMPLERS[sampler], ROWS[row]
    words, shares = (filters.temperature, filters.top_k, filters.top_p, filters.min_p), probabilities(logits, filters, [])
    found = []
    for seed in range(300):
        drawn = np.frombuffer(_engine.draw(logits, words, [], seed=seed, position=5, n_draws=20_000), np.uint32)
        found.append(chi_square_p(np.bincount(drawn, minlength=len(logits)), shares))
    spread, _ = np.histogram(found, 10, (0, 1))
    assert chi_square_p(spread, np.full(10, 0.1)) > LEAST_P


def test_draws_at_other_positions_and_slots_are_as_often() -> None:
    """A token a row, as generators draw: the key differs in its position, and in its slot."""
    filters, logits = SAMPLERS["multinomial"], ROWS["ties"][:40]
    shares = probabilities(logits, filters, [])
    for by in ("position", "slot"):
        keys = [{"position": 7, "slot": 0} | {by: n} for n in range(20_000)]
        drawn = [np.frombuffer(_engine.draw(logits, (1.0, 0, 1.0, 0.0), [], seed=3, **key), np.uint32)[0] for key in keys]
        assert chi_square_p(np.bincount(drawn, minlength=len(logits)), shares) > LEAST_P
