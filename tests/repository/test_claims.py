"""What the README and the docs say there is, is there: uses, drivers, models, languages, clients, commands, figures,
and whatever a link leads to.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args
from urllib.parse import unquote

import pytest
import typer.main

from pie.cli.app import app
from pie.config.tree import DriverName
from pie.models.families import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BENCHMARKS = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
FENCED = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:(?<=\n\n) {4}\S.*\n(?:(?: {4}.*)?\n)*)")
CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+(?:\([^()\s]*\))?)\)")
SHELLS = {"bash", "console", "sh", "shell", ""}
UNLISTED = {"hello": "the first line of what a client signs", "test-worker": "what modules for tests start, which is not for people"}
"""What stands behind the word `pie` in code, and is not a command of the command line's list."""


def pages() -> list[Path]:
    """Every page of Markdown that is kept, but those of the templates of new projects."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in listed.splitlines() if (ROOT / name).is_file()]


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def section(title: str) -> str:
    """A section of the README."""
    return README.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def table(text: str, first: str) -> list[list[str]]:
    """The rows below the heading whose first cell is `first`."""
    lines = text.split(f"| {first} |", 1)[1].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


# Links


@cache
def anchors(page: Path) -> frozenset[str]:
    """What a link may lead to on a page: its headings, as GitHub names them, and its own anchors."""
    text = page.read_text(encoding="utf-8")
    seen: Counter[str] = Counter()
    found = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
    for heading in re.findall(r"^#{1,6} +(.*?) *#*$", FENCED.sub("", text), re.MULTILINE):
        name = slug(heading)
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return frozenset(found)


def slug(heading: str) -> str:
    """The anchor of a heading: its words in small letters, joined by hyphens."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")


def broken(page: Path) -> Iterator[str]:
    """The links of a page that lead nowhere. Those to other sites are not followed."""
    for target in LINK.findall(CODE.sub("", prose(page))):
        if re.match(r"[a-z][a-z+.-]*:", target):
            continue
        path, _, anchor = unquote(target).partition("#")
        place = (page.parent / path).resolve() if path else page
        if not place.exists() or not place.is_relative_to(ROOT):
            yield f"{page.relative_to(ROOT)}: {target}: there is no such file"
        elif anchor and place.suffix == ".md" and anchor not in anchors(place):
            yield f"{page.relative_to(ROOT)}: {target}: there is no such heading"


def test_every_link_leads_somewhere() -> None:
    assert [line for page in pages() for line in broken(page)] == []


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Two commands", "two-commands"),
        ("`pie run`: a run, and its end", "pie-run-a-run-and-its-end"),
        ("A [link](there.md) in it", "a-link-in-it"),
        ("What `max_tokens` cuts", "what-max_tokens-cuts"),
    ],
)
def test_an_anchor_is_made_as_github_makes_it(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# One\n\n[a](#one) [b](#two) [c](other.md) [d](https://example.org) `[e](none.md)`\n")
    assert list(broken(page)) == ["page.md: #two: there is no such heading", "page.md: other.md: there is no such file"]


def test_every_page_of_the_guide_is_in_its_index() -> None:
    folder = ROOT / "docs/guide"
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", (folder / "README.md").read_text(encoding="utf-8")))
    assert listed == {page.name for page in folder.glob("*.md")} - {"README.md"}


# Commands


@cache
def commands() -> dict[str, Any]:
    """Every command of `pie` by its words: `run`, `model show`. Their class is one that the library keeps to itself."""
    found: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [("", typer.main.get_command(app))]
    while waiting:
        name, command = waiting.pop()
        if name:
            found[name] = command
        for inner, made in getattr(command, "commands", {}).items():
            waiting.append((f"{name} {inner}".strip(), made))
    return found


def options(command: Any) -> set[str]:
    """What begins with a hyphen in a command's line."""
    return {"--help", *(name for param in command.params for name in (*param.opts, *param.secondary_opts) if name.startswith("-"))}


def written() -> Iterator[tuple[str, list[str]]]:
    """Each place of README, CHANGELOG and docs where a command of `pie` is written as code, and its words."""
    for page in pages():
        name = str(page.relative_to(ROOT))
        if name not in {"README.md", "CHANGELOG.md", "CONTRIBUTING.md"} and not name.startswith("docs/"):
            continue
        text = page.read_text(encoding="utf-8")
        blocks = [block for _, language, block in FENCED.findall(text) if language in SHELLS]
        blocks += INDENTED.findall(FENCED.sub("", text))
        lines = [line for block in blocks for line in block.splitlines()] + [code for _, code in CODE.findall(FENCED.sub("", text))]
        for line in lines:
            for words in re.findall(r"(?:^|[$|;&(] *)pie ((?:[^|;&`]|$)+)", " ".join(line.split())):
                yield f"{name}: {line.strip()}", words.partition(" #")[0].split()


def unknown(words: list[str]) -> str | None:
    """What a line names that `pie` has not: the command, or an option of it."""
    known = commands()
    first = words[0]
    if first in UNLISTED or not re.fullmatch(r"[a-z][a-z-]*", first):
        return None
    if first not in known:
        return f"there is no command {first}"
    name = " ".join(words[:2])
    command = known.get(name, known[first])
    if getattr(command, "commands", None) and name not in known and len(words) > 1 and re.fullmatch(r"[a-z][a-z-]*", words[1]):
        return f"there is no command {name}"
    own = words[: words.index("--")] if "--" in words else words
    for word in own:
        option = re.match(r"--[a-z][a-z-]+", word)
        if option and option[0] not in options(command):
            return f"{name if name in known else first} has no option {option[0]}"
    return None


def test_every_command_that_is_written_is_one() -> None:
    places = list(written())
    assert len(places) > 100
    assert [f"{place}: {fault}" for place, words in places if (fault := unknown(words))] == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("run hello.py --seed 7 -- --name Ada", None),
        ("model show DIR", None),
        ("rum hello.py", "there is no command rum"),
        ("model shew DIR", "there is no command model shew"),
        ("run hello.py --sed 7", "run has no option --sed"),
    ],
)
def test_what_is_no_command_is_found(line: str, fault: str | None) -> None:
    assert unknown(line.split()) == fault


# Lists of the README


def test_every_use_has_an_example_that_a_test_runs() -> None:
    first = README.split("\n## ", 1)[0]
    named = re.search(r"It suits (.*?):", first, re.DOTALL)
    assert named is not None
    uses = [" ".join(use.split()) for use in re.split(r", | and ", named[1])]
    rows = table(README, "use")
    assert [use for use, _, _ in rows] == uses
    tests = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py")))
    for use, examples, guides in rows:
        places = LINK.findall(examples)
        assert places, use
        assert LINK.findall(guides), use
        for place in places:
            parts = Path(place).parts
            name = parts[2] if parts[1] == "rust" else Path(place).stem
            assert parts[0] == "examples"
            assert re.search(rf'["\'/]{name}(\.\w+)?["\']', tests), f"no test runs {place}"


def test_the_drivers_are_those_that_there_are() -> None:
    rows = table(section("What it runs on"), "driver")
    assert {name.strip("`") for name, _, _ in rows} == set(get_args(DriverName))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {"cuda", "reference"} <= extras.keys()
    # The state of the driver for GPUs is that of its own page.
    guide = (ROOT / "docs/guide/cuda.md").read_text(encoding="utf-8")
    assert ("no GPU has run it yet" in README) == ("**Never run on a GPU**" in guide)


def test_the_families_are_those_that_there_are() -> None:
    said = re.search(r"It serves (.*?) checkpoints", section("What it runs on"))
    assert said is not None
    assert set(re.split(r", | and ", said[1])) == {name.removesuffix("ForCausalLM") for name in FAMILIES}
    shown = table((ROOT / "docs/guide/models.md").read_text(encoding="utf-8"), "`architectures` in `config.json`")
    assert {name.strip("`") for name, _ in shown} == set(FAMILIES)


def test_the_languages_and_clients_are_those_that_there_are() -> None:
    said = re.search(r"written in (.*?)\. It runs", README, re.DOTALL)
    assert said is not None
    languages = {language.lower() for language in re.split(r", | or ", " ".join(said[1].split()))}
    folders = {path.name for path in (ROOT / "python/pie/bakery/templates").iterdir() if path.is_dir()}
    assert languages == {name for name in folders if not name.startswith(("_", "."))}
    clients = re.search(r"the\s+clients in (.*?)\.", section("A server, and a project"), re.DOTALL)
    assert clients is not None
    places = {"Python": "python/pie/client", "JavaScript": "js/client", "Rust": "rust/client"}
    assert set(re.split(r", | and ", " ".join(clients[1].split()))) == set(places)
    assert all((ROOT / place).is_dir() for place in places.values())


def test_what_is_to_be_installed_is_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in " ".join(README.split())
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    assert f"Rust {workspace['package']['rust-version']} or newer" in " ".join(README.split())
    for command in ("run", "test", "wheel"):
        assert re.search(rf"^{command}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE), command
        assert f"make {command}" in README


def test_the_changelog_says_everything_once() -> None:
    unreleased = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
    entries = Counter(" ".join(entry.split()) for entry in re.findall(r"^- (?:.*\n)(?:  .*\n)*", unreleased, re.MULTILINE))
    assert [entry for entry, n in entries.items() if n > 1] == []


# Figures

FIGURES = {
    "these twenty answers": [("twenty answers", 1)],
    "a fork of a context of 32,000 tokens": [("fork of 32,000 tokens", 1)],
    "the first token behind a prompt of 1,500 tokens that was seen before": [
        ("time to the first token, all of 1,500 tokens seen before", 1),
        ("time to the first token, all of 1,500 tokens seen before", 2),
    ],
    "from the shell to the first token of a Python program": [("pie run to the first token", 1)],
}
"""For each row of figures in the README, the case and column of the benchmarks that each of its numbers is of."""
SPREAD = 1.5
"""A figure of the README may differ from the last measurement by so much, since each run of a benchmark differs."""


@pytest.mark.parametrize("what", FIGURES)
def test_a_figure_is_what_the_benchmarks_say(what: str) -> None:
    rows = dict(table(section("Why"), "what"))
    assert rows.keys() == FIGURES.keys()
    shown = re.findall(r"([\d.,]+) (us|ms|s)\b", rows[what])
    assert len(shown) == len(FIGURES[what])
    for (number, unit), (case, column) in zip(shown, FIGURES[what], strict=True):
        line = re.search(rf"^\| {re.escape(case)} \|.*$", BENCHMARKS, re.MULTILINE)
        assert line is not None, f"docs/benchmarks.md has no case {case!r}: measure it by make bench"
        measured = re.match(r"([\d.,]+) (us|ms|s)\b", [cell.strip() for cell in line[0].strip("|").split("|")][column])
        assert measured is not None
        assert measured[2] == unit
        ratio = float(number.replace(",", "")) / float(measured[1].replace(",", ""))
        assert 1 / SPREAD <= ratio <= SPREAD, f"{what}: the README says {number} {unit}, the benchmarks {measured[1]}"
