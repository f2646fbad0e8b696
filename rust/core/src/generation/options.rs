//! What a generator is made with, and what it returns.

use crate::batch::Adapter;
use crate::sampling::Sampler;

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Accepted tokens, a stop token included as the last.
    pub tokens: Vec<u32>,
    /// Set when this ended the generation.
    pub finish: Option<FinishReason>,
}
