"""The texts of sources as Markdown: paragraphs that a cell of a table can hold, and the examples that it cannot."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_FENCE = re.compile(r"^\s*```")
_TAG = re.compile(r"^@(\w+)\s*(.*)$")
_SPAN = re.compile(r"(\[?)(`+)(.+?)\2(\](?:\([^)\s]*\))?)?")
_OF_RUST = {"", "no_run", "ignore", "rust", "should_panic"}

Link = Callable[[str], str]
"""Makes the link to a name of a code span; empty where it names nothing that has a place."""


@dataclass(frozen=True)
class Text:
    """What is said of a name."""

    paragraphs: tuple[str, ...]
    examples: tuple[tuple[str, str], ...]
    """Languages with their code."""


def parsed(doc: str, language: str) -> Text:
    """A text, by the habits of its language: `# Errors` in Rust, `@throws` in TypeScript, indented code in Python."""
    paragraphs: list[str] = []
    examples: list[tuple[str, str]] = []
    for part in _parts(doc):
        code = _code(part, language)
        if code is not None:
            examples.append(code)
        else:
            paragraphs += _paragraphs(part)
    return Text(tuple(_joined(paragraphs)), tuple(examples))


def _parts(doc: str) -> list[list[str]]:
    """Runs of lines that belong together: paragraphs, and code."""
    parts: list[list[str]] = [[]]
    is_fenced = False
    for line in doc.splitlines():
        is_code = line.startswith("    ") and (not parts[-1] or parts[-1][0].startswith("    "))
        if _FENCE.match(line):
            parts += [[line]] if not is_fenced else []
            if is_fenced:
                parts[-1].append(line)
                parts.append([])
            is_fenced = not is_fenced
        elif is_fenced or (is_code and line.strip()):
            parts[-1].append(line)
        elif not line.strip():
            # An empty line within indented code is part of it.
            parts += [[]] if not parts[-1] or not parts[-1][0].startswith("    ") else []
            if parts[-1] and parts[-1][0].startswith("    "):
                parts[-1].append("")
        elif parts[-1] and parts[-1][0].startswith("    "):
            parts.append([line])
        else:
            parts[-1].append(line)
    return [part for part in parts if any(line.strip() for line in part)]


def _code(part: list[str], language: str) -> tuple[str, str] | None:
    if _FENCE.match(part[0]):
        given = part[0].strip().strip("`")
        kind = "rust" if language == "rust" and given in _OF_RUST else given or language
        # What a test of documentation needs, and a reader does not.
        lines = [line for line in part[1:-1] if not (language == "rust" and re.match(r"^\s*#( |$)", line))]
        return kind, "\n".join(lines).strip("\n")
    if part[0].startswith("    "):
        return ("ts" if language == "typescript" else language), "\n".join(line[4:] for line in part).strip("\n")
    return None


def _paragraphs(part: list[str]) -> list[str]:
    """A paragraph, cut where a tag, a heading or an item of a list begins."""
    found: list[str] = []
    for line in part:
        tag = _TAG.match(line)
        heading = re.match(r"^#+ (.*)$", line)
        if tag is not None:
            found.append(_tag(tag[1], tag[2]))
        elif heading is not None:
            found.append(f"# {heading[1]}")
        elif line.lstrip().startswith("- "):
            found.append(f"• {line.lstrip()[2:]}")
        elif found and not found[-1].startswith("# "):
            found[-1] = f"{found[-1]} {line.strip()}"
        else:
            found.append(line.strip())
    return found


def _tag(name: str, text: str) -> str:
    if name == "throws":
        kind, _, rest = text.partition(" ")
        return f"Throws `{kind}`{': ' if rest.startswith('`') else ' ' if rest else ''}{rest}"
    if name == "param":
        parameter, _, rest = text.partition(" ")
        return f"`{parameter}`: {rest}"
    return text


def _joined(paragraphs: list[str]) -> list[str]:
    """A heading stands in front of the paragraph behind it."""
    found: list[str] = []
    for paragraph in paragraphs:
        if found and found[-1].startswith("# "):
            is_sentence = re.match(r"[A-Z][a-z ]", paragraph) is not None
            found[-1] = f"{found[-1][2:]}: {paragraph[0].lower() if is_sentence else paragraph[0]}{paragraph[1:]}"
        else:
            found.append(paragraph)
    return [paragraph if paragraph.endswith((".", ":", "!", "?")) else f"{paragraph}." for paragraph in found]


def markdown(paragraph: str, link: Link) -> str:
    """A paragraph in which the names that have a place are links, and what HTML would read as a tag is not one."""
    made, place = "", 0
    for match in _SPAN.finditer(paragraph):
        bracket, name, behind = match[1], match[3], match[4] or ""
        made += _plain(paragraph[place : match.start()])
        if bracket and not behind:
            made += "["
        target = link(name)
        made += f"[{code(name)}]({target})" if target else code(name)
        if behind and not bracket:
            made += behind
        place = match.end()
    return made + _plain(paragraph[place:])


def _plain(text: str) -> str:
    return text.replace("<", "&lt;")


def code(text: str) -> str:
    """A text as a span of code."""
    marks = "``" if "`" in text else "`"
    return f"{marks}{text}{marks}"


def cell(text: str) -> str:
    """A text as that of one cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")
