"""The core names no setting of whoever uses it: where users find one is told to it, as `SettingNames` are."""

from __future__ import annotations

import re
from pathlib import Path

CORE = Path(__file__).resolve().parents[2] / "rust/core/src"
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
COMMENT = re.compile(r"//[^\n]*")
CHARACTER = re.compile(r"'(?:\\.|[^\\'])'")
SECTION = re.compile(r"(?<![\w.])(engine|server|client|runtime)\.[a-z]")


def named(source: str) -> list[str]:
    """The texts of a source in which a setting of such a section is named."""
    code = CHARACTER.sub("", COMMENT.sub("", source))
    return [text for text in TEXT.findall(code) if SECTION.search(text)]


def test_a_name_is_found() -> None:
    assert named('let x = "raise engine.bus_topics";') == ['"raise engine.bus_topics"']
    assert named('let x = "beyond \\\n   server.grace_s"; // engine.x') != []
    assert named('let x = \'"\'; engine.submit(); // "engine.x"\n' + 'let y = "the engine. It";') == []


def test_the_core_names_no_setting_of_whoever_uses_it() -> None:
    found = {str(path.relative_to(CORE)): named(path.read_text()) for path in sorted(CORE.rglob("*.rs"))}
    assert {path: texts for path, texts in found.items() if texts} == {}
