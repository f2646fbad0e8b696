//! Tokens that are drafted: how many may be, and which ones the engine proposes.

use crate::config::EngineConfig;
use crate::context::Context;
use crate::generation::{Drafts, Generator};
use crate::kv::PageStore;
use crate::slab::Slab;

/// Where a generation stands that is to be drafted for.
#[derive(Clone, Copy, Debug)]
pub(super) struct DraftRoom {
    /// Tokens of the context, with those that the pass drew.
    pub(super) length: u32,
    /// Tokens that the pass drew.
    pub(super) n_drawn: u32,
    /// Tokens that it may draw; none: any number.
    pub(super) budget: Option<u64>,
    /// Pages of the pool.
    pub(super) n_pages: u32,
}

impl DraftRoom {
    /// So many drafts may be of use: one token more is drawn than is drafted.
    pub(super) fn of(&self, config: &EngineConfig, generator: &Generator) -> u32 {
        let n_drawn = u64::from(generator.n_accepted() + self.n_drawn);
        let cap = generator
            .max_tokens
            .map(|cap| u64::from(cap).saturating_sub(n_drawn));
        let budget = self
            .budget
            .map(|left| left.saturating_sub(u64::from(self.n_drawn)));
        let context = u64::from(config.max_context().saturating_sub(self.length));
        let slots = u64::from(self.n_pages) * u64::from(config.driver.page_size);
        let n_drawn = [cap, budget].into_iter().flatten().fold(context, u64::min);
        let pool = slots.saturating_sub(u64::from(self.length));
        n_drawn.saturating_sub(1).min(pool) as u32
    }
}

/// What the engine drafts behind the tokens of the pass of a context, all of which were drawn.
pub(super) fn drafts_to_come(
    config: &EngineConfig,
    generators: &mut Slab<Generator>,
    context: &Context,
    store: &PageStore,
) -> Drafts {
    let pass = context.pass.as_ref();
    let id = pass.and_then(|pass| pass.kind.generator());
    let generator = id.and_then(|id| generators.get_mut(id.0));
    let Some((pass, generator)) = pass.zip(generator) else {
        return Drafts::NONE;
    };
    let length = context.end();
    let budget = pass.budget.as_ref().map(|budget| budget.left());
    let room = DraftRoom {
        length,
        n_drawn: pass.drawn().len() as u32,
        budget,
        n_pages: store.n_pages(),
    };
    let room = room.of(config, generator);
    let Some(drafter) = generator.drafter() else {
        return Drafts::NONE;
    };
    drafter.make(length, room, |n| {
        let slots = length - n..length;
        match pass.tokens_at(slots.clone()) {
            Some(tokens) => tokens.to_vec(),
            None => context.content_at(store, slots).tokens().to_vec(),
        }
    })
}
