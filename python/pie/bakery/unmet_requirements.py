"""Why no release of a package could be had, by what pip says.

It says it in its errors, and in its log, which names each file that was left out, and why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pie.bakery.lock import plain_package_name

_GIVEN_UP = re.compile(
    r"satisfies the requirement (?P<name>[A-Za-z0-9._-]+)(?:\[[^\]\n]*\])?(?P<bounds>[^;()\n]*)(?:;[^\n]*?)?"
    r"(?: \(from (?P<parent>[^)\n]*)\))? \(from versions: (?P<versions>[^)\n]*)\)"
)
_CONFLICT = re.compile(r"Cannot install (?P<requirements>[^\n]+) because these package versions have conflicting dependencies")
_UNKNOWN_TO_UV = re.compile(r"Because (?P<name>[A-Za-z0-9._-]+) was not found in the package registry")
_SKIPPED = re.compile(r"Skipping link: (?P<reason>.+?): (?P<link>\w+://\S+)")
_OTHER_TAGS = re.compile(r"none of the wheel's tags \((?P<tags>[^)]*)\) are compatible")
_OTHER_PYTHON = re.compile(r"\S+ Requires-Python ")
_NO_SOURCES = "No sources permitted for "
_NOT_FOUND = re.compile(r"Could not fetch URL (?P<page>\S+): 404\b")
_BOUND = re.compile(r"(?P<operator><=|>=|==|~=|<|>)[ \t]*(?P<version>\d{1,18}(?:\.\d{1,18})*)(?![\w.*+!-])")
"""A bound of plain numbers; others are not compared."""
_ANOTHER = "choose another package, in pure Python"
_N_SHOWN = 3
_MAX_SHOWN_CHARS = 200


@dataclass(frozen=True)
class _Files:
    """What pip left out of the files of a package: whether there were such, or one of them."""

    has_compiled: bool
    has_sources: bool
    for_other_python: str | None
    """Why a wheel in pure Python does not fit, in the words of pip."""


def why_unmet(said: str, noted: str, python: str) -> str | None:
    """Why the installer found no release of a package, with the remedy; None where that is not clear.

    `said` is what it wrote to the user, `noted` its log; `python` is the version that it looked for.
    """
    if (conflict := _CONFLICT.search(said)) is not None:
        asked = _shortened(conflict["requirements"])
        return f"{asked} contradict each other, or what they depend on does: no release fits all of them; correct their versions"
    if (unknown := _UNKNOWN_TO_UV.search(said)) is not None:
        return _no_package(repr(unknown["name"]))
    given_up = _GIVEN_UP.search(said)
    if given_up is None:
        return None
    name, parent = given_up["name"], given_up["parent"]
    package = repr(name) if parent is None else f"{name!r}, which {parent!r} depends on,"
    if given_up["versions"] != "none":
        return _out_of_bounds(package, given_up["bounds"].strip(), given_up["versions"].split(", "))
    files = _files(name, noted)
    if files.has_compiled:
        return (
            f"for Python {python} the dependency {package} has compiled releases only, and programs run in a sandbox that cannot load "
            f"compiled extensions; {_ANOTHER}"
        )
    if files.for_other_python is not None:
        return f"the dependency {package} has no release for Python {python}, which programs run in ({files.for_other_python}); {_ANOTHER}"
    if files.has_sources:
        return (
            f"the dependency {package} has releases as sources only, and nothing is built here; {_ANOTHER}, or build a wheel of it "
            "(`pip wheel`), and have PIP_FIND_LINKS name its folder"
        )
    return _no_package(package) if _is_unknown(name, noted) else None


def _no_package(package: str) -> str:
    return (
        f"there is no package {package} where packages come from; check the name, and the index that is set (PIP_INDEX_URL, "
        "`pip config list`)"
    )


def _out_of_bounds(package: str, bounds: str, versions: list[str]) -> str | None:
    """Which releases there are that do not fit; None where no bounds say why."""
    if not bounds:
        return None
    newest = ", ".join(versions[-_N_SHOWN:])
    older = f", and {len(versions) - _N_SHOWN} older" if len(versions) > _N_SHOWN else ""
    shown = repr(_shortened(bounds))
    there = f"there are {_shortened(newest)}{older}"
    if _contradict(bounds):
        return f"the bounds of the dependency {package} contradict each other: no version fits {shown}; correct them ({there})"
    return f"the dependency {package} has no release in pure Python that fits {shown}; change the bounds ({there})"


def _contradict(bounds: str) -> bool:
    """Whether no version can be within the bounds; False where they do not say that for sure."""
    lowest: tuple[tuple[int, ...], bool] | None = None
    highest: tuple[tuple[int, ...], bool] | None = None
    for operator, written in _BOUND.findall(bounds):
        version = tuple(map(int, re.sub(r"(?:\.0+)+$", "", written).split(".")))
        if operator in {">", ">=", "==", "~="}:
            # Of two that are equal the one that leaves its version out is higher.
            lowest = max(filter(None, (lowest, (version, operator == ">"))))
        if operator in {"<", "<=", "=="}:
            highest = min(filter(None, (highest, (version, operator != "<"))))
    if lowest is None or highest is None or lowest[0] < highest[0]:
        return False
    return lowest[0] > highest[0] or lowest[1] or not highest[1]


def _files(name: str, noted: str) -> _Files:
    """What the log says of the files of a package."""
    has_compiled = has_sources = False
    for_other_python = None
    plain = plain_package_name(name)
    for skipped in _SKIPPED.finditer(noted):
        reason = skipped["reason"]
        if reason.startswith(_NO_SOURCES):
            has_sources = has_sources or plain_package_name(reason.removeprefix(_NO_SOURCES)) == plain
            continue
        file = unquote(urlsplit(skipped["link"]).path).rpartition("/")[2]
        if plain_package_name(file.partition("-")[0]) != plain:
            continue
        tags = _OTHER_TAGS.match(reason)
        if tags is not None and not all(tag.endswith("-any") for tag in tags["tags"].split(", ")):
            has_compiled = True
        elif tags is not None or _OTHER_PYTHON.match(reason):
            for_other_python = f"{file} is for {tags['tags']}" if tags is not None else reason
    return _Files(has_compiled, has_sources, for_other_python)


def _is_unknown(name: str, noted: str) -> bool:
    """Whether an index has no page of a package."""
    pages = (urlsplit(found["page"]).path.rstrip("/").rpartition("/")[2] for found in _NOT_FOUND.finditer(noted))
    return any(plain_package_name(page) == plain_package_name(name) for page in pages)


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}..."
