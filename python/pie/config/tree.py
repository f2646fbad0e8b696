"""The tree: what there is to configure.

What Python alone uses stands here, with its type, range, default and description.

The engine states what it is made with once, in its own tables (`pie._engine.settings`). The bases of the sections are
generated from them. Nothing else states a setting: checks, `pie config show` and the reference page read them from here
and from there. Names end in their unit: `_bytes`, `_s` (seconds); lengths of text are in tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec import field as with_default

from pie import _engine
from pie.config.environment import cache_folder, data_folder
from pie.config.origin import Origin
from pie.config.stated import EngineSettings, McpSettings, ModelSettings, RuntimeSettings, ServerSettings, SnapshotsSettings

EMBEDDED = "pie-tiny"
"""The path that stands for the model inside the package."""
EMBEDDED_FOLDER = Path(__file__).resolve().parents[1] / "pie_tiny"

DriverName = Literal["cpu", "cuda", "reference", "dummy"]
"""The one list of drivers: all but the dummy one are modules of `pie.backends`."""
LogLevel = Literal["off", "error", "warn", "info", "debug", "trace"]
Limit = int | float | None

_DRIVER = {row.name: row for row in _engine.settings()["driver"]}
"""What a driver may declare, and so be asked for."""
_MAX_BYTES = 1 << 50
_MAX_COUNT = 1 << 20
_MAX_TIME_S = 300_000_000


class EngineConfig(EngineSettings, frozen=True, kw_only=True):
    """`[engine]`: the engine itself."""

    data_dir: Annotated[
        Path,
        Meta(
            description=(
                "Where installed programs, the files of programs (`scratch`), snapshots on disk (`snapshots`), adapters while "
                "the engine runs (`adapters`), the API keys (`keys.json`) and what process numbers are made of are kept."
            ),
            extra={"default": "~/.pie"},
        ),
    ] = with_default(default_factory=data_folder)
    cache_dir: Annotated[
        Path,
        Meta(
            description="Where compiled programs are kept; deleting it costs only time. Under `$XDG_CACHE_HOME` where that is set.",
            extra={"default": "~/.cache/pie"},
        ),
    ] = with_default(default_factory=cache_folder)
    driver_open_timeout_s: Annotated[
        float,
        Meta(
            ge=0,
            le=_MAX_TIME_S,
            description=(
                "How long the process of a driver (`isolate`) may take to open it, at the start and after a loss; 0: any time. "
                "Take many times what the weights take to load."
            ),
        ),
    ] = 600.0


class RuntimeConfig(RuntimeSettings, frozen=True, kw_only=True):
    """`[runtime]`: what programs find around them."""


class SnapshotConfig(SnapshotsSettings, frozen=True, kw_only=True):
    """`[snapshots]`: how snapshots are kept."""


class ServerConfig(ServerSettings, frozen=True, kw_only=True):
    """`[server]`: `pie serve`."""

    log_level: Annotated[
        LogLevel,
        Meta(
            description=(
                "What is written to stderr: `warn`, what its operator should know; `info`, also connections and requests; and so on."
            )
        ),
    ] = "warn"
    log_programs: Annotated[
        bool,
        Meta(
            description=(
                "Whether it also has a line for each launch and each end, and what programs write to stderr: at `warn` and more. "
                "`pie serve --quiet` turns it off."
            )
        ),
    ] = True
    replicas: Annotated[
        int,
        Meta(
            ge=1,
            le=256,
            description=(
                "Engines that serve behind the one address, each with all models, in processes that Ray starts; more than 1 needs "
                "`pip install 'pie-engine[ray]'`."
            ),
        ),
    ] = 1


class ClientConfig(Struct, frozen=True, kw_only=True):
    """`[client]`: the commands that talk to a server."""

    url: Annotated[str, Meta(min_length=1, description="The server that they talk to: `ws://HOST:PORT`, or `HOST:PORT`.")] = (
        "ws://127.0.0.1:8080"
    )
    user: Annotated[
        str,
        Meta(description="The user whose programs and processes they see; empty: that of the key, or nobody in particular."),
    ] = ""
    key: Annotated[
        str,
        Meta(
            description=(
                "The API key by which they come in. It is shown nowhere; a file keeps it better than the environment, and that better than "
                "a flag, which other users of the machine see."
            ),
            extra={"secret": True},
        ),
    ] = ""
    key_file: Annotated[str, Meta(description="A file with the key; used where `key` is empty.", extra={"path": True})] = ""
    private_key: Annotated[
        str,
        Meta(
            description="A private key of SSH by which they come in, as in `~/.ssh/id_ed25519`; needs `user`, and no passphrase.",
            extra={"path": True},
        ),
    ] = ""


class ModelConfig(ModelSettings, frozen=True, kw_only=True):
    """`[[model]]` or `[model.NAME]`: a model and how it is served. The first is the default of programs."""

    name: Annotated[
        str,
        Meta(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$",
            description="What programs load it as: letters, digits, `.`, `_`, `-`, `/`.",
        ),
    ] = ""
    path: Annotated[
        str,
        Meta(
            min_length=1,
            description=f"Its folder, in the Hugging Face format, or `{EMBEDDED}`, the embedded model, whose name alone needs none.",
        ),
    ] = EMBEDDED
    driver: Annotated[
        DriverName,
        Meta(
            description=(
                "What runs it: `cpu`, the kernels; `cuda`, a GPU; `reference`, plain torch, which is slow; `dummy`, hashes in place of a "
                "model."
            )
        ),
    ] = "cpu"
    isolate: Annotated[
        bool,
        Meta(
            description=(
                "Whether its driver has a process of its own, which is started again when it is lost: the requests that it ran fail, and "
                "everything else goes on. `pie serve` does it unless told otherwise, but for the driver `dummy`. Linux only."
            )
        ),
    ] = False
    restarts_per_minute: Annotated[
        int,
        Meta(
            ge=0,
            le=_MAX_COUNT,
            description="How often such a driver is started again within a minute; beyond that, requests are refused for the rest of it.",
        ),
    ] = 10
    page_size: Annotated[int, Meta(ge=1, le=_DRIVER["page_size"].high, description="Tokens of a page of keys and values.")] = 16
    n_pages: Annotated[
        int, Meta(ge=0, le=_DRIVER["n_pages"].high, description="Pages; 0: as many as `kv_bytes` hold, and 4096 with the driver `dummy`.")
    ] = 0
    kv_bytes: Annotated[int, Meta(ge=1 << 10, le=_MAX_BYTES, description="Bytes of memory for keys and values.")] = 256 << 20
    swap_bytes: Annotated[
        int,
        Meta(
            ge=0,
            le=_MAX_BYTES,
            description=(
                "Bytes of host memory that pages are swapped out to, taken when it is needed; 0: as many as the pages take, at most 2 GiB. "
                "Less than a page: nothing is swapped."
            ),
        ),
    ] = 0
    adapter_bytes: Annotated[
        int, Meta(ge=0, le=_MAX_BYTES, description="Bytes of memory for adapters, taken as they are loaded; 0: none can be loaded.")
    ] = 128 << 20
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"],
        Meta(description="Of weights, inputs of linears, keys and values; `auto`: that of the checkpoint. `float16` on `cuda` alone."),
    ] = "auto"
    n_threads: Annotated[
        int,
        Meta(ge=0, le=1024, description="Threads of the driver `cpu`; 0: one a core. No result depends on it.", extra={"driver": "cpu"}),
    ] = 0
    isa: Annotated[
        Literal["auto", "avx512", "avx2", "portable"],
        Meta(
            description="Instructions that the driver `cpu` uses; `auto`: the best of this machine. No result depends on it.",
            extra={"driver": "cpu"},
        ),
    ] = "auto"
    device: Annotated[
        str,
        Meta(
            min_length=1,
            description="The device of the driver `cuda`, by torch's name; on `cpu` its code runs without a GPU, slowly, for tests.",
            extra={"driver": "cuda"},
        ),
    ] = "cuda:0"
    deterministic: Annotated[
        bool,
        Meta(
            description=(
                "Whether a row on the driver `cuda` has the same bits whatever else is in its batch; `false` is faster, and the same "
                "program may then give other tokens under load. All other drivers but `reference` are so without being asked."
            ),
            extra={"driver": "cuda"},
        ),
    ] = True
    cascade_bytes: Annotated[
        int,
        Meta(
            ge=0,
            le=_MAX_BYTES,
            description=(
                "With `deterministic = false` sequences on the driver `cuda` attend to a prefix that they share at once where that "
                "saves a layer from reading so many bytes of keys and values; 0: wherever it saves any."
            ),
            extra={"driver": "cuda"},
        ),
    ] = 32 << 20
    graph_seqs: Annotated[
        int,
        Meta(
            ge=0,
            le=4096,
            description="The driver `cuda` captures decode batches of up to so many sequences as CUDA graphs at its start; 0: none.",
            extra={"driver": "cuda"},
        ),
    ] = 256
    graph_bytes: Annotated[
        int,
        Meta(
            ge=0, le=_MAX_BYTES, description="Device memory for these graphs; capturing ends where it is taken.", extra={"driver": "cuda"}
        ),
    ] = 1 << 30
    graph_s: Annotated[
        float,
        Meta(ge=0, le=_MAX_TIME_S, description="How long capturing them may take.", extra={"driver": "cuda"}),
    ] = 60.0
    tensor_parallel: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            description=(
                "Devices over which the driver `cuda` spreads the model, from `device` on; each has a process of its own, and `kv_bytes` "
                "and `graph_bytes` are those of each."
            ),
            extra={"driver": "cuda"},
        ),
    ] = 1
    script: Annotated[
        str,
        Meta(
            description=(
                'A JSON file with what the driver `dummy` says in place of hashes, as in `[["colour", "It is red."]]`: behind a text '
                "that holds the first of a pair, the second; behind any other, nothing."
            ),
            extra={"path": True},
        ),
    ] = ""

    @property
    def is_embedded(self) -> bool:
        """Whether it is the model inside the package."""
        return self.path == EMBEDDED

    @property
    def folder(self) -> Path:
        """The folder of the model."""
        return EMBEDDED_FOLDER if self.is_embedded else Path(self.path)


class McpServerConfig(McpSettings, frozen=True, kw_only=True):
    """`[mcp.NAME]`: a server of MCP, the Model Context Protocol, that programs find by that name."""


@dataclass(frozen=True)
class Config:
    """Everything that is configured, checked, with where each value comes from."""

    engine: EngineConfig = field(default_factory=EngineConfig)
    limits: Mapping[str, Limit] = field(default_factory=dict)
    """By the names of `pie._engine.settings`; None is no limit."""
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)
    snapshots: SnapshotConfig = field(default_factory=SnapshotConfig)
    server: ServerConfig = field(default_factory=ServerConfig)
    client: ClientConfig = field(default_factory=ClientConfig)
    models: tuple[ModelConfig, ...] = (ModelConfig(name=EMBEDDED),)
    """In order; the first is the default."""
    mcp: Mapping[str, McpServerConfig] = field(default_factory=dict)
    """Servers of MCP by name."""
    origins: Mapping[str, Origin] = field(default_factory=dict, compare=False)
    """By the name of the setting: `server.port`, `model.NAME.kv_bytes`."""
    file: Path | None = field(default=None, compare=False)
    """The file that was read."""
