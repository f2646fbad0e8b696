"""What is compiled for the first time is told on stderr before it is, by every command in the same words."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pie.bakery import check as checking
from pie.cli.build import build_program
from pie.cli.preparing import opened, prepare_runtimes
from pie.config import Flags, load
from pie.engine import Engine
from pie.programs import Component, Source

PYTHON = "Compiling the Python runtime (once, about half a minute)...\n"
JAVASCRIPT = "Compiling the JavaScript runtime (once, about half a minute)...\n"
COMPONENT = "Compiling the program or its language runtime (once)...\n"


class Uncompiled:
    """An engine whose cache is empty, which keeps what it is asked to compile."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.told: list[str] = []
        """What was told before each compilation."""
        self._compiled: set[Any] = set()
        self._capsys = capsys

    def __enter__(self) -> Uncompiled:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def is_prepared(self, program: Any) -> bool:
        return _form(program) in self._compiled

    def prepare(self, program: Any) -> None:
        self._compiled.add(_form(program))
        self.told.append(self._capsys.readouterr().err)


def _form(program: Any) -> Any:
    return program.language if isinstance(program, Source) else program


def test_each_runtime_is_named_before_it_is_compiled_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    engine: Any = Uncompiled(capsys)
    prepare_runtimes(engine)
    assert engine.told == [PYTHON, JAVASCRIPT]
    prepare_runtimes(engine)
    assert (engine.told, capsys.readouterr().err) == ([PYTHON, JAVASCRIPT], "")


@pytest.mark.parametrize(
    ("program", "others", "told"),
    [
        ("python", [], [PYTHON]),
        ("python", ["javascript"], [PYTHON, JAVASCRIPT]),
        ("python", ["python"], [PYTHON]),
        ("component", ["javascript"], [COMPONENT, JAVASCRIPT]),
        ("javascript", ["component"], [JAVASCRIPT]),
    ],
)
def test_an_engine_has_the_runtimes_of_all_its_programs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: str, others: list[str], told: list[str]
) -> None:
    programs: dict[str, Any] = {
        "python": Source("python", (("main.py", b""),), "main.py"),
        "javascript": Source("javascript", (("main.js", b""),), "main.js"),
        "component": Component(Path("main.wasm")),
    }
    engine: Any = Uncompiled(capsys)
    monkeypatch.setattr(Engine, "from_config", lambda _: engine)
    with opened(load(Flags(dummy=True), variables={}), programs[program], [programs[one] for one in others]):
        assert engine.told == told


class Checking:
    """An engine that checks programs, and keeps what was told before each."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *, is_compiled: bool) -> None:
        self.told: list[str] = []
        self._capsys = capsys
        self._is_compiled = is_compiled

    def is_prepared(self, _program: bytes) -> bool:
        return self._is_compiled

    def check(self, _program: bytes) -> None:
        self.told.append(self._capsys.readouterr().err)

    def stop(self) -> None:
        pass


@pytest.mark.parametrize(("name", "told"), [("p.py", PYTHON), ("p.js", JAVASCRIPT), ("p.py", ""), ("p.js", "")])
def test_a_build_says_that_its_check_compiles_a_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, told: str
) -> None:
    (tmp_path / name).write_text("async def main(): ...\n" if name == "p.py" else "export function main() {}\n")
    engine = Checking(capsys, is_compiled=not told)
    monkeypatch.setattr(checking, "_engine", SimpleNamespace(Engine=lambda **_: engine))
    assert build_program(tmp_path / name, None, standalone=False, locked=False, upgrade=False, check=False) == 0
    assert engine.told == [f"Building {name}...\n{told}"]
