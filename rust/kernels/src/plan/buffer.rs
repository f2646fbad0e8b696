//! Buffers of a plan: rows of numbers between two operations.

use super::options::Options;
use crate::element::Dtype;
use crate::error::{Error, Result};
use crate::memory::Words;
use crate::ops::linear::n_words;

/// Widest row of a buffer.
const MAX_WIDTH: u32 = 1 << 22;

/// `pie_k_buffer`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawBuffer {
    /// Elements of a row.
    pub width: u32,
    /// 0: f32; 1: the plan's dtype, as linears take it.
    pub kind: u32,
    /// 0: a row for each token; 1: a row for each row of logits.
    pub rows: u32,
}

/// How many rows the buffers of a step have.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(super) n_tokens: usize,
    pub(super) n_rows: usize,
}

/// What the rows of a buffer stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    Tokens,
    Logits,
}

/// Rows of numbers between two operations.
pub(super) struct Buffer {
    pub(super) words: Words,
    pub(super) width: usize,
    /// Elements are of the plan's dtype, else f32.
    pub(super) rounded: bool,
    pub(super) rows: Rows,
}

impl Buffer {
    pub(super) fn new(idx: usize, raw: &RawBuffer, options: &Options) -> Result<Self> {
        let (rounded, rows) = match (raw.kind, raw.rows) {
            (kind @ 0..=1, 0) => (kind == 1, Rows::Tokens),
            (kind @ 0..=1, 1) => (kind == 1, Rows::Logits),
            _ => {
                return Err(Error::argument(format!(
                    "buffer {idx}: kind {} or rows {} is unknown",
                    raw.kind, raw.rows
                )));
            }
        };
        let odd = rounded && options.dtype == Dtype::Bf16 && !raw.width.is_multiple_of(2);
        if raw.width == 0 || raw.width > MAX_WIDTH || odd {
            return Err(Error::argument(format!(
                "buffer {idx}: width {} is not 1 to {MAX_WIDTH}, or odd in bfloat16",
                raw.width
            )));
        }
        let width = raw.width as usize;
        let row_words = if rounded {
            n_words(width, options.dtype)
        } else {
            width
        };
        Ok(Self {
            words: Words::zeroed(options.limits.max_tokens * row_words),
            width,
            rounded,
            rows,
        })
    }

    /// Rows in use in a step.
    pub(super) fn n_rows(&self, counts: Counts) -> usize {
        match self.rows {
            Rows::Tokens => counts.n_tokens,
            Rows::Logits => counts.n_rows,
        }
    }

    /// The first elements, widened.
    pub(super) fn read(&self, dtype: Dtype, out: &mut [f32]) {
        self.read_from(0, dtype, out);
    }

    /// The elements of a row, widened, and zeros behind them.
    pub(super) fn read_row(&self, dtype: Dtype, row: usize, out: &mut [f32]) -> Result<()> {
        let Some((values, behind)) = out.split_at_mut_checked(self.width) else {
            return Err(Error::argument(format!(
                "a row of {} logits has no room for a hidden state of {}",
                out.len(),
                self.width
            )));
        };
        self.read_from(row * self.width, dtype, values);
        behind.fill(0.0);
        Ok(())
    }

    fn read_from(&self, first: usize, dtype: Dtype, out: &mut [f32]) {
        if self.rounded && dtype == Dtype::Bf16 {
            let halves = &self.words.view::<u16>()[first..];
            for (out, &half) in out.iter_mut().zip(halves) {
                *out = f32::from_bits(u32::from(half) << 16);
            }
        } else {
            out.copy_from_slice(&self.words.view()[first..first + out.len()]);
        }
    }
}
