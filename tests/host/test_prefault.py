"""Whether instances of the language runtimes first write to the pages that every program writes to."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pie.programs import Language
from tools.build_js_runtime import builder
from tools.prefault import PROGRAMS, RUNTIMES, n_marked, written_pages


@pytest.mark.parametrize("language", PROGRAMS)
def test_what_is_written_first_is_what_a_program_writes_anyway(language: Language) -> None:
    n_pages = n_marked(RUNTIMES / f"{language}.wasm")
    # Were they others, a program would have as many pages again.
    assert 50 < n_pages <= len(written_pages(language)) < 1.1 * n_pages


def refusal(component: Path, target: Path, *pages: int) -> str:
    done = subprocess.run([builder(), "prefault", component, target, *map(str, pages)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert not target.exists()
    return done.stderr


def test_a_component_that_has_it_does_not_get_it_again(tmp_path: Path) -> None:
    said = refusal(RUNTIMES / "javascript.wasm", tmp_path / "again.wasm", 0)
    assert "the module with the memory starts with a function already" in said


def test_what_is_no_component_is_refused(tmp_path: Path) -> None:
    cut = tmp_path / "cut.wasm"
    cut.write_bytes((RUNTIMES / "javascript.wasm").read_bytes()[:100_000])
    assert refusal(cut, tmp_path / "out.wasm", 0) != ""
    empty = tmp_path / "empty.wasm"
    empty.write_bytes(b"\0asm\x0d\0\x01\0")
    assert "0 modules of the component have a memory with an image" in refusal(empty, tmp_path / "out.wasm", 0)
