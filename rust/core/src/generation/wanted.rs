//! What whoever drafts for generators is told.

use std::sync::Arc;

use crate::ids::{GeneratorId, RequestId};

/// What whoever drafts for generators has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DraftEvent {
    /// A generation waits for drafts.
    Wanted(GeneratorId, DraftsWanted),
    /// What was wanted for a generator is of no use any more.
    Unwanted(GeneratorId),
    /// A generator wants no more drafts: it was retired or dropped.
    Ended(GeneratorId),
}

/// Drafts that are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftsWanted {
    /// What waits for them.
    pub request: RequestId,
    /// The first tokens of the context that are as they were when drafts were wanted the last time.
    pub n_known: u32,
    /// Those that follow them: all that there are.
    pub tokens: Vec<u32>,
    /// The seed by which the generation draws.
    pub seed: u64,
    /// The tokens that it may draw in every step, as run lengths; none: any.
    pub mask: Option<Arc<[u32]>>,
    /// Drafts that are of use, one at least.
    pub n_drafts: u32,
}

impl DraftsWanted {
    /// Tokens of the context.
    pub fn length(&self) -> u32 {
        self.n_known + self.tokens.len() as u32
    }
}
