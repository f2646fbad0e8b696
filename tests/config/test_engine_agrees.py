"""What Python declares of the engine is what the engine states."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from pie import _engine
from pie.backends.base import Capabilities
from pie.config import EngineConfig, McpServerConfig, ModelConfig, RuntimeConfig, ServerConfig, SnapshotConfig
from pie.config.settings import settings


@pytest.mark.parametrize(
    ("section", "tree"),
    [
        ("engine", EngineConfig),
        ("runtime", RuntimeConfig),
        ("snapshots", SnapshotConfig),
        ("server", ServerConfig),
        ("model", ModelConfig),
        ("mcp", McpServerConfig),
    ],
)
def test_every_setting_of_the_engine_has_a_field_with_its_default(section: str, tree: type[msgspec.Struct]) -> None:
    defaults = {field.name: field.default for field in msgspec.structs.fields(tree)}
    for row in _engine.settings()[section]:
        assert defaults[row.name] == row.default, row.name
        assert settings()[section][row.name].meta.ge == (row.low if row.kind in {"whole", "seconds"} else None)


def test_no_setting_is_stated_twice() -> None:
    stated = {section: {row.name for row in rows} for section, rows in _engine.settings().items()}
    for section, tree in (("engine", EngineConfig), ("runtime", RuntimeConfig), ("server", ServerConfig), ("model", ModelConfig)):
        assert not stated[section] & set(tree.__annotations__), section


def test_capabilities_have_one_shape() -> None:
    rows = {row.name: row for row in _engine.settings()["driver"]}
    fields = {field.name: field for field in dataclasses.fields(Capabilities)}
    assert list(fields) == list(rows)
    for name, field in fields.items():
        if field.default is not dataclasses.MISSING:
            assert field.default == rows[name].default, name
