//! What a driver answers a batch with.

use super::layout::Field;
use super::view::{ArenaView, RowView};
use crate::errors::{Error, ErrorCode};
use crate::sampling::RowFault;

/// In place of a token: a logit of the row is not finite, so nothing was drawn.
pub const NOT_FINITE: u32 = u32::MAX;

/// The rows of a batch, or what the device drew from them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DriverAnswer<'a> {
    /// Every row: float32 `[R, V]`, C-contiguous.
    Logits(&'a [f32]),
    /// What was drawn, and the rows that are wanted themselves.
    Drawn {
        /// Of one row after the other as many tokens as `row_draws` says; [`NOT_FINITE`] where a logit of the row is
        /// not finite.
        tokens: &'a [u32],
        /// Of the rows whose `row_keep` is not 0, in their order: float32 `[K, V]`, C-contiguous.
        logits: &'a [f32],
    },
}

/// What an answer says of one row.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnsweredRow<'a> {
    /// The tokens that the driver drew; none where it draws nothing.
    pub(super) tokens: Option<&'a [u32]>,
    /// The row, where it is in the answer.
    pub(super) logits: Option<&'a [f32]>,
}

/// An answer that is read row by row.
#[derive(Debug)]
pub(super) struct AnswerReader<'a> {
    answer: DriverAnswer<'a>,
    width: usize,
    fits: bool,
    n_tokens: usize,
    n_rows: usize,
}

impl<'a> AnswerReader<'a> {
    pub(super) fn new(answer: DriverAnswer<'a>, view: &ArenaView<'_>, width: usize) -> Self {
        let fits = match answer {
            DriverAnswer::Logits(logits) => {
                logits.len() <= view.n_rows() * width && logits.len().is_multiple_of(width)
            }
            DriverAnswer::Drawn { tokens, logits } => {
                let n_tokens: u64 = view
                    .field(Field::RowDraws)
                    .iter()
                    .map(|&n| u64::from(n))
                    .sum();
                let kept = view.field(Field::RowKeep).iter().filter(|&&keep| keep != 0);
                tokens.len() as u64 == n_tokens && logits.len() == kept.count() * width
            }
        };
        Self {
            answer,
            width,
            fits,
            n_tokens: 0,
            n_rows: 0,
        }
    }

    /// What it says of the next row; none where rows cannot be told apart, or this one is missing.
    pub(super) fn next(&mut self, row: &RowView<'_>) -> Option<AnsweredRow<'a>> {
        if !self.fits {
            return None;
        }
        match self.answer {
            DriverAnswer::Logits(logits) => Some(AnsweredRow {
                tokens: None,
                logits: Some(self.row(logits)?),
            }),
            DriverAnswer::Drawn { tokens, logits } => {
                let first = self.n_tokens;
                self.n_tokens += row.n_draws as usize;
                Some(AnsweredRow {
                    tokens: Some(tokens.get(first..self.n_tokens)?),
                    logits: match row.keep {
                        true => Some(self.row(logits)?),
                        false => None,
                    },
                })
            }
        }
    }

    fn row(&mut self, logits: &'a [f32]) -> Option<&'a [f32]> {
        let first = self.n_rows * self.width;
        self.n_rows += 1;
        logits.get(first..first + self.width)
    }
}

/// Why nothing was drawn from a row.
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
