//! The driver answers a batch: its pages are let go of, and its passes go on (`advancing`).

use super::Engine;
use super::device::{InFlight, PageRestore, Running};
use super::requests::ticket;
use crate::batch::{DriverFailure, Sampled};
use crate::context::Pass;
use crate::errors::{Error, ErrorCode, Result};
use crate::ids::{BatchId, ContextId};

/// Of so many batches of a user who is alone one tells what batches cost.
const ALONE_LEARNS: u64 = 4;

impl Engine {
    /// Ends a batch: keys and values advance, drawn tokens are folded into their passes, and passes that need more wait
    /// again. After a failure of the driver every request of the batch becomes ready with an error of its own, and its
    /// context is as it was before. The answer to a batch that was abandoned is dropped, whatever it is; the pages of
    /// the batch are free from then on.
    ///
    /// # Errors
    /// `internal` when no such batch runs, or when what was sampled belongs to another one; nothing changes then.
    pub fn complete(
        &mut self,
        batch: BatchId,
        outcome: std::result::Result<Sampled, DriverFailure>,
        now_ns: u64,
    ) -> Result<()> {
        let Some(index) = self
            .device
            .in_flight
            .iter()
            .position(|running| running.id == batch)
        else {
            return Err(Error::internal(format!("{batch:?} does not run")));
        };
        let n_sequences = self
            .device
            .in_flight
            .get(index)
            .map_or(0, |running| running.sequences.len());
        if let Ok(sampled) = &outcome
            && (sampled.batch != batch || sampled.n_sequences() != n_sequences)
        {
            return Err(Error::internal(format!(
                "{batch:?} was answered with what was sampled for {:?}",
                sampled.batch
            )));
        }
        self.end_batch(
            index,
            outcome.map_err(|failure| driver_failed(&failure)),
            now_ns,
        );
        Ok(())
    }

    /// Ends the batch at an index of those in flight; an error is that of each of its requests.
    pub(super) fn end_batch(&mut self, index: usize, outcome: Result<Sampled>, now_ns: u64) {
        self.now_ns = now_ns;
        let mut batch = self.device.in_flight.swap_remove(index);
        let (id, since_ns) = (batch.id, batch.since_ns);
        let overtaken = batch.before.filter(|&before| self.device.runs(before));
        self.begin_next(id, now_ns);
        for page in batch.lent.drain(..) {
            self.device.store.take_back(page);
        }
        let outcome = self.note_end(&batch, outcome, now_ns);
        let (succeeded, n_ready) = (outcome.is_ok(), self.ready.len());
        if !succeeded && !batch.moves.ins.is_empty() {
            self.reset_lanes(&batch, overtaken.is_some());
        }
        self.device.store.conclude(id, batch.moves, succeeded);
        for (index, sequence) in batch.sequences.iter().enumerate() {
            if let Some(before) = overtaken.filter(|_| sequence.follows) {
                self.give_back(sequence, before);
                continue;
            }
            let token = outcome.as_ref().ok().and_then(|it| it.token_of(index));
            if token.is_some_and(|token| self.advance_run(sequence, token, id)) {
                continue;
            }
            let rows = match &outcome {
                Ok(sampled) => sampled.rows(index),
                Err(error) => Err(error),
            };
            self.end_lease(sequence, id, succeeded);
            self.advance(sequence, rows, id, now_ns);
        }
        for restore in batch.restores {
            self.end_restore(restore);
        }
        self.waiting
            .costs
            .ended(self.ready.len() - n_ready, since_ns, now_ns);
    }

    /// Notes what a batch cost that ended. Returns its outcome: none that comes after the batch was abandoned counts.
    fn note_end(
        &mut self,
        batch: &InFlight,
        outcome: Result<Sampled>,
        now_ns: u64,
    ) -> Result<Sampled> {
        if batch.abandoned {
            return Err(too_late());
        }
        let took_ns = now_ns.saturating_sub(batch.since_ns);
        self.waiting.hold.ran(batch.id, took_ns);
        self.totals.batch_us.count(took_ns / 1000);
        if outcome.is_err() {
            self.totals.n_failed_batches += 1;
            return outcome;
        }
        self.waiting.costs.ran(batch.n_tokens, took_ns);
        // Who is alone needs no bound: what batches cost is known by the time that somebody comes.
        if self.waiting.queue.pace.is_shared() || batch.id.0.is_multiple_of(ALONE_LEARNS) {
            self.waiting.queue.pace.ran(&batch.work, took_ns);
        }
        outcome
    }

    /// A batch failed that was to bring pages back: each of its contexts may use what any of them brought back. Where
    /// it was answered before the one that it follows, that one still has its followers.
    fn reset_lanes(&mut self, batch: &InFlight, overtakes: bool) {
        let sequences = batch.sequences.iter();
        let ended = sequences.filter(|sequence| !(sequence.follows && overtakes));
        let users = ended.map(|sequence| sequence.context);
        for id in users.chain(batch.restores.iter().map(|restore| restore.context)) {
            match self.owned.contexts.get_mut(id.0) {
                Some(context) => context.lane.reset(&mut self.device.store),
                None => self.totals.faults.count("what is moved has no context"),
            }
        }
    }

    /// The batch has let go of the pages of a context. `copied` tells whether its page copies were made.
    fn end_lease(&mut self, sequence: &Running, batch: BatchId, copied: bool) {
        let Some(context) = self.owned.contexts.get_mut(sequence.context.0) else {
            let faults = &mut self.totals.faults;
            return faults.count("a context is gone while a batch runs it");
        };
        // The next batch may have it already.
        context.lease = context.lease.filter(|&lease| lease != batch);
        let goes_on = |pass: &Pass| pass.id == sequence.pass;
        if let Some(copy) = sequence.copy {
            if copied && context.pass.as_ref().is_some_and(goes_on) {
                context.lane.take_copy(&mut self.device.store, copy);
            } else {
                context.lane.drop_copy(&mut self.device.store, copy);
            }
        }
        if context.released {
            self.bury(sequence.context);
        }
    }

    /// The batch has brought back pages of a context of which it computed nothing.
    fn end_restore(&mut self, restore: PageRestore) {
        let id = restore.context;
        let Some(context) = self.owned.contexts.get_mut(id.0) else {
            let faults = &mut self.totals.faults;
            return faults.count("what is moved has no context");
        };
        context.lease = None;
        let pass = context.pass.as_ref();
        if pass.is_some_and(|pass| pass.id == restore.pass) {
            context.trim(&mut self.device.store);
        } else {
            // What was found for its pass may be none of the tokens of the one that was entered since.
            context.roll_back(&mut self.device.store);
        }
        if context.is_to_go() {
            context.suspend(&mut self.device.store);
        }
        self.bury(id);
        self.renew_ticket(id);
        self.rest(id);
    }

    /// What is ready of a context has changed while its pass waits.
    pub(super) fn renew_ticket(&mut self, id: ContextId) {
        let served = self.totals.n_batches;
        let renewed = self
            .owned
            .contexts
            .get(id.0)
            .and_then(|context| ticket(id, context, served));
        if let Some(renewed) = renewed {
            self.waiting.queue.replace(renewed);
        }
    }
}

/// What becomes of an answer that nobody waits for any more.
fn too_late() -> Error {
    Error::new(ErrorCode::DriverFailed, "the answer came too late")
}

fn driver_failed(failure: &DriverFailure) -> Error {
    Error::new(
        ErrorCode::DriverFailed,
        format!(
            "the driver failed the batch: {}; the context is as it was, try the pass again",
            failure.message
        ),
    )
}
