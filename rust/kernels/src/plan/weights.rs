//! What a plan computes with: packed linears, vectors, the embedding table and the rotation angles.

use crate::element::Dtype;
use crate::error::{Error, Result};
use crate::ops::linear::{Linear, Part};

/// An embedding table in memory of the caller.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    pub(crate) bytes: &'static [u8],
    pub(crate) dtype: Dtype,
    pub(crate) width: usize,
}

/// Cosines and sines, `[positions][head_dim / 2]`.
pub(super) struct Rotary {
    pub(super) cos: Vec<f32>,
    pub(super) sin: Vec<f32>,
}

/// The weights of a model.
#[derive(Default)]
pub(super) struct Weights {
    pub(super) linears: Vec<Linear>,
    pub(super) vectors: Vec<Vec<f32>>,
    pub(super) table: Option<Table>,
    pub(super) rotary: Option<Rotary>,
}

impl Weights {
    /// Packs a linear; returns its index.
    pub(super) fn add_linear(
        &mut self,
        parts: &[Part<'_>],
        n_inputs: usize,
        dtype: Dtype,
    ) -> Result<u32> {
        self.linears.push(Linear::pack(parts, n_inputs, dtype)?);
        Ok(self.linears.len() as u32 - 1)
    }

    /// Copies a vector of weights, widened to f32; returns its index.
    pub(super) fn add_vector(&mut self, part: Part<'_>) -> Result<u32> {
        if part.bytes.len() != part.n_rows * part.dtype.n_bytes() {
            return Err(Error::argument(format!(
                "a vector of {} bytes has not {} elements",
                part.bytes.len(),
                part.n_rows
            )));
        }
        let elements = part
            .bytes
            .chunks_exact(part.dtype.n_bytes())
            .map(|bytes| match bytes {
                [low, high] => f32::from_bits(u32::from(u16::from_le_bytes([*low, *high])) << 16),
                bytes => f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            });
        self.vectors.push(elements.collect());
        Ok(self.vectors.len() as u32 - 1)
    }

    /// Sets the embedding table, a row of `width` elements for each token of the vocabulary.
    pub(super) fn set_table(&mut self, table: Table, vocab_size: usize) -> Result<()> {
        let needed = vocab_size
            .checked_mul(table.width)
            .and_then(|n| n.checked_mul(table.dtype.n_bytes()));
        if table.width == 0 || needed != Some(table.bytes.len()) {
            return Err(Error::argument(format!(
                "an embedding table of {} bytes has not {vocab_size} rows of {}",
                table.bytes.len(),
                table.width
            )));
        }
        self.table = Some(table);
        Ok(())
    }

    /// Sets the rotation angles of all positions, `needed` of each.
    pub(super) fn set_rotary(&mut self, cos: &[f32], sin: &[f32], needed: usize) -> Result<()> {
        if cos.len() != needed || sin.len() != needed {
            return Err(Error::argument(format!(
                "rotary tables of {} and {} elements, not {needed}",
                cos.len(),
                sin.len()
            )));
        }
        self.rotary = Some(Rotary {
            cos: cos.to_vec(),
            sin: sin.to_vec(),
        });
        Ok(())
    }
}
