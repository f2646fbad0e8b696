//! What a program sees of a context while a collection changes it.

use std::sync::Arc;

use crate::generation::{FinishReason, Mark};
use crate::ids::GeneratorId;
use crate::kv::Content;

/// What stood when a collection began, which its program sees until it takes the result, and what stands again where it
/// gives the collection up.
#[derive(Debug)]
pub(crate) struct Before {
    pub(crate) generator: GeneratorId,
    pub(crate) mark: Mark,
    /// Why the generator had ended.
    pub(crate) finish: Option<FinishReason>,
    /// The seed of the generator was derived from this origin, which counts once the result is taken.
    pub(crate) origin: Option<u64>,
    /// So many tokens were charged to the token budget since.
    pub(crate) n_charged: usize,
    /// No more steps come.
    pub(crate) is_whole: bool,
    pub(crate) n_tokens: u32,
    pub(super) tail: Content,
    pub(super) pending: Vec<u32>,
    pub(crate) buffer: Arc<Vec<u32>>,
    pub(crate) n_cached: u32,
    pub(crate) n_committed: u32,
    pub(super) n_final: u32,
}

impl Before {
    /// Tokens that were computed, and the pending ones.
    pub(crate) const fn seq_len(&self) -> u32 {
        self.n_tokens + self.pending.len() as u32
    }

    /// The same, with those in the buffer.
    pub(crate) fn length(&self) -> u32 {
        self.seq_len() + self.buffer.len() as u32
    }
}
