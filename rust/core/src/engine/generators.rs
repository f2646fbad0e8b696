//! What programs do with generators, apart from running them.

use super::Engine;
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::{
    DraftEvent, Drafting, FinishReason, Generator, GeneratorOptions, OwnSeed, Retirement,
    StepState, StopSet,
};
use crate::ids::{ContextId, GeneratorId};

impl Engine {
    /// A generator on a context. It runs nothing; an idle older one of the context is retired.
    ///
    /// # Errors
    /// `invalid-sampler`, `invalid-argument` for a token mask that is malformed or allows nothing, `unsupported` for
    /// an adapter that the driver does not serve, `invalid-token` for a stop token
    /// outside the vocabulary, `empty-context` where there is nothing to generate from, `context-busy`,
    /// `context-released`, `limit-resources`.
    pub fn new_generator(
        &mut self,
        context: ContextId,
        options: GeneratorOptions,
    ) -> Result<GeneratorId> {
        let params = options.sampler.method.params()?;
        self.check_adapter(options.adapter)?;
        self.check_tokens(&options.stop)?;
        self.check_tokens(&options.template_stop)?;
        let mask = self.token_mask(&options.token_mask)?;
        if self.idle_context(context, "generated from")?.length() == 0 {
            return Err(Error::new(
                ErrorCode::EmptyContext,
                "the context is empty and there is nothing to generate from; add a message or tokens first",
            ));
        }
        self.check_room_for_generator(context)?;
        let page_size = self.config.driver.page_size;
        let state = self.owned.live_mut(context)?;
        state.settle(page_size);
        let (process, older, drafts) = (state.process, state.generator, state.drafts);
        let mut generator = Generator::new(
            process,
            context,
            params,
            StopSet::new(options.template_stop, options.stop),
        );
        generator.seed = OwnSeed::new(options.sampler.seed, options.seed);
        generator.max_tokens = options.max_tokens;
        generator.adapter = options.adapter;
        generator.mask = mask;
        generator.drafts = drafts;
        generator.drafter = options.drafting.drafter().map(Box::new);
        let id = GeneratorId(self.owned.generators.insert(generator));
        if let Some(state) = self.owned.contexts.get_mut(context.0) {
            state.generator = Some(id);
        }
        if let Some(owner) = self.owned.processes.get_mut(&process) {
            owner.generators.insert(id);
            owner.n_draft_generators += usize::from(drafts);
        }
        if let Some(older) = older {
            self.retire(older, Retirement::Newer);
        }
        Ok(id)
    }

    /// Caps the tokens that it accepts.
    ///
    /// # Errors
    /// `generator-retired`; `context-busy` while a step is under way.
    pub fn set_max_tokens(&mut self, generator: GeneratorId, n: u32) -> Result<()> {
        self.owned.idle_generator(generator)?.max_tokens = Some(n);
        Ok(())
    }

    /// Puts stop tokens in place of the template's; an empty list removes the model's end tokens too.
    ///
    /// # Errors
    /// `invalid-token`, `generator-retired`; `context-busy` while a step is under way.
    pub fn set_stop(&mut self, generator: GeneratorId, tokens: &[u32]) -> Result<()> {
        self.check_tokens(tokens)?;
        self.owned.idle_generator(generator)?.stop.replace(tokens);
        Ok(())
    }

    /// Stops at the model's end tokens again, also where an empty list was put in place of the template's: the program
    /// stops at texts in their place.
    ///
    /// # Errors
    /// `generator-retired`; `context-busy` while a step is under way.
    pub fn keep_end_tokens(&mut self, generator: GeneratorId) -> Result<()> {
        self.owned.idle_generator(generator)?.stop.keep_model();
        Ok(())
    }

    /// Whether the options of a generator may change now.
    ///
    /// # Errors
    /// `generator-retired`; `context-busy` while a step is under way.
    pub fn check_changeable(&self, generator: GeneratorId) -> Result<()> {
        self.owned.check_idle(generator)
    }

    /// Adds stop tokens.
    ///
    /// # Errors
    /// `invalid-token`, `generator-retired`; `context-busy` while a step is under way.
    pub fn add_stop(&mut self, generator: GeneratorId, tokens: &[u32]) -> Result<()> {
        self.check_tokens(tokens)?;
        self.owned.idle_generator(generator)?.stop.add(tokens);
        Ok(())
    }

    /// Removes the model's and the template's stop tokens, or puts them back.
    ///
    /// # Errors
    /// `generator-retired`; `context-busy` while a step is under way.
    pub fn ignore_eos(&mut self, generator: GeneratorId, ignore: bool) -> Result<()> {
        self.owned
            .idle_generator(generator)?
            .stop
            .ignore_end(ignore);
        Ok(())
    }

    /// Those of all tokens at which a generator stops.
    ///
    /// # Errors
    /// `generator-retired` after it was dropped.
    pub fn stop_tokens(&self, generator: GeneratorId) -> Result<Vec<u32>> {
        let stop = &self.owned.generator(generator)?.stop;
        Ok(stop.tokens(&self.config.end_tokens))
    }

    /// Ends a generator behind what it accepted, because nothing may follow by its constraints. One that a stop token
    /// ended stays as it is; one that ended at its cap had nothing more to say.
    ///
    /// # Errors
    /// `generator-retired`; `context-busy` while a step is under way.
    pub fn end_by_constraint(&mut self, generator: GeneratorId) -> Result<()> {
        let state = self.owned.idle_generator(generator)?;
        state.end_by_constraint();
        let context = state.context;
        // Nobody comes back for what ran ahead.
        self.drop_ahead(context);
        Ok(())
    }

    /// Ends a generator behind what it accepted, as a stop token does: whoever drives the engine found a stop text in
    /// it, and has put what goes up to that in place of the last step. What was drawn beyond, `n_cut` tokens of drafts,
    /// was never accepted: their charge is given back.
    ///
    /// # Errors
    /// `generator-retired`; `context-busy` while a step is under way.
    pub fn end_by_stop(&mut self, generator: GeneratorId, n_cut: usize) -> Result<()> {
        let state = self.owned.idle_generator(generator)?;
        state.end_by_stop();
        let context = state.context;
        self.refund_cut(context, n_cut);
        // Nobody comes back for what ran ahead.
        self.drop_ahead(context);
        Ok(())
    }

    /// Gives back what was charged for tokens of the last step that were cut.
    fn refund_cut(&mut self, context: ContextId, n_cut: usize) {
        let state = self.owned.contexts.get_mut(context.0);
        let n_refunded = state.map_or(0, |state| state.uncharge_cut(n_cut));
        let state = self.owned.contexts.get(context.0);
        if let Some(budget) = state.and_then(|state| self.owned.budget_of(state)) {
            budget.refund(n_refunded);
        }
    }

    /// Draws by this seed, as given, 0 included, unless the sampler has a seed of its own.
    ///
    /// # Errors
    /// `invalid-argument` once a step was opened; `generator-retired`; `context-busy` while a step is under way.
    pub fn set_seed(&mut self, generator: GeneratorId, seed: u64) -> Result<()> {
        self.owned.idle_generator(generator)?.set_seed(seed)
    }

    /// Puts a token mask in place of the one that it was made with: run lengths over the vocabulary; empty: any token.
    ///
    /// # Errors
    /// `invalid-argument` for a mask that is malformed or allows nothing, and once a step was opened;
    /// `generator-retired`; `context-busy` while a step is under way.
    pub fn set_token_mask(&mut self, generator: GeneratorId, mask: &[u32]) -> Result<()> {
        let mask = self.token_mask(mask)?;
        self.owned.idle_generator(generator)?.set_mask(mask)
    }

    /// Has its drafts made so from now on. Whoever made them before is not told.
    ///
    /// # Errors
    /// `invalid-argument` once a step was opened; `generator-retired`; `context-busy` while a step is under way.
    pub fn set_drafting(&mut self, generator: GeneratorId, drafting: Drafting) -> Result<()> {
        self.owned.idle_generator(generator)?.set_drafting(drafting)
    }

    /// Bytes of the options of a generator: stop tokens, token mask, probes with what they read, drafts, and what makes
    /// them.
    ///
    /// # Errors
    /// `generator-retired` after it was dropped.
    pub fn option_bytes(&self, generator: GeneratorId) -> Result<usize> {
        let driver = &self.config.driver;
        Ok(self.owned.generator(generator)?.held_bytes(driver))
    }

    /// Bytes that drafts of a generator take more at most, were they made so.
    ///
    /// # Errors
    /// `generator-retired` after it was dropped.
    pub fn drafting_bytes(&self, generator: GeneratorId, drafting: Drafting) -> Result<usize> {
        Ok(self.owned.generator(generator)?.drafting_bytes(drafting))
    }

    /// Opens the next step: its number, counted from 0, or none after the end. A step that was cancelled or failed is
    /// opened again. What the last step accepted is final then.
    ///
    /// # Errors
    /// `step-pending` when a step was opened and not run, or when the last one drew nothing and nobody said what
    /// follows; `generator-retired`; `context-busy` while a step is under way.
    pub fn next_step(&mut self, generator: GeneratorId) -> Result<Option<u32>> {
        let (length, max_context) = (self.owned.length_of(generator), self.config.max_context());
        let state = self.owned.idle_generator(generator)?;
        let (opened, context) = (state.open(length, max_context)?, state.context);
        if let Some(context) = self.owned.contexts.get_mut(context.0)
            && context.generator == Some(generator)
        {
            context.provisional = None;
        }
        Ok(opened)
    }

    /// Tokens accepted so far.
    ///
    /// # Errors
    /// `generator-retired` after it was dropped.
    pub fn tokens_generated(&self, generator: GeneratorId) -> Result<u32> {
        let n_accepted = self.owned.generator(generator)?.n_accepted();
        let before = self.before(generator);
        Ok(before.map_or(n_accepted, |before| before.mark.n_accepted()))
    }

    /// Why it ended; none while it can go on.
    ///
    /// # Errors
    /// `generator-retired` after it was dropped.
    pub fn finish_reason(&self, generator: GeneratorId) -> Result<Option<FinishReason>> {
        let reason = self.finish_reason_within(generator)?;
        Ok(self.before(generator).map_or(reason, |it| it.finish))
    }

    /// The same, with what a collection under way has accepted.
    ///
    /// # Errors
    /// `generator-retired` after it was dropped.
    pub fn finish_reason_within(&self, generator: GeneratorId) -> Result<Option<FinishReason>> {
        let (length, max_context) = (self.owned.length_of(generator), self.config.max_context());
        Ok(self
            .owned
            .generator(generator)?
            .finish_reason(length, max_context))
    }

    /// Drops a generator; the context stays usable. A pass under way goes on.
    pub fn drop_generator(&mut self, generator: GeneratorId) {
        let Some(state) = self.owned.generators.get_mut(generator.0) else {
            return;
        };
        state.dropped = true;
        let (context, process, drafts) = (state.context, state.process, state.drafts);
        if state.state == StepState::Running {
            return;
        }
        self.drop_ahead(context);
        self.tell_drafter(generator, DraftEvent::Ended);
        self.owned.generators.remove(generator.0);
        if let Some(owner) = self.owned.processes.get_mut(&process) {
            owner.generators.remove(&generator);
            owner.n_draft_generators -= usize::from(drafts);
        }
        let page_size = self.config.driver.page_size;
        let state = self.owned.contexts.get_mut(context.0);
        if let Some(state) = state.filter(|state| state.generator == Some(generator)) {
            state.generator = None;
            state.settle(page_size);
            self.waiting.hold.forget(context);
        }
    }

    /// The generator cannot be used any more.
    pub(super) fn retire(&mut self, generator: GeneratorId, by: Retirement) {
        if let Some(state) = self.owned.generators.get_mut(generator.0) {
            state.retire(by);
            self.waiting.hold.forget(state.context);
        }
        self.tell_drafter(generator, DraftEvent::Ended);
    }
}
