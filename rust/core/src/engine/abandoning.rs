//! A driver that does not answer.
//!
//! Nobody can tell what it still reads and writes, so an abandoned batch keeps its pages until the driver does answer,
//! and gets no company. Its requests need not wait for that: they fail, and what programs see is as it was before.
//! Whatever they ask for next waits in the queue, within the limits of the queue.

use super::Engine;
use crate::config::nanoseconds;
use crate::errors::{Error, ErrorCode};

impl Engine {
    /// When the batch that runs for the longest is overdue, or the pass that waits for the longest for nothing but
    /// token masks; none where nothing can be.
    pub fn overdue_ns(&self) -> Option<u64> {
        let due_ns = [self.batch_due_ns(), self.late_due_ns()];
        due_ns.into_iter().flatten().min()
    }

    fn batch_due_ns(&self) -> Option<u64> {
        let limit_ns =
            Some(nanoseconds(self.config.driver_timeout)).filter(|&limit_ns| limit_ns > 0)?;
        let waited_for = self
            .device
            .in_flight
            .iter()
            .filter(|batch| !batch.abandoned);
        let due_ns = waited_for.map(|batch| batch.since_ns.saturating_add(limit_ns));
        due_ns.chain(self.device.commands.due_ns(limit_ns)).min()
    }

    /// Gives up waiting for every batch or command that is overdue: its requests become ready, each with an error of
    /// its own, and their contexts are as they were before. The pages that the batch uses stay reserved until
    /// [`Engine::complete`], and until then no batch is given. Returns how many batches there were.
    pub fn abandon_overdue(&mut self, now_ns: u64) -> usize {
        let limit_ns = nanoseconds(self.config.driver_timeout);
        if limit_ns == 0 {
            return 0;
        }
        self.now_ns = now_ns;
        let timeout = self.config.names.driver_timeout;
        let (mut n_abandoned, mut passes) = (0, Vec::new());
        for batch in &mut self.device.in_flight {
            if !batch.abandoned && batch.since_ns.saturating_add(limit_ns) <= now_ns {
                batch.abandoned = true;
                n_abandoned += 1;
                let sequences = batch.sequences.iter();
                passes.extend(sequences.map(|sequence| (sequence.context, sequence.pass)));
            }
        }
        self.totals.n_failed_batches += n_abandoned as u64;
        for (context, pass) in passes {
            self.fail(context, pass, overdue(limit_ns, timeout));
        }
        n_abandoned + usize::from(self.abandon_command(|| overdue_command(limit_ns, timeout)))
    }

    /// Whether a batch was abandoned that the driver has not answered.
    pub fn is_stuck(&self) -> bool {
        self.device.n_stuck() > 0
    }
}

fn overdue_command(limit_ns: u64, setting: &str) -> Error {
    Error::with_values(
        ErrorCode::DriverFailed,
        format!(
            "the driver did not answer the command within {} s, {setting}; whether it was carried out is not known; look at \
             the driver, or raise the setting",
            limit_ns as f64 / 1e9
        ),
        &[("limit_ms", limit_ns / 1_000_000)],
    )
}

fn overdue(limit_ns: u64, setting: &str) -> Error {
    Error::with_values(
        ErrorCode::DriverFailed,
        format!(
            "the driver did not answer the batch within {} s, {setting}; the context is as it was, and a pass that is tried again \
             waits until the driver answers; look at the driver, or raise the setting",
            limit_ns as f64 / 1e9
        ),
        &[("limit_ms", limit_ns / 1_000_000)],
    )
}
