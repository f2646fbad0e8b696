//! Steps of a generator that are collected: to the program they are one run to its end.
//!
//! A generator whose token masks come late cannot run by itself, since somebody has a part in each of its steps.
//! Whoever that is begins a collection, makes step after step, and ends it. Until the result is taken the program sees
//! what stood before, as during a run: what the steps change is in the context already, and what stood there is kept
//! ([`Before`]). A collection that is given up puts that back, with what was charged; the seed of its generator counts
//! once the result is taken.

use super::Engine;
use super::contexts::pass_under_way;
use crate::context::{Before, Pass};
use crate::errors::Result;
use crate::ids::{ContextId, GeneratorId};

impl Engine {
    /// Begins a collection: what the steps of the generator accept from now on counts once the collection was kept.
    /// What the last step accepted is final.
    ///
    /// # Errors
    /// Those of a run to the end: `context-busy`, `context-released`, `generator-retired`, `step-pending`. Nothing
    /// changes then.
    pub fn begin_collection(&mut self, id: GeneratorId) -> Result<()> {
        let generator = self.owned.generator(id)?;
        generator.check_step(false)?;
        let (context, finish) = (generator.context, self.finish_reason(id)?);
        let page_size = self.config.driver.page_size;
        let state = self.owned.live_mut(context)?;
        // What runs ahead is for the first step.
        let pass = state.pass.as_ref().and_then(Pass::request);
        if pass.is_some() || state.before.is_some() {
            return Err(pass_under_way("generated from"));
        }
        state.settle(page_size);
        let mark = self.owned.idle_generator(id)?.begin_collection();
        self.owned
            .live_mut(context)?
            .begin_collection(id, mark, finish);
        Ok(())
    }

    /// No more steps of a collection come: nothing is done with its context until it is kept or given up.
    pub fn end_collection(&mut self, id: GeneratorId) {
        let Some(context) = self.collected(id) else {
            return;
        };
        self.drop_ahead(context);
        let state = self.owned.contexts.get_mut(context.0);
        if let Some(before) = state.and_then(|state| state.before.as_mut()) {
            before.is_whole = true;
        }
        if let Some(generator) = self.owned.generators.get_mut(id.0) {
            generator.rest();
        }
    }

    /// The result of a collection was taken.
    ///
    /// # Errors
    /// `context-released` where its context was: there is no collection then.
    pub fn keep_collection(&mut self, id: GeneratorId) -> Result<()> {
        let context = self.collected(id).ok_or_else(super::owned::released)?;
        let state = self.owned.live_mut(context)?;
        let (process, before) = (state.process, state.before.take());
        if let Some(generator) = self.owned.generators.get_mut(id.0) {
            generator.keep();
        }
        let origin = before.and_then(|before| before.origin);
        let owner = self.owned.processes.get_mut(&process);
        let faults = &mut self.totals.faults;
        faults.expect(owner.is_some(), "a context has no process");
        if let Some((owner, origin)) = owner.zip(origin) {
            owner.seeds.count(origin);
        }
        Ok(())
    }

    /// A collection is given up, none of whose steps is under way: context and generator are as they were before it. Of
    /// a generator that has none nothing changes.
    pub fn drop_collection(&mut self, id: GeneratorId) {
        let Some(context) = self.collected(id) else {
            return;
        };
        self.drop_ahead(context);
        self.undo_collection(context);
        if let Some(state) = self.owned.contexts.get_mut(context.0) {
            state.habit.forget();
            state.mask_habit.forget();
            state.trim(&mut self.device.store);
        }
        self.waiting.hold.forget(context);
        self.rest(context);
    }

    /// A collection never counts, where there is one: its context has the tokens that it had, its generator stands
    /// where it stood, and what was charged is given back.
    pub(super) fn undo_collection(&mut self, context: ContextId) {
        let Some(state) = self.owned.contexts.get_mut(context.0) else {
            return;
        };
        let Some(before) = state.before.take() else {
            return;
        };
        let (id, n_charged) = (before.generator, before.n_charged);
        let mark = state.return_to(*before);
        let process = state.process;
        if let Some(budget) = self.owned.budget(process) {
            budget.refund(n_charged);
        }
        if let Some(generator) = self.owned.generators.get_mut(id.0) {
            generator.return_to(mark);
        }
    }

    /// What stood before the collection of a generator; none where it has none.
    pub(super) fn before(&self, id: GeneratorId) -> Option<&Before> {
        let context = self.owned.generators.get(id.0)?.context;
        let before = self.owned.contexts.get(context.0)?.before.as_deref();
        before.filter(|before| before.generator == id)
    }

    /// The context of the collection of a generator.
    fn collected(&self, id: GeneratorId) -> Option<ContextId> {
        self.before(id)?;
        Some(self.owned.generators.get(id.0)?.context)
    }
}
