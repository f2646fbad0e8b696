"""Folders to build in, and an engine that runs what was built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pie.config import Flags, load
from pie.engine import Engine
from support.registries import index


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with Engine() as engine:
        engine.add_model(dummy=True)
        engine.start()
        yield engine


@pytest.fixture
def wheels(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, which is all that the user's pip takes packages from. Nothing is kept from earlier tests, and
    nothing of this one in the user's cache, but what is compiled.
    """
    monkeypatch.setenv("PIE_ENGINE__CACHE_DIR", str(load(Flags()).engine.cache_dir))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name, value in index(folder).items():
        monkeypatch.setenv(name, value)
    return folder
