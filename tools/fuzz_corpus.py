"""The kept inputs of the fuzzers: `rust/fuzz/corpus/<target>.txt`, one a line, as `NAME: INPUT`.

An input is in the escapes of a byte string. Those that `NAME` describes were written down, or once failed, and stay.
`learnt` are those that `tools/fuzz.py --keep` chose.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).resolve().parent.parent / "rust" / "fuzz" / "corpus"
LEARNT = "learnt"
MAX_LEARNT = 200
"""The most inputs of a target that are learnt."""
MAX_LEARNT_BYTES = 200_000
"""And the most bytes of their lines."""

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}
_NAMED = {ord(character): f"\\{letter}" for letter, character in _ESCAPES.items()}


@dataclass(frozen=True)
class Input:
    """One input."""

    name: str
    content: bytes

    def line(self) -> str:
        """Its line, without the end."""
        return f"{self.name}: {escaped(self.content)}"


def escaped(content: bytes) -> str:
    """Bytes in printable ASCII."""
    return "".join(_NAMED.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}") for byte in content)


def plain(text: str) -> bytes:
    """The bytes that `escaped` wrote so."""
    parts = re.split(r"\\(x[0-9a-f]{2}|.)", text)
    # What stands between escapes, and the escapes, in turns.
    parts[1::2] = [chr(int(escape[1:], 16)) if escape[0] == "x" else _ESCAPES[escape] for escape in parts[1::2]]
    return "".join(parts).encode("latin-1")


def path_of(target: str) -> Path:
    """The file of a target."""
    return CORPUS / f"{target}.txt"


def read(target: str) -> list[Input]:
    """The kept inputs of a target; none where there is no file."""
    path = path_of(target)
    lines = path.read_text(encoding="ascii").split("\n")[:-1] if path.exists() else []
    pairs = (line.split(": ", maxsplit=1) for line in lines)
    return [Input(name, plain(text)) for name, text in pairs]


def write(target: str, inputs: list[Input]) -> None:
    """Keeps those with names of their own in their order, then the shortest learnt ones, as many as may be."""
    kept = [one for one in inputs if one.name != LEARNT]
    room = MAX_LEARNT_BYTES
    learnt = {one.content: one for one in inputs if one.name == LEARNT}
    for content in {one.content for one in kept} & set(learnt):
        del learnt[content]
    for one in sorted(learnt.values(), key=lambda one: (len(one.content), one.content))[:MAX_LEARNT]:
        room -= len(one.line()) + 1
        if room < 0:
            break
        kept.append(one)
    CORPUS.mkdir(exist_ok=True)
    path_of(target).write_text("".join(f"{one.line()}\n" for one in kept), encoding="ascii")


def unpack(inputs: list[Input], folder: Path) -> None:
    """Writes each input into a file of its own, which is how libFuzzer reads them."""
    folder.mkdir(parents=True)
    for place, one in enumerate(inputs):
        (folder / f"{place:04}").write_bytes(one.content)
