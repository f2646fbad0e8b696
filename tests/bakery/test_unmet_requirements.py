"""Where no release of a package can be had, the error says why: by what pip says, and by what an index answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from pie.bakery.build import build
from pie.bakery.unmet_requirements import why_unmet
from pie.errors import PieError
from support.folders import write
from support.registries import python_index
from support.wheels import wheel

ECHO = "async def main(input):\n    return input\n"
AT = "https://files.example.org/packages/ab"
STAMP = "2026-01-02T03:04:05,678 "


def given_up(wanted: str, versions: str = "none") -> str:
    """What pip writes to the user."""
    return (
        f"ERROR: Could not find a version that satisfies the requirement {wanted} (from versions: {versions})\n"
        f"ERROR: No matching distribution found for {wanted}\n"
    )


def skipped(reason: str, file: str) -> str:
    """A line of its log."""
    return f"{STAMP}  Skipping link: {reason}: {AT}/{file}#sha256=00 (from https://example.org/simple/x/) (requires-python:>=3.9)\n"


def tags(*names: str) -> str:
    """Why a wheel with these tags does not fit."""
    return f"none of the wheel's tags ({', '.join(names)}) are compatible (run pip debug --verbose to show compatible tags)"


COMPILED = skipped(tags("cp314-cp314-manylinux_2_17_x86_64", "cp314-cp314-manylinux2014_x86_64"), "Fast_Sums-2.0-cp314-cp314-x.whl")
SOURCES = skipped("No sources permitted for fast-sums", "fast-sums-1.0.tar.gz")
OLD = skipped(tags("py2-none-any"), "fast_sums-0.1-py2-none-any.whl")
LIMITED = skipped("1.5 Requires-Python <3.10,>=3.8", "fast_sums-1.5-py3-none-any.whl")
OTHERS = skipped(tags("cp314-cp314-win_amd64"), "fast-1-cp314-cp314-win_amd64.whl") + skipped("No sources permitted for fast", "fast-1.zip")
UNKNOWN = f"{STAMP}  Could not fetch URL https://example.org/simple/fast-sums/: 404 Client Error: Not Found for url: x - skipping\n"


@pytest.mark.parametrize(
    ("said", "noted", "told"),
    [
        (given_up("fast-sums"), COMPILED, "for Python 3.14 the dependency 'fast-sums' has compiled releases only"),
        (given_up("Fast.Sums"), SOURCES + COMPILED + LIMITED + UNKNOWN, "for Python 3.14 the dependency 'Fast.Sums' has compiled releases"),
        (given_up("fast-sums>=1 (from graphs)"), COMPILED, "the dependency 'fast-sums', which 'graphs' depends on, has compiled releases"),
        (given_up("fast-sums"), SOURCES + OTHERS, "the dependency 'fast-sums' has releases as sources only, and nothing is built here"),
        (given_up("fast-sums"), OLD, "has no release for Python 3.14, .*(fast_sums-0.1-py2-none-any.whl is for py2-none-any)"),
        (given_up("fast-sums"), SOURCES + LIMITED, r"has no release for Python 3.14, .*\(1.5 Requires-Python <3.10,>=3.8\)"),
        (
            given_up("fast-sums[all]; python_version > '3'"),
            UNKNOWN,
            "there is no package 'fast-sums' where packages come from; check the name",
        ),
        (
            "  x No solution found:\n  ╰─▶ Because fast-sums was not found in the package registry and",
            "",
            "there is no package 'fast-sums'",
        ),
        # Nothing is told of a package by what stands there of another one.
        (given_up("fast-sums"), OTHERS + UNKNOWN.replace("fast-sums", "fast"), None),
        (given_up("fast-sums"), "", None),
        ("ERROR: No space left on device\n", COMPILED, None),
        (
            given_up("fast-sums<1,>8", "0.9, 8.0"),
            "",
            r"fast-sums' contradict each other: no version fits '<1,>8'; .* \(there are 0.9, 8.0\)",
        ),
        (given_up("fast-sums>=99", "1, 2, 3, 4"), "", r"no release in pure Python that fits '>=99'; .* \(there are 2, 3, 4, and 1 older\)"),
        (given_up("fast-sums<2,>1", "1, 2"), "", "no release in pure Python that fits '<2,>1'"),
        (given_up("fast-sums", "1"), "", None),
        (
            "ERROR: Cannot install a<1 and a>8 because these package versions have conflicting dependencies.\n",
            "",
            "^a<1 and a>8 contradict each other, or what they depend on does: no release fits all of them",
        ),
    ],
)
def test_what_pip_says_is_told_in_words_of_the_program(said: str, noted: str, told: str | None) -> None:
    reason = why_unmet(said, noted, "3.14")
    if told is None:
        assert reason is None
    else:
        assert reason is not None
        assert re.search(told, reason), reason


@pytest.mark.parametrize(
    ("bounds", "contradict"),
    [
        ("<1,>8", True),
        (">=8,<8", True),
        (">8,<=8.0.0", True),
        ("==1.0,==2", True),
        ("==8,>8", True),
        ("~=2.2,<2", True),
        ("<9,>1,>=10", True),
        (">=8,<=8", False),
        ("<2,>1.9.9", False),
        ("<10,>9", False),
        ("!=1,>0", False),
        # Others than plain numbers are not compared.
        (">=2.dev1,<1.0", False),
        ("==8.*,<8", False),
        (f"<1,>{'9' * 5000}", False),
    ],
)
def test_bounds_contradict_each_other_where_that_is_sure(bounds: str, contradict: bool) -> None:
    reason = why_unmet(given_up(f"a{bounds}", "1, 2"), "", "3.14")
    assert reason is not None
    assert ("contradict each other" in reason) == contradict


@pytest.mark.parametrize(
    ("wanted", "files", "told"),
    [
        ("fast", ["fast-1-cp314-cp314-manylinux_2_17_x86_64.whl", "fast-1.tar.gz"], "the dependency 'fast' has compiled releases only"),
        ("plain", ["plain-1.tar.gz"], "the dependency 'plain' has releases as sources only"),
        ("old", ["old-1-py2-none-any.whl"], r"'old' has no release for Python 3\.14"),
        (
            "greetings<1,>8",
            ["greetings-0.9-py3-none-any.whl", "greetings-9-py3-none-any.whl"],
            "contradict each other: no version fits '<1,>8'",
        ),
        ("greetings>9", ["greetings-9-py3-none-any.whl"], r"'greetings' has no release in pure Python that fits '>9'; .*\(there are 9\)"),
        ("greetings-of-pie-tests", [], "there is no package 'greetings-of-pie-tests' where packages come from; check the name"),
    ],
)
def test_an_index_answers_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str, files: Sequence[str], told: str) -> None:
    write(tmp_path, {"main.py": ECHO, "requirements.txt": f"{wanted}\n"})
    with python_index(files) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(PieError, match=rf"^requirements\.txt: .*{told}") as caught:
            build(tmp_path)
    assert caught.value.code == "build-failed"


def test_requirements_that_contradict_each_other_are_named(tmp_path: Path, wheels: Path) -> None:
    for version in ("1", "8"):
        wheel(wheels, "greetings", {"greetings.py": ""}, version=version)
    write(tmp_path / "p", {"main.py": ECHO, "requirements.txt": "greetings<2\ngreetings>7\n"})
    with pytest.raises(PieError, match=r"requirements\.txt: greetings<2 and greetings>7 contradict each other"):
        build(tmp_path / "p")
