"""The configuration: one frozen tree, folded once from defaults, file, environment and flags."""

from pie.config.load import Flags, config_file, load, own_file
from pie.config.models import folder_name
from pie.config.origin import DEFAULT, Origin
from pie.config.tree import (
    EMBEDDED,
    EMBEDDED_FOLDER,
    ClientConfig,
    Config,
    EngineConfig,
    McpServerConfig,
    ModelConfig,
    RuntimeConfig,
    ServerConfig,
    SnapshotConfig,
)

__all__ = [
    "DEFAULT",
    "EMBEDDED",
    "EMBEDDED_FOLDER",
    "ClientConfig",
    "Config",
    "EngineConfig",
    "Flags",
    "McpServerConfig",
    "ModelConfig",
    "Origin",
    "RuntimeConfig",
    "ServerConfig",
    "SnapshotConfig",
    "config_file",
    "folder_name",
    "load",
    "own_file",
]
