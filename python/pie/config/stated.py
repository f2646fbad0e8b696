"""What the engine states of the sections. Generated from its tables by `tools/gen_config_docs.py`; do not edit."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class EngineSettings(Struct, frozen=True, kw_only=True):
    """Of `[engine]`, what the engine states."""

    worker_threads: int = 0
    """Threads that run programs; 0: one a core."""

    worker_niceness: int = 5
    """How much lower their priority is than that of the driver, in steps of `nice`."""

    background_niceness: int = 10
    """The same of programs that compute for long without waiting, never less than `worker_niceness`, and of one thread:
    the others that run such programs do so when no other thread wants the core.
    """

    max_processes: int = 256
    """Processes that may live at once, children among them."""

    max_compilations: int = 2
    """Programs of users that may be compiled, or read, at once. Each takes up to a core and `limits.compile_bytes`, and
    all together at most a quarter of `memory_bytes`, which is kept free for them.
    """

    stack_bytes: int = 33554432
    """Bytes of stack that a program may use."""

    memory_bytes: int = 0
    """Bytes that all users together may make the engine hold, beside the models: programs, texts, queues, messages,
    uploads; at least 16 MiB. 0: three quarters of what the models and their drivers leave of the machine's memory, or
    of the control group's.
    """

    user_memory_bytes: int = 0
    """Bytes of them that one user may hold, at least 1 MiB; 0: three eighths."""

    bus_message_bytes: int = 1048576
    """Bytes of one message between programs."""

    bus_queue_messages: int = 10000
    """Messages that wait in the queue of one topic before the next push waits."""

    bus_queue_bytes: int = 16777216
    """Bytes in the queue of one topic before the next push waits."""

    bus_user_bytes: int = 67108864
    """Bytes in all queues of one user together, each message counted with 512 bytes beside its own."""

    bus_push_s: float = 5.0
    """How long a push waits for room in a queue until it is refused."""

    bus_idle_s: float = 3600.0
    """How long messages wait in the queues of a user of whom no program lives, until they are dropped and counted."""

    bus_subscription_messages: int = 1024
    """Broadcasts that wait in one subscription before it drops the oldest."""

    bus_subscription_bytes: int = 4194304
    """Bytes of the broadcasts that wait in one subscription before it drops the oldest."""

    bus_topics: int = 1024
    """Topics that the programs of one user may use at once."""

    bus_subscriptions: int = 4096
    """Subscriptions that the programs of one user may hold at once."""

    credits: int = 1000
    """Credits that a process begins with in each model, where its launch does not say how many. They pay for what its
    contexts bid where pages are short. A child has half of what its parent has, and no more than this.
    """

    page_price: int = 1
    """Credits that a page of a context costs once, when it is full."""

    token_budget: int = 0
    """Tokens that may enter the contexts of a process and of its children, where its launch does not say how many; 0:
    any number.
    """

    driver_timeout_s: float = 60.0
    """How long a driver may take for a batch until its requests fail; 0: any time. With `isolate`, its process is then
    killed and started again; without, new requests wait until it answers. Take many times what the largest batch takes:
    a slow driver is no faster for being given up.
    """


class RuntimeSettings(Struct, frozen=True, kw_only=True):
    """Of `[runtime]`, what the engine states."""

    fs_scope: Literal["user", "program", "process", "shared", "off"] = "user"
    """Whose folder programs find as `/scratch`: `user`, one of each user; `program`, one of each program of a user;
    `process`, one of each process, which ends with it; `shared`, one for all users; `off`, none. They lie in
    `engine.data_dir`.
    """

    fs_bytes: int = 1073741824
    """Bytes that the files of one such folder may have together."""

    fs_files: int = 10000
    """Files, folders and links in one such folder."""

    fs_free_bytes: int = 1073741824
    """Bytes of the disk that programs leave free."""

    fs_open_files: int = 64
    """What one process may open at once, beside the folders that it is given: files, folders and streams of them."""

    fs_stall_s: float = 60.0
    """How long one piece of work on files may last. After that its thread counts as lost: others get its turn, and
    calls on files of its user fail until it ends.
    """

    fs_mounts: tuple[str, ...] = ()
    """Folders that every program can read, each as `DIR=/data`: an absolute path here, and the path at which programs
    find it.
    """

    allow_net: tuple[str, ...] = ()
    """Servers that programs may send HTTP requests to, each as `HOST` or `HOST:PORT`: a name, `*.NAME` for all names
    below it, an address or a range (`10.0.0.0/8`), or `*` for every public server. Addresses of this machine and of
    private networks have to be named by address or range, or as `localhost`, even where a name that has them is
    allowed.
    """

    net_user_requests: int = 128
    """Requests of one user that are under way at once, and no more than a half of what others leave of a half of
    `net_requests`; the other half is for a few requests of each user.
    """

    net_requests: int = 1024
    """Requests of all users that are under way at once."""

    net_ca_file: str = ""
    """The file of certificates (PEM) that servers are trusted by, in the place of Mozilla's, which are built in; empty:
    none.
    """

    mcp_user_sessions: int = 128
    """Sessions with MCP servers that the programs of one user have open at once."""

    mcp_user_calls: int = 128
    """Calls of MCP servers of the programs of one user that are under way at once."""

    mcp_starts_per_minute: int = 10
    """How often one MCP server is started, or connected to, within a minute; beyond that its calls are refused for the
    rest of it.
    """


class SnapshotsSettings(Struct, frozen=True, kw_only=True):
    """Of `[snapshots]`, what the engine states."""

    durability: Literal["memory", "disk"] = "memory"
    """How long snapshots that programs save under names are kept: `memory`, as long as the engine runs; `disk`, until
    they are deleted, also by engines that come later. Those whose names the engine makes up are kept in memory in
    either case.
    """

    folder: str = ""
    """The folder of snapshots on disk, which one engine at a time uses; empty: `snapshots` in `engine.data_dir`."""

    user_bytes: int = 1073741824
    """Bytes of the files of one user's snapshots of one model."""

    user_snapshots: int = 10000
    """Snapshots of one user, of one model, on disk."""

    total_bytes: int = 17179869184
    """Bytes of the files of all snapshots of one model."""

    pages: Literal["auto", "always", "never"] = "auto"
    """Whether the keys and values of snapshots on disk are kept beside their tokens, in runs of 1024 tokens: `auto`,
    where reading a page seems to be cheaper than computing it again; `always`; `never`. No result depends on it.
    """

    free_bytes: int = 1073741824
    """Bytes of the disk that snapshots leave free."""


class ServerSettings(Struct, frozen=True, kw_only=True):
    """Of `[server]`, what the engine states."""

    host: str = "127.0.0.1"
    """The address to serve on."""

    port: int = 8080
    """The port to serve on; 0: a free one."""

    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages that may connect, beside those of the own port on this machine."""

    max_connections: int = 1024
    """Clients that may be connected at once."""

    max_user_connections: int = 256
    """Clients of one user that may be connected at once."""

    max_address_connections: int = 512
    """Clients of one address that may be connected at once; an IPv6 network of 64 bits is one. Behind a proxy, all
    clients may have one address.
    """

    handshake_timeout_s: float = 10.0
    """How long a client may take until it has said hello."""

    ping_interval_s: float = 20.0
    """Time between two pings of the server."""

    idle_timeout_s: float = 60.0
    """How long a client may be silent, pongs included, before it is disconnected."""

    frame_timeout_s: float = 60.0
    """How long a message of a client may take from its first byte to its last."""

    max_frame_bytes: int = 16777216
    """Bytes of one message of a client."""

    max_upload_bytes: int = 67108864
    """Bytes of one upload, and of all that one connection holds."""

    max_user_upload_bytes: int = 268435456
    """Bytes of all uploads that the connections of one user hold."""

    max_address_upload_bytes: int = 536870912
    """Bytes of all uploads that the clients of one address hold, where clients may give themselves any name."""

    max_address_installs: int = 32
    """Installs of the clients of one address that are looked at, or wait for it, where clients may give themselves any
    name.
    """

    upload_timeout_s: float = 60.0
    """How long an upload may stand still before it is given up."""

    max_installed_bytes: int = 17179869184
    """Bytes of all installed programs."""

    max_user_installed_bytes: int = 0
    """Bytes of the installed programs of one user; 0: an eighth of `max_installed_bytes`."""

    max_processes_per_user: int = 64
    """Processes of one user that may live at once."""

    grace_s: float = 60.0
    """How long a process that is not detached outlives the connection of its client."""

    detached_s: float | None = 86400.0
    """How long a detached process may stand still while no client of its user is connected: it computes nothing, takes
    and writes no token, and has no children that live. Then it ends; none: never.
    """

    drain_s: float = 30.0
    """How long processes may go on when the server is told to end."""

    retention_s: float = 3600.0
    """How long the events of an ended process wait for somebody to attach."""

    max_ended_processes: int = 1000
    """Ended processes that are kept at most; the oldest go first."""

    max_ended_bytes: int = 268435456
    """Bytes of events and logs of ended processes that are kept; the oldest go first."""

    kept_bytes: int = 262144
    """Bytes of events that are kept for a process to which nobody is attached."""

    log_bytes: int = 65536
    """Bytes of output of a process that `pie logs` can show."""

    window_bytes: int = 1048576
    """Bytes of events that are sent ahead of what a client has acknowledged, for each process."""

    http_requests: int = 1024
    """Requests by HTTP to programs that are under way at once."""

    http_user_requests: int = 256
    """Requests by HTTP to the programs of one user that are under way at once."""

    http_program_requests: int = 128
    """Requests by HTTP to one program that are under way at once."""

    http_queue: int = 64
    """Requests by HTTP that a program with one instance for all has not taken yet."""

    http_header_bytes: int = 32768
    """Bytes of the head of a request by HTTP: its path and all headers."""

    http_body_bytes: int = 16777216
    """Bytes of the body of a request by HTTP."""

    http_answer_s: float = 120.0
    """Time until a program begins to answer a request by HTTP."""

    http_idle_s: float = 60.0
    """Time that a client may take for the head of a request by HTTP and between two requests of a connection, that may
    pass between two parts of a body, and for which a client may take nothing of an answer.
    """

    http_s: float | None = 3600.0
    """Time of a request by HTTP in all, its answer included; none: without limit."""

    http_sandbox: bool = True
    """Whether browsers give pages of programs at `/http/~USER/` an origin of their own, so that their scripts reach
    neither other programs, nor the server as its visitor. Without, all programs of a server are of one origin.
    """

    auth: Literal["auto", "on", "off"] = "auto"
    """Whether clients have to prove who they are: `on`, by a key or a proxy; `off`, they are who they say; `auto`, on
    but on loopback without a trusted proxy.
    """

    allow_anonymous: bool = False
    """Lets `auth = "off"` stand on an address that others reach: they may say that they are any user."""

    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks (`10.0.0.7`, `10.1.0.0/16`) of the proxies whose `user_header` names the user."""

    user_header: str = "X-Pie-User"
    """The header in which they do; from anybody else it is refused."""

    operators: tuple[str, ...] = ()
    """Users who see and end what is anybody's, where no key says what they may do."""

    host_names: tuple[str, ...] = ()
    """What clients call the server beside its address, as in `pie.example.org` or `pie.example.org:8443`: those who
    sign their hello sign that name.
    """

    audit_log: str = ""
    """The file in which a line of JSON stands for each thing that a client changed or was refused; empty: they go to
    the log, as `info` of `audit`.
    """


class ModelSettings(Struct, frozen=True, kw_only=True):
    """Of `[model]`, what the engine states."""

    max_batch_tokens: int = 512
    """Tokens of a batch, of all its sequences."""

    prefill_chunk: int = 512
    """Tokens of one sequence in a batch."""

    max_batch_seqs: int = 256
    """Sequences of a batch."""

    max_batch_rows: int = 256
    """Rows of logits that forward passes may want in a batch."""

    max_contexts: int = 4096
    """Contexts that may live at once."""

    max_process_contexts: int = 0
    """Contexts of one process that may live at once; 0: a quarter of `max_contexts`."""

    max_user_contexts: int = 0
    """Contexts of one user that may live at once; 0: half of those that the other users leave of `max_contexts`."""

    max_snapshots: int = 4096
    """Snapshots that may be kept at once."""

    max_user_snapshots: int = 0
    """Snapshots of one user that may be kept at once; 0: an eighth of `max_snapshots`."""

    max_adapters: int = 1024
    """Adapters that may have a name at once."""

    max_user_adapters: int = 0
    """Adapters of one user that may have a name at once; 0: an eighth of `max_adapters`."""

    max_user_adapter_bytes: int = 67108864
    """Bytes that the adapters of one user may take, those among them with which tokens of a context were computed."""

    max_waiting: int = 4096
    """Requests that may be entered and not answered at once."""

    max_process_waiting: int = 0
    """Requests of one process among them; 0: a quarter of `max_waiting`."""

    max_user_waiting: int = 0
    """Requests of one user among them; 0: half of those that the other users leave of `max_waiting`."""

    max_late_rows: int = 256
    """Rows that may wait for token masks that come late, a quarter of them of one process. `max_late_bytes` may allow
    fewer.
    """

    max_user_late_rows: int = 0
    """Rows of one user among them; 0: half of those that the other users leave."""

    max_late_bytes: int = 268435456
    """Bytes that the logits of these rows may take, four for each token of the vocabulary."""

    late_mask_s: float = 10.0
    """How long a pass of which everything is computed may wait for its token masks until it fails."""

    hold_s: float = 0.002
    """How long a batch may wait for programs that step by themselves and are expected back."""

    shared_step_s: float = 0.0015
    """How long a batch in which a user decodes beside others may take, as estimated from those that ran; or one and a
    half times as long as it would if each decoded as little as the one who decodes the least, if that is longer, up to
    four times the step or the shortest batch. 0: any time. No result depends on it.
    """

    run_ahead: bool = True
    """Whether the next token of a program that steps by itself is computed before it asks. No result depends on it."""

    prefix_cache: bool = True
    """Whether a pass starts behind what was computed before of its tokens; without, forks still share their pages. No
    result depends on it.
    """


class McpSettings(Struct, frozen=True, kw_only=True):
    """Of `[mcp]`, what the engine states."""

    command: tuple[str, ...] = ()
    """The command of a server that is a process, and its arguments; the server is spoken to by its standard input and
    output. It is started when it is first asked, and ends with the engine.
    """

    env: tuple[str, ...] = ()
    """Variables that the process has beside those of the engine, each as `NAME=VALUE`."""

    cwd: str = ""
    """The folder in which the process runs; empty: that of the engine."""

    url: str = ""
    """The address of a server that is spoken to by HTTP (the transport "streamable HTTP" of MCP), in the place of
    `command`. It need not stand in `runtime.allow_net`, which is for what programs ask for themselves.
    """

    headers: tuple[str, ...] = ()
    """Headers that requests to `url` have, each as `NAME: VALUE`."""

    users: tuple[str, ...] = ()
    """Users whose programs may use it; none: all."""

    start_s: float = 30.0
    """How long it may take to start, or to connect to, and to say hello."""
