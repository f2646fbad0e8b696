//! What is drawn from the logits of a batch: the part of a step that needs neither the engine nor its lock.

use crate::errors::{Error, ErrorCode};
use crate::ids::BatchId;
use crate::sampling::{Key, Params, RowFault, Scratch, sample};

/// The draws of a batch, one for each row of logits.
#[derive(Clone, Debug)]
pub struct SampleJobs {
    pub(crate) batch: BatchId,
    pub(crate) vocab_size: u32,
    pub(crate) n_sequences: u32,
    pub(crate) rows: Vec<RowJob>,
}

/// One draw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowJob {
    /// The sequence that the row belongs to.
    pub(crate) sequence: u32,
    pub(crate) params: Params,
    pub(crate) key: Key,
}

/// What came of the draws of a batch.
#[derive(Clone, Debug)]
pub struct Sampled {
    pub(crate) batch: BatchId,
    /// For each sequence: the token that was drawn, none where no row was wanted, or why the sequence failed.
    pub(crate) sequences: Vec<Result<Option<u32>, Error>>,
}

/// A driver could not run a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverFailure {
    /// For people.
    pub message: String,
}

impl SampleJobs {
    /// Rows of logits that the batch wants.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// Draws a token from each row of `logits`, float32 `[R, V]`, C-contiguous. `failures` names sequences of the batch that the
    /// driver could not compute, by index, with a reason each.
    ///
    /// A row that is missing or holds a value that is not finite fails its sequence alone, with `bad-logits`; so does a sequence
    /// that `failures` names, with `driver-failed`. Where the size of `logits` does not fit, rows cannot be told apart and every
    /// sequence that wanted one fails.
    pub fn sample(&self, logits: &[f32], failures: &[(u32, String)]) -> Sampled {
        let mut sequences: Vec<Result<Option<u32>, Error>> =
            vec![Ok(None); self.n_sequences as usize];
        let width = self.vocab_size as usize;
        let fits = logits.len() <= self.rows.len() * width && logits.len().is_multiple_of(width);
        let mut scratch = Scratch::default();
        for (index, row) in self.rows.iter().enumerate() {
            let drawn = match logits.get(index * width..(index + 1) * width) {
                Some(logits) if fits => sample(logits, &row.params, &[], row.key, &mut scratch)
                    .map_err(|fault| row_error(index, fault)),
                _ => Err(self.shape_error(logits.len())),
            };
            if let Some(sequence) = sequences.get_mut(row.sequence as usize) {
                *sequence = drawn.map(Some);
            }
        }
        for (sequence, reason) in failures {
            if let Some(sequence) = sequences.get_mut(*sequence as usize) {
                *sequence = Err(Error::new(
                    ErrorCode::DriverFailed,
                    format!("the driver failed this pass: {reason}; try it again"),
                ));
            }
        }
        Sampled {
            batch: self.batch,
            sequences,
        }
    }

    fn shape_error(&self, n_values: usize) -> Error {
        let (n_rows, width) = (self.rows.len(), self.vocab_size);
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
