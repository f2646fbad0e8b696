"""Folders to build in, and an engine that runs what was built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pie.engine import Engine
from support.registries import index


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with Engine() as engine:
        engine.add_model(dummy=True)
        engine.start()
        yield engine


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, which is all that the user's pip takes packages from."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name, value in index(folder).items():
        monkeypatch.setenv(name, value)
    return folder
