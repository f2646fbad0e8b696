"""The tool-chain script: reading the machine's package sources, and saying what is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pie.bakery.toolchain.debian import Mirror, parse_list, parse_sources
from pie.bakery.toolchain.wasm import PROGRAMS, cargo_environment

ROOT = Path(__file__).resolve().parents[2]

STANZAS = """\
Types: deb
# a comment
URIs: http://one.example/debian http://two.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /keys/archive.gpg

Types: deb
URIs: http://security.example/debian
Suites: bookworm-security
Components: main
"""


@pytest.mark.parametrize(
    ("text", "mirror"),
    [
        (STANZAS, Mirror("http://one.example/debian", "/keys/archive.gpg")),
        (STANZAS.replace("bookworm ", "trixie "), None),
        (STANZAS.replace("main contrib", "contrib"), None),
        ("Enabled: no\n" + STANZAS, None),
        ("Types: deb\nURIs: http://one.example\nSuites: bookworm\nComponents: main\n", Mirror("http://one.example", None)),
        ("", None),
    ],
)
def test_the_mirror_in_a_file_of_stanzas(text: str, mirror: Mirror | None) -> None:
    assert parse_sources(text, "bookworm") == mirror


@pytest.mark.parametrize(
    ("line", "mirror"),
    [
        ("deb http://one.example bookworm main", Mirror("http://one.example", None)),
        ("deb [arch=amd64 signed-by=/k.gpg] http://one.example bookworm contrib main", Mirror("http://one.example", "/k.gpg")),
        ("# deb http://one.example bookworm main", None),
        ("deb-src http://one.example bookworm main", None),
        ("deb http://one.example bookworm-security main", None),
        ("deb http://one.example bookworm non-free", None),
    ],
)
def test_the_mirror_in_a_file_of_lines(line: str, mirror: Mirror | None) -> None:
    assert parse_list(f"# the sources\n{line}\n", "bookworm") == mirror


def test_nothing_on_the_path_is_one_line_a_piece_with_its_command(tmp_path: Path) -> None:
    bare = {"PATH": str(tmp_path), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "tools.toolchain", "--check"], cwd=ROOT, env=bare, capture_output=True, text=True, check=False
    )
    lines = done.stderr.splitlines()
    assert done.returncode == 1
    assert all(line.startswith("missing: ") and "mend it with: " in line for line in lines)
    for piece in ("Rust 1", "a C compiler", "clang and llvm", "Rust for wasm32-wasip2", "Rust for wasm32-unknown-unknown", "Node"):
        assert sum(line.startswith(f"missing: {piece}") for line in lines) == 1, piece
    assert list(tmp_path.iterdir()) == []


def test_the_command_prints_what_builds_use() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.toolchain", "--env", PROGRAMS, "--json"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == cargo_environment(PROGRAMS)
