//! What runs ahead of a program that takes part in each step: the next step takes it over, or it is dropped.

use super::Engine;
use super::drafts::drafts_to_come;
use super::judging::{Became, follow_verdict, verdict};
use super::requests::{Progress, never_fits, ticket};
use crate::context::PassKind;
use crate::errors::Result;
use crate::generation::{Drafts, Generator, StepState};
use crate::ids::{ContextId, GeneratorId, RequestId};
use crate::kv::pages_for;

impl Engine {
    /// Takes over what ran ahead of this step; none where nothing of use did.
    pub(super) fn take_ahead(
        &mut self,
        request: RequestId,
        id: GeneratorId,
        context: ContextId,
        now_ns: u64,
    ) -> Option<Result<Progress>> {
        if !self.ran_ahead(id, context)? {
            return None;
        }
        let checked = self.check_step_ahead(id, context);
        Some(checked.map(|()| {
            let progress = self.promote(request, id, context, now_ns);
            if progress == Progress::Waiting {
                // A mask could not be given before.
                self.keep_late(context, now_ns);
            }
            progress
        }))
    }

    /// Whether what runs ahead on a context is what the next step of the generator asks for.
    fn ran_ahead(&self, id: GeneratorId, context: ContextId) -> Option<bool> {
        let generator = self.owned.generators.get(id.0)?;
        let state = self.owned.live(context).ok()?;
        let (pass, template) = (state.pass.as_ref()?, generator.next_template()?);
        let end = generator.end(state.length(), self.config.max_context());
        // Nothing is drafted for it: it has one row. A step that wants others has to be refused.
        let probes = generator.probes.as_deref().unwrap_or_default();
        let is_plain = generator.step.is_plain()
            && probes.iter().all(|&(row, _)| row == 0)
            && pass.adapter() == generator.adapter;
        let fits = is_plain && pass.fits(id, &template, &state.pending);
        Some(fits && state.buffer.is_empty() && end.is_none())
    }

    /// What a step has to fulfil, whether it ran ahead or not.
    fn check_step_ahead(&self, id: GeneratorId, context: ContextId) -> Result<()> {
        let budget = self.owned.budget(self.owned.generator(id)?.process);
        if let Some(budget) = budget.filter(|budget| budget.left() == 0) {
            return Err(budget.exhausted(1));
        }
        self.check_room_for_request(context)?;
        let (page_size, n_pages) = (self.config.driver.page_size, self.device.store.n_pages());
        let n_needed = pages_for(self.owned.live(context)?.seq_len(), page_size);
        if n_needed > n_pages {
            return Err(never_fits(n_needed, n_pages, &self.config));
        }
        Ok(())
    }

    /// What ran ahead is asked for. Where its token was drawn already it is judged now.
    fn promote(
        &mut self,
        request: RequestId,
        id: GeneratorId,
        context: ContextId,
        now_ns: u64,
    ) -> Progress {
        let generator = self.owned.generators.get_mut(id.0);
        let state = self.owned.contexts.get_mut(context.0);
        let found = state.zip(generator).and_then(|(state, generator)| {
            state.settle(self.config.driver.page_size);
            generator.ran_of_use();
            generator.state = StepState::Running;
            Some((state.process, state.pass.as_mut()?))
        });
        let Some((process, pass)) = found else {
            self.totals
                .faults
                .count("what was found to run ahead is gone");
            return Progress::Waiting;
        };
        let waits = pass.is_waiting();
        if waits {
            pass.asked_ns = Some(now_ns);
        }
        let promotes = pass.promote(request);
        let faults = &mut self.totals.faults;
        faults.expect(promotes, "what ran ahead has a request");
        let is_drawn = pass.uncomputed().is_some();
        self.totals.n_ahead_used += 1;
        self.owned.add_request(request, context, process);
        let (served, faults) = (self.totals.n_batches, &mut self.totals.faults);
        let Some(state) = self.owned.contexts.get_mut(context.0) else {
            faults.count("what was found to run ahead is gone");
            return Progress::Waiting;
        };
        if waits && let Some(asked) = ticket(context, state, served) {
            self.waiting.queue.replace(asked);
        }
        if waits || !is_drawn {
            return Progress::Waiting;
        }
        self.judge_promoted(id, context);
        Progress::Ready
    }

    /// What was drawn ahead of a step is judged, since it was asked for.
    fn judge_promoted(&mut self, id: GeneratorId, context: ContextId) {
        let (served, faults) = (self.totals.n_batches, &mut self.totals.faults);
        let Some(state) = self.owned.contexts.get_mut(context.0) else {
            return faults.count("what was found to run ahead is gone");
        };
        let judged = verdict(&self.config, &self.owned.generators, state, 1);
        let next = judged.and_then(|judged| Some((judged.next?, judged)));
        let Some((next, judged)) = next else {
            return faults.count("what was drawn ahead has no verdict");
        };
        let generator = self.owned.generators.get_mut(id.0);
        if let Some(drafter) = generator.and_then(Generator::drafter) {
            drafter.turn(0, 0);
        }
        // Where there are drafts for the next step, it is not computed without them.
        let drafts = match judged.runs_ahead && judged.is_drafted {
            true => drafts_to_come(
                &self.config,
                &mut self.owned.generators,
                state,
                &self.device.store,
            ),
            false => Drafts::NONE,
        };
        let runs_ahead = judged.runs_ahead && drafts.is_none();
        let Some(pass) = state.pass.as_mut() else {
            return faults.count("what was drawn ahead is gone");
        };
        let id = pass.id;
        match follow_verdict(pass, next, runs_ahead, faults) {
            Became::Answered {
                runs_ahead: true, ..
            } => self.waiting.go_on(context, state, served, faults),
            Became::Failed(error) => self.fail(context, id, error),
            _ => {}
        }
    }

    /// What ran ahead of the program is of no use.
    pub(super) fn drop_ahead(&mut self, id: ContextId) {
        let Some(context) = self.owned.contexts.get_mut(id.0) else {
            return;
        };
        let Some(pass) = context.pass.take_if(|pass| pass.request().is_none()) else {
            return;
        };
        if pass.awaits_masks() {
            context.mask_habit.forget();
            self.waiting.hold.forget(id);
        }
        context.trim(&mut self.device.store);
        self.waiting.queue.remove(pass.id);
        self.totals.n_ahead_dropped += 1;
        if let PassKind::Step(generator) = pass.kind
            && let Some(generator) = self.owned.generators.get_mut(generator.0)
        {
            generator.ran_in_vain();
        }
        self.rest(id);
    }
}
