//! A request is entered: its pass takes what is pending and buffered, and waits.

use super::Engine;
use super::forwarding::refused;
use super::requests::{Progress, Submission, never_fits, ticket};
use crate::config::nanoseconds;
use crate::context::{Pass, PassKind, Tokens};
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::{StepState, Template};
use crate::ids::{ContextId, GeneratorId, PassId, RequestId};
use crate::kv::pages_for;
use crate::sched::smoothed;

impl Engine {
    /// Enters a request. The pass takes the pending token and the buffer now; what the program sees changes when it
    /// takes the answer.
    ///
    /// # Errors
    /// Answered at once, with nothing kept: `context-busy`, `context-released`, `generator-retired`, `step-pending`;
    /// `token-budget` when no token may be drawn; `out-of-pages` when the pass could never fit the pool; `limit-queue`
    /// when too many wait, of the process or in all; `invalid-argument` for a request name that is in use. Of a forward
    /// pass also `invalid-argument`, `invalid-token`, `invalid-sampler`, `context-full` and `unsupported`, naming what
    /// is wrong with it, and `limit-resources`; of a command `unsupported` and `invalid-argument`.
    pub fn submit(
        &mut self,
        request: RequestId,
        submission: Submission,
        now_ns: u64,
    ) -> Result<Progress> {
        if self.owned.requests.contains_key(&request) {
            return Err(Error::new(
                ErrorCode::InvalidArgument,
                format!("{request:?} is in use; use a name that is new"),
            ));
        }
        match submission {
            Submission::Flush(context) => self.submit_flush(request, context, now_ns),
            Submission::Forward(context, forward) => {
                self.submit_forward(request, context, &forward, now_ns)
            }
            Submission::Step(generator) => {
                self.submit_generation(request, generator, PassKind::Step(generator), now_ns)
            }
            Submission::Run(generator) => {
                self.submit_generation(request, generator, PassKind::Run(generator), now_ns)
            }
            Submission::Command(process, command) => self.submit_command(request, process, command),
        }
    }

    fn submit_flush(
        &mut self,
        request: RequestId,
        context: ContextId,
        now_ns: u64,
    ) -> Result<Progress> {
        let tokens = self.idle_context(context, "flushed")?.to_take();
        let pass = Pass::new(self.next_pass(), request, PassKind::Flush, tokens);
        self.enter(context, pass, now_ns)
    }

    fn submit_generation(
        &mut self,
        request: RequestId,
        id: GeneratorId,
        kind: PassKind,
        now_ns: u64,
    ) -> Result<Progress> {
        let one_step = matches!(kind, PassKind::Step(_));
        let max_context = self.config.max_context();
        self.owned.generator(id)?.check_step(one_step)?;
        let context = self.owned.generator(id)?.context;
        self.note_return(id, one_step, now_ns);
        if one_step && let Some(progress) = self.take_ahead(request, id, context, now_ns) {
            return progress;
        }
        let length = self.idle_context(context, "generated from")?.length();
        if !one_step && self.owned.generator(id)?.masks_late() {
            return Err(refused(
                "the token masks of this generator come late, one for each step; step it, or have it ask for none",
            ));
        }
        let template = self.owned.generator(id)?.template;
        let (pass, template) = match self.owned.generator(id)?.end(length, max_context) {
            Some(reason) => {
                let tokens = Tokens::taken(length, &[], &[]);
                let mut pass = Pass::new(self.next_pass(), request, kind, tokens);
                let answers = pass.answer(Some(reason), false);
                let faults = &mut self.totals.faults;
                faults.expect(answers, "a pass that was made does not wait");
                (pass, template)
            }
            None if one_step && self.owned.generator(id)?.step.is_cleared => {
                (self.cleared_pass(request, id)?, template)
            }
            None => {
                let (pass, template) = self.generation_pass(request, id, kind)?;
                (pass, Some(template))
            }
        };
        let progress = self.enter(context, pass, now_ns)?;
        if let Some(generator) = self.owned.generators.get_mut(id.0) {
            generator.state = StepState::Running;
            generator.template = template;
        }
        Ok(progress)
    }

    /// The program of a generator is back. Whatever fails from here on fails the step, which is then opened again.
    fn note_return(&mut self, id: GeneratorId, one_step: bool, now_ns: u64) {
        self.waiting.hold.forget(id);
        let limit_ns = nanoseconds(self.config.hold);
        let Some(generator) = self.owned.generators.get_mut(id.0) else {
            return self
                .totals
                .faults
                .count("a generator that was found is gone");
        };
        if let Some(answered_ns) = generator.answered_ns.take() {
            let seen_ns = now_ns.saturating_sub(answered_ns);
            generator.return_ns = Some(smoothed(generator.return_ns, seen_ns, limit_ns));
        }
        if one_step {
            generator.state = StepState::Undone;
        }
    }

    /// A pass of a generator that has not ended, and what it draws by.
    fn generation_pass(
        &mut self,
        request: RequestId,
        id: GeneratorId,
        kind: PassKind,
    ) -> Result<(Pass, Template)> {
        let generator = self.owned.generator(id)?;
        if let Some(budget) = self.owned.budget(generator.process) {
            // A generation draws a token at least; one that could not enter is not drawn.
            if budget.left() == 0 {
                return Err(budget.exhausted(1));
            }
        }
        let state = self.owned.live(generator.context)?;
        let n_bytes = self.room_for_late_step(generator)?;
        let origin = (!generator.counted).then(|| state.origin(&self.device.store));
        let process = self.owned.processes.get(&generator.process);
        let template = generator.draws_by(|| {
            let derived = process.zip(origin);
            derived.map_or(0, |(process, origin)| process.seeds.seed(origin))
        });
        let (tokens, adapter) = (state.to_take(), generator.adapter);
        let budget = self.owned.budget(generator.process).cloned();
        let pass = Pass::new(self.next_pass(), request, kind, tokens);
        let mut pass = pass.with_adapter(adapter);
        (pass.budget, pass.origin) = (budget, origin);
        pass.n_bytes = n_bytes;
        pass.want_next(&template);
        Ok((pass, template))
    }

    /// A step that computes what there is and draws nothing.
    fn cleared_pass(&mut self, request: RequestId, id: GeneratorId) -> Result<Pass> {
        let generator = self.owned.generator(id)?;
        let state = self.owned.live(generator.context)?;
        let (tokens, adapter) = (state.to_take(), generator.adapter);
        let pass = Pass::new(self.next_pass(), request, PassKind::Step(id), tokens);
        Ok(pass.with_adapter(adapter).cleared())
    }

    /// The name of the next pass.
    pub(super) const fn next_pass(&mut self) -> PassId {
        self.n_passes += 1;
        PassId(self.n_passes)
    }

    /// Puts a pass on its context, and into the queue if there is something to compute.
    pub(super) fn enter(
        &mut self,
        context: ContextId,
        mut pass: Pass,
        now_ns: u64,
    ) -> Result<Progress> {
        self.check_room_for_request(context)?;
        let (page_size, n_pages) = (self.config.driver.page_size, self.device.store.n_pages());
        let state = self.owned.live_mut(context)?;
        let n_needed = pages_for(state.n_tokens() + pass.n_tokens(), page_size);
        if n_needed > n_pages {
            return Err(never_fits(n_needed, n_pages, &self.config));
        }
        if pass.is_waiting() && pass.n_tokens() == 0 && !pass.wants_rows() {
            let answers = pass.answer(None, false);
            let faults = &mut self.totals.faults;
            faults.expect(answers, "a pass that was made does not wait");
        }
        let waits = pass.is_waiting();
        pass.asked_ns = waits.then_some(now_ns);
        let request = pass.request();
        let late = (pass.n_late() > 0).then_some(pass.id);
        state.settle(page_size);
        state.pass = Some(pass);
        if waits {
            self.waiting
                .queue
                .extend(ticket(context, state, self.totals.n_batches));
        }
        let process = state.process;
        if let Some(pass) = late {
            let contexts = &self.owned.contexts;
            self.waiting.late.add(pass, context, contexts);
        }
        match request {
            Some(request) => self.owned.add_request(request, context, process),
            None => self.totals.faults.count("what is entered has no request"),
        }
        Ok(if waits {
            Progress::Waiting
        } else {
            Progress::Ready
        })
    }
}
