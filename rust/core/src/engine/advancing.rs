//! A pass goes one batch further: its rows are judged, its pages advance, and it is answered, goes on or fails.

use super::judging::{Became, judge};
use super::{Engine, InFlight, Running};
use crate::batch::SequenceRows;
use crate::context::PassKind;
use crate::errors::{Error, Result};
use crate::generation::{FinishReason, Next};
use crate::ids::{BatchId, ContextId, GeneratorId, PassId};
use crate::kv::{Lane, PageStore};

impl Engine {
    /// Takes the pass of a sequence one batch further.
    pub(super) fn advance(
        &mut self,
        sequence: &Running,
        rows: Result<SequenceRows<'_>>,
        batch: BatchId,
        now_ns: u64,
    ) {
        let id = sequence.context;
        let Some(context) = self.contexts.get_mut(id.0) else {
            // It was released, and its pages were let go of.
            self.totals.n_followers_dropped += u64::from(sequence.follows);
            return;
        };
        let pass = context.pass.as_mut();
        let Some(pass) = pass.filter(|pass| pass.id == sequence.pass && pass.is_running()) else {
            return self.drop_run(sequence);
        };
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => return self.fail(id, sequence.pass, error),
        };
        pass.read(rows.outputs());
        let judged = judge(&self.config, &self.generators, context);
        if let Some(next) = context.lease {
            lend(&mut self.in_flight, &mut self.store, next, &context.lane);
        }
        context.advance(&mut self.store, sequence.length - judged.n_rejected);
        let is_whole = context.lane.n_ready() >= context.end();
        let pass = context.pass.as_mut();
        let stops = pass.is_some_and(|pass| pass.stop(judged.n_accepted));
        let faults = &mut self.totals.faults;
        faults.expect(stops, "what a batch ran does not run");
        self.take_on(id, judged.next, is_whole, batch, now_ns);
    }

    /// A pass was cancelled or abandoned while a batch ran it: what it wrote is dropped, when no batch uses it any
    /// more.
    fn drop_run(&mut self, sequence: &Running) {
        self.totals.n_followers_dropped += u64::from(sequence.follows);
        let id = sequence.context;
        let context = self.contexts.get_mut(id.0);
        let Some(context) = context.filter(|context| context.lease.is_none()) else {
            return;
        };
        context.roll_back(&mut self.store);
        if context.is_to_go() {
            context.suspend(&mut self.store);
        }
        // Another pass that was entered since has to compute what this one had.
        self.renew_ticket(id);
        self.rest(id);
    }

    /// A batch is done with a pass, and drew what comes `next`, if anything. `is_whole` tells whether all of its tokens
    /// were computed.
    fn take_on(
        &mut self,
        id: ContextId,
        next: Option<Next>,
        is_whole: bool,
        batch: BatchId,
        now_ns: u64,
    ) {
        let context = self.contexts.get_mut(id.0);
        let Some(pass) = context.and_then(|context| context.pass.as_mut()) else {
            return self.totals.faults.count("what a batch ran has no pass");
        };
        let (kind, request) = (pass.kind, pass.request());
        if pass.is_ahead() {
            return match pass.is_waiting() {
                true => self.go_on(id, batch.0),
                false => self.rest(id),
            };
        }
        let became = match (kind.generator(), next) {
            (None, _) if is_whole => {
                let answers = pass.answer(None, false);
                let faults = &mut self.totals.faults;
                faults.expect(answers, "what a batch ran is answered already");
                Became::Answered(None)
            }
            (_, None) => {
                self.go_on(id, batch.0);
                Became::Going
            }
            (_, Some(next)) => self.follow_verdict(id, next, batch.0),
        };
        if let Became::Answered(finish) = became {
            if let PassKind::Step(generator) = kind {
                self.expect_back(id, generator, finish, now_ns);
            }
            self.ready.extend(request);
            self.rest(id);
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

/// The batch `next` has the pages of a lane in its arena: it keeps those that may turn out to be a second copy of what
/// somebody else has.
fn lend(in_flight: &mut [InFlight], store: &mut PageStore, next: BatchId, lane: &Lane) {
    if let Some(next) = in_flight.iter_mut().find(|batch| batch.id == next) {
        for page in lane.own_pages() {
            store.lend(page);
            next.lent.push(page);
        }
    }
}
