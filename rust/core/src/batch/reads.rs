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
    /// The tokens that may be drawn, as run lengths over the vocabulary; none: any, or where the mask comes late, it
    /// has not come.
    pub(crate) mask: Option<Arc<[u32]>>,
    /// The mask may come after the forward has been launched.
    pub(crate) is_late: bool,
    /// Whether the row itself is wanted.
    pub(crate) keep: bool,
}

impl Read {
    /// The row behind the token that this one draws, which is drawn alike.
    pub(crate) fn following(&self) -> Self {
        self.moved(self.slot + 1)
    }

    /// The row behind the token at another slot, drawn alike. A mask that came late is that of one row.
    fn moved(&self, slot: u32) -> Self {
        Self {
            slot,
            key: Key {
                position: slot + 1,
                ..self.key
            },
            mask: self.mask.clone().filter(|_| !self.is_late),
            ..self.clone()
        }
    }

    /// Whether it is planned without its mask.
    pub(crate) const fn awaits_mask(&self) -> bool {
        self.is_late && self.mask.is_none()
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
    /// Those that were answered without their mask.
    kept: Vec<KeptRow>,
    /// Rows whose mask comes late and that were not drawn from yet.
    n_late: usize,
}

/// A row that is kept until its mask comes.
#[derive(Debug)]
struct KeptRow {
    /// Which of the rows it is.
    place: usize,
    logits: Arc<[f32]>,
    /// Its mask came, and somebody draws.
    is_drawn: bool,
}

/// Why a mask is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MaskFault {
    /// There is no such row.
    NoRow,
    /// Its mask does not come late.
    NotLate,
    /// It has its mask.
    Given,
}

impl Many {
    /// A batch answered the next row.
    fn answer(&mut self, tokens: &[u32], logits: Option<&Arc<[f32]>>) {
        let place = self.answers.len();
        let (is_late, keep) = self
            .reads
            .get(place)
            .map_or((false, true), |read| (read.is_late, read.keep));
        if is_late && tokens.is_empty() {
            debug_assert!(logits.is_some(), "a late row is drawn from or kept");
            self.kept.push(KeptRow {
                place,
                logits: logits.cloned().unwrap_or_default(),
                is_drawn: false,
            });
        }
        self.n_late -= usize::from(is_late && !tokens.is_empty());
        self.drawn.extend_from_slice(tokens);
        let logits = logits.filter(|_| keep || !is_late);
        self.answers.push((self.drawn.len(), logits.cloned()));
    }
}

impl Reads {
    /// Rows in the order of the program.
    pub(crate) fn new(reads: Vec<Read>) -> Self {
        let n_late = reads.iter().filter(|read| read.is_late).count();
        if reads.is_sorted_by_key(|read| read.slot) {
            return Self::Many(Box::new(Many {
                reads,
                n_late,
                ..Many::default()
            }));
        }
        let mut order: Vec<usize> = (0..reads.len()).collect();
        order.sort_by_key(|&index| reads[index].slot);
        Self::Many(Box::new(Many {
            reads: order.iter().map(|&index| reads[index].clone()).collect(),
            order,
            n_late,
            ..Many::default()
        }))
    }

    /// A row from which one token is drawn, and which is not wanted itself.
    pub(crate) fn one(read: Read) -> Self {
        if read.is_late {
            Self::new(vec![read])
        } else {
            Self::One { read, drawn: None }
        }
    }

    /// The row behind the token at `slot`, drawn as the last one, in place of all before. False: there was none.
    pub(crate) fn follow(&mut self, slot: u32) -> bool {
        if let Self::Many(many) = self
            && let Some(last) = many.reads.pop()
        {
            *self = Self::one(last.moved(slot));
            return true;
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

    /// Rows that batches answered.
    pub(crate) fn n_answered(&self) -> usize {
        match self {
            Self::Many(many) => many.answers.len(),
            Self::None | Self::One { .. } => 0,
        }
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
                    many.answer(tokens, logits);
                }
            }
        }
    }

    /// Rows whose mask comes late and that were not drawn from yet.
    pub(crate) const fn n_late(&self) -> usize {
        match self {
            Self::None | Self::One { .. } => 0,
            Self::Many(many) => many.n_late,
        }
    }

    /// The mask of a late row came. `row` is the program's.
    pub(crate) fn give_mask(&mut self, row: usize, mask: Arc<[u32]>) -> Result<(), MaskFault> {
        let Self::Many(many) = self else {
            return Err(match self {
                Self::One { .. } if row == 0 => MaskFault::NotLate,
                _ => MaskFault::NoRow,
            });
        };
        let place = many.order.iter().position(|&index| index == row);
        let place = place.unwrap_or(row);
        let read = many.reads.get_mut(place).ok_or(MaskFault::NoRow)?;
        if !read.is_late {
            return Err(MaskFault::NotLate);
        }
        if read.mask.is_some() {
            return Err(MaskFault::Given);
        }
        read.mask = Some(mask);
        Ok(())
    }

    /// Whether the mask of a row has not come.
    pub(crate) fn lacks_mask(&self) -> bool {
        matches!(self, Self::Many(many) if many.reads.iter().any(Read::awaits_mask))
    }

    /// The mask of a late row by its place; none where it has not come.
    pub(crate) fn mask_at(&self, place: usize) -> Option<Arc<[u32]>> {
        let Self::Many(many) = self else { return None };
        many.reads.get(place)?.mask.clone()
    }

    /// The next row that was kept, whose mask has come and from which nobody draws: where it stands, the row, and how
    /// it is drawn.
    pub(crate) fn next_draw(&mut self) -> Option<(usize, Arc<[f32]>, &Read)> {
        let Self::Many(many) = self else { return None };
        let reads = &many.reads;
        let has_mask = |place: usize| reads.get(place).is_some_and(|read| read.mask.is_some());
        let mut kept = many.kept.iter_mut();
        let kept = kept.find(|kept| !kept.is_drawn && has_mask(kept.place))?;
        kept.is_drawn = true;
        Some((kept.place, kept.logits.clone(), reads.get(kept.place)?))
    }

    /// Tokens were drawn from a row that was kept. False: it is not kept.
    pub(crate) fn answer_late(&mut self, place: usize, tokens: &[u32]) -> bool {
        let Self::Many(many) = self else { return false };
        let Some(index) = many.kept.iter().position(|kept| kept.place == place) else {
            return false;
        };
        many.kept.swap_remove(index);
        many.n_late -= 1;
        // Tokens stand in the order of their rows.
        let at = many.answers.get(place).map_or(0, |(end, _)| *end);
        many.drawn.splice(at..at, tokens.iter().copied());
        for (end, _) in &mut many.answers[place..] {
            *end += tokens.len();
        }
        true
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
            is_late: false,
            keep: false,
        }
    }

    fn late(slot: u32) -> Read {
        Read {
            is_late: true,
            ..read(slot, 1)
        }
    }

    #[test]
    fn a_late_row_is_kept_until_its_mask_comes_and_its_tokens_stand_in_their_place() {
        let mut reads = Reads::new(vec![late(7), read(3, 2), late(5)]);
        let row: Arc<[f32]> = Arc::from([1.0, 2.0]);
        let (mask, other): (Arc<[u32]>, Arc<[u32]>) = (Arc::from([1, 1]), Arc::from([0, 1]));
        assert_eq!(reads.give_mask(3, mask.clone()), Err(MaskFault::NoRow));
        assert_eq!(reads.give_mask(1, mask.clone()), Err(MaskFault::NotLate));
        let rows = [(&[9][..], None), (&[], Some(&row)), (&[], Some(&row))];
        reads.answer(rows.into_iter());
        assert!(reads.is_done() && reads.next_draw().is_none());
        assert_eq!((reads.n_late(), reads.drawn()), (2, &[9][..]));
        assert_eq!(reads.give_mask(0, mask.clone()), Ok(()));
        assert_eq!(reads.give_mask(0, other.clone()), Err(MaskFault::Given));
        let (place, kept, how) = reads.next_draw().unwrap();
        assert_eq!(
            (place, kept, how.mask.clone()),
            (2, row.clone(), Some(mask))
        );
        assert!(reads.next_draw().is_none(), "it is drawn from once");
        assert!(reads.answer_late(2, &[4]));
        assert!(!reads.answer_late(2, &[4]));
        assert_eq!(reads.give_mask(2, other), Ok(()));
        assert_eq!(reads.next_draw().unwrap().0, 1);
        assert!(reads.answer_late(1, &[6, 8]));
        assert_eq!((reads.n_late(), reads.drawn()), (0, &[9, 6, 8, 4][..]));
        let outputs = reads.into_outputs();
        let tokens: Vec<&[u32]> = outputs.iter().map(|output| &output.tokens[..]).collect();
        assert_eq!(tokens, [&[4][..], &[9], &[6, 8]]);
        assert!(outputs.iter().all(|output| output.logits.is_none()));
    }

    #[test]
    fn a_mask_that_comes_in_time_leaves_nothing_to_keep() {
        let mut reads = Reads::one(late(4));
        assert!(reads.within(0..5)[0].awaits_mask());
        assert_eq!(reads.give_mask(0, Arc::from([2, 1])), Ok(()));
        assert!(!reads.within(0..5)[0].awaits_mask());
        reads.answer([(&[2][..], None)].into_iter());
        assert_eq!((reads.n_late(), reads.drawn()), (0, &[2][..]));
        assert!(reads.follow(5));
        assert_eq!(reads.within(0..6), &[late(5)]);
        assert_eq!(reads.n_late(), 1);
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
