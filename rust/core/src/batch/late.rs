//! Rows whose token mask may come after their forward was launched.
//!
//! To a driver such a row is one that is wanted itself and from which nothing is drawn. Where its mask has come when
//! the batch is answered, it is drawn from with the others. Where not, it is kept, and drawn from when its mask comes.

use std::sync::Arc;

use super::answer::row_error;
use crate::errors::Result;
use crate::ids::{ContextId, PassId};
use crate::sampling::{Key, Params, Scratch, sample_many};

/// A row of a batch that was planned without its token mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateRow {
    /// Which row of the batch it is.
    pub row: u32,
    pub(crate) context: ContextId,
    pub(crate) pass: PassId,
    /// Which row of its pass it is, by the slots of their tokens.
    pub(crate) place: usize,
    pub(crate) n_draws: u32,
}

/// A late row of a batch, with its mask, which has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateMask {
    pub(crate) row: u32,
    pub(crate) n_draws: u32,
    pub(crate) mask: Arc<[u32]>,
}

/// A row that was kept and whose mask has come: what is drawn from it, apart from the engine and its lock.
#[derive(Clone, Debug)]
pub struct LateDraw {
    pub(crate) context: ContextId,
    pub(crate) pass: PassId,
    pub(crate) place: usize,
    pub(crate) logits: Arc<[f32]>,
    pub(crate) params: Params,
    pub(crate) key: Key,
    pub(crate) n_draws: u32,
    pub(crate) mask: Arc<[u32]>,
}

/// What was drawn from a row that was kept.
#[derive(Clone, Debug)]
pub struct LateDrawn {
    pub(crate) context: ContextId,
    pub(crate) pass: PassId,
    pub(crate) place: usize,
    pub(crate) tokens: Result<Vec<u32>>,
}

impl LateDraw {
    /// Draws, as it would have been drawn from its batch with the mask.
    pub fn draw(&self) -> LateDrawn {
        let mut tokens = Vec::with_capacity(self.n_draws as usize);
        let drawn = sample_many(
            &self.logits,
            &self.params,
            &self.mask,
            self.key,
            self.n_draws,
            &mut Scratch::default(),
            &mut tokens,
        );
        LateDrawn {
            context: self.context,
            pass: self.pass,
            place: self.place,
            tokens: drawn
                .map(|()| tokens)
                .map_err(|fault| row_error(self.place, fault)),
        }
    }
}
