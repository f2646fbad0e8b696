//! What is drawn from the logits of a batch: the part of a step that needs neither the engine nor its lock.

use std::ops::Range;
use std::sync::Arc;

use super::layout::Field;
use super::view::{ArenaView, RowView};
use crate::errors::{Error, ErrorCode, Result};
use crate::ids::BatchId;
use crate::sampling::{RowFault, Scratch, sample_many};

/// The draws of a batch. They are read from its arena, so that a driver that draws on its device sees the same.
#[derive(Clone, Debug)]
pub struct SampleJobs {
    arena: Arc<[u32]>,
    vocab_size: u32,
}

/// What came of the draws of a batch. The tokens of all rows lie in one array, so that a batch of one row a sequence
/// costs no more allocations than one of one sequence.
#[derive(Clone, Debug)]
pub struct Sampled {
    pub(crate) batch: BatchId,
    /// For each sequence: where its rows lie in `rows`, or why it failed.
    sequences: Vec<Result<Range<usize>>>,
    rows: Vec<SampledRow>,
    tokens: Vec<u32>,
}

/// What came of one row.
#[derive(Clone, Debug)]
struct SampledRow {
    /// Which tokens of the batch were drawn from it.
    tokens: Range<usize>,
    logits: Option<Arc<[f32]>>,
}

/// What came of the rows of one sequence.
#[derive(Clone, Copy, Debug)]
pub struct SequenceRows<'a> {
    rows: &'a [SampledRow],
    tokens: &'a [u32],
}

/// A driver could not run a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverFailure {
    /// For people.
    pub message: String,
}

impl SampleJobs {
    /// The draws that an arena of an [`ArenaBuilder`](super::ArenaBuilder) asks for.
    pub(crate) const fn new(arena: Arc<[u32]>, vocab_size: u32) -> Self {
        Self { arena, vocab_size }
    }

    /// Rows of logits that the batch wants.
    pub fn n_rows(&self) -> usize {
        ArenaView::built(&self.arena).n_rows()
    }

    /// Draws from each row of `logits`, float32 `[R, V]`, C-contiguous. `failures` names sequences of the batch that
    /// the driver could not compute, by index, with a reason each.
    ///
    /// A row that is missing or holds a value that is not finite fails its sequence alone, with `bad-logits`; so does a
    /// sequence that `failures` names, with `driver-failed`. Where the size of `logits` does not fit, rows cannot be
    /// told apart and every sequence that wanted one fails; where `failures` names a sequence that the batch does not
    /// have, every one fails, since it cannot be known which was meant.
    pub fn sample(&self, logits: &[f32], failures: &[(u32, String)]) -> Sampled {
        let view = ArenaView::built(&self.arena);
        let n_sequences = view.n_sequences();
        let mut sampled = Sampled {
            batch: BatchId(view.batch_id()),
            sequences: Vec::with_capacity(n_sequences),
            rows: Vec::with_capacity(view.n_rows()),
            tokens: Vec::with_capacity(view.n_rows()),
        };
        let width = self.vocab_size as usize;
        let fits = logits.len() <= view.n_rows() * width && logits.len().is_multiple_of(width);
        let mut scratch = Scratch::default();
        let tokens = view.field(Field::RowToken);
        let mut rows = view.rows().enumerate();
        let mut n_taken = 0;
        for &end in &view.field(Field::QoIndptr)[1..] {
            let first = sampled.rows.len();
            let mut outcome = Ok(());
            let n_own = tokens[n_taken..]
                .iter()
                .take_while(|&&token| token < end)
                .count();
            n_taken += n_own;
            for (index, row) in rows.by_ref().take(n_own) {
                let drawn = match logits.get(index * width..(index + 1) * width) {
                    Some(logits) if fits => sampled
                        .draw(logits, &row, &mut scratch)
                        .map_err(|fault| row_error(index, fault)),
                    _ => Err(self.shape_error(logits.len())),
                };
                if outcome.is_ok() && drawn.is_err() {
                    outcome = drawn;
                }
            }
            sampled
                .sequences
                .push(outcome.map(|()| first..sampled.rows.len()));
        }
        for (index, reason) in failures {
            match sampled.sequences.get_mut(*index as usize) {
                Some(sequence) => *sequence = Err(driver_failed(reason)),
                None => {
                    let reason = format!("it named sequence {index} of a batch of {n_sequences}");
                    sampled.sequences.fill(Err(driver_failed(&reason)));
                    break;
                }
            }
        }
        sampled
    }

    fn shape_error(&self, n_values: usize) -> Error {
        let (n_rows, width) = (self.n_rows(), self.vocab_size);
        Error::with_values(
            ErrorCode::BadLogits,
            format!(
                "the driver answered with {n_values} logits, and {n_rows} rows of {width} were wanted; try again, or mend the driver"
            ),
            &[
                ("values", n_values as u64),
                ("rows", n_rows as u64),
                ("vocab_size", u64::from(width)),
            ],
        )
    }
}

impl Sampled {
    /// Draws from one row, and keeps it where that is wanted.
    fn draw(
        &mut self,
        logits: &[f32],
        row: &RowView<'_>,
        scratch: &mut Scratch,
    ) -> std::result::Result<(), RowFault> {
        let first = self.tokens.len();
        sample_many(
            logits,
            &row.params,
            row.mask,
            row.key,
            row.n_draws,
            scratch,
            &mut self.tokens,
        )?;
        self.rows.push(SampledRow {
            tokens: first..self.tokens.len(),
            logits: row.keep.then(|| Arc::from(logits)),
        });
        Ok(())
    }

    /// Sequences of the batch.
    pub fn n_sequences(&self) -> usize {
        self.sequences.len()
    }

    /// The rows of a sequence in the order in which they were added; none for a sequence that the batch does not have.
    ///
    /// # Errors
    /// Why the sequence failed.
    pub fn rows(&self, sequence_idx: usize) -> std::result::Result<SequenceRows<'_>, &Error> {
        let rows = match self.sequences.get(sequence_idx) {
            Some(Ok(rows)) => self.rows.get(rows.clone()).unwrap_or_default(),
            Some(Err(error)) => return Err(error),
            None => &[],
        };
        Ok(SequenceRows {
            rows,
            tokens: &self.tokens,
        })
    }
}

impl<'a> SequenceRows<'a> {
    /// Of each row the tokens that were drawn from it, one for each draw, in order; and the row itself, float32 `[V]`,
    /// where it was to be kept.
    pub fn outputs(&self) -> impl Iterator<Item = (&'a [u32], Option<&'a Arc<[f32]>>)> + use<'a> {
        let tokens = self.tokens;
        self.rows.iter().map(move |row| {
            let drawn = tokens.get(row.tokens.clone()).unwrap_or_default();
            (drawn, row.logits.as_ref())
        })
    }
}

fn driver_failed(reason: &str) -> Error {
    Error::new(
        ErrorCode::DriverFailed,
        format!("the driver failed this pass: {reason}; try it again"),
    )
}

fn row_error(row: usize, fault: RowFault) -> Error {
    match fault {
        RowFault::NotFinite(token) => Error::with_values(
            ErrorCode::BadLogits,
            format!(
                "the logit of token {token} in row {row} is not finite; try again, and check the weights if it stays"
            ),
            &[("row", row as u64), ("token", u64::from(token))],
        ),
        RowFault::NothingAllowed => Error::new(
            ErrorCode::InvalidArgument,
            format!("the token mask of row {row} allows nothing; allow at least one token"),
        ),
    }
}
