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
pub(crate) enum Reads {
    #[default]
    None,
    /// The one behind the last token of a generation, from which one token is drawn. It lies in place: every sequence
    /// of every step has one.
    One {
        read: Read,
        drawn: Option<u32>,
    },
    Many(Box<Many>),
}

/// Any number of rows.
#[derive(Debug, Default)]
pub(crate) struct Many {
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
            return Self::Many(Box::new(Many {
                reads,
                ..Many::default()
            }));
        }
        let mut order: Vec<usize> = (0..reads.len()).collect();
        order.sort_by_key(|&index| reads[index].slot);
        Self::Many(Box::new(Many {
            reads: order.iter().map(|&index| reads[index].clone()).collect(),
            order,
            ..Many::default()
        }))
    }

    /// A row from which one token is drawn, and which is not kept.
    pub(crate) const fn one(read: Read) -> Self {
        Self::One { read, drawn: None }
    }

    /// The row behind the token at `slot`, drawn as the last one, in place of all before. False: there was none.
    pub(crate) fn follow(&mut self, slot: u32) -> bool {
        if let Self::Many(many) = self
            && let Some(last) = many.reads.pop()
        {
            *self = Self::one(last);
        }
        let Self::One { read, drawn } = self else {
            return false;
        };
        (read.slot, read.key.position, *drawn) = (slot, slot + 1, None);
        true
    }

    fn left(&self) -> &[Read] {
        match self {
            Self::One { read, drawn: None } => std::slice::from_ref(read),
            Self::None | Self::One { .. } => &[],
            Self::Many(many) => &many.reads[many.answers.len()..],
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left().is_empty()
    }

    /// The last row, answered or not.
    pub(crate) fn last(&self) -> Option<&Read> {
        match self {
            Self::None => None,
            Self::One { read, .. } => Some(read),
            Self::Many(many) => many.reads.last(),
        }
    }

    /// The slot of the first token of which a row is not answered.
    pub(crate) fn next_slot(&self) -> Option<u32> {
        self.left().first().map(|read| read.slot)
    }

    /// Rows that a batch has to answer which computes these slots.
    pub(crate) fn within(&self, slots: Range<u32>) -> &[Read] {
        if let Self::One { read, drawn } = self {
            let is_left = drawn.is_none() && slots.contains(&read.slot);
            return if is_left {
                std::slice::from_ref(read)
            } else {
                &[]
            };
        }
        let left = self.left();
        let first = left.partition_point(|read| read.slot < slots.start);
        let end = left.partition_point(|read| read.slot < slots.end);
        &left[first..end]
    }

    /// A batch answered the next rows.
    pub(crate) fn answer<'a>(
        &mut self,
        mut rows: impl Iterator<Item = (&'a [u32], Option<&'a Arc<[f32]>>)>,
    ) {
        match self {
            Self::None | Self::One { drawn: Some(_), .. } => {}
            Self::One { drawn, .. } => {
                *drawn = rows.next().and_then(|(tokens, _)| tokens.first().copied());
            }
            Self::Many(many) => {
                let n_left = many.reads.len() - many.answers.len();
                for (tokens, logits) in rows.take(n_left) {
                    many.drawn.extend_from_slice(tokens);
                    many.answers.push((many.drawn.len(), logits.cloned()));
                }
            }
        }
    }

    /// The tokens that were drawn, of one row after the other.
    pub(crate) fn drawn(&self) -> &[u32] {
        match self {
            Self::None => &[],
            Self::One { drawn, .. } => drawn.as_slice(),
            Self::Many(many) => &many.drawn,
        }
    }

    /// What came of all rows, in the order of the program.
    pub(crate) fn into_outputs(self) -> Vec<RowOutput> {
        let many = match self {
            Self::None => return Vec::new(),
            Self::One { drawn, .. } => {
                return vec![RowOutput {
                    tokens: drawn.into_iter().collect(),
                    logits: None,
                }];
            }
            Self::Many(many) => *many,
        };
        let mut outputs = vec![RowOutput::default(); many.reads.len()];
        let mut start = 0;
        for (place, (end, logits)) in many.answers.into_iter().enumerate() {
            let index = many.order.get(place).copied().unwrap_or(place);
            outputs[index] = RowOutput {
                tokens: many.drawn[start..end].to_vec(),
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
    fn one_row_is_read_once() {
        let mut reads = Reads::one(read(9, 3));
        assert_eq!((reads.next_slot(), reads.is_done()), (Some(9), false));
        assert_eq!(reads.within(0..9), &[]);
        assert_eq!(reads.within(0..10), &[read(9, 3)]);
        let rows = |token: &'static [u32]| [(token, None)].into_iter();
        reads.answer(rows(&[5]));
        reads.answer(rows(&[6]));
        assert_eq!((reads.drawn(), reads.is_done()), (&[5][..], true));
        assert_eq!(
            (reads.within(0..10), reads.last()),
            (&[][..], Some(&read(9, 3)))
        );
        let output = RowOutput {
            tokens: vec![5],
            logits: None,
        };
        assert_eq!(reads.into_outputs(), [output]);
    }

    #[test]
    fn what_follows_is_drawn_alike_and_not_answered() {
        let mut one = Reads::one(read(9, 3));
        one.answer([(&[5][..], None)].into_iter());
        for mut reads in [one, Reads::new(vec![read(4, 1), read(9, 3)])] {
            assert!(reads.follow(10));
            assert_eq!(reads.within(0..20), &[read(10, 3)]);
            assert!(reads.drawn().is_empty());
        }
        assert!(!Reads::None.follow(10));
    }

    #[test]
    fn rows_are_answered_in_the_order_of_their_tokens_and_told_in_that_of_the_program() {
        let mut reads = Reads::new(vec![read(7, 1), read(3, 2), read(7, 3)]);
        let logits: Arc<[f32]> = Arc::from([1.0]);
        reads.answer([(&[1, 2][..], Some(&logits))].into_iter());
        assert_eq!((reads.next_slot(), reads.drawn()), (Some(7), &[1, 2][..]));
        reads.answer([(&[][..], None), (&[4][..], None), (&[5][..], None)].into_iter());
        assert!(reads.is_done());
        let outputs = reads.into_outputs();
        let tokens: Vec<&[u32]> = outputs.iter().map(|output| &output.tokens[..]).collect();
        assert_eq!(tokens, [&[][..], &[1, 2], &[4]]);
        assert_eq!(outputs[1].logits, Some(logits));
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
