"""The tree: what there is to configure, each with its type, range, default and description.

Nothing else states them: checks, `pie config show` and the reference page read them from here. The limits of a process
are stated by the engine (`pie._engine.limit_settings`). Names end in their unit: `_bytes`, `_s` (seconds); lengths of
text are in tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec import field as with_default

from pie.config.environment import cache_folder, data_folder
from pie.config.origin import Origin

EMBEDDED = "pie-tiny"
"""The path that stands for the model inside the package."""
EMBEDDED_FOLDER = Path(__file__).resolve().parents[1] / "pie_tiny"

DriverName = Literal["cpu", "reference", "dummy"]
AuthMode = Literal["auto", "on", "off"]
LogLevel = Literal["off", "error", "warn", "info", "debug", "trace"]
Limit = int | float | None

_MAX_BYTES = 1 << 50
_MAX_COUNT = 1 << 20
_MAX_TIME_S = 300_000_000


class EngineConfig(Struct, frozen=True, kw_only=True):
    """`[engine]`: the engine itself."""

    data_dir: Annotated[
        Path,
        Meta(
            description="Where installed programs, the API keys (`keys.json`) and what process numbers are made of are kept.",
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
    worker_threads: Annotated[int, Meta(ge=0, le=1024, description="Threads that run programs; 0: one a core.")] = 0
    worker_niceness: Annotated[
        int, Meta(ge=0, le=19, description="How much lower their priority is than that of the driver, in steps of `nice`.")
    ] = 5
    background_niceness: Annotated[
        int,
        Meta(
            ge=0,
            le=19,
            description=(
                "The same of programs that compute for long without waiting, never less than `worker_niceness`, and of one thread: "
                "the others that run such programs do so when no other thread wants the core."
            ),
        ),
    ] = 10
    max_processes: Annotated[int, Meta(ge=1, le=20_000, description="Processes that may live at once.")] = 256
    stack_bytes: Annotated[int, Meta(ge=64 << 10, le=256 << 20, description="Bytes of stack that a program may use.")] = 32 << 20
    memory_bytes: Annotated[
        int,
        Meta(
            ge=0,
            le=_MAX_BYTES,
            description=(
                "Bytes that all users together may make the engine hold, beside the models: programs, texts, queues, messages, uploads; "
                "at least 16 MiB. 0: three quarters of what the models and their drivers leave of the machine's memory, or of the control "
                "group's."
            ),
        ),
    ] = 0
    user_memory_bytes: Annotated[
        int,
        Meta(ge=0, le=_MAX_BYTES, description="Bytes of them that one user may hold, at least 1 MiB; 0: three eighths."),
    ] = 0
    driver_timeout_s: Annotated[
        float,
        Meta(
            ge=0,
            le=_MAX_TIME_S,
            description=(
                "How long a driver may take for a batch until its requests fail; 0: any time. With `isolate`, its process is then killed "
                "and started again; without, new requests wait until it answers. "
                "Take many times what the largest batch takes: a slow driver is no faster for being given up."
            ),
        ),
    ] = 60.0
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


class ServerConfig(Struct, frozen=True, kw_only=True):
    """`[server]`: `pie serve`."""

    host: Annotated[str, Meta(min_length=1, description="The address to serve on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="The port to serve on; 0: a free one.")] = 8080
    auth: Annotated[
        AuthMode,
        Meta(
            description=(
                "Whether clients have to prove who they are: `on`, by a key or a proxy; `off`, they are who they say; `auto`, on but on "
                "loopback without a trusted proxy."
            )
        ),
    ] = "auto"
    allow_anonymous: Annotated[
        bool, Meta(description='Lets `auth = "off"` stand on an address that others reach: whoever does may be anybody.')
    ] = False
    trusted_proxies: Annotated[
        tuple[str, ...],
        Meta(description="Addresses or networks (`10.0.0.7`, `10.1.0.0/16`) of the proxies whose `user_header` names the user."),
    ] = ()
    user_header: Annotated[
        str,
        Meta(min_length=1, max_length=64, description="The header in which they do; from anybody else it is refused."),
    ] = "X-Pie-User"
    operators: Annotated[
        tuple[str, ...],
        Meta(description="Users who see and end what is anybody's, where no key says what they may do."),
    ] = ()
    host_names: Annotated[
        tuple[str, ...],
        Meta(
            description=(
                "What clients call the server beside its address, as in `pie.example.org` or `pie.example.org:8443`: those who sign their "
                "hello sign that name."
            )
        ),
    ] = ()
    audit_log: Annotated[
        str,
        Meta(
            description=(
                "The file in which a line of JSON stands for each thing that a client changed or was refused; empty: they go to the log, "
                "as `info` of `audit`."
            ),
            extra={"path": True},
        ),
    ] = ""
    allowed_origins: Annotated[
        tuple[str, ...], Meta(description="Origins of web pages that may connect, beside those of the own port on this machine.")
    ] = ()
    max_connections: Annotated[int, Meta(ge=1, le=100_000, description="Clients that may be connected at once.")] = 1024
    max_user_connections: Annotated[int, Meta(ge=1, le=100_000, description="Clients of one user that may be connected at once.")] = 256
    max_address_connections: Annotated[
        int,
        Meta(
            ge=1,
            le=100_000,
            description=(
                "Clients of one address that may be connected at once; an IPv6 network of 64 bits is one. "
                "Behind a proxy, all clients may have one address."
            ),
        ),
    ] = 512
    handshake_timeout_s: Annotated[
        float, Meta(ge=0.001, le=_MAX_TIME_S, description="How long a client may take until it has said hello.")
    ] = 10.0
    ping_interval_s: Annotated[float, Meta(ge=0.001, le=_MAX_TIME_S, description="Time between two pings of the server.")] = 20.0
    idle_timeout_s: Annotated[
        float, Meta(ge=0.001, le=_MAX_TIME_S, description="How long a client may be silent, pongs included, before it is disconnected.")
    ] = 60.0
    frame_timeout_s: Annotated[
        float,
        Meta(ge=0.001, le=_MAX_TIME_S, description="How long a message of a client may take from its first byte to its last."),
    ] = 60.0
    max_frame_bytes: Annotated[int, Meta(ge=4 << 10, le=1 << 30, description="Bytes of one message of a client.")] = 16 << 20
    max_upload_bytes: Annotated[
        int, Meta(ge=1 << 10, le=1 << 30, description="Bytes of one upload, and of all that one connection holds.")
    ] = 64 << 20
    max_user_upload_bytes: Annotated[
        int, Meta(ge=1 << 10, le=1 << 40, description="Bytes of all uploads that the connections of one user hold.")
    ] = 256 << 20
    upload_timeout_s: Annotated[
        float, Meta(ge=0.001, le=_MAX_TIME_S, description="How long an upload may stand still before it is given up.")
    ] = 60.0
    max_installed_bytes: Annotated[int, Meta(ge=1 << 10, le=1 << 50, description="Bytes of all installed programs.")] = 16 << 30
    max_processes_per_user: Annotated[int, Meta(ge=1, le=20_000, description="Processes of one user that may live at once.")] = 64
    grace_s: Annotated[
        float, Meta(ge=0.001, le=_MAX_TIME_S, description="How long a process that is not detached outlives the connection of its client.")
    ] = 60.0
    drain_s: Annotated[
        float, Meta(ge=0.001, le=_MAX_TIME_S, description="How long processes may go on when the server is told to end.")
    ] = 30.0
    retention_s: Annotated[
        float, Meta(ge=0.001, le=_MAX_TIME_S, description="How long the events of an ended process wait for somebody to attach.")
    ] = 3600.0
    max_ended_processes: Annotated[
        int, Meta(ge=0, le=100_000, description="Ended processes that are kept at most; the oldest go first.")
    ] = 1000
    max_ended_bytes: Annotated[
        int, Meta(ge=0, le=1 << 40, description="Bytes of events and logs of ended processes that are kept; the oldest go first.")
    ] = 256 << 20
    kept_bytes: Annotated[
        int, Meta(ge=0, le=1 << 30, description="Bytes of events that are kept for a process to which nobody is attached.")
    ] = 256 << 10
    log_bytes: Annotated[int, Meta(ge=0, le=1 << 30, description="Bytes of output of a process that `pie logs` can show.")] = 64 << 10
    window_bytes: Annotated[
        int,
        Meta(ge=1, le=1 << 30, description="Bytes of events that are sent ahead of what a client has acknowledged, for each process."),
    ] = 1 << 20
    log_level: Annotated[
        LogLevel,
        Meta(
            description=(
                "What is written to stderr: `warn`, what its operator should know; `info`, also connections and launches; and so on."
            )
        ),
    ] = "warn"


class ClientConfig(Struct, frozen=True, kw_only=True):
    """`[client]`: the commands that talk to a server."""

    url: Annotated[str, Meta(min_length=1, description="The server that they talk to.")] = "ws://127.0.0.1:8080"
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


class ModelConfig(Struct, frozen=True, kw_only=True):
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
        Meta(description="What runs it: `cpu`, the kernels; `reference`, plain torch, which is slow; `dummy`, hashes in place of a model."),
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
    page_size: Annotated[int, Meta(ge=1, le=1024, description="Tokens of a page of keys and values.")] = 16
    n_pages: Annotated[
        int, Meta(ge=0, le=1 << 24, description="Pages; 0: as many as `kv_bytes` hold, and 4096 with the driver `dummy`.")
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
    max_batch_tokens: Annotated[int, Meta(ge=1, le=_MAX_COUNT, description="Tokens of a batch, of all its sequences.")] = 512
    prefill_chunk: Annotated[int, Meta(ge=1, le=_MAX_COUNT, description="Tokens of one sequence in a batch.")] = 512
    max_batch_seqs: Annotated[int, Meta(ge=1, le=1 << 16, description="Sequences of a batch.")] = 256
    max_batch_rows: Annotated[int, Meta(ge=1, le=_MAX_COUNT, description="Rows of logits that forward passes may want in a batch.")] = 256
    max_contexts: Annotated[int, Meta(ge=1, le=_MAX_COUNT, description="Contexts that may live at once.")] = 4096
    max_process_contexts: Annotated[
        int, Meta(ge=0, le=_MAX_COUNT, description="Contexts of one process that may live at once; 0: a quarter of `max_contexts`.")
    ] = 0
    max_user_contexts: Annotated[
        int, Meta(ge=0, le=_MAX_COUNT, description="Contexts of one user that may live at once; 0: half of `max_contexts`.")
    ] = 0
    max_snapshots: Annotated[int, Meta(ge=1, le=_MAX_COUNT, description="Snapshots that may be kept at once.")] = 4096
    max_user_snapshots: Annotated[
        int, Meta(ge=0, le=_MAX_COUNT, description="Snapshots of one user that may be kept at once; 0: an eighth of `max_snapshots`.")
    ] = 0
    max_waiting: Annotated[int, Meta(ge=1, le=_MAX_COUNT, description="Requests that may be entered and not answered at once.")] = 4096
    max_process_waiting: Annotated[
        int, Meta(ge=0, le=_MAX_COUNT, description="Requests of one process among them; 0: a quarter of `max_waiting`.")
    ] = 0
    max_user_waiting: Annotated[
        int, Meta(ge=0, le=_MAX_COUNT, description="Requests of one user among them; 0: half of `max_waiting`.")
    ] = 0
    hold_s: Annotated[
        float, Meta(ge=0, le=60, description="How long a batch may wait for programs that step by themselves and are expected back.")
    ] = 0.002
    shared_step_s: Annotated[
        float,
        Meta(
            ge=0,
            le=60,
            description=(
                "How long a batch in which a user decodes beside others may take, as estimated from those that ran; or one and a half "
                "times as long as it would if each decoded as little as the one who decodes the least, if that is longer, up to four "
                "times the step or the shortest batch. 0: any time. No result depends on it."
            ),
        ),
    ] = 0.0015
    run_ahead: Annotated[
        bool,
        Meta(description="Whether the next token of a program that steps by itself is computed before it asks. No result depends on it."),
    ] = True
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16"],
        Meta(description="Of weights, inputs of linears, keys and values; `auto`: that of the checkpoint."),
    ] = "auto"
    n_threads: Annotated[int, Meta(ge=0, le=1024, description="Threads of the driver `cpu`; 0: one a core. No result depends on it.")] = 0
    isa: Annotated[
        Literal["auto", "avx512", "avx2", "portable"],
        Meta(description="Instructions that the driver `cpu` uses; `auto`: the best of this machine. No result depends on it."),
    ] = "auto"

    @property
    def is_embedded(self) -> bool:
        """Whether it is the model inside the package."""
        return self.path == EMBEDDED

    @property
    def folder(self) -> Path:
        """The folder of the model."""
        return EMBEDDED_FOLDER if self.is_embedded else Path(self.path)


@dataclass(frozen=True)
class Config:
    """Everything that is configured, checked, with where each value comes from."""

    engine: EngineConfig = field(default_factory=EngineConfig)
    limits: Mapping[str, Limit] = field(default_factory=dict)
    """By the names of `pie._engine.limit_settings`; None is no limit."""
    server: ServerConfig = field(default_factory=ServerConfig)
    client: ClientConfig = field(default_factory=ClientConfig)
    models: tuple[ModelConfig, ...] = (ModelConfig(name=EMBEDDED),)
    """In order; the first is the default."""
    origins: Mapping[str, Origin] = field(default_factory=dict, compare=False)
    """By the name of the setting: `server.port`, `model.NAME.kv_bytes`."""
    file: Path | None = field(default=None, compare=False)
    """The file that was read."""
