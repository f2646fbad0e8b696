"""What a server tells of what it has: processes, programs, snapshots, adapters, topics, connections, logs, counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

from pie.stats import MessageStats, ModelStats


@dataclass(frozen=True)
class ProcessInfo:
    """A process in a list."""

    pid: int
    program: str
    """What was launched: `name@version`, or the digest."""
    state: Literal["running", "ended"]
    attached: bool
    """Whether a client reads its events."""
    detached: bool
    """Whether it lives on without a client, without limit."""
    started: float
    """Seconds since 1970."""
    ended: float | None = None
    """Seconds since 1970."""
    cpu_s: float = 0.0
    exit: str | None = None
    """How it ended: `return`, or the code of its error."""
    dropped: int = 0
    """Events of output that were dropped while nobody read them."""
    tokens: int = 0
    """Tokens that have entered its contexts."""
    user: str | None = None
    """Whose it is, in a list of everybody's."""
    name: str | None = None
    """What its client calls the file that was uploaded; None where nobody has said."""
    credits: dict[str, float] | None = None
    """What it has of the market for pages, by the name of the model; empty once it has ended, None where the server
    tells nothing of it.
    """
    bids: dict[str, float] | None = None
    """The highest bid of its contexts, in credits a page, by the name of the model."""


@dataclass(frozen=True)
class ProgramInfo:
    """An installed program."""

    name: str
    version: str
    digest: str
    bytes: int
    """Its size."""
    installed: float
    """Seconds since 1970."""
    user: str | None = None
    """Whose it is, in a list of everybody's."""


@dataclass(frozen=True)
class SnapshotInfo:
    """A context that a program saved under a name."""

    model: str
    name: str
    tokens: int
    """Its length."""
    user: str | None = None
    """Whose it is, in a list of everybody's."""


@dataclass(frozen=True)
class AdapterInfo:
    """An adapter to which a program gave a name."""

    model: str
    name: str
    bytes: int
    """Of the files of its weights."""
    user: str | None = None
    """Whose it is, in a list of everybody's."""


@dataclass(frozen=True)
class ConnectionInfo:
    """A client that is connected, as operators see it."""

    connection: int
    """Its number, for the life of the server."""
    user: str
    role: Literal["read", "user", "operator"]
    key: str | None
    """The id of the key by which it came in."""
    address: str
    client: str
    """What it calls itself."""
    since: float
    """Seconds since 1970."""


@dataclass(frozen=True)
class TopicInfo:
    """A topic by which programs send to each other, while it is in use."""

    topic: str
    queued: int
    """Messages that wait in its queue."""
    queued_bytes: int
    waiting_pushes: int
    """Pushes that wait for room."""
    waiting_pulls: int
    subscriptions: int
    user: str | None = None
    """Whose it is, in a list of everybody's."""


@dataclass(frozen=True)
class Logs:
    """A part of what a process wrote to stdout and stderr, as one text.

    The server keeps the last of it apart from the events.
    """

    text: str
    next: int
    """The position after the text, from which to read on."""
    dropped_bytes: int
    """Bytes before the text that are no longer kept."""
    ended: bool
    """Whether the process has ended."""


class UserModelStats(TypedDict):
    """What one user has of a model."""

    n_pages_used: int
    n_contexts: int
    n_snapshots: int
    n_requests: int


class UserShare(TypedDict, total=False):
    """What one user has, as operators see it."""

    held_bytes: dict[str, int]
    n_live: int
    n_ended: int
    n_tokens: int


class WholeServerStats(TypedDict):
    """What everybody has together, and what the engine counts: for operators."""

    n_connections: int
    n_live: int
    n_ended: int
    budget_bytes: int
    """What all users together may hold."""
    held_bytes: int
    n_faults: int
    """How often the engine was at odds with itself and went on: it is healthy at 0."""
    messages: MessageStats
    """What programs sent to each other so far, and what waits."""
    users: dict[str, UserShare]
    models: dict[str, ModelStats]
    """What the engine counts of each model, by its name."""


class ServerStats(TypedDict):
    """What the asking user has at a server; of others only operators learn something."""

    uptime_s: float
    draining: bool
    """Whether it takes no more launches, because it was told to end."""
    user: str
    role: Literal["read", "user", "operator"]
    n_connections: int
    n_live: int
    """Processes that run."""
    n_ended: int
    """Processes that have ended and are kept."""
    n_tokens: int
    """Tokens that have entered the contexts of these processes."""
    held_bytes: dict[str, int]
    """Bytes of the engine's budget, by what they are held for."""
    models: dict[str, UserModelStats]
    """By the name of the model."""
    server: NotRequired[WholeServerStats]
    """For operators."""
