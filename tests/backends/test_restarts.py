"""When a driver that was lost is started again."""

from pie.isolation.supervisor import Restarts


def test_one_that_ran_is_started_at_once() -> None:
    restarts = Restarts(10)
    restarts.lost(100.0, ran=True)
    assert restarts.wait_s(100.0) == 0.0
    assert not restarts.is_exhausted(100.0)


def test_one_that_never_runs_is_started_later_and_later() -> None:
    restarts, waits = Restarts(1000), []
    for n in range(12):
        restarts.lost(100.0 + n, ran=False)
        waits.append(restarts.wait_s(100.0 + n))
    assert waits[:4] == [0.1, 0.2, 0.4, 0.8]
    assert waits[-1] == 10.0
    restarts.lost(200.0, ran=True)
    assert restarts.wait_s(200.0) == 0.0


def test_beyond_so_many_a_minute_it_waits_until_the_minute_is_over() -> None:
    restarts = Restarts(2)
    for now_s in (100.0, 110.0, 120.0):
        assert not restarts.is_exhausted(now_s)
        restarts.lost(now_s, ran=True)
    assert restarts.is_exhausted(120.0)
    assert restarts.wait_s(120.0) == 40.0
    assert restarts.is_exhausted(159.9)
    assert not restarts.is_exhausted(160.0)
    assert restarts.wait_s(160.0) == 0.0


def test_none_may_be_allowed() -> None:
    restarts = Restarts(0)
    restarts.lost(100.0, ran=True)
    assert restarts.is_exhausted(100.0)
    assert restarts.wait_s(100.0) == 60.0


def test_nobody_waits_for_one_that_cannot_be_started_again() -> None:
    restarts, given_up = Restarts(10), []
    restarts.lost(100.0, ran=True)
    for n in range(4):
        given_up.append(restarts.is_given_up)
        restarts.lost(101.0 + n, ran=False)
    assert given_up == [False, False, False, True]
    restarts.lost(200.0, ran=True)
    assert not restarts.is_given_up
