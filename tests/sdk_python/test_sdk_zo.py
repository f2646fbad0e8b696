"""Zeroth-order optimisation: the seeds of a population, and what its scores are worth."""

import importlib
import itertools
import math

import pytest

import inferlet
from inferlet import Adapter, ArgumentTypeError, InvalidArgumentError, zo

# What the older README prints, and `inferlet.zo` among it.
LAYOUT = "context model sampler forward grammar adapter session runtime messaging mcp zo _async"


@pytest.mark.rows("OLD-090")
def test_the_modules_of_the_older_package_are_there():
    for name in LAYOUT.split():
        assert importlib.import_module(f"inferlet.{name}").__name__ == f"inferlet.{name}"


@pytest.mark.rows("OLD-030")
def test_each_member_of_each_step_has_a_seed_of_its_own():
    assert inferlet.zo is zo
    pairs = [(step, member) for step in (0, 1, 2, 2**32 - 1) for member in (0, 1, 2, 2**32 - 1)]
    seeds = {pair: zo.seed_for(*pair) for pair in pairs}
    assert len(set(seeds.values())) == len(pairs)
    assert all(-(2**63) <= seed < 2**63 for seed in seeds.values())
    assert seeds == {pair: zo.seed_for(*pair) for pair in pairs}
    # The mixer of SplitMix64, of which this is the first number for the seed 0.
    assert zo.seed_for(0, 0) == 0xE220A8397B1DCDAF - 2**64


@pytest.mark.rows("OLD-030")
@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([1, 3], [-1.0, 1.0]),
        ([0.5, 0.5, 0.5], [0.0, 0.0, 0.0]),
        ([0, 0, 0, 4], [-math.sqrt(1 / 3)] * 3 + [math.sqrt(3)]),
        ([-1e308, 1e308], [-1.0, 1.0]),
        ((0, 0), [0.0, 0.0]),
    ],
)
def test_scores_become_shares_of_the_changes(scores, expected):
    assert zo.coefficients(scores) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: zo.seed_for(-1, 0), "step is -1; it must lie in 0..4294967295"),
        (lambda: zo.seed_for(0, 2**32), "member is 4294967296; it must lie in 0..4294967295"),
        (lambda: zo.coefficients([]), "there are 0 scores; give 2 to 1000000, one for each"),
        (lambda: zo.coefficients(itertools.repeat(1.0)), "there are more than 1000000 scores; give 2 to 1000000"),
        (lambda: zo.coefficients([1.0, math.nan]), "scores[1] is nan; give a finite number"),
        (lambda: zo.coefficients([1.0, math.inf]), "scores[1] is inf; give a finite number"),
    ],
)
def test_what_has_no_share_is_refused(call, message):
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("call", [lambda: zo.seed_for("1", 0), lambda: zo.coefficients(["1", 2]), lambda: zo.coefficients(3)])
def test_what_is_of_another_type_is_refused(call):
    with pytest.raises(ArgumentTypeError):
        call()


class RawAdapter:
    """An engine's adapter that keeps what it was changed by."""

    def __init__(self):
        self.changes = []

    def change(self, changes, sigma):
        self.changes.append(([(change.seed, change.factor) for change in changes], sigma))


@pytest.mark.rows("OLD-030")
def test_an_optimizer_asks_is_told_and_changes_the_adapter():
    raw = RawAdapter()
    optimizer = zo.Optimizer(Adapter(raw), sigma=0.25, lr=0.5, population=4, first_step=7)
    assert raw.changes == [([], 0.25)]
    seeds = optimizer.ask()
    assert seeds == optimizer.ask() == [zo.seed_for(7, member) for member in range(4)]
    optimizer.tell(seeds[:1], [9.0])
    optimizer.tell(iter(seeds), (score for score in (1, 1, 3, 3)))
    optimizer.apply()
    ((changed, sigma),) = raw.changes[1:]
    assert sigma is None
    assert [seed for seed, _ in changed] == seeds
    assert [scale for _, scale in changed] == pytest.approx([0.5 / 4 * part for part in (-1, -1, 1, 1)])
    assert optimizer.step == 8
    assert optimizer.ask() == [zo.seed_for(8, member) for member in range(4)]


def test_scores_that_prefer_nothing_change_nothing():
    raw = RawAdapter()
    optimizer = zo.Optimizer(Adapter(raw), population=2)
    optimizer.tell(optimizer.ask(), [5, 5])
    optimizer.update()
    assert raw.changes[1:] == [([], None)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda made: made.apply(), "3 of the 3 seeds of step 0 have no score; tell those first"),
        (lambda made: made.tell([1], [1, 2]), "there are 1 seeds and 2 scores; give a score for each seed"),
        (lambda made: made.tell([zo.seed_for(1, 0)], [1]), f"seeds[0] is {zo.seed_for(1, 0)}, which is none of step 0"),
        (lambda made: made.tell(made.ask(), [1, math.nan, 2]), "scores[1] is nan; give a finite number"),
        (lambda made: made.tell(itertools.repeat(1), itertools.repeat(1.0)), "seeds[0] is 1, which is none of step 0"),
        (lambda made: zo.Optimizer(made.adapter, sigma=0), "sigma is 0.0; give a finite number above 0"),
        (lambda made: zo.Optimizer(made.adapter, lr=math.inf), "lr is inf; give a finite number above 0"),
        (lambda made: zo.Optimizer(made.adapter, population=1), "population is 1; it must lie in 2..65536"),
        (lambda made: zo.Optimizer(made.adapter, first_step=-1), "first_step is -1; it must lie in 0.."),
    ],
)
def test_what_an_optimizer_cannot_take_changes_nothing(call, message):
    raw = RawAdapter()
    made = zo.Optimizer(Adapter(raw), population=3)
    with pytest.raises(InvalidArgumentError) as caught:
        call(made)
    assert str(caught.value).startswith(message)
    assert (len(raw.changes), made.step) == (1, 0)
    with pytest.raises(InvalidArgumentError, match="have no score"):
        made.apply()


def test_an_optimizer_is_of_an_adapter():
    with pytest.raises(ArgumentTypeError):
        zo.Optimizer("adapter")
