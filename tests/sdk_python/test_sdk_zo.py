"""Zeroth-order optimisation: the seeds of a population, and what its scores are worth."""

import importlib
import itertools
import math

import pytest

import inferlet
from inferlet import ArgumentTypeError, InvalidArgumentError, zo

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
