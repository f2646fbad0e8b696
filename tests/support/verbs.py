"""The verbs of the protocol, read from the server that answers them."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_REQUESTS = _ROOT / "rust/server/src/requests.rs"
_PROTOCOL = _ROOT / "docs/reference/protocol.md"


def verbs() -> set[str]:
    """Every type of a message that is answered."""
    source = _REQUESTS.read_text()
    found: set[str] = set()
    for arms in re.findall(r"match request\.kind\.as_str\(\) \{\n(.*?)\n +unknown =>", source, re.DOTALL):
        for pattern in re.findall(r'^ +("[^=]*?") =>', arms, re.MULTILINE):
            found |= set(re.findall(r'"([a-z_]+)"', pattern))
    return found


def documented() -> set[str]:
    """The verbs that have a heading in the description of the protocol."""
    headings = re.findall(r"^### (.+)$", _PROTOCOL.read_text(), re.MULTILINE)
    return {verb for heading in headings for verb in re.findall(r"[a-z_]+", heading.replace("(binary)", ""))}
