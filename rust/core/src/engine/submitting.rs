//! A request is entered: its pass takes what is pending and buffered, and waits.

use super::Engine;
use super::drafts::DraftRoom;
use super::forwarding::refused;
use super::requests::{Progress, Submission, never_fits, ticket};
use crate::budget::TokenBudget;
use crate::context::{Pass, PassKind, Tokens};
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::{Drafts, Generator, RowProbe, StepState, Template};
use crate::ids::{ContextId, GeneratorId, PassId, RequestId};
use crate::kv::pages_for;

impl Engine {
    /// Enters a request. The pass takes the pending token and the buffer now; what the program sees changes when it
    /// takes the answer.
    ///
    /// # Errors
    /// Answered at once, with nothing kept: `context-busy`, `context-released`, `generator-retired`, `step-pending`;
    /// `token-budget` when no token may be drawn; `out-of-pages` when the pass could never fit the pool; `limit-queue`
    /// when too many wait, of the process or in all; `invalid-argument` for a request name that is in use. Of a forward
    /// pass also `invalid-argument`, `invalid-token`, `invalid-sampler`, `context-full` and `unsupported`, naming what
    /// is wrong with it, and `limit-resources`; of a command and of a move of pages `unsupported` and
    /// `invalid-argument`.
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
            Submission::Pages(wanted) => self.submit_pages(request, wanted),
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
        let (pass, seed) = match self.owned.generator(id)?.end(length, max_context) {
            Some(reason) => {
                let tokens = Tokens::taken(length, &[], &[]);
                let mut pass = Pass::new(self.next_pass(), request, kind, tokens);
                let answers = pass.answer(Some(reason), false);
                let faults = &mut self.totals.faults;
                faults.expect(answers, "a pass that was made does not wait");
                (pass, None)
            }
            None if one_step && self.owned.generator(id)?.step.is_cleared => {
                (self.cleared_pass(request, id)?, None)
            }
            None => {
                let (pass, seed) = self.generation_pass(request, id, kind)?;
                (pass, Some(seed))
            }
        };
        let n_wanted = pass.is_drafting().then(|| pass.n_to_come() - 1);
        let progress = self.enter(context, pass, now_ns)?;
        if let Some(generator) = self.owned.generators.get_mut(id.0) {
            generator.state = StepState::Running;
            generator.seed.draw_by(seed);
        }
        if let Some(n_wanted) = n_wanted {
            self.want_drafts(context, n_wanted);
        }
        Ok(progress)
    }

    /// The program of a generator is back. Whatever fails from here on fails the step, which is then opened again.
    fn note_return(&mut self, id: GeneratorId, one_step: bool, now_ns: u64) {
        let Some(generator) = self.owned.generators.get_mut(id.0) else {
            return self
                .totals
                .faults
                .count("a generator that was found is gone");
        };
        if one_step {
            generator.state = StepState::Undone;
        }
        if let Some(context) = self.owned.contexts.get_mut(generator.context.0) {
            let (hold, habit) = (&mut self.waiting.hold, &mut context.habit);
            // What lacks its mask goes on with that, and not before.
            match context.pass.as_ref().is_some_and(Pass::awaits_masks) {
                true => hold.seen(habit, now_ns),
                false => hold.returned(generator.context, habit, now_ns),
            }
        }
    }

    /// A pass of a generator that has not ended, and the seed that it draws by.
    fn generation_pass(
        &mut self,
        request: RequestId,
        id: GeneratorId,
        kind: PassKind,
    ) -> Result<(Pass, u64)> {
        let one_step = matches!(kind, PassKind::Step(_));
        let process = self.owned.generator(id)?.process;
        let context = self.owned.live(self.owned.generator(id)?.context)?;
        let budget = self.owned.budget_of(context).cloned();
        if let Some(budget) = budget.as_ref().filter(|budget| budget.left() == 0) {
            // A generation draws a token at least; one that could not enter is not drawn.
            return Err(budget.exhausted(1));
        }
        let (name, drafts) = (self.next_pass(), self.drafts_of(id, one_step)?);
        let generator = self.owned.generator(id)?;
        let state = self.owned.live(generator.context)?;
        let counts = !generator.seed.is_settled() && !state.drafts;
        let origin = counts.then(|| state.origin(&self.device.store));
        let process = self.owned.processes.get(&process);
        let faults = &mut self.totals.faults;
        faults.expect(process.is_some(), "a generator has no process");
        let template = generator.draws_by(one_step, || {
            let derived = process.zip(origin);
            derived.map_or(0, |(process, origin)| process.seeds.seed(origin))
        });
        let probes = if one_step {
            &generator.step.probes[..]
        } else {
            &[]
        };
        self.check_adapter(generator.adapter)?;
        // Of those that are asked for nobody knows yet how many come.
        let known: &[u32] = match &drafts {
            Drafts::Made(drafts) => drafts,
            Drafts::Wanted(_) => &[],
        };
        check_rows_probed(&template, probes, known.len())?;
        let n_bytes = self.room_for_late_step(generator)?
            + self.room_for_readings(generator, &template, probes)?;
        let tokens = state.to_take();
        let mut pass = Pass::new(name, request, kind, tokens);
        pass = pass.with_adapter(generator.adapter);
        (pass.budget, pass.origin) = (budget, origin);
        pass.held = self.owned.hold(generator.process, n_bytes);
        let seed = template.seed;
        pass.want_next(template, known, probes);
        if let Drafts::Wanted(n_drafts) = drafts {
            let awaits = pass.await_drafts(n_drafts);
            let faults = &mut self.totals.faults;
            faults.expect(awaits, "a pass that was made does not wait");
        }
        Ok((pass, seed))
    }

    /// A step that computes and reads what there is, and draws nothing.
    fn cleared_pass(&mut self, request: RequestId, id: GeneratorId) -> Result<Pass> {
        let (name, drafts) = (self.next_pass(), self.drafts_of(id, true)?);
        // Nobody is asked for drafts of a step that draws nothing.
        let Drafts::Made(drafts) = drafts else {
            return Err(Error::internal("a step that draws nothing wants drafts"));
        };
        let generator = self.owned.generator(id)?;
        let state = self.owned.live(generator.context)?;
        let (template, probes) = (generator.draws_by(true, || 0), &generator.step.probes[..]);
        self.check_adapter(generator.adapter)?;
        check_rows_probed(&template, probes, drafts.len())?;
        let n_bytes = self.room_for_readings(generator, &template, probes)?;
        let tokens = state.to_take();
        let pass = Pass::new(name, request, PassKind::Step(id), tokens);
        let mut pass = pass.with_adapter(generator.adapter).cleared();
        pass.held = self.owned.hold(generator.process, n_bytes);
        pass.want_next(template, &drafts, probes);
        Ok(pass)
    }

    /// Bytes for what the probes of a step read, for which there has to be room.
    fn room_for_readings(
        &self,
        generator: &Generator,
        template: &Template,
        probes: &[RowProbe],
    ) -> Result<usize> {
        let driver = &self.config.driver;
        let probes = template.probes().iter().chain(probes);
        let n_bytes = probes
            .map(|(_, probe)| probe.n_bytes(driver.vocab_size, driver.embeddings))
            .sum();
        if n_bytes > 0 {
            self.check_room_for_forward(generator.process, n_bytes)?;
        }
        Ok(n_bytes)
    }

    /// What is drafted for the next pass of a generator: what its program proposed for the step, or what the engine
    /// does. Beside masks that are asked for nothing is, and nothing where no token is left to compute: then the last
    /// one is read again, alone.
    fn drafts_of(&mut self, id: GeneratorId, one_step: bool) -> Result<Drafts> {
        let generator = self.owned.generators.get_mut(id.0);
        let generator =
            generator.ok_or_else(|| Error::internal("a generator that was found is gone"))?;
        let is_proposed = one_step && !generator.step.drafts.is_empty();
        if generator.masks_late() || !(is_proposed || generator.has_drafter()) {
            return Ok(Drafts::NONE);
        }
        let context = self.owned.contexts.get(generator.context.0);
        let context = context.ok_or_else(super::owned::released)?;
        if context.length() == context.n_tokens() {
            return Ok(Drafts::NONE);
        }
        let processes = &self.owned.processes;
        let budget = processes
            .get(&context.process)
            .and_then(|it| it.budget.as_ref());
        let room = DraftRoom {
            length: context.length(),
            n_drawn: 0,
            budget: budget.map(TokenBudget::left),
            n_pages: self.device.store.n_pages(),
        };
        let room = room.of(&self.config, generator);
        if is_proposed {
            let n_drafts = generator.step.drafts.len().min(room as usize);
            return Ok(Drafts::Made(generator.step.drafts[..n_drafts].to_vec()));
        }
        let (length, store) = (context.length(), &self.device.store);
        let is_cleared = one_step && generator.step.is_cleared;
        let drafter = generator.drafter().filter(|_| !is_cleared);
        Ok(drafter.map_or(Drafts::NONE, |drafter| {
            drafter.make(length, room, |n| context.last_tokens(store, n as usize))
        }))
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
        self.waiting
            .hold
            .returned(context, &mut state.habit, now_ns);
        let (waits, is_ready) = (pass.is_waiting(), pass.is_ready());
        let needs_pages = waits || pass.is_drafting();
        pass.asked_ns = (!is_ready).then_some(now_ns);
        let request = pass.request();
        let late = (pass.n_late() > 0).then_some(pass.id);
        state.settle(page_size);
        state.pass = Some(pass);
        if needs_pages {
            self.page_wishes.extend(state.ask_for_pages());
        }
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
        Ok(if is_ready {
            Progress::Ready
        } else {
            Progress::Waiting
        })
    }
}

/// Whether a step with so many drafts has the rows that are read of it.
fn check_rows_probed(template: &Template, probes: &[RowProbe], n_drafts: usize) -> Result<()> {
    let missing = template
        .rows_probed(probes)
        .find(|row| *row as usize > n_drafts);
    missing.map_or(Ok(()), |row| {
        Err(refused(&format!(
            "row {row} of a step is read, and the step has {} rows; read row 0, or draft tokens that are of use there",
            n_drafts + 1
        )))
    })
}
