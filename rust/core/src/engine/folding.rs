//! An answer is taken: what a pass computed and drew becomes what the program sees. Or it is given up, and the context
//! is as it was.

use super::Engine;
use super::requests::{Answer, Entering, RequestState};
use crate::budget::TokenBudget;
use crate::context::{Pass, PassKind, Provisional};
use crate::errors::{Error, Result};
use crate::generation::{DraftEvent, Output};
use crate::ids::{ContextId, GeneratorId, RequestId};

impl Engine {
    /// Takes the answer of a request, once: folds it into what the program sees, and forgets the request. None: not
    /// ready.
    ///
    /// The inner error is that of the pass: `token-budget` when it drew more than may enter the contexts of its
    /// process, `driver-failed`, `bad-logits`, `out-of-pages`, `context-released`; what the program sees is as it was
    /// before the request.
    pub fn take(&mut self, request: RequestId) -> Option<Result<Answer>> {
        self.take_paid(request, |_| Ok(()))
    }

    /// The same, where `pay` is asked before anything enters a context. What it refuses is an error of the pass.
    pub fn take_paid(
        &mut self,
        request: RequestId,
        pay: impl FnOnce(Entering) -> Result<()>,
    ) -> Option<Result<Answer>> {
        let context = match self.owned.requests.get(&request) {
            None => return Some(Err(Error::internal(format!("{request:?} is unknown")))),
            Some(RequestState::Active(context)) => *context,
            Some(RequestState::Failed { error, .. }) => {
                let error = error.clone();
                self.owned.forget_request(request);
                return Some(Err(error));
            }
            Some(RequestState::Commanded { answer, .. }) => {
                let answer = answer.clone()?;
                self.owned.forget_request(request);
                return Some(answer);
            }
        };
        let pass = self
            .owned
            .contexts
            .get_mut(context.0)
            .map(|state| &mut state.pass);
        let Some(pass) = pass.filter(|pass| pass.is_some()) else {
            self.totals.faults.count("a request has no pass");
            return None;
        };
        let pass = pass.take_if(|pass| pass.is_ready())?;
        self.owned.forget_request(request);
        let outcome = match pass.error() {
            None => self.charge(context, &pass, pay),
            Some(error) => Err(error.clone()),
        };
        if let Err(error) = outcome {
            // What goes ahead of it waits.
            self.waiting.queue.remove(pass.id);
            self.give_up(context, &pass);
            return Some(Err(error));
        }
        Some(Ok(self.fold(context, pass)))
    }

    /// Charges the tokens that enter the context with a pass to the budget of its process, and to `pay`.
    fn charge(
        &mut self,
        context: ContextId,
        pass: &Pass,
        pay: impl FnOnce(Entering) -> Result<()>,
    ) -> Result<()> {
        let Some(state) = self.owned.contexts.get(context.0) else {
            self.totals.faults.count("a pass has no context");
            return Ok(());
        };
        let n_tokens = pass.n_entering();
        let length = state.length() as usize + n_tokens;
        spend(self.owned.budget_of(state), n_tokens, || {
            pay(Entering { n_tokens, length })
        })
    }

    /// Drops what a pass computed and drew: its context is as it was before.
    fn give_up(&mut self, context: ContextId, pass: &Pass) {
        self.waiting.hold.forget(context);
        if let Some(state) = self.owned.contexts.get_mut(context.0) {
            state.habit.forget();
            state.mask_habit.forget();
            state.trim(&mut self.device.store);
        }
        self.rest(context);
        self.undo_generation(pass);
    }

    /// Folds a pass that succeeded into its context and its generator.
    fn fold(&mut self, context: ContextId, mut pass: Pass) -> Answer {
        let ahead = pass.split();
        self.fold_into(context, &pass, ahead);
        let id = match pass.kind {
            PassKind::Flush => return Answer::Flushed,
            PassKind::Forward { .. } => {
                return Answer::Forwarded(pass.into_reads().into_outputs());
            }
            PassKind::Step(id) | PassKind::Run(id) => id,
        };
        let (tokens, finish) = (pass.drawn().to_vec(), pass.finish());
        match self.owned.generators.get_mut(id.0) {
            Some(generator) => {
                generator.fold(tokens.len() as u32, finish, pass.draws());
                if pass.origin.is_some() {
                    generator.settle_seed();
                }
            }
            None => self.totals.faults.count("a generation has no generator"),
        }
        self.drop_if_asked(id);
        Answer::Generated(Output {
            tokens,
            finish,
            readings: pass.readings(),
            speculation: pass.speculation(),
        })
    }

    /// Folds a pass that succeeded into its context, where `ahead` is what runs ahead of it.
    fn fold_into(&mut self, context: ContextId, pass: &Pass, ahead: Option<Pass>) {
        let page_size = self.config.driver.page_size;
        let Some(state) = self.owned.contexts.get_mut(context.0) else {
            let faults = &mut self.totals.faults;
            return faults.count("a pass that succeeded has no context");
        };
        state.note_charged(pass.n_entering());
        // A pass that had nothing to run took nothing.
        if pass.n_tokens() > 0 {
            state.absorb(&self.device.store, pass);
        }
        state.pass = ahead;
        match pass.kind {
            PassKind::Flush | PassKind::Forward { .. } => state.settle(page_size),
            // Where it had ended before, there is nothing to replace.
            PassKind::Step(_) if pass.n_tokens() > 0 || !pass.draws() => {
                let n_tokens = pass.drawn().len() as u32;
                state.provisional = Some(Provisional {
                    n_tokens,
                    n_charged: n_tokens,
                });
            }
            PassKind::Step(_) | PassKind::Run(_) => {}
        }
        state.trim(&mut self.device.store);
        if state.offer.is_given() {
            let generator = pass.kind.generator();
            let generator = generator.and_then(|id| self.owned.generators.get(id.0));
            if generator.is_none_or(|generator| generator.rebids) {
                state.offer.spend();
            }
        }
        let n_pages = state.n_tokens() / page_size;
        let n_new = n_pages.saturating_sub(state.n_paid);
        if n_new > 0 && !state.drafts {
            state.n_paid = n_pages;
            let process = state.process;
            self.charge_pages(process, n_new);
        }
        self.count_origin(context, pass);
    }

    /// A pass that drew counts for the seeds of later ones.
    fn count_origin(&mut self, context: ContextId, pass: &Pass) {
        let Some(origin) = pass.origin else {
            return;
        };
        let faults = &mut self.totals.faults;
        let Some(state) = self.owned.contexts.get_mut(context.0) else {
            return faults.count("a pass that drew has no context");
        };
        if let Some(before) = &mut state.before {
            before.origin = Some(origin);
            return;
        }
        match self.owned.processes.get_mut(&state.process) {
            Some(process) => process.seeds.count(origin),
            None => faults.count("a context has no process"),
        }
    }

    /// Cancels a request, ready or not: what the program sees is as it was before it. An unknown request is none.
    pub fn cancel(&mut self, request: RequestId) {
        let context = match self.owned.forget_request(request) {
            Some(RequestState::Active(context)) => context,
            Some(RequestState::Commanded { .. }) => return self.forget_commands(),
            Some(RequestState::Failed { .. }) | None => return,
        };
        let state = self.owned.contexts.get_mut(context.0);
        let Some(pass) = state.and_then(|state| state.pass.take()) else {
            return self.totals.faults.count("a request has no pass");
        };
        self.waiting.queue.remove(pass.id);
        self.give_up(context, &pass);
    }

    /// Brings the generator of a pass that failed or was cancelled back to the state before it.
    pub(super) fn undo_generation(&mut self, pass: &Pass) {
        let (PassKind::Step(id) | PassKind::Run(id)) = pass.kind else {
            return;
        };
        self.tell_drafter(id, DraftEvent::Unwanted);
        match self.owned.generators.get_mut(id.0) {
            Some(generator) => generator.undo(matches!(pass.kind, PassKind::Step(_))),
            None => self.totals.faults.count("a generation has no generator"),
        }
        self.drop_if_asked(id);
    }

    fn drop_if_asked(&mut self, id: GeneratorId) {
        if self
            .owned
            .generators
            .get(id.0)
            .is_some_and(|generator| generator.dropped)
        {
            self.drop_generator(id);
        }
    }
}

/// Charges `n_tokens` to a budget, and to `pay`: both, or neither.
pub(super) fn spend(
    budget: Option<&TokenBudget>,
    n_tokens: usize,
    pay: impl FnOnce() -> Result<()>,
) -> Result<()> {
    budget.map_or(Ok(()), |budget| budget.spend(n_tokens))?;
    pay().inspect_err(|_| {
        if let Some(budget) = budget {
            budget.refund(n_tokens);
        }
    })
}
