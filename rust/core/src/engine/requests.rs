//! What programs wait for.

use super::contexts::live_mut;
use super::judging::verdict;
use super::{Engine, Forward, RequestState};
use crate::batch::RowOutput;
use crate::config::EngineConfig;
use crate::context::{Context, Pass, PassKind, Tokens};
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::{Generator, Output, StepState, Template};
use crate::ids::{ContextId, GeneratorId, PassId, RequestId};
use crate::kv::pages_for;
use crate::sched::{Ticket, smoothed};

/// Steps in a row of which what ran ahead was of no use, after which a generator runs ahead no more.
const MAX_VAIN: u32 = 2;

/// What a request asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Submission {
    /// Compute what is pending and buffered, and commit the full pages.
    Flush(ContextId),
    /// Compute and read what the program says.
    Forward(ContextId, Box<Forward>),
    /// One step; the generator must have opened it.
    Step(GeneratorId),
    /// To the end; the engine steps the sequence by itself.
    Run(GeneratorId),
}

/// Where a request stands after it was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is nothing to compute: the answer can be taken.
    Ready,
    /// A batch has to run first.
    Waiting,
}

/// What a request gets.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// To [`Submission::Flush`].
    Flushed,
    /// To [`Submission::Forward`]: its rows, in the order in which they were asked for.
    Forwarded(Vec<RowOutput>),
    /// To [`Submission::Step`] and [`Submission::Run`].
    Generated(Output),
}

impl Engine {
    /// Enters a request. The pass takes the pending token and the buffer now; what the program sees changes when it takes the answer.
    ///
    /// # Errors
    /// Answered at once, with nothing kept: `context-busy`, `context-released`, `generator-retired`, `step-pending`; `token-budget` when no token may be drawn; `out-of-pages` when the pass could
    /// never fit the pool; `limit-queue` when too many wait, of the process or in all; `invalid-argument` for a request name that is in use. Of a forward
    /// pass also `invalid-argument`, `invalid-token`, `invalid-sampler`, `context-full` and `unsupported`, naming what is wrong with it.
    pub fn submit(
        &mut self,
        request: RequestId,
        submission: Submission,
        now_ns: u64,
    ) -> Result<Progress> {
        if self.requests.contains_key(&request) {
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
        let (max_context, limit_ns) = (self.config.max_context, self.config.hold_ns);
        self.generator(id)?.check_step(one_step)?;
        let context = self.generator(id)?.context;
        self.hold.forget(id);
        if let Some(generator) = self.generators.get_mut(id.0) {
            if let Some(answered_ns) = generator.answered_ns.take() {
                let seen_ns = now_ns.saturating_sub(answered_ns);
                generator.return_ns = Some(smoothed(generator.return_ns, seen_ns, limit_ns));
            }
            // Whatever fails from here on fails the step, which is then opened again.
            generator.state = if one_step {
                StepState::Undone
            } else {
                generator.state
            };
        }
        if one_step && let Some(progress) = self.take_ahead(request, id, context, now_ns) {
            return progress;
        }
        let length = self.idle_context(context, "generated from")?.length();
        let template = self.generator(id)?.template;
        let (pass, template) = match self.generator(id)?.end(length, max_context) {
            Some(reason) => {
                let tokens = Tokens::taken(length, None, &[]);
                let mut pass = Pass::new(self.next_pass(), request, kind, tokens);
                let answers = pass.answer(Some(reason), false);
                let faults = &mut self.totals.faults;
                faults.expect(answers, "a pass that was made does not wait");
                (pass, template)
            }
            None => {
                let (pass, template) = self.generation_pass(request, id, kind)?;
                (pass, Some(template))
            }
        };
        let progress = self.enter(context, pass, now_ns)?;
        if let Some(generator) = self.generators.get_mut(id.0) {
            generator.state = StepState::Running;
            generator.template = template;
        }
        Ok(progress)
    }

    /// Takes over what ran ahead of this step; none where nothing of use did.
    fn take_ahead(
        &mut self,
        request: RequestId,
        id: GeneratorId,
        context: ContextId,
        now_ns: u64,
    ) -> Option<Result<Progress>> {
        let generator = self.generators.get(id.0)?;
        let state = self
            .contexts
            .get(context.0)
            .filter(|state| !state.released)?;
        let fits = state.buffer.is_empty()
            && state
                .pass
                .as_ref()?
                .fits(id, generator.template.as_ref()?, state.pending)
            && generator
                .end(state.length(), self.config.max_context)
                .is_none();
        if !fits {
            return None;
        }
        let budget = self.budget(generator.process);
        if let Some(budget) = budget.filter(|budget| budget.left() == 0) {
            return Some(Err(budget.exhausted(1)));
        }
        if let Err(error) = self.check_room_for_request(context) {
            return Some(Err(error));
        }
        let (page_size, n_pages) = (self.config.page_size, self.store.n_pages());
        let n_needed = pages_for(state.seq_len(), page_size);
        if n_needed > n_pages {
            return Some(Err(never_fits(n_needed, n_pages)));
        }
        self.totals.n_ahead_used += 1;
        let state = self.contexts.get_mut(context.0)?;
        state.settle(page_size);
        let process = state.process;
        let pass = state.pass.as_ref()?.id;
        let waits = self.queue.remove(pass);
        let pass = state.pass.as_mut()?;
        pass.asked_ns = waits.then_some(now_ns);
        let promotes = pass.promote(request);
        let faults = &mut self.totals.faults;
        faults.expect(promotes, "what ran ahead has a request");
        let drawn = pass.uncomputed();
        let state = self.contexts.get(context.0)?;
        if waits {
            self.queue
                .extend(ticket(context, state, self.totals.n_batches));
        }
        self.count_request(process);
        self.requests.insert(request, RequestState::Active(context));
        let generator = self.generators.get_mut(id.0)?;
        generator.n_vain = 0;
        generator.state = StepState::Running;
        if drawn.is_none() {
            return Some(Ok(Progress::Waiting));
        }
        let state = self.contexts.get(context.0)?;
        let verdict = verdict(&self.config, &self.generators, state, 1)?;
        self.follow_verdict(context, verdict.next, self.totals.n_batches);
        Some(Ok(Progress::Ready))
    }

    /// What ran ahead of the program is of no use.
    pub(super) fn drop_ahead(&mut self, id: ContextId) {
        let Some(context) = self.contexts.get_mut(id.0) else {
            return;
        };
        let Some(pass) = context.pass.take_if(|pass| pass.request().is_none()) else {
            return;
        };
        context.trim(&mut self.store);
        self.queue.remove(pass.id);
        self.totals.n_ahead_dropped += 1;
        if let PassKind::Step(generator) = pass.kind
            && let Some(generator) = self.generators.get_mut(generator.0)
        {
            generator.n_vain += 1;
        }
        self.rest(id);
    }

    fn generation_pass(
        &mut self,
        request: RequestId,
        id: GeneratorId,
        kind: PassKind,
    ) -> Result<(Pass, Template)> {
        let generator = self.generator(id)?;
        if let Some(budget) = self.budget(generator.process) {
            // A generation draws a token at least; one that could not enter is not drawn.
            if budget.left() == 0 {
                return Err(budget.exhausted(1));
            }
        }
        let state = self.live(generator.context)?;
        let origin = (!generator.counted).then(|| state.origin(&self.store));
        let process = self.processes.get(&generator.process);
        let template = generator.draws_by(|| {
            let derived = process.zip(origin);
            derived.map_or(0, |(process, origin)| process.seeds.seed(origin))
        });
        let (tokens, adapter) = (state.to_take(), generator.adapter);
        let budget = self.budget(generator.process).cloned();
        let pass = Pass::new(self.next_pass(), request, kind, tokens);
        let mut pass = pass.with_adapter(adapter);
        (pass.budget, pass.origin) = (budget, origin);
        pass.want_next(&template);
        Ok((pass, template))
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
        let (page_size, n_pages) = (self.config.page_size, self.store.n_pages());
        let state = live_mut(&mut self.contexts, context)?;
        let n_needed = pages_for(state.n_tokens() + pass.n_tokens(), page_size);
        if n_needed > n_pages {
            return Err(never_fits(n_needed, n_pages));
        }
        if pass.kind == PassKind::Flush && pass.n_tokens() == 0 {
            let answers = pass.answer(None, false);
            let faults = &mut self.totals.faults;
            faults.expect(answers, "a pass that was made does not wait");
        }
        let waits = pass.is_waiting();
        pass.asked_ns = waits.then_some(now_ns);
        let request = pass.request();
        state.settle(page_size);
        state.pass = Some(pass);
        if waits {
            self.queue
                .extend(ticket(context, state, self.totals.n_batches));
        }
        let process = state.process;
        self.count_request(process);
        if let Some(request) = request {
            self.requests.insert(request, RequestState::Active(context));
        }
        Ok(if waits {
            Progress::Waiting
        } else {
            Progress::Ready
        })
    }

    /// Takes the answer of a request, once: folds it into what the program sees, and forgets the request. None: not ready.
    ///
    /// The inner error is that of the pass: `token-budget` when it drew more than may enter the contexts of its process, `driver-failed`, `bad-logits`, `out-of-pages`, `context-released`; what the program sees is as it
    /// was before the request.
    pub fn take(&mut self, request: RequestId) -> Option<Result<Answer>> {
        let context = match self.requests.get(&request) {
            None => return Some(Err(Error::internal(format!("{request:?} is unknown")))),
            Some(RequestState::Active(context)) => *context,
            Some(RequestState::Failed { error, .. }) => {
                let error = error.clone();
                self.forget(request);
                return Some(Err(error));
            }
        };
        let pass = self
            .contexts
            .get_mut(context.0)
            .map(|state| &mut state.pass);
        let Some(pass) = pass.filter(|pass| pass.is_some()) else {
            self.totals.faults.count("a request has no pass");
            return None;
        };
        let pass = pass.take_if(|pass| pass.is_ready())?;
        self.forget(request);
        let outcome = match pass.error() {
            None => self.charge(context, &pass),
            Some(error) => Err(error.clone()),
        };
        if let Err(error) = outcome {
            // What goes ahead of it waits.
            self.queue.remove(pass.id);
            self.give_up(context, &pass);
            return Some(Err(error));
        }
        Some(Ok(self.fold(context, pass)))
    }

    /// Charges the tokens that enter the context with a pass to the budget of its process.
    fn charge(&self, context: ContextId, pass: &Pass) -> Result<()> {
        let process = self.contexts.get(context.0).map(|state| state.process);
        match process.and_then(|process| self.budget(process)) {
            Some(budget) => budget.spend(pass.n_entering()),
            None => Ok(()),
        }
    }

    /// Drops what a pass computed and drew: its context is as it was before.
    fn give_up(&mut self, context: ContextId, pass: &Pass) {
        if let Some(state) = self.contexts.get_mut(context.0) {
            state.trim(&mut self.store);
        }
        self.rest(context);
        self.undo_generation(pass);
    }

    /// Folds a pass that succeeded into its context and its generator.
    fn fold(&mut self, context: ContextId, mut pass: Pass) -> Answer {
        let page_size = self.config.page_size;
        let ahead = pass.split();
        if let Some(state) = self.contexts.get_mut(context.0) {
            // A pass that had nothing to run took nothing.
            if pass.n_tokens() > 0 {
                state.absorb(&self.store, &pass);
            }
            state.pass = ahead;
            if pass.kind.generator().is_none() {
                state.settle(page_size);
            }
            state.trim(&mut self.store);
            if let Some(origin) = pass.origin
                && let Some(process) = self.processes.get_mut(&state.process)
            {
                process.seeds.count(origin);
            }
        }
        let id = match pass.kind {
            PassKind::Flush => return Answer::Flushed,
            PassKind::Forward { .. } => {
                return Answer::Forwarded(pass.into_reads().into_outputs());
            }
            PassKind::Step(id) | PassKind::Run(id) => id,
        };
        let (tokens, finish) = (pass.drawn().to_vec(), pass.finish());
        match self.generators.get_mut(id.0) {
            Some(generator) => {
                generator.fold(tokens.len() as u32, finish);
                if pass.origin.is_some() {
                    generator.settle_seed();
                }
            }
            None => self.totals.faults.count("a generation has no generator"),
        }
        self.drop_if_asked(id);
        Answer::Generated(Output { tokens, finish })
    }

    /// Cancels a request, ready or not: what the program sees is as it was before it. An unknown request is none.
    pub fn cancel(&mut self, request: RequestId) {
        let Some(RequestState::Active(context)) = self.forget(request) else {
            return;
        };
        let Some(state) = self.contexts.get_mut(context.0) else {
            return;
        };
        if let Some(pass) = state.pass.take() {
            self.queue.remove(pass.id);
            self.give_up(context, &pass);
        }
    }

    /// Removes a request, which its process then no longer waits for.
    fn forget(&mut self, request: RequestId) -> Option<RequestState> {
        let state = self.requests.remove(&request)?;
        let process = match &state {
            RequestState::Active(context) => {
                self.contexts.get(context.0).map(|context| context.process)
            }
            RequestState::Failed { process, .. } => Some(*process),
        };
        if let Some(owner) = process.and_then(|process| self.processes.get_mut(&process)) {
            owner.n_requests = owner.n_requests.saturating_sub(1);
            if let Some(user) = self.users.get_mut(&owner.user) {
                user.n_requests = user.n_requests.saturating_sub(1);
            }
        }
        Some(state)
    }

    /// Brings the generator of a pass that failed or was cancelled back to the state before it.
    pub(super) fn undo_generation(&mut self, pass: &Pass) {
        let (PassKind::Step(id) | PassKind::Run(id)) = pass.kind else {
            return;
        };
        self.hold.forget(id);
        if let Some(generator) = self.generators.get_mut(id.0) {
            generator.undo(matches!(pass.kind, PassKind::Step(_)));
        }
        self.drop_if_asked(id);
    }

    fn drop_if_asked(&mut self, id: GeneratorId) {
        if self
            .generators
            .get(id.0)
            .is_some_and(|generator| generator.dropped)
        {
            self.drop_generator(id);
        }
    }
}

/// Whether the next token of a generator is computed and drawn before its program asks.
pub(super) const fn runs_ahead(config: &EngineConfig, generator: &Generator) -> bool {
    config.run_ahead && generator.n_vain < MAX_VAIN && !generator.retired && !generator.dropped
}

/// The place of the pass of a context in the queue. `served` is the batch that served it last, or the last one that was planned before it was entered: so that
/// what is entered anew time and again does not go before what goes on.
pub(super) fn ticket(id: ContextId, context: &Context, served: u64) -> Option<Ticket> {
    let pass = context.pass.as_ref()?;
    Some(Ticket {
        context: id,
        process: context.process,
        user: context.lane.owner(),
        n_tokens: context.n_remaining(),
        n_before: context.lane.n_ready(),
        pass: pass.id,
        served,
        n_refused: 0,
        refused_in: 0,
        bid: context.bid,
        is_ahead: pass.is_ahead(),
        follows: None,
    })
}

/// A pass that no release of others could make room for.
pub(super) fn never_fits(needed: u32, limit: u32) -> Error {
    Error::with_values(
        ErrorCode::OutOfPages,
        format!(
            "the context needs {needed} pages and the pool has {limit}; shorten it, or raise n_pages or kv_bytes of the model"
        ),
        &[("needed", u64::from(needed)), ("limit", u64::from(limit))],
    )
}
