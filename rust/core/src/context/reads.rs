//! The rows of logits that a forward pass wants, and what came of them.

use std::ops::Range;
use std::sync::Arc;

use crate::batch::SequenceRows;
use crate::sampling::{Key, Params};

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    /// The slot of the token behind which it is read.
    pub(crate) slot: u32,
    pub(crate) params: Params,
    pub(crate) key: Key,
    /// 0 where the row alone is wanted.
    pub(crate) n_draws: u32,
    pub(crate) keep: bool,
}

/// What came of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowOutput {
    /// One token for each draw.
    pub tokens: Vec<u32>,
    /// Float32 `[V]`, before anything was done to it; none where it was not wanted.
    pub logits: Option<Arc<[f32]>>,
}

/// All rows of a pass. A batch answers those of the tokens that it computed, and since tokens are computed in their order, rows are
/// answered in theirs; what is computed again later is not read again.
#[derive(Debug)]
pub(crate) struct Reads {
    /// By the slots of their tokens.
    reads: Vec<Read>,
    /// Which of the program's each of them is.
    order: Vec<usize>,
    /// What came of the first of them.
    outputs: Vec<RowOutput>,
    pub(crate) token_mask: Arc<[u32]>,
    /// The key under which passes that sample are counted; none where none does.
    pub(crate) origin: Option<u64>,
}

impl Reads {
    /// Rows in the order of the program.
    pub(crate) fn new(reads: Vec<Read>, token_mask: Arc<[u32]>, origin: u64) -> Self {
        let mut order: Vec<usize> = (0..reads.len()).collect();
        order.sort_by_key(|&index| reads[index].slot);
        let samples = reads.iter().any(|read| read.n_draws > 0);
        Self {
            reads: order.iter().map(|&index| reads[index].clone()).collect(),
            order,
            outputs: Vec::new(),
            token_mask,
            origin: samples.then_some(origin),
        }
    }

    fn left(&self) -> &[Read] {
        &self.reads[self.outputs.len()..]
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left().is_empty()
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
    pub(crate) fn answer(&mut self, rows: SequenceRows<'_>) {
        let n_left = self.left().len();
        self.outputs.extend(
            rows.outputs()
                .take(n_left)
                .map(|(tokens, logits)| RowOutput {
                    tokens: tokens.to_vec(),
                    logits,
                }),
        );
    }

    /// What came of all rows, in the order of the program.
    pub(crate) fn into_outputs(self) -> Vec<RowOutput> {
        let mut outputs = vec![RowOutput::default(); self.order.len()];
        for (index, output) in self.order.into_iter().zip(self.outputs) {
            outputs[index] = output;
        }
        outputs
    }
}
