//! A pass goes one batch further: its rows are judged, its pages advance, and it is answered, goes on or fails.

use super::Engine;
use super::device::Running;
use super::drafts::drafts_to_come;
use super::judging::{Became, Judged, follow_verdict, judge, standing};
use crate::batch::SequenceRows;
use crate::context::{Pass, PassKind};
use crate::errors::Error;
use crate::faults::Faults;
use crate::generation::{Drafts, Drawn, FinishReason, Generator, Next, fold};
use crate::ids::{BatchId, ContextId, PassId};

impl Engine {
    /// Takes a run to the end one token further where its batch drew that token, and it goes on: most sequences of most
    /// batches. It comes to what ending the lease and `advance` do, with one look at the context. False: it has to be
    /// looked at more closely, and nothing has changed.
    pub(super) fn advance_run(&mut self, sequence: &Running, token: u32, batch: BatchId) -> bool {
        let id = sequence.context;
        let Some(context) = self.owned.contexts.get_mut(id.0) else {
            return false;
        };
        let is_leased = context.lease == Some(batch) && !context.released;
        let pass = context.pass.as_ref();
        let pass = pass.filter(|pass| pass.id == sequence.pass && pass.runs_on());
        let generator = pass.and_then(|pass| self.owned.generators.get(pass.kind.generator()?.0));
        let Some((pass, generator)) = pass.zip(generator) else {
            return false;
        };
        let drawn = Drawn {
            drafts: &[],
            tokens: &[token],
        };
        if !is_leased
            || sequence.copy.is_some()
            || generator.has_drafter()
            || fold(generator, drawn, &standing(&self.config, context, pass)).next != Next::Go
        {
            return false;
        }
        context.lease = None;
        context.advance(&mut self.device.store, sequence.length);
        let faults = &mut self.totals.faults;
        let goes_on = context.pass.as_mut().is_some_and(|pass| pass.run_on(token));
        faults.expect(goes_on, "what runs on does not");
        self.waiting.go_on(id, context, batch.0, faults);
        true
    }

    /// Takes the pass of a sequence one batch further.
    pub(super) fn advance(
        &mut self,
        sequence: &Running,
        rows: std::result::Result<SequenceRows<'_>, &Error>,
        batch: BatchId,
        now_ns: u64,
    ) {
        let id = sequence.context;
        let Some(context) = self.owned.contexts.get_mut(id.0) else {
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
            Err(error) => return self.fail(id, sequence.pass, error.clone()),
        };
        pass.read(rows.outputs());
        let judged = judge(&self.config, &self.owned.generators, context);
        if let Some(next) = context.lease {
            self.device.lend(next, &context.lane);
        }
        let length = sequence.length - judged.n_rejected;
        // Drafts that turn out not to be drawn may have been ready before.
        if judged.n_rejected == 0 || length > context.lane.n_ready() {
            context.advance(&mut self.device.store, length);
        }
        let is_whole = context.lane.n_ready() >= context.end();
        let faults = &mut self.totals.faults;
        let Some(pass) = context.pass.as_mut() else {
            return faults.count("what a batch ran has no pass");
        };
        let n_drafts = pass.drafts().len() as u32;
        let n_before = pass.speculation().n_accepted;
        let stops = pass.stop(judged.n_accepted);
        faults.expect(stops, "what a batch ran does not run");
        let (judged, drafts) = match n_drafts > 0 || judged.is_drafted {
            true => self.end_drafts(id, (n_drafts, n_before), is_whole, judged),
            false => (judged, Drafts::NONE),
        };
        self.go_on(sequence, judged, &drafts, is_whole, batch, now_ns);
    }

    /// A pass of which a batch ran a part goes where the verdict takes it. `drafts` are for its next token.
    fn go_on(
        &mut self,
        sequence: &Running,
        judged: Judged,
        drafts: &Drafts,
        is_whole: bool,
        batch: BatchId,
        now_ns: u64,
    ) {
        let (id, faults) = (sequence.context, &mut self.totals.faults);
        let Some(context) = self.owned.contexts.get_mut(id.0) else {
            return faults.count("what a batch ran has no context");
        };
        let Some(pass) = context.pass.as_mut() else {
            return faults.count("what a batch ran has no pass");
        };
        let became = became(pass, &judged, is_whole, faults);
        if matches!(became, Became::Going)
            && let Some(n_drafts) = begin_drafts(pass, drafts, faults)
        {
            self.want_drafts(id, n_drafts);
            return self.rest(id);
        }
        let n_late = pass.n_late();
        if matches!(became, Became::Going) && n_late == 0 {
            // Most do: they are not looked up again.
            return self.waiting.go_on(id, context, batch.0, faults);
        }
        if n_late > 0 {
            self.keep_late(id, now_ns);
            self.expect_mask(id, now_ns);
        }
        self.go_by(id, sequence.pass, became, batch.0, now_ns);
    }

    /// What was drafted for a pass may have been judged: pages of drafts that were not drawn are given back. Returns
    /// what is drafted next. There were `n_drafts`, and `n_before` had been accepted before. Where there are drafts
    /// for the next step, it is not computed ahead without them.
    fn end_drafts(
        &mut self,
        id: ContextId,
        (n_drafts, n_before): (u32, u32),
        is_whole: bool,
        mut judged: Judged,
    ) -> (Judged, Drafts) {
        let faults = &mut self.totals.faults;
        let Some(context) = self.owned.contexts.get_mut(id.0) else {
            faults.count("what drafts were made for has no context");
            return (judged, Drafts::NONE);
        };
        let n_tokens = context.n_tokens();
        let Some(pass) = context.pass.as_mut() else {
            faults.count("what drafts were made for has no pass");
            return (judged, Drafts::NONE);
        };
        if is_whole && !pass.draws() {
            pass.drop_drafts();
        }
        let (n_computed, kind) = (n_tokens + pass.n_computed(), pass.kind);
        let n_accepted = pass.speculation().n_accepted - n_before;
        if n_drafts > 0 && pass.drafts().is_empty() {
            self.totals.n_drafted += u64::from(n_drafts);
            self.totals.n_drafts_accepted += u64::from(n_accepted);
            context.lane.roll_back(&mut self.device.store, n_computed);
        }
        if let Some(id) = kind.generator().filter(|_| judged.next.is_some()) {
            let generator = self.owned.generators.get_mut(id.0);
            faults.expect(generator.is_some(), "what was judged has no generator");
            if let Some(drafter) = generator.and_then(Generator::drafter) {
                drafter.turn(n_drafts, n_accepted);
            }
        }
        let goes_on = judged.runs_ahead || matches!(kind, PassKind::Run(_));
        let mut drafts = Drafts::NONE;
        if judged.is_drafted && judged.next == Some(Next::Go) && goes_on {
            let generators = &mut self.owned.generators;
            drafts = drafts_to_come(&self.config, generators, context, &self.device.store);
            judged.runs_ahead &= drafts.is_none();
        }
        (judged, drafts)
    }

    /// Of a pass rows may have been kept, since their masks had not come when their batch was answered: by masks that
    /// have come since, they are drawn from.
    pub(super) fn keep_late(&mut self, id: ContextId, now_ns: u64) {
        let faults = &mut self.totals.faults;
        let Some(context) = self.owned.contexts.get(id.0) else {
            return faults.count("what rows were kept of has no context");
        };
        let Some(pass) = &context.pass else {
            // It ran ahead, and was forgotten.
            return;
        };
        if pass.awaits_masks() {
            let begins = self.waiting.late.begin(pass.id, now_ns);
            faults.expect(begins, "what awaits masks has no room for its rows");
        }
        self.add_draws(id);
    }

    /// A pass goes on, rests or ends by what became of it. `served` is the batch that served it.
    pub(super) fn go_by(
        &mut self,
        id: ContextId,
        pass: PassId,
        became: Became,
        served: u64,
        now_ns: u64,
    ) {
        let served = match became {
            Became::Going => Some(served),
            Became::Answered {
                runs_ahead: true, ..
            } => Some(self.totals.n_batches),
            _ => None,
        };
        let faults = &mut self.totals.faults;
        let Some(context) = self.owned.contexts.get_mut(id.0) else {
            return faults.count("what a batch ran has no context");
        };
        let running = context.pass.as_ref();
        let (kind, request) =
            running.map_or((PassKind::Flush, None), |pass| (pass.kind, pass.request()));
        if let Some(served) = served {
            self.waiting.go_on(id, context, served, faults);
        }
        match became {
            Became::Going => {}
            Became::Answered { finish, .. } => {
                self.expect_back(id, kind, finish, now_ns);
                self.ready.extend(request);
                self.rest(id);
            }
            Became::Resting => self.rest(id),
            Became::Failed(error) => self.fail(id, pass, error),
        }
    }

    /// A pass was cancelled or abandoned while a batch ran it: what it wrote is dropped, when no batch uses it any
    /// more.
    fn drop_run(&mut self, sequence: &Running) {
        self.totals.n_followers_dropped += u64::from(sequence.follows);
        let id = sequence.context;
        let Some(context) = self.owned.contexts.get_mut(id.0) else {
            let faults = &mut self.totals.faults;
            return faults.count("what a batch ran has no context");
        };
        if context.lease.is_some() {
            return;
        }
        context.roll_back(&mut self.device.store);
        if context.is_to_go() {
            context.suspend(&mut self.device.store);
        }
        // Another pass that was entered since has to compute what this one had.
        self.renew_ticket(id);
        self.rest(id);
    }

    /// A program was answered a step or a forward pass: it may come back for the next one.
    fn expect_back(
        &mut self,
        id: ContextId,
        kind: PassKind,
        finish: Option<FinishReason>,
        now_ns: u64,
    ) {
        let is_used = match kind {
            PassKind::Flush | PassKind::Run(_) => false,
            PassKind::Forward { .. } => true,
            PassKind::Step(generator) => {
                let generator = self.owned.generators.get(generator.0);
                let is_used = generator.map(|it| it.retired.is_none() && !it.dropped);
                let faults = &mut self.totals.faults;
                faults.expect(is_used.is_some(), "a step has no generator");
                finish.is_none() && is_used == Some(true)
            }
        };
        if !is_used {
            return;
        }
        let Some(context) = self.owned.contexts.get_mut(id.0) else {
            let faults = &mut self.totals.faults;
            return faults.count("what was answered has no context");
        };
        let (hold, habit) = (&mut self.waiting.hold, &mut context.habit);
        hold.answered(habit, self.totals.n_batches, now_ns);
        let pass = context.pass.as_ref();
        // What runs ahead is in the next batch without anybody's coming back.
        match kind {
            PassKind::Step(_) if !pass.is_some_and(|it| it.is_waiting() || it.is_running()) => {
                hold.expect(id, habit, now_ns);
            }
            PassKind::Forward { .. } => hold.expect_pass(id, habit, now_ns),
            _ => {}
        }
    }

    /// The row of a step was computed before its token mask was there. The step goes on when the mask comes, which may
    /// be in time for the next batch.
    fn expect_mask(&mut self, id: ContextId, now_ns: u64) {
        let Some(context) = self.owned.contexts.get_mut(id.0) else {
            let faults = &mut self.totals.faults;
            return faults.count("what a batch ran has no context");
        };
        let awaits = |pass: &Pass| pass.awaits_masks() && matches!(pass.kind, PassKind::Step(_));
        if context.pass.as_ref().is_some_and(awaits) {
            let (hold, habit) = (&mut self.waiting.hold, &mut context.mask_habit);
            hold.answered(habit, self.totals.n_batches, now_ns);
            hold.expect(id, habit, now_ns);
        }
    }

    /// Ends a pass with an error; what it computed is dropped. One that runs ahead just ends, and one that its program
    /// has given up or released since has ended: nothing is done for it.
    pub(super) fn fail(&mut self, id: ContextId, pass: PassId, error: Error) {
        let Some(context) = self.owned.contexts.get_mut(id.0) else {
            return;
        };
        let Some(pass) = context.pass.as_mut().filter(|it| it.id == pass) else {
            return;
        };
        let request = pass.request();
        if request.is_none() {
            context.pass = None;
            context.trim(&mut self.device.store);
        } else if pass.stop_ahead() {
            if context.lease.is_none() {
                context.roll_back(&mut self.device.store);
            }
        } else if pass.fail(error) {
            context.trim(&mut self.device.store);
            self.ready.extend(request);
        }
        self.rest(id);
    }
}

/// A generation goes on with drafts. Returns how many it waits for, where another model makes them.
fn begin_drafts(pass: &mut Pass, drafts: &Drafts, faults: &mut Faults) -> Option<u32> {
    match drafts {
        Drafts::Made(drafts) if drafts.is_empty() => None,
        Drafts::Made(drafts) => {
            pass.draft(drafts, &[]);
            None
        }
        Drafts::Wanted(n_drafts) => {
            let awaits = pass.await_drafts(*n_drafts);
            faults.expect(awaits, "what a batch ran does not wait");
            Some(*n_drafts)
        }
    }
}

/// What becomes of a pass that a batch is done with. `is_whole` tells whether all of its tokens are computed.
fn became(pass: &mut Pass, judged: &Judged, is_whole: bool, faults: &mut Faults) -> Became {
    if is_whole && pass.n_late() > 0 && !pass.wants_rows() {
        let awaits = pass.await_masks();
        faults.expect(awaits, "what a batch ran does not wait");
        return Became::Resting;
    }
    if pass.is_ahead() {
        return match pass.is_waiting() {
            true => Became::Going,
            false => Became::Resting,
        };
    }
    match judged.next {
        // What others computed may have made it whole, with its rows yet to be read.
        None if is_whole && !pass.draws() && !pass.wants_rows() => {
            let answers = pass.answer(None, false);
            faults.expect(answers, "what a batch ran is answered already");
            Became::Answered {
                finish: None,
                runs_ahead: false,
            }
        }
        None => Became::Going,
        Some(next) => follow_verdict(pass, next, judged.runs_ahead, faults),
    }
}
