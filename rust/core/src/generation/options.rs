//! What a generator is made with, and what it returns.

use super::drafting::{Drafter, MODEL_MASKS};
use super::ngrams::NGrams;
use crate::batch::Adapter;
use crate::sampling::{Reading, Sampler};

/// What a generator is made with.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratorOptions {
    /// How a token is chosen.
    pub sampler: Sampler,
    /// Used as given, 0 included, unless the sampler has its own; none: derived from the launch seed and the context.
    pub seed: Option<u64>,
    /// Cap on accepted tokens; none: until a stop token or until the context is full.
    pub max_tokens: Option<u32>,
    /// What the tokens of its steps are computed with.
    pub adapter: Adapter,
    /// Stop tokens beside those of the model and the template.
    pub stop: Vec<u32>,
    /// Stop tokens of the chat template; empty where the template takes no part.
    pub template_stop: Vec<u32>,
    /// The tokens that may be drawn in every step, as run lengths over the vocabulary, forbidden first; empty: any.
    pub token_mask: Vec<u32>,
    /// Who proposes tokens that are computed together. It never changes a token.
    pub drafting: Drafting,
}

impl GeneratorOptions {
    /// Bytes that they keep in memory at most, beside the stop tokens.
    pub fn n_bytes(&self) -> usize {
        let (drafter, n_masks) = match self.drafting {
            Drafting::None => (0, 1),
            Drafting::NGram => (NGrams::N_BYTES, 1),
            Drafting::Host => (size_of::<Drafter>(), MODEL_MASKS),
        };
        size_of_val(&*self.token_mask) * n_masks + drafter
    }
}

/// Who proposes tokens that a step computes together, and accepts while they are what the sampler draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drafting {
    /// Nobody but the program, step by step.
    #[default]
    None,
    /// The engine, from what stood in the context before.
    NGram,
    /// Whoever drives the engine, by another model: see [`Engine::drain_draft_events`](crate::Engine).
    Host,
}

impl Drafting {
    /// What makes drafts so; none where the program does.
    pub(crate) fn drafter(self) -> Option<Drafter> {
        match self {
            Self::None => None,
            Self::NGram => Some(Drafter::of_n_grams()),
            Self::Host => Some(Drafter::of_model()),
        }
    }
}

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FinishReason {
    /// A stop token was accepted.
    Stop,
    /// The cap or the length of the model's context was reached.
    Length,
    /// A constraint ended the generation.
    Constraint,
    /// The generator was retired: by a newer one, a truncation, or the end of its context.
    Closed,
}

/// What a step or a run accepted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// Accepted tokens, a stop token included as the last.
    pub tokens: Vec<u32>,
    /// Set when this ended the generation.
    pub finish: Option<FinishReason>,
    /// Of a step, one for each probe: those of every step, then its own, each in the order in which they were attached.
    pub readings: Vec<Reading>,
    /// What was drafted.
    pub speculation: Speculation,
}

/// Tokens that were proposed and computed together, and how many of them the sampler drew as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Speculation {
    /// Tokens that were proposed.
    pub n_drafted: u32,
    /// Those of them that were accepted.
    pub n_accepted: u32,
}
