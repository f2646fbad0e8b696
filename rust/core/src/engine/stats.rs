//! Counters and gauges: one structure, read between two calls of the engine.

use super::Engine;
use super::histogram::Histogram;
use crate::ids::UserId;

/// A figure of [`Stats`].
#[derive(Clone, Copy, Debug)]
pub enum Figure<'a> {
    /// A counter or a gauge.
    Number(u64),
    /// A distribution.
    Histogram(&'a Histogram),
}

impl From<&u64> for Figure<'_> {
    fn from(number: &u64) -> Self {
        Self::Number(*number)
    }
}

impl<'a> From<&'a Histogram> for Figure<'a> {
    fn from(histogram: &'a Histogram) -> Self {
        Self::Histogram(histogram)
    }
}

/// The structure, and all that it holds by name. `tools/gen_stats.py` reads the fields and their comments.
macro_rules! stats {
    ($(#[$about:meta])* pub struct Stats { $($(#[$comment:meta])* pub $name:ident: $kind:ty,)* }) => {
        $(#[$about])*
        pub struct Stats { $($(#[$comment])* pub $name: $kind,)* }

        impl Stats {
            /// Every figure with its name, in their order.
            pub fn figures(&self) -> impl Iterator<Item = (&'static str, Figure<'_>)> {
                [$((stringify!($name), Figure::from(&self.$name))),*].into_iter()
            }
        }
    };
}

stats! {
    /// Counters and gauges of an engine.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Stats {
        /// Pages of the pool.
        pub n_pages: u64,
        /// Pages that contexts use.
        pub n_pages_used: u64,
        /// Pages that nobody uses and that are kept for who computes the same.
        pub n_pages_cached: u64,
        /// Pages that hold nothing.
        pub n_pages_free: u64,
        /// Pages in the memory of the host.
        pub n_pages_host: u64,
        /// Contexts that live, those included that wait for the end of a batch to go.
        pub n_contexts: u64,
        /// Snapshots that are kept in memory.
        pub n_snapshots: u64,
        /// Generators that live.
        pub n_generators: u64,
        /// Requests entered and not yet taken.
        pub n_requests: u64,
        /// Passes that wait for a batch, those included that run ahead of their program.
        pub n_waiting: u64,
        /// The most that waited when a batch was asked for.
        pub n_waiting_max: u64,
        /// The most batches in a row that passed over a request while pages were short.
        pub n_refused_max: u64,
        /// Batches that run.
        pub n_in_flight: u64,
        /// Those of them that were abandoned, and commands that were. While there is any the engine gives no batch: it
        /// is healthy at 0.
        pub n_stuck: u64,
        /// Times that something was as it cannot be: faults of the engine itself. It is sound at 0.
        pub n_faults: u64,
        /// Batches planned so far.
        pub n_batches: u64,
        /// Batches that their driver failed, those included that were abandoned.
        pub n_failed_batches: u64,
        /// Times that the driver was lost with all its pages, and what was wanted of them had to be computed again.
        pub n_device_losses: u64,
        /// Sequences of all batches; over `n_batches` it is the mean batch width.
        pub n_sequences: u64,
        /// Rows of logits asked for so far.
        pub n_rows: u64,
        /// Tokens computed so far.
        pub n_tokens: u64,
        /// Times that a pass found a part of its tokens computed, or all.
        pub n_hits: u64,
        /// Tokens that were not computed because somebody had computed the same before.
        pub n_reused: u64,
        /// Tokens computed again because their pages had been needed by others.
        pub n_replayed: u64,
        /// Pages copied on the device, because one that was to be written on was shared.
        pub n_copies: u64,
        /// Pages that were wanted, and were copied to the host to make room.
        pub n_copied_out: u64,
        /// Pages copied back from the host.
        pub n_copied_in: u64,
        /// Pages that nobody used and that were emptied for others.
        pub n_evicted: u64,
        /// Pages that were wanted, and were emptied to make room.
        pub n_dropped: u64,
        /// Times that a context gave up its pages because others needed them.
        pub n_suspended: u64,
        /// Batches for which pages were short, so that contexts bade for them.
        pub n_auctions: u64,
        /// The highest bid that lost when the last batch was planned, in micro-credits a page; 0 where pages were not
        /// short.
        pub rent_microcredits: u64,
        /// Rent that was paid so far, in micro-credits. It returned to all processes.
        pub rented_microcredits: u64,
        /// Steps that had run ahead of their program when it asked.
        pub n_ahead_used: u64,
        /// Steps that ran ahead in vain.
        pub n_ahead_dropped: u64,
        /// Sequences planned while the batch ran that draws their token.
        pub n_followers: u64,
        /// Those of them whose token was of no use: it had ended its generation, or the batch before had failed.
        pub n_followers_dropped: u64,
        /// Tokens that were drafted, and computed beside the token before them.
        pub n_drafted: u64,
        /// Those of them that were drawn as well, and accepted.
        pub n_drafts_accepted: u64,
        /// Rows that wait for token masks that come late, those included that are not computed yet.
        pub n_late_rows: u64,
        /// Passes that failed, or ran ahead in vain, because their token masks did not come in time.
        pub n_late_masks: u64,
        /// Commands that were given to the driver so far.
        pub n_commands: u64,
        /// Pages written for snapshots on disk, so that they need not be computed again.
        pub n_pages_exported: u64,
        /// Pages read from snapshots on disk in place of being computed again.
        pub n_pages_imported: u64,
        /// Times that a driver was told to wait for programs that were expected back.
        pub n_holds: u64,
        /// Sequences of each batch.
        pub batch_sequences: Histogram,
        /// Tokens of each batch.
        pub batch_tokens: Histogram,
        /// Microseconds from the plan of each batch, or the answer to the one that ran before it, to its answer.
        pub batch_us: Histogram,
        /// Microseconds that each request waited for the first batch that computed anything of it, or until it was
        /// found that nothing was left to compute.
        pub wait_us: Histogram,
    }
}

/// What the processes of one user have of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserStats {
    /// Pages that their contexts use.
    pub n_pages_used: u64,
    /// Their contexts that live.
    pub n_contexts: u64,
    /// Their snapshots that are kept in memory.
    pub n_snapshots: u64,
    /// Their requests entered and not yet taken.
    pub n_requests: u64,
}

impl Engine {
    /// What a user has, as of now.
    pub fn user_stats(&self, user: UserId) -> UserStats {
        let own = self.owned.user(user);
        UserStats {
            n_pages_used: u64::from(self.device.store.n_used_by(user)),
            n_contexts: own.n_contexts as u64,
            n_snapshots: self.owned.snapshots.n_of(user) as u64,
            n_requests: own.n_requests as u64,
        }
    }

    /// Counters and gauges, as of now.
    pub fn stats(&self) -> Stats {
        let (pages, faults) = (self.device.store.totals(), self.device.store.faults());
        let totals = &self.totals;
        let n_pages = u64::from(self.device.store.n_pages());
        let n_pages_used = u64::from(self.device.store.n_in_use());
        let n_pages_cached = u64::from(self.device.store.n_cached());
        Stats {
            n_pages,
            n_pages_used,
            n_pages_cached,
            n_pages_free: n_pages - n_pages_used - n_pages_cached,
            n_pages_host: u64::from(self.device.store.n_on_host()),
            n_contexts: self.owned.contexts.len() as u64,
            n_snapshots: self.owned.snapshots.len() as u64,
            n_generators: self.owned.generators.len() as u64,
            n_requests: self.owned.requests.len() as u64,
            n_waiting: self.waiting.queue.len() as u64,
            n_waiting_max: totals.n_waiting_max,
            n_refused_max: totals.n_refused_max,
            n_in_flight: self.device.in_flight.len() as u64,
            n_stuck: self.device.n_stuck() as u64,
            n_faults: totals.faults.n() + faults.iter().map(|it| it.n()).sum::<u64>(),
            n_batches: totals.n_batches,
            n_failed_batches: totals.n_failed_batches,
            n_device_losses: totals.n_device_losses,
            n_sequences: totals.n_sequences,
            n_rows: totals.n_rows,
            n_tokens: totals.n_tokens,
            n_hits: totals.n_hits,
            n_reused: totals.n_reused,
            n_replayed: totals.n_replayed,
            n_copies: totals.n_copies,
            n_copied_out: pages.n_copied_out,
            n_copied_in: pages.n_copied_in,
            n_evicted: pages.n_evicted,
            n_dropped: pages.n_dropped,
            n_suspended: totals.n_suspended,
            n_auctions: self.market.n_auctions(),
            rent_microcredits: self.market.rent(),
            rented_microcredits: u64::try_from(self.market.rented()).unwrap_or(u64::MAX),
            n_ahead_used: totals.n_ahead_used,
            n_ahead_dropped: totals.n_ahead_dropped,
            n_followers: totals.n_followers,
            n_followers_dropped: totals.n_followers_dropped,
            n_late_rows: self.n_late_rows() as u64,
            n_drafted: totals.n_drafted,
            n_drafts_accepted: totals.n_drafts_accepted,
            n_late_masks: totals.n_late_masks,
            n_commands: totals.n_commands,
            n_pages_exported: totals.n_pages_exported,
            n_pages_imported: totals.n_pages_imported,
            n_holds: totals.n_holds,
            batch_sequences: totals.batch_sequences.clone(),
            batch_tokens: totals.batch_tokens.clone(),
            batch_us: totals.batch_us.clone(),
            wait_us: totals.wait_us.clone(),
        }
    }
}
