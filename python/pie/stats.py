"""What an engine counts: of a model, and of the messages between programs.

Generated from `rust/core/src/engine/stats.rs` and `rust/core/src/bus/stats.rs` by `tools/gen_stats.py`; do not edit.
"""

from __future__ import annotations

from typing import TypedDict


class Histogram(TypedDict):
    """How often values of which size were seen."""

    counts: list[int]
    """`counts[d]` values had `d` binary digits: less than `2**d`, and at least `2**(d - 1)` for `d > 0`.

    It ends with the largest.
    """
    sum: int
    """All values together."""
    max: int
    """The largest value; 0 without any."""


class ModelStats(TypedDict):
    """Counters and gauges of a model: one structure, taken at one moment."""

    n_pages: int
    """Pages of the pool."""

    n_pages_used: int
    """Pages that contexts use."""

    n_pages_cached: int
    """Pages that nobody uses and that are kept for who computes the same."""

    n_pages_free: int
    """Pages that hold nothing."""

    n_pages_host: int
    """Pages in the memory of the host."""

    n_contexts: int
    """Contexts that live, those included that wait for the end of a batch to go."""

    n_snapshots: int
    """Snapshots that are kept in memory."""

    n_generators: int
    """Generators that live."""

    n_requests: int
    """Requests entered and not yet taken."""

    n_waiting: int
    """Passes that wait for a batch, those included that run ahead of their program."""

    n_waiting_max: int
    """The most that waited when a batch was asked for."""

    n_refused_max: int
    """The most batches in a row that passed over a request while pages were short."""

    n_in_flight: int
    """Batches that run."""

    n_stuck: int
    """Those of them that were abandoned, and commands that were. While there is any the engine gives no batch: it is
    healthy at 0.
    """

    n_faults: int
    """Times that something was as it cannot be: faults of the engine itself. It is sound at 0."""

    n_batches: int
    """Batches planned so far."""

    n_failed_batches: int
    """Batches that their driver failed, those included that were abandoned."""

    n_device_losses: int
    """Times that the driver was lost with all its pages, and what was wanted of them had to be computed again."""

    n_sequences: int
    """Sequences of all batches; over `n_batches` it is the mean batch width."""

    n_rows: int
    """Rows of logits asked for so far."""

    n_tokens: int
    """Tokens computed so far."""

    n_hits: int
    """Times that a pass found a part of its tokens computed, or all."""

    n_reused: int
    """Tokens that were not computed because somebody had computed the same before."""

    n_replayed: int
    """Tokens computed again because their pages had been needed by others."""

    n_copies: int
    """Pages copied on the device, because one that was to be written on was shared."""

    n_copied_out: int
    """Pages that were wanted, and were copied to the host to make room."""

    n_copied_in: int
    """Pages copied back from the host."""

    n_evicted: int
    """Pages that nobody used and that were emptied for others."""

    n_dropped: int
    """Pages that were wanted, and were emptied to make room."""

    n_suspended: int
    """Times that a context gave up its pages because others needed them."""

    n_auctions: int
    """Batches for which pages were short, so that contexts bade for them."""

    rent_microcredits: int
    """The highest bid that lost when the last batch was planned, in micro-credits a page; 0 where pages were not
    short.
    """

    rented_microcredits: int
    """Rent that was paid so far, in micro-credits. It returned to all processes."""

    n_ahead_used: int
    """Steps that had run ahead of their program when it asked."""

    n_ahead_dropped: int
    """Steps that ran ahead in vain."""

    n_followers: int
    """Sequences planned while the batch ran that draws their token."""

    n_followers_dropped: int
    """Those of them whose token was of no use: it had ended its generation, or the batch before had failed."""

    n_drafted: int
    """Tokens that were drafted, and computed beside the token before them."""

    n_drafts_accepted: int
    """Those of them that were drawn as well, and accepted."""

    n_late_rows: int
    """Rows that wait for token masks that come late, those included that are not computed yet."""

    n_late_masks: int
    """Passes that failed, or ran ahead in vain, because their token masks did not come in time."""

    n_commands: int
    """Commands that were given to the driver so far."""

    n_pages_exported: int
    """Pages written for snapshots on disk, so that they need not be computed again."""

    n_pages_imported: int
    """Pages read from snapshots on disk in place of being computed again."""

    n_holds: int
    """Times that a driver was told to wait for programs that were expected back."""

    batch_sequences: Histogram
    """Sequences of each batch."""

    batch_tokens: Histogram
    """Tokens of each batch."""

    batch_us: Histogram
    """Microseconds from the plan of each batch, or the answer to the one that ran before it, to its answer."""

    wait_us: Histogram
    """Microseconds that each request waited for the first batch that computed anything of it, or until it was found
    that nothing was left to compute.
    """


class MessageStats(TypedDict):
    """What programs sent to each other so far, and what waits."""

    n_pushed: int
    """Messages that entered queues so far."""

    n_pulled: int
    """Messages that were taken from queues so far."""

    n_dropped: int
    """Messages that were dropped from queues so far: their user had gone for long, or an operator dropped them."""

    n_refused: int
    """Pushes that found no room in time, or whose program ended while they waited."""

    n_broadcasts: int
    """Broadcasts so far."""

    n_copies: int
    """Copies that broadcasts gave to subscriptions so far."""

    n_received: int
    """Copies that were received so far."""

    n_lagged: int
    """Copies that subscriptions dropped because they held too much."""

    n_discarded: int
    """Copies that subscriptions held when they ended."""

    n_topics: int
    """Topics in use."""

    n_queued: int
    """Messages that wait in queues."""

    queued_bytes: int
    """Bytes of the messages that wait in queues."""

    n_waiting_pushes: int
    """Pushes that wait for room."""

    n_waiting_pulls: int
    """Pulls that wait for a message."""

    n_subscriptions: int
    """Subscriptions."""

    n_held: int
    """Copies that wait in subscriptions."""
