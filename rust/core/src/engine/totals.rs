//! What an engine counts as it happens.

use super::histogram::Histogram;
use crate::faults::Faults;

/// What happened so far.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) n_batches: u64,
    pub(super) n_failed_batches: u64,
    pub(super) n_device_losses: u64,
    pub(super) n_sequences: u64,
    pub(super) n_rows: u64,
    pub(super) n_tokens: u64,
    pub(super) n_copies: u64,
    pub(super) n_holds: u64,
    pub(super) n_followers: u64,
    pub(super) n_followers_dropped: u64,
    pub(super) n_ahead_used: u64,
    pub(super) n_ahead_dropped: u64,
    pub(super) n_drafted: u64,
    pub(super) n_drafts_accepted: u64,
    pub(super) n_late_masks: u64,
    pub(super) n_commands: u64,
    pub(super) n_pages_exported: u64,
    pub(super) n_pages_imported: u64,
    pub(super) n_suspended: u64,
    pub(super) n_hits: u64,
    pub(super) n_reused: u64,
    pub(super) n_replayed: u64,
    pub(super) n_waiting_max: u64,
    pub(super) n_refused_max: u64,
    pub(super) batch_sequences: Histogram,
    pub(super) batch_tokens: Histogram,
    pub(super) batch_us: Histogram,
    pub(super) wait_us: Histogram,
    pub(super) faults: Faults,
}

impl Totals {
    /// What a request waited for is there; none where it did not wait.
    pub(super) fn waited(&mut self, asked_ns: Option<u64>, now_ns: u64) {
        if let Some(asked_ns) = asked_ns {
            self.wait_us.count(now_ns.saturating_sub(asked_ns) / 1000);
        }
    }
}
