//! Counters and gauges.

use super::Engine;

/// What happened so far.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) n_batches: u64,
    pub(super) n_failed_batches: u64,
    pub(super) n_sequences: u64,
    pub(super) n_rows: u64,
    pub(super) n_tokens: u64,
    pub(super) n_copies: u64,
    pub(super) n_holds: u64,
    pub(super) n_ahead_used: u64,
    pub(super) n_ahead_dropped: u64,
    pub(super) n_suspended: u64,
    pub(super) n_reused: u64,
    pub(super) n_replayed: u64,
}

/// Counters and gauges of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Pages of the pool.
    pub n_pages: u64,
    /// Pages that contexts use.
    pub n_pages_used: u64,
    /// Pages that nobody uses and that are kept for who computes the same.
    pub n_pages_cached: u64,
    /// Pages in the memory of the host.
    pub n_pages_host: u64,
    /// Contexts that live, those included that wait for the end of a batch to go.
    pub n_contexts: u64,
    /// Snapshots that are kept.
    pub n_snapshots: u64,
    /// Generators that live.
    pub n_generators: u64,
    /// Requests entered and not yet taken.
    pub n_requests: u64,
    /// Requests that wait for a batch.
    pub n_waiting: u64,
    /// Batches that run.
    pub n_in_flight: u64,
    /// Those of them that were abandoned. While there is any the engine gives no batch: it is healthy at 0.
    pub n_stuck: u64,
    /// Batches planned so far.
    pub n_batches: u64,
    /// Batches that their driver failed, those included that were abandoned.
    pub n_failed_batches: u64,
    /// Sequences of all batches; over `n_batches` it is the mean batch width.
    pub n_sequences: u64,
    /// Rows of logits asked for so far.
    pub n_rows: u64,
    /// Tokens computed so far.
    pub n_tokens: u64,
    /// Pages copied so far.
    pub n_copies: u64,
    /// Times that a driver was told to wait for programs that were expected back.
    pub n_holds: u64,
    /// Steps that had run ahead of their program when it asked.
    pub n_ahead_used: u64,
    /// Steps that ran ahead in vain.
    pub n_ahead_dropped: u64,
    /// Times that a context gave up its pages because others needed them.
    pub n_suspended: u64,
    /// Tokens that were not computed because somebody had computed the same before.
    pub n_reused: u64,
    /// Tokens computed again because their pages had been needed by others.
    pub n_replayed: u64,
    /// Pages that nobody used and that were emptied for others.
    pub n_evicted: u64,
    /// Pages that were wanted, and were copied to the host to make room.
    pub n_copied_out: u64,
    /// Pages copied back from the host.
    pub n_copied_in: u64,
    /// Pages that were wanted, and were emptied to make room.
    pub n_dropped: u64,
}

impl Engine {
    /// Counters and gauges, as of now.
    pub fn stats(&self) -> Stats {
        let pages = self.store.totals();
        Stats {
            n_pages: u64::from(self.store.n_pages()),
            n_pages_used: u64::from(self.store.n_in_use()),
            n_pages_cached: u64::from(self.store.n_cached()),
            n_pages_host: u64::from(self.store.n_on_host()),
            n_contexts: self.contexts.len() as u64,
            n_snapshots: self.snapshots.len() as u64,
            n_generators: self.generators.len() as u64,
            n_requests: self.requests.len() as u64,
            n_waiting: self.queue.len() as u64,
            n_in_flight: self.in_flight.len() as u64,
            n_stuck: self.n_stuck() as u64,
            n_batches: self.totals.n_batches,
            n_failed_batches: self.totals.n_failed_batches,
            n_sequences: self.totals.n_sequences,
            n_rows: self.totals.n_rows,
            n_tokens: self.totals.n_tokens,
            n_copies: self.totals.n_copies,
            n_holds: self.totals.n_holds,
            n_ahead_used: self.totals.n_ahead_used,
            n_ahead_dropped: self.totals.n_ahead_dropped,
            n_suspended: self.totals.n_suspended,
            n_reused: self.totals.n_reused,
            n_replayed: self.totals.n_replayed,
            n_evicted: pages.n_evicted,
            n_copied_out: pages.n_copied_out,
            n_copied_in: pages.n_copied_in,
            n_dropped: pages.n_dropped,
        }
    }
}
