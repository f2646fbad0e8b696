"""What is told of a program that fails with a group of exceptions, as a TaskGroup raises it."""

import pytest

from inferlet._runtime import report


@pytest.mark.parametrize(
    ("group", "message"),
    [
        (
            ExceptionGroup("all", [ExceptionGroup("some", [ValueError("bad")]), KeyError("n")]),
            "all (2 sub-exceptions): the first is ValueError: bad",
        ),
        (ExceptionGroup("all", [ValueError()]), "all (1 sub-exception): the first is ValueError"),
        (
            ExceptionGroup("all", [NameError("no session", name="session")]),
            "all (1 sub-exception): the first is NameError: no session: write `from inferlet import session`",
        ),
    ],
)
def test_a_group_names_its_first_exception_with_what_to_do(group, message):
    described = report.describe(group, set())
    assert (described.kind, described.message, described.code) == ("ExceptionGroup", message, None)


@pytest.mark.parametrize(("n_groups", "told"), [(32, "ValueError: bad"), (33, "ExceptionGroup: some (1 sub-exception)")])
def test_of_groups_within_one_another_a_bounded_number_is_looked_into(n_groups, told):
    error = ValueError("bad")
    for _ in range(n_groups):
        error = ExceptionGroup("some", [error])
    assert report.describe(error, set()).message == f"some (1 sub-exception): the first is {told}"


def test_a_group_is_told_with_the_first_in_its_own_line():
    told = report.told(ExceptionGroup("all", [ValueError("bad"), KeyError("n")]), set())
    assert told.count("ExceptionGroup: all (2 sub-exceptions): the first is ValueError: bad\n") == 1
    assert told.count("all (2 sub-exceptions)") == 1
