"""Files that pose as programs: each is one clear error, and the engine goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from host.programs import failed, returned
from pie import _engine
from pie.engine import Engine
from pie.errors import PieError
from pie.programs import Component

SOURCE = b"async def main(input):\n    return 1\n"
PREAMBLE = b"\0asm\x0d\0\x01\0"


def leb(number: int) -> bytes:
    digits = bytearray()
    while True:
        digit, number = number & 0x7F, number >> 7
        digits.append(digit | (0x80 if number else 0))
        if not number:
            return bytes(digits)


def section(name: str, content: bytes) -> bytes:
    body = leb(len(name)) + name.encode() + content
    return b"\0" + leb(len(body)) + body


def program(files: dict[str, bytes], entry: str = "main.py", **changes: object) -> bytes:
    header = {"format": 1, "language": "python", "entry": entry, "runtime": None, "manifest": None, **changes}
    archive = leb(len(files)) + b"".join(leb(len(path)) + path.encode() + leb(len(body)) + body for path, body in files.items())
    return PREAMBLE + section("pie:program", json.dumps(header).encode()) + section("pie:files", archive)


def failure(engine: Engine, wasm: bytes) -> tuple[str | None, str]:
    event = failed(engine.launch(Component(Path("hostile.wasm"), content=wasm)))
    return event.code, event.message


WHOLE = program({"main.py": SOURCE})


@pytest.mark.parametrize(
    ("wasm", "code", "expected"),
    [
        (b"", "invalid-program", "not WebAssembly"),
        (b"\x7fELF" + b"\0" * 64, "invalid-program", "not WebAssembly"),
        (WHOLE[:9], "invalid-program", "cut off"),
        (WHOLE[:40], "invalid-program", "cut off"),
        (WHOLE[:-1], "invalid-program", "cut off or damaged"),
        (WHOLE + b"\0\x7f", "invalid-program", "cut off or damaged"),
        (PREAMBLE + section("pie:program", b"{"), "invalid-program", "pie:program"),
        (program({}), "invalid-program", '"main.py" is not among'),
        (program({"../main.py": SOURCE}, "../main.py"), "invalid-program", "not one below the program's folder"),
        (program({"/etc/main.py": SOURCE}, "/etc/main.py"), "invalid-program", "not one below the program's folder"),
        (program({"a\0.py": SOURCE}, "a\0.py"), "invalid-program", "not one below the program's folder"),
        (program({"a//b.py": SOURCE}, "a//b.py"), "invalid-program", "not one below the program's folder"),
        (program({"main.py": SOURCE}, language="perl"), "invalid-program", '"perl"'),
        (program({"main.py": SOURCE}, format=99), "invalid-program", "format 99"),
        (program({"main.py": SOURCE}, runtime="latest"), "invalid-program", '"latest", which is not a digest'),
        (program({"main.py": SOURCE}, manifest="[package]"), "invalid-manifest", "package.name is missing"),
        (program({"main.py": SOURCE}, manifest="[" * 100_000), "invalid-manifest", "more than the 65536"),
        (program({"main.py": SOURCE}, manifest="#" * 300_000), "limit-program", "more than 262144"),
        (program({f"{n}.py": b"" for n in range(10_001)}), "limit-program", "10001 files"),
    ],
)
def test_a_file_that_lies_is_one_clear_error(engine: Engine, wasm: bytes, code: str, expected: str) -> None:
    found, text = failure(engine, wasm)
    assert (found, expected in text) == (code, True), text
    assert len(text) < 1000


def test_a_lying_count_makes_no_memory(engine: Engine) -> None:
    archive = leb(9_999) + leb(1) + b"a" + leb(2**32 - 1)
    wasm = PREAMBLE + section("pie:program", json.dumps({"format": 1, "language": "python", "entry": "a"}).encode())
    code, text = failure(engine, wasm + section("pie:files", archive))
    assert code == "invalid-program", text


def test_a_runtime_that_is_not_what_the_header_says_is_refused(engine: Engine) -> None:
    other = _engine.pack_program("python", {"main.py": SOURCE}, "main.py", None, "sha256:" + "1" * 64, PREAMBLE + section("x", b"y"))
    code, text = failure(engine, other)
    assert code == "invalid-program"
    assert "names the runtime" in text


def test_a_component_that_poses_as_a_runtime_is_refused(engine: Engine) -> None:
    wasm = _engine.pack_program("python", {"main.py": SOURCE}, "main.py", None, None, PREAMBLE + section("x", b"y"))
    code, text = failure(engine, wasm)
    assert code == "invalid-program"
    assert "pie:inferlet/run" in text


@pytest.mark.parametrize("digest", ["", "sha256:", "sha256:xyz", "md5:00"])
def test_what_is_no_digest_is_not_packed(digest: str) -> None:
    with pytest.raises(PieError, match="which is not a digest"):
        _engine.pack_program("python", {"main.py": SOURCE}, "main.py", None, digest)


def test_the_engine_goes_on(engine: Engine) -> None:
    assert returned(engine.launch(Component(Path("good.wasm"), content=WHOLE))) == 1
