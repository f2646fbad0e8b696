//! What is drawn from the logits of a batch: the part of a step that needs neither the engine nor its lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Capabilities;
use super::answer::{AnswerReader, AnsweredRow, DriverAnswer, NOT_FINITE, row_error};
use super::late::LateMask;
use super::layout::Field;
use super::view::{ArenaView, RowView};
use crate::brle;
use crate::errors::{Error, ErrorCode};
use crate::ids::BatchId;
use crate::sampling::{Probe, Reading, RowFault, Scratch, read_row, sample_many};

/// The draws of a batch. They are read from its arena, so that a driver that draws on its device sees the same.
#[derive(Clone, Debug)]
pub struct SampleJobs {
    arena: Arc<[u32]>,
    vocab_size: u32,
    /// Values of a hidden state.
    n_embedded: u32,
    /// What comes of rows besides draws, in their order.
    pub(super) reads: Vec<RowReads>,
}

/// What comes of a row besides what is drawn from it. Few rows have any of it.
#[derive(Clone, Debug)]
pub(crate) struct RowReads {
    /// Which row of the batch it is.
    pub(crate) row: u32,
    pub(crate) probes: Option<Arc<[Probe]>>,
    /// It was planned without its token mask: where that has not come, the row is kept.
    pub(crate) awaits_mask: bool,
}

/// What came of the draws of a batch. The tokens of all rows lie in one array, so that a batch of one row a sequence
/// costs no more allocations than one of one sequence.
#[derive(Clone, Debug)]
pub struct Sampled {
    pub(crate) batch: BatchId,
    /// Where the rows of each sequence end.
    sequences: Vec<u32>,
    /// Where the tokens of each row end: those that were drawn from it lie behind those of the row before.
    rows: Vec<u32>,
    tokens: Vec<u32>,
    /// Why sequences failed, by their index. Few do, so that what the others cost is two words each.
    failed: BTreeMap<usize, Error>,
    /// What was read of rows that have probes, by their index.
    readings: BTreeMap<usize, Arc<[Reading]>>,
    /// The rows that are kept until their masks come, by their index.
    kept: BTreeMap<usize, Arc<[f32]>>,
}

/// What came of the rows of one sequence.
#[derive(Clone, Copy, Debug)]
pub struct SequenceRows<'a> {
    sampled: &'a Sampled,
    /// Which rows of the batch they are.
    rows: (usize, usize),
}

/// What came of one row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RowResult<'a> {
    /// The tokens that were drawn from it, one for each draw, in order.
    pub tokens: &'a [u32],
    /// What its probes read, in their order.
    pub readings: &'a [Reading],
    /// The row, float32 `[V]`, where it waits for its mask.
    pub kept: Option<&'a Arc<[f32]>>,
}

/// A driver could not run a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverFailure {
    /// For people.
    pub message: String,
}

impl SampleJobs {
    /// The draws that an arena of an [`ArenaBuilder`](super::ArenaBuilder) asks for, and what else is read of its rows.
    pub(crate) const fn new(
        arena: Arc<[u32]>,
        driver: &Capabilities,
        reads: Vec<RowReads>,
    ) -> Self {
        Self {
            arena,
            vocab_size: driver.vocab_size,
            n_embedded: driver.embeddings,
            reads,
        }
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

    /// Draws from the rows that the driver answered with, or takes what it drew, and evaluates probes. `masks` are
    /// those that came late, in the order of their rows; a late row without one is kept. `failures` names sequences of
    /// the batch that the driver could not compute, by index, with a reason each.
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
            failed: BTreeMap::new(),
            readings: BTreeMap::new(),
            kept: BTreeMap::new(),
        };
        let mut reader = AnswerReader::new(answer, &view, self.vocab_size as usize);
        let (mut masks, mut reads) = (masks, &self.reads[..]);
        let (mut scratch, mut faults) = (Scratch::default(), Vec::new());
        for (index, row) in view.rows().enumerate() {
            let late = next_if(&mut masks, |late| late.row as usize == index);
            let reads = next_if(&mut reads, |reads| reads.row as usize == index);
            let drawn = match reader.next(&row) {
                Some(answered) => {
                    let row = (index, &row);
                    self.conclude_row(&mut sampled, answered, row, (late, reads), &mut scratch)
                }
                None => Err(self.shape_error(answer)),
            };
            // A row that failed ends too: what is read of those behind it is found by their index.
            sampled.end_row(drawn.is_ok());
            faults.extend(drawn.err().map(|error| (index, error)));
        }
        sampled.divide(&view, faults);
        sampled.fail(failures);
        sampled
    }

    /// Draws from one row, or takes what was drawn from it; reads it, and keeps it where its mask has not come.
    fn conclude_row(
        &self,
        sampled: &mut Sampled,
        answered: AnsweredRow<'_>,
        (index, row): (usize, &RowView<'_>),
        (late, reads): (Option<&LateMask>, Option<&RowReads>),
        scratch: &mut Scratch,
    ) -> std::result::Result<(), Error> {
        self.take_row(sampled, answered, row, late, scratch)
            .map_err(|fault| row_fault(index, fault))?;
        let Some(reads) = reads else {
            return Ok(());
        };
        let logits = answered.logits.unwrap_or_default();
        if reads.awaits_mask && late.is_none() {
            sampled.kept.insert(index, Arc::from(logits));
        }
        if let Some(probes) = &reads.probes {
            let read = self.read(row, logits, probes, scratch);
            sampled.readings.insert(index, read);
        }
        Ok(())
    }

    /// Draws from one row, or takes what was drawn from it.
    fn take_row(
        &self,
        sampled: &mut Sampled,
        answered: AnsweredRow<'_>,
        row: &RowView<'_>,
        late: Option<&LateMask>,
        scratch: &mut Scratch,
    ) -> std::result::Result<(), DrawFault> {
        match (answered.tokens, answered.logits, late) {
            (_, Some(logits), Some(late)) => {
                let row = RowView {
                    mask: &late.mask,
                    n_draws: late.n_draws,
                    ..*row
                };
                Ok(sampled.draw(logits, &row, scratch)?)
            }
            (None, Some(logits), None) => Ok(sampled.draw(logits, row, scratch)?),
            (Some(tokens), logits, _) => {
                match brle::first_forbidden(row.mask, self.vocab_size, tokens) {
                    Some(NOT_FINITE) => return Err(DrawFault::NotDrawn),
                    Some(token) => return Err(DrawFault::DrawnWrongly(token)),
                    None => {}
                }
                if let Some(logits) = logits {
                    // The row is checked, and nothing is drawn from it.
                    let row = RowView { n_draws: 0, ..*row };
                    sampled.draw(logits, &row, scratch)?;
                }
                sampled.tokens.extend_from_slice(tokens);
                Ok(())
            }
            (None, None, _) => Err(DrawFault::NotDrawn),
        }
    }

    /// What probes read of a row that was checked.
    fn read(
        &self,
        row: &RowView<'_>,
        values: &[f32],
        probes: &[Probe],
        scratch: &mut Scratch,
    ) -> Arc<[Reading]> {
        if row.embeds {
            let embedding = values.get(..self.n_embedded as usize);
            read_row(&[], embedding.unwrap_or_default(), probes, scratch)
        } else {
            read_row(values, &[], probes, scratch)
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
    /// Draws from one row.
    fn draw(
        &mut self,
        logits: &[f32],
        row: &RowView<'_>,
        scratch: &mut Scratch,
    ) -> std::result::Result<(), RowFault> {
        sample_many(
            logits,
            &row.params,
            row.mask,
            row.key,
            row.n_draws,
            scratch,
            &mut self.tokens,
        )
    }

    /// The tokens of a row end here; one that failed has none, since they would be those of the next row.
    fn end_row(&mut self, succeeded: bool) {
        if !succeeded {
            let end = self.rows.last().map_or(0, |&end| end as usize);
            self.tokens.truncate(end);
        }
        self.rows.push(self.tokens.len() as u32);
    }

    /// The rows were answered: notes which sequence has which of them, and fails those of which rows failed, each with
    /// the first of their errors.
    fn divide(&mut self, view: &ArenaView<'_>, faults: Vec<(usize, Error)>) {
        let tokens = view.field(Field::RowToken);
        let mut n_taken = 0;
        for &end in &view.field(Field::QoIndptr)[1..] {
            let own = tokens[n_taken..].iter().take_while(|&&token| token < end);
            n_taken += own.count();
            self.sequences.push(n_taken as u32);
        }
        for (row, error) in faults {
            let ends = &self.sequences;
            let sequence_idx = ends.partition_point(|&end| end as usize <= row);
            self.failed.entry(sequence_idx).or_insert(error);
        }
    }

    /// Fails the sequences that the driver names.
    fn fail(&mut self, failures: &[(u32, String)]) {
        let n_sequences = self.sequences.len();
        for (index, reason) in failures {
            let index = *index as usize;
            if index >= n_sequences {
                let reason = format!("it named sequence {index} of a batch of {n_sequences}");
                let all = (0..n_sequences).map(|index| (index, driver_failed(&reason)));
                self.failed = all.collect();
                break;
            }
            self.failed.insert(index, driver_failed(reason));
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
        match self.failed.get(&sequence_idx) {
            Some(error) => Err(error),
            None => Ok(SequenceRows {
                sampled: self,
                rows: entry(&self.sequences, sequence_idx),
            }),
        }
    }

    /// The token of a sequence that has one row, from which one was drawn, where nothing else came of the batch.
    pub(crate) fn token_of(&self, sequence_idx: usize) -> Option<u32> {
        let (start, end) = entry(&self.sequences, sequence_idx);
        let is_plain = self.failed.is_empty() && self.readings.is_empty() && self.kept.is_empty();
        if !is_plain || end != start + 1 {
            return None;
        }
        let (first, behind) = entry(&self.rows, start);
        match self.tokens.get(first..behind) {
            Some(&[token]) => Some(token),
            _ => None,
        }
    }

    /// What came of a row.
    fn row(&self, index: usize) -> RowResult<'_> {
        let (start, end) = entry(&self.rows, index);
        let tokens = self.tokens.get(start..end).unwrap_or_default();
        let readings = self.readings.get(&index).map(|readings| &**readings);
        RowResult {
            tokens,
            readings: readings.unwrap_or_default(),
            kept: self.kept.get(&index),
        }
    }
}

impl<'a> SequenceRows<'a> {
    /// What came of each row.
    pub fn outputs(&self) -> impl Iterator<Item = RowResult<'a>> + use<'a> {
        let (sampled, (start, end)) = (self.sampled, self.rows);
        (start..end).map(move |index| sampled.row(index))
    }
}

/// Takes the first of a list, where it is the one that is looked for.
fn next_if<'a, T>(list: &mut &'a [T], is_it: impl FnOnce(&T) -> bool) -> Option<&'a T> {
    let (first, rest) = list.split_first().filter(|(first, _)| is_it(first))?;
    *list = rest;
    Some(first)
}

/// From where to where the entry at an index reaches, of which the ends are given; nowhere where there is none.
fn entry(ends: &[u32], index: usize) -> (usize, usize) {
    let before = index.checked_sub(1).and_then(|before| ends.get(before));
    let start = before.map_or(0, |&end| end as usize);
    let end = ends.get(index).map_or(start, |&end| end as usize);
    (start, end)
}

fn driver_failed(reason: &str) -> Error {
    Error::new(
        ErrorCode::DriverFailed,
        format!("the driver failed this pass: {reason}; try it again"),
    )
}

/// Why nothing came of a row.
#[derive(Clone, Copy, Debug)]
enum DrawFault {
    Row(RowFault),
    /// The driver drew nothing: a logit is not finite.
    NotDrawn,
    /// The driver drew what the token mask or the vocabulary forbids.
    DrawnWrongly(u32),
}

impl From<RowFault> for DrawFault {
    fn from(fault: RowFault) -> Self {
        Self::Row(fault)
    }
}

fn row_fault(row: usize, fault: DrawFault) -> Error {
    let bad = |message: String, token: u32| {
        let values = [("row", row as u64), ("token", u64::from(token))];
        Error::with_values(ErrorCode::BadLogits, message, &values)
    };
    match fault {
        DrawFault::Row(fault) => row_error(row, fault),
        DrawFault::NotDrawn => bad(
            format!(
                "a logit of row {row} is not finite; try again, and check the weights if it stays"
            ),
            NOT_FINITE,
        ),
        DrawFault::DrawnWrongly(token) => bad(
            format!(
                "the driver drew token {token} from row {row}, which may not be drawn there; mend the driver"
            ),
            token,
        ),
    }
}
