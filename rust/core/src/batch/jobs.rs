//! What is drawn from the logits of a batch: the part of a step that needs neither the engine nor its lock.

use std::ops::Range;
use std::sync::Arc;

use super::answer::{AnswerReader, AnsweredRow, DriverAnswer, NOT_FINITE};
use super::late::LateMask;
use super::layout::Field;
use super::view::{ArenaView, RowView};
use crate::brle;
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

    /// Draws from each row of `logits`, float32 `[R, V]`, C-contiguous: [`SampleJobs::conclude`] where no mask came
    /// late.
    pub fn sample(&self, logits: &[f32], failures: &[(u32, String)]) -> Sampled {
        self.conclude(DriverAnswer::Logits(logits), &[], failures)
    }

    /// Draws from the rows that the driver answered with, or takes what it drew. `masks` are those that came late, in
    /// the order of their rows; a late row without one is kept. `failures` names sequences of the batch that the driver
    /// could not compute, by index, with a reason each.
    ///
    /// A row that is missing, holds a value that is not finite, or was drawn wrongly fails its sequence alone, with
    /// `bad-logits`; so does a sequence that `failures` names, with `driver-failed`. Where the size of the answer does
    /// not fit, rows cannot be told apart and every sequence that wanted one fails; where `failures` names a sequence
    /// that the batch does not have, every one fails, since it cannot be known which was meant.
    pub fn conclude(
        &self,
        answer: DriverAnswer<'_>,
        masks: &[LateMask],
        failures: &[(u32, String)],
    ) -> Sampled {
        let view = ArenaView::built(&self.arena);
        let n_sequences = view.n_sequences();
        let mut sampled = Sampled {
            batch: BatchId(view.batch_id()),
            sequences: Vec::with_capacity(n_sequences),
            rows: Vec::with_capacity(view.n_rows()),
            tokens: Vec::with_capacity(view.n_rows()),
        };
        let mut reader = AnswerReader::new(answer, &view, self.vocab_size as usize);
        let mut masks = masks.iter().peekable();
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
                let late = masks.next_if(|late| late.row as usize == index);
                let drawn = match reader.next(&row) {
                    Some(answered) => self
                        .take_row(&mut sampled, answered, &row, late, &mut scratch)
                        .map_err(|fault| row_fault(index, fault)),
                    None => Err(self.shape_error(answer)),
                };
                if outcome.is_ok() && drawn.is_err() {
                    outcome = drawn;
                }
            }
            sampled
                .sequences
                .push(outcome.map(|()| first..sampled.rows.len()));
        }
        sampled.fail(failures);
        sampled
    }

    /// Draws from one row, or takes what was drawn from it, and keeps the row where that is wanted.
    fn take_row(
        &self,
        sampled: &mut Sampled,
        answered: AnsweredRow<'_>,
        row: &RowView<'_>,
        late: Option<&LateMask>,
        scratch: &mut Scratch,
    ) -> std::result::Result<(), Fault> {
        match (answered.tokens, answered.logits, late) {
            (_, Some(logits), Some(late)) => {
                let row = RowView {
                    mask: &late.mask,
                    n_draws: late.n_draws,
                    keep: late.keep,
                    ..*row
                };
                Ok(sampled.draw(logits, &row, scratch)?)
            }
            (None, Some(logits), None) => Ok(sampled.draw(logits, row, scratch)?),
            (Some(tokens), logits, _) => {
                let bad = |&&token: &&u32| !brle::is_allowed(row.mask, self.vocab_size, token);
                match tokens.iter().find(bad) {
                    Some(&NOT_FINITE) => return Err(Fault::NotDrawn),
                    Some(&token) => return Err(Fault::DrawnWrongly(token)),
                    None => {}
                }
                let first = sampled.tokens.len();
                if let Some(logits) = logits {
                    // The row is checked, and nothing is drawn from it.
                    let row = RowView { n_draws: 0, ..*row };
                    sampled.draw(logits, &row, scratch)?;
                } else {
                    sampled.rows.push(SampledRow {
                        tokens: first..first,
                        logits: None,
                    });
                }
                sampled.tokens.extend_from_slice(tokens);
                if let Some(row) = sampled.rows.last_mut() {
                    row.tokens.end = sampled.tokens.len();
                }
                Ok(())
            }
            (None, None, _) => Err(Fault::NotDrawn),
        }
    }

    fn shape_error(&self, answer: DriverAnswer<'_>) -> Error {
        let (n_rows, width) = (self.n_rows(), self.vocab_size);
        let n_values = match answer {
            DriverAnswer::Logits(logits) => logits.len(),
            DriverAnswer::Drawn { tokens, logits } => {
                let (n_tokens, n_values) = (tokens.len(), logits.len());
                return Error::with_values(
                    ErrorCode::BadLogits,
                    format!(
                        "the driver drew {n_tokens} tokens and answered with {n_values} logits, which are not \
                         those that the {n_rows} rows of {width} ask for; try again, or mend the driver"
                    ),
                    &[("tokens", n_tokens as u64), ("values", n_values as u64)],
                );
            }
        };
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

    /// Fails the sequences that the driver names.
    fn fail(&mut self, failures: &[(u32, String)]) {
        let n_sequences = self.sequences.len();
        for (index, reason) in failures {
            match self.sequences.get_mut(*index as usize) {
                Some(sequence) => *sequence = Err(driver_failed(reason)),
                None => {
                    let reason = format!("it named sequence {index} of a batch of {n_sequences}");
                    self.sequences.fill(Err(driver_failed(&reason)));
                    break;
                }
            }
        }
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

/// Why nothing came of a row.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Row(RowFault),
    /// The driver drew nothing: a logit is not finite.
    NotDrawn,
    /// The driver drew what the token mask or the vocabulary forbids.
    DrawnWrongly(u32),
}

impl From<RowFault> for Fault {
    fn from(fault: RowFault) -> Self {
        Self::Row(fault)
    }
}

fn row_fault(row: usize, fault: Fault) -> Error {
    let bad = |message: String, token: u32| {
        let values = [("row", row as u64), ("token", u64::from(token))];
        Error::with_values(ErrorCode::BadLogits, message, &values)
    };
    match fault {
        Fault::Row(fault) => row_error(row, fault),
        Fault::NotDrawn => bad(
            format!(
                "a logit of row {row} is not finite; try again, and check the weights if it stays"
            ),
            NOT_FINITE,
        ),
        Fault::DrawnWrongly(token) => bad(
            format!(
                "the driver drew token {token} from row {row}, which may not be drawn there; mend the driver"
            ),
            token,
        ),
    }
}

pub(super) fn row_error(row: usize, fault: RowFault) -> Error {
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
