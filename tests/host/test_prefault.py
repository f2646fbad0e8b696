"""Instances of the language runtimes first write to the pages that programs write to anyway."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pie.programs import Language
from tools.build_js_runtime import builder
from tools.prefault import MARK, PROGRAMS, RUNTIMES, n_marked, tells_pages, written_pages

PAGE = 4096
TYPE = b"\1\4\1\x60\0\0"
FUNCTION = b"\3\2\1\0"
MEMORY = b"\5\3\1\0\1"
GLOBAL = b"\6\6\1\x7f\1\x41\0\x0b"
START = b"\x08\1\0"
CODE = b"\x0a\4\1\2\0\x0b"
AT_ZERO = b"\x41\0\x0b"
"""A constant address."""
AT_GLOBAL = b"\x23\0\x0b"
"""An address that a global says."""


@pytest.mark.parametrize("language", PROGRAMS)
def test_instances_write_first_to_what_a_program_writes_to(language: Language) -> None:
    n_pages = n_marked(RUNTIMES / f"{language}.wasm")
    if not tells_pages():
        assert n_pages == 0
        return
    # Were they others, a program would have as many pages again.
    assert 50 < n_pages <= len(written_pages(language)) < 1.1 * n_pages


def number(value: int) -> bytes:
    """An unsigned LEB128 number."""
    last = value < 0x80
    return bytes([value]) if last else bytes([value & 0x7F | 0x80]) + number(value >> 7)


def section(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + number(len(content)) + content


def module(*before: bytes, data: bytes | None = bytes(PAGE) + b"x", at: bytes = AT_ZERO) -> bytes:
    """A core module of these sections, with an image in its memory."""
    image = b"" if data is None else section(11, b"\1\0" + at + number(len(data)) + data)
    return b"\0asm\1\0\0\0" + b"".join(before) + image


def component(*modules: bytes) -> bytes:
    return b"\0asm\x0d\0\1\0" + b"".join(section(1, one) for one in modules)


WHOLE = module(TYPE, FUNCTION, MEMORY, GLOBAL, CODE)
WITHOUT_IMAGE = module(TYPE, FUNCTION, MEMORY, GLOBAL, CODE, data=None)


def prefaulted(folder: Path, content: bytes, *pages: int) -> subprocess.CompletedProcess[str]:
    source, target = folder / "source.wasm", folder / "target.wasm"
    source.write_bytes(content)
    return subprocess.run([builder(), "prefault", source, target, *map(str, pages)], capture_output=True, text=True, check=False)


def test_a_module_gets_a_start_function(tmp_path: Path) -> None:
    done = prefaulted(tmp_path, component(WITHOUT_IMAGE, WHOLE), 0)
    assert done.returncode == 0, done.stderr
    made = (tmp_path / "target.wasm").read_bytes()
    assert n_marked(tmp_path / "target.wasm") == 1
    # What has no image stays as it is.
    assert made.count(MARK) == 1
    assert WITHOUT_IMAGE in made
    # The first byte that is not zero stands on the second page of the memory: it is loaded, a global is added, it is
    # stored.
    address = number(PAGE)
    assert b"\x41\0\x41\0\x28\2" + address + b"\x23\1\x6a\x36\2" + address + b"\x0b" in made


@pytest.mark.parametrize(
    ("content", "page", "reason"),
    [
        (component(), 0, "0 modules of the component have a memory with an image; one must"),
        (component(WITHOUT_IMAGE), 0, "0 modules of the component have a memory with an image; one must"),
        (component(module(TYPE, FUNCTION, MEMORY, GLOBAL, CODE, data=bytes(PAGE))), 0, "0 modules of the component"),
        (component(WHOLE, WHOLE), 0, "2 modules of the component have a memory with an image; one must"),
        (component(module(TYPE, FUNCTION, MEMORY, GLOBAL, START, CODE)), 0, "the module with the memory starts with a function already"),
        (component(WHOLE), 1, "the page at 0x2000 lies behind the image, which ends at 0x1001"),
        (component(module(TYPE, FUNCTION, MEMORY, GLOBAL, CODE, at=AT_GLOBAL)), 0, "which is not a constant"),
        (component(module(TYPE, FUNCTION, MEMORY, CODE)), 0, "what was made of the component is none"),
        (component(WHOLE)[:-3], 0, "a section of the component reaches beyond its end"),
        (b"hello", 0, "magic"),
    ],
)
def test_what_cannot_get_one_is_refused(tmp_path: Path, content: bytes, page: int, reason: str) -> None:
    done = prefaulted(tmp_path, content, page)
    assert done.returncode == 1
    assert reason in done.stderr
    assert "panicked" not in done.stderr
    assert not (tmp_path / "target.wasm").exists()


def test_it_is_not_done_twice(tmp_path: Path) -> None:
    assert prefaulted(tmp_path, component(WHOLE), 0).returncode == 0
    again = prefaulted(tmp_path, (tmp_path / "target.wasm").read_bytes(), 0)
    assert again.returncode == 1
    assert "starts with a function already" in again.stderr
