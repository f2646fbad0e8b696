//! The driver answers a batch.

use super::judging::{Became, verdict};
use super::requests::ticket;
use super::{Engine, InFlight, Rider, Running};
use crate::batch::{DriverFailure, Sampled, SequenceRows};
use crate::context::{Pass, PassKind};
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::FinishReason;
use crate::ids::{BatchId, ContextId, GeneratorId, PassId};
use crate::kv::{Lane, PageStore};

/// Of so many batches of a user who is alone one tells what batches cost.
const ALONE_LEARNS: u64 = 4;

impl Engine {
    /// Ends a batch: keys and values advance, drawn tokens are folded into their passes, and passes that need more wait again. After a
    /// failure of the driver every request of the batch becomes ready with an error of its own, and its context is as it was before. The
    /// answer to a batch that was abandoned is dropped, whatever it is; the pages of the batch are free from then on.
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
            .in_flight
            .iter()
            .position(|running| running.id == batch)
        else {
            return Err(Error::internal(format!("{batch:?} does not run")));
        };
        let n_sequences = self
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
        let InFlight {
            id: batch,
            sequences,
            riders,
            moves,
            work,
            n_tokens,
            before,
            lent,
            since_ns,
            abandoned,
            ..
        } = self.in_flight.swap_remove(index);
        let overtaken = before.filter(|&before| self.runs(before));
        self.begin_next(batch, now_ns);
        for page in lent {
            self.store.take_back(page);
        }
        let outcome = if abandoned {
            Err(too_late())
        } else {
            let took_ns = now_ns.saturating_sub(since_ns);
            self.hold.ran(took_ns);
            self.totals.batch_us.count(took_ns / 1000);
            match &outcome {
                Ok(_) => {
                    self.costs.ran(n_tokens, took_ns);
                    // Who is alone needs no bound: what batches cost is known by the time that somebody comes.
                    if self.queue.pace.is_shared() || batch.0.is_multiple_of(ALONE_LEARNS) {
                        self.queue.pace.ran(&work, took_ns);
                    }
                }
                Err(_) => self.totals.n_failed_batches += 1,
            }
            outcome
        };
        let (succeeded, n_ready) = (outcome.is_ok(), self.ready.len());
        if !succeeded {
            // Each may use what any of them brought back.
            let users = sequences
                .iter()
                .filter(|sequence| !(sequence.follows && overtaken.is_some()))
                .map(|sequence| sequence.context);
            for id in users
                .chain(riders.iter().map(|rider| rider.context))
                .filter(|_| !moves.ins.is_empty())
            {
                if let Some(context) = self.contexts.get_mut(id.0) {
                    context.lane.reset(&mut self.store);
                }
            }
        }
        self.store.conclude(batch, moves, succeeded);
        for (index, sequence) in sequences.into_iter().enumerate() {
            if let Some(before) = overtaken.filter(|_| sequence.follows) {
                self.give_back(&sequence, before);
                continue;
            }
            let rows = match &outcome {
                Ok(sampled) => sampled.rows(index),
                Err(error) => Err(error.clone()),
            };
            self.end_lease(&sequence, batch, succeeded);
            self.advance(&sequence, rows, batch, now_ns);
        }
        for rider in riders {
            self.end_ride(rider);
        }
        self.costs
            .ended(self.ready.len() - n_ready, since_ns, now_ns);
    }

    /// The batch has let go of the pages of a context. `copied` tells whether its page copies were made.
    fn end_lease(&mut self, sequence: &Running, batch: BatchId, copied: bool) {
        let Some(context) = self.contexts.get_mut(sequence.context.0) else {
            let faults = &mut self.totals.faults;
            return faults.count("a context is gone while a batch runs it");
        };
        // The next batch may have it already.
        context.lease = context.lease.filter(|&lease| lease != batch);
        let goes_on = |pass: &Pass| pass.id == sequence.pass;
        if let Some(copy) = sequence.copy {
            if copied && context.pass.as_ref().is_some_and(goes_on) {
                context.lane.take_copy(&mut self.store, copy);
            } else {
                context.lane.drop_copy(&mut self.store, copy);
            }
        }
        self.bury(sequence.context);
    }

    /// The batch has brought back pages of a context of which it computed nothing.
    fn end_ride(&mut self, rider: Rider) {
        let id = rider.context;
        if let Some(context) = self.contexts.get_mut(id.0) {
            context.lease = None;
            let pass = context.pass.as_ref();
            if pass.is_some_and(|pass| pass.id == rider.pass) {
                context.trim(&mut self.store);
            } else {
                // What was found for its pass may be none of the tokens of the one that was entered since.
                context.roll_back(&mut self.store);
            }
            if context.is_to_go() {
                context.suspend(&mut self.store);
            }
            self.bury(id);
            self.renew_ticket(id);
            self.rest(id);
        }
    }

    /// What is ready of a context has changed while its pass waits.
    pub(super) fn renew_ticket(&mut self, id: ContextId) {
        let served = self.totals.n_batches;
        let renewed = self
            .contexts
            .get(id.0)
            .and_then(|context| ticket(id, context, served));
        if let Some(renewed) = renewed.filter(|renewed| self.queue.remove(renewed.pass)) {
            self.queue.push(renewed);
        }
    }

    /// Takes a pass one batch further.
    fn advance(
        &mut self,
        sequence: &Running,
        rows: Result<SequenceRows<'_>>,
        batch: BatchId,
        now_ns: u64,
    ) {
        let Some(context) = self.contexts.get_mut(sequence.context.0) else {
            self.totals.n_followers_dropped += u64::from(sequence.follows);
            return;
        };
        if context
            .pass
            .as_ref()
            .is_none_or(|pass| pass.id != sequence.pass || !pass.is_running())
        {
            // The pass was cancelled or abandoned under way: what it wrote is dropped, when no batch uses it any more.
            self.totals.n_followers_dropped += u64::from(sequence.follows);
            if context.lease.is_some() {
                return;
            }
            context.roll_back(&mut self.store);
            if context.is_to_go() {
                context.suspend(&mut self.store);
            }
            // Another pass that was entered since has to compute what this one had.
            self.renew_ticket(sequence.context);
            return self.rest(sequence.context);
        }
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => return self.fail(sequence.context, sequence.pass, error),
        };
        let Some(pass) = context.pass.as_mut() else {
            return self.totals.faults.count("what a batch ran has no pass");
        };
        pass.read(rows.outputs());
        let (kind, request, is_ahead) = (pass.kind, pass.request(), pass.is_ahead());
        let n_drawn = pass.rows_drawn().len() as u32;
        // What runs ahead is judged when it is asked for: options may change until then.
        let verdict = match kind.generator() {
            Some(_) if !is_ahead => verdict(&self.config, &self.generators, context, 0),
            _ => None,
        };
        if let Some(next) = context.lease {
            lend(&mut self.in_flight, &mut self.store, next, &context.lane);
        }
        let n_rejected = verdict.map_or(0, |verdict| verdict.n_rejected);
        context.advance(&mut self.store, sequence.length - n_rejected);
        let whole = context.lane.n_ready() >= context.end();
        let Some(pass) = context.pass.as_mut() else {
            return self.totals.faults.count("what a batch ran has no pass");
        };
        let n_accepted = match (kind.generator(), verdict) {
            (None, _) => 0,
            (Some(_), None) => n_drawn,
            (Some(_), Some(verdict)) => verdict.n_accepted,
        };
        let stops = pass.stop(n_accepted);
        let faults = &mut self.totals.faults;
        faults.expect(stops, "what a batch ran does not run");
        if is_ahead {
            if pass.is_waiting() {
                return self.go_on(sequence.context, batch.0);
            }
            return self.rest(sequence.context);
        }
        let became = match (kind.generator(), verdict) {
            (None, _) if whole => {
                let answers = pass.answer(None, false);
                faults.expect(answers, "what a batch ran is answered already");
                Became::Answered(None)
            }
            (_, None) => {
                self.go_on(sequence.context, batch.0);
                Became::Going
            }
            (_, Some(verdict)) => self.follow_verdict(sequence.context, verdict.next, batch.0),
        };
        if let Became::Answered(finish) = became {
            if let PassKind::Step(id) = kind {
                self.expect_back(sequence.context, id, finish, now_ns);
            }
            self.ready.extend(request);
            self.rest(sequence.context);
        }
    }

    /// A program was answered a step: it may come back for the next one.
    fn expect_back(
        &mut self,
        context: ContextId,
        id: GeneratorId,
        finish: Option<FinishReason>,
        now_ns: u64,
    ) {
        let Some(generator) = self.generators.get_mut(id.0) else {
            return;
        };
        if finish.is_none() && !generator.retired && !generator.dropped {
            generator.answered_ns = Some(now_ns);
            let context = self.contexts.get(context.0);
            let pass = context.and_then(|context| context.pass.as_ref());
            // What runs ahead is in the next batch without anybody's coming back.
            if !pass.is_some_and(|pass| pass.is_waiting() || pass.is_running()) {
                self.hold.expect(id, generator.return_ns, now_ns);
            }
        }
    }

    /// Ends a pass with an error; what it computed is dropped. One that runs ahead just ends.
    pub(super) fn fail(&mut self, id: ContextId, pass: PassId, error: Error) {
        let Some(context) = self.contexts.get_mut(id.0) else {
            return;
        };
        let Some(pass) = context.pass.as_mut().filter(|it| it.id == pass) else {
            return;
        };
        let request = pass.request();
        if request.is_none() {
            context.pass = None;
            context.trim(&mut self.store);
        } else if pass.stop_ahead() {
            if context.lease.is_none() {
                context.roll_back(&mut self.store);
            }
        } else if pass.fail(error) {
            context.trim(&mut self.store);
            self.ready.extend(request);
        }
        self.rest(id);
    }
}

/// The batch `next` has the pages of a lane in its arena: it keeps those that may turn out to be a second copy of what somebody else has.
fn lend(in_flight: &mut [InFlight], store: &mut PageStore, next: BatchId, lane: &Lane) {
    if let Some(next) = in_flight.iter_mut().find(|batch| batch.id == next) {
        for page in lane.own_pages() {
            store.lend(page);
            next.lent.push(page);
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
