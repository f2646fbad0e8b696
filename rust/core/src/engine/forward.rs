//! A forward pass that a program puts together by itself: what it computes, with which positions, masks and adapter,
//! and which rows it reads.

use std::ops::Range;
use std::sync::Arc;

use crate::batch::{Adapter, Capabilities};
use crate::brle;
use crate::errors::{Error, ErrorCode, Result};
use crate::masks;
use crate::sampling::{Probe, Sampler};

/// A forward pass over the pending token, the buffer and tokens of its own, in this order.
///
/// Indices and masks count the tokens of its own; where it has none, the pending and buffered ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forward {
    /// Tokens of its own, which enter the context with its result.
    pub input: Vec<Input>,
    /// Attention masks, one for each token or none at all: run lengths, forbidden first, 1 = allowed, over the slots
    /// `[0, length after the pass)`, to be ANDed with causality. An empty one: causality alone.
    pub masks: Vec<Vec<u32>>,
    /// What all tokens of the pass are computed with.
    pub adapter: Adapter,
    /// Rows of logits that are wanted. What is read of them takes memory until its answer is taken
    /// ([`Probe::n_bytes`]).
    pub rows: Vec<RowRequest>,
    /// The tokens that may be drawn, as run lengths over the vocabulary, for all rows; empty: any.
    pub token_mask: Vec<u32>,
    /// Leaves the pages that become full as they are, to be committed or truncated by the program.
    pub leaves_working_pages: bool,
    /// The masks as the engine keeps them, where they were read before: see [`Forward::read_masks`].
    pub read_masks: Option<ReadMasks>,
}

/// Attention masks that were read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadMasks {
    slots: Range<u32>,
    masks: Result<Vec<Arc<[u32]>>>,
}

/// A token of a forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its id.
    pub token: u32,
    /// Its position; none: its index in the context.
    pub position: Option<u32>,
}

/// A row of logits that a forward pass wants. Several of one token are computed once.
#[derive(Clone, Debug, PartialEq)]
pub struct RowRequest {
    /// Behind which token, counted from 0.
    pub index: u32,
    /// How tokens are drawn from it; none: none are.
    pub sampler: Option<Sampler>,
    /// What is read of it, whatever is drawn.
    pub probes: Vec<Probe>,
    /// Its token mask, which stands in place of that of the pass, comes later, by [`Engine::give_mask`]: tokens are
    /// drawn when it is there.
    pub late_mask: bool,
}

/// The most tokens that a program may propose for one step.
pub(super) const MAX_PROPOSED: usize = 256;

impl Forward {
    /// Reads the masks of the tokens in these slots, as [`Engine::masked_slots`](super::Engine::masked_slots) names
    /// them. They may be long, so this is done apart from the engine and its lock, which reads those that were not.
    pub fn read_masks(&mut self, slots: Range<u32>) {
        self.read_masks = Some(ReadMasks {
            masks: self.masks_of(slots.clone()),
            slots,
        });
    }

    /// The masks of the tokens in these slots.
    pub(super) fn masks_in(&self, slots: Range<u32>) -> Result<Vec<Arc<[u32]>>> {
        match &self.read_masks {
            Some(read) if read.slots == slots => read.masks.clone(),
            _ => self.masks_of(slots),
        }
    }

    fn masks_of(&self, slots: Range<u32>) -> Result<Vec<Arc<[u32]>>> {
        let end = slots.end;
        let masks = self.masks.iter().zip(slots);
        masks
            .map(|(mask, slot)| Ok(Arc::from(attention_mask(mask, slot, end)?)))
            .collect()
    }

    /// The tokens that it draws, of all its rows.
    pub(super) fn n_draws(&self) -> u64 {
        let samplers = self.rows.iter().filter_map(|row| row.sampler.as_ref());
        samplers.map(|it| u64::from(it.method.draws())).sum()
    }

    /// What it keeps in memory until its answer is taken, in bytes: masks, what is drawn and read, and rows that
    /// wait for their masks.
    pub fn n_bytes(&self, driver: &Capabilities) -> usize {
        let (vocab_size, hidden_size) = (driver.vocab_size, driver.embeddings);
        let n_late = self.rows.iter().filter(|row| row.late_mask).count();
        let n_runs: usize = self.masks.iter().map(Vec::len).sum();
        let n_drawn = self.n_draws() as usize;
        let n_words = n_late * vocab_size as usize + n_runs + self.token_mask.len() + n_drawn;
        let probes = self.rows.iter().flat_map(|row| &row.probes);
        let n_read: usize = probes.map(|it| it.n_bytes(vocab_size, hidden_size)).sum();
        size_of::<u32>() * n_words + n_read
    }
}

/// The most runs of the attention mask of a token: it is kept as long as the page of the token is.
const MAX_MASK_RUNS: usize = 1024;

/// The mask of the token at `slot`, over the slots up to its own, in the shortest form.
fn attention_mask(mask: &[u32], slot: u32, end: u32) -> Result<Vec<u32>> {
    masks::check(mask, end)?;
    if mask.len() > MAX_MASK_RUNS {
        return Err(Error::new(
            ErrorCode::InvalidArgument,
            format!(
                "the attention mask of the token at {slot} has {} runs, and may have at most {MAX_MASK_RUNS}; allow or \
             forbid longer stretches",
                mask.len()
            ),
        ));
    }
    let mask = brle::shortest(mask, slot + 1);
    if mask == [0] {
        return Err(Error::new(
            ErrorCode::InvalidArgument,
            format!(
                "the attention mask of the token at {slot} allows none of the tokens up to it; allow at least one"
            ),
        ));
    }
    Ok(mask)
}
