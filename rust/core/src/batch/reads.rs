//! The rows of logits that a pass wants, and what came of them.

use std::ops::Range;
use std::sync::Arc;

use crate::sampling::{Key, Params};

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Read {
    /// The slot of the token behind which it is read.
    pub(crate) slot: u32,
    /// How tokens are drawn from it, and by which key.
    pub(crate) params: Params,
    pub(crate) key: Key,
    /// 0 where the row alone is wanted.
    pub(crate) n_draws: u32,
    /// The tokens that may be drawn, as run lengths over the vocabulary; none: any.
    pub(crate) mask: Option<Arc<[u32]>>,
    /// Whether the row itself is wanted.
    pub(crate) keep: bool,
}

impl Read {
    /// The row behind the token that this one draws, which is drawn alike.
    pub(crate) fn following(&self) -> Self {
        Self {
            slot: self.slot + 1,
            key: Key {
                position: self.key.position + 1,
                ..self.key
            },
            ..self.clone()
        }
    }
}

/// What came of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowOutput {
    /// One token for each draw.
    pub tokens: Vec<u32>,
    /// Float32 `[V]`, before anything was done to it; none where it was not wanted.
    pub logits: Option<Arc<[f32]>>,
}

/// All rows of a pass. A batch answers those of the tokens that it computed, and since tokens are computed in their
/// order, rows are answered in theirs; what is computed again later is not read again.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// By the slots of their tokens.
    reads: Vec<Read>,
    /// Which of the program's each of them is; empty where they stand in its order.
    order: Vec<usize>,
    /// The tokens that were drawn from the first of them, one row after the other.
    drawn: Vec<u32>,
    /// What came of the first of them: where its tokens end in `drawn`, and the row.
    answers: Vec<(usize, Option<Arc<[f32]>>)>,
}

impl Reads {
    /// Rows in the order of the program.
    pub(crate) fn new(reads: Vec<Read>) -> Self {
        if reads.is_sorted_by_key(|read| read.slot) {
            return Self {
                reads,
                ..Self::default()
            };
        }
        let mut order: Vec<usize> = (0..reads.len()).collect();
        order.sort_by_key(|&index| reads[index].slot);
        Self {
            reads: order.iter().map(|&index| reads[index].clone()).collect(),
            order,
            ..Self::default()
        }
    }

    /// One row in place of those before. Their memory serves it.
    pub(crate) fn renew(&mut self, read: Read) {
        self.reads.clear();
        self.reads.push(read);
        self.order.clear();
        self.drawn.clear();
        self.answers.clear();
    }

    fn left(&self) -> &[Read] {
        &self.reads[self.answers.len()..]
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left().is_empty()
    }

    /// The last row, answered or not.
    pub(crate) fn last(&self) -> Option<&Read> {
        self.reads.last()
    }

    /// The slot of the first token of which a row is not answered.
    pub(crate) fn next_slot(&self) -> Option<u32> {
        self.left().first().map(|read| read.slot)
    }

    /// Rows that a batch has to answer which computes these slots.
    pub(crate) fn within(&self, slots: Range<u32>) -> &[Read] {
        let left = self.left();
        let first = left.partition_point(|read| read.slot < slots.start);
        let end = left.partition_point(|read| read.slot < slots.end);
        &left[first..end]
    }

    /// A batch answered the next rows.
    pub(crate) fn answer<'a>(
        &mut self,
        rows: impl Iterator<Item = (&'a [u32], Option<Arc<[f32]>>)>,
    ) {
        for (tokens, logits) in rows.take(self.left().len()) {
            self.drawn.extend_from_slice(tokens);
            self.answers.push((self.drawn.len(), logits));
        }
    }

    /// The tokens that were drawn, of one row after the other.
    pub(crate) fn drawn(&self) -> &[u32] {
        &self.drawn
    }

    /// What came of all rows, in the order of the program.
    pub(crate) fn into_outputs(self) -> Vec<RowOutput> {
        let mut outputs = vec![RowOutput::default(); self.reads.len()];
        let mut start = 0;
        for (place, (end, logits)) in self.answers.into_iter().enumerate() {
            let index = self.order.get(place).copied().unwrap_or(place);
            outputs[index] = RowOutput {
                tokens: self.drawn[start..end].to_vec(),
                logits,
            };
            start = end;
        }
        outputs
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(slot: u32, seed: u64) -> Read {
        Read {
            slot,
            params: Params::ARGMAX,
            key: Key {
                seed,
                position: slot + 1,
                slot: 0,
                draw: 0,
            },
            n_draws: 1,
            mask: None,
            keep: false,
        }
    }

    #[test]
    fn what_follows_a_row_is_drawn_alike_one_slot_on() {
        let mask: Arc<[u32]> = Arc::from([1, 2]);
        let first = Read {
            mask: Some(mask),
            ..read(4, 9)
        };
        let expected = Read {
            mask: first.mask.clone(),
            ..read(5, 9)
        };
        assert_eq!(first.following(), expected);
    }

    #[test]
    fn a_row_in_place_of_others_is_alone() {
        let mut reads = Reads::new(vec![read(7, 1), read(3, 2)]);
        reads.renew(read(9, 3));
        assert_eq!((reads.next_slot(), reads.is_done()), (Some(9), false));
        assert_eq!(reads.within(0..9), &[]);
        assert_eq!(reads.within(0..10), &[read(9, 3)]);
        assert_eq!(reads.into_outputs(), [RowOutput::default()]);
    }

    proptest! {
        /// Rows lie by their slots, those of one token in the order of the program, and every one is within one of two
        /// neighbouring chunks.
        #[test]
        fn rows_lie_by_their_slots(slots in prop::collection::vec(0u32..12, 0..20), cut in 0u32..13) {
            let asked: Vec<Read> = slots.iter().zip(0..).map(|(&slot, seed)| read(slot, seed)).collect();
            let reads = Reads::new(asked.clone());
            let mut expected = asked;
            expected.sort_by_key(|read| (read.slot, read.key.seed));
            prop_assert_eq!(reads.next_slot(), expected.first().map(|read| read.slot));
            prop_assert_eq!(reads.last(), expected.last());
            let both = [reads.within(0..cut), reads.within(cut..12)].concat();
            prop_assert_eq!(&both, &expected);
            prop_assert!(reads.within(0..cut).iter().all(|read| read.slot < cut));
        }
    }
}
