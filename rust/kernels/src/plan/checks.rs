//! The check of each operation of a plan, made once, when the plan is sealed.

use super::buffer::{Buffer, Rows};
use super::op::{Op, RawOp};
use super::options::Options;
use super::weights::Weights;
use crate::error::{Error, Result};

/// The index that stands for "none" at the C boundary.
const NONE: u32 = u32::MAX;

/// What an operation expects of a buffer.
#[derive(Clone, Copy)]
struct Expected {
    width: usize,
    rounded: bool,
}

/// Floats of that width.
const fn float(width: usize) -> Expected {
    Expected {
        width,
        rounded: false,
    }
}

/// Rounded elements of that width.
const fn rounded(width: usize) -> Expected {
    Expected {
        width,
        rounded: true,
    }
}

/// What the operations of a plan are checked against.
pub(super) struct OpChecks<'a> {
    pub(super) options: &'a Options,
    pub(super) weights: &'a Weights,
    pub(super) buffers: &'a [Buffer],
    /// Whether the plan has memory of keys and values.
    pub(super) has_kv: bool,
}

impl OpChecks<'_> {
    /// Checks an operation: buffers, widths, weights, tables.
    pub(super) fn check(&self, raw: &RawOp) -> Result<Op> {
        if !raw.value.is_finite() {
            return Err(Error::argument(format!("its value is {}", raw.value)));
        }
        match raw.kind {
            1 => self.check_embed(raw),
            2 => self.check_norm(raw),
            3 | 4 => self.check_linear(raw),
            5 => self.check_rotary(raw),
            6 => self.check_attention(raw),
            7 => self.check_swiglu(raw),
            8 => self.check_rows(raw),
            9 => self.check_logits(raw),
            10 => self.check_vector(raw),
            11 => self.check_lora(raw),
            other => Err(Error::argument(format!("kind {other} is unknown"))),
        }
    }

    /// Rows of the embedding table.
    fn check_embed(&self, raw: &RawOp) -> Result<Op> {
        let Some(table) = self.weights.table else {
            return Err(Error::argument("the plan has no embedding table"));
        };
        let dst = self.expect(raw.dst, float(table.width))?;
        self.expect_rows(dst, Rows::Tokens)?;
        Ok(Op::Embed {
            dst,
            scale: raw.value,
        })
    }

    /// A norm of rows.
    fn check_norm(&self, raw: &RawOp) -> Result<Op> {
        let weight = self.vector(raw.weight)?;
        let width = self.weights.vectors[weight].len();
        let (src, dst) = (
            self.expect(raw.src, float(width))?,
            self.expect(raw.dst, rounded(width))?,
        );
        self.expect_same_rows(src, dst)?;
        Ok(Op::RmsNorm {
            src,
            dst,
            weight,
            epsilon: raw.value,
        })
    }

    /// A linear, which may add to what is there.
    fn check_linear(&self, raw: &RawOp) -> Result<Op> {
        let weight = self.linear_index(raw.weight)?;
        let linear = &self.weights.linears[weight];
        let src = self.expect(raw.src, rounded(linear.n_inputs()))?;
        let dst = self.expect(raw.dst, float(linear.n_outputs()))?;
        self.expect_same_rows(src, dst)?;
        Ok(Op::Linear {
            src,
            dst,
            weight,
            accumulate: raw.kind == 4,
        })
    }

    /// Rotation of queries and keys, and where keys and values go.
    fn check_rotary(&self, raw: &RawOp) -> Result<Op> {
        let heads = self.options.heads;
        self.expect_attention(raw.layer)?;
        if self.weights.rotary.is_none() {
            return Err(Error::argument("the plan has no rotary tables"));
        }
        let qkv = self.expect(raw.dst, float(heads.qkv_width()))?;
        self.expect_rows(qkv, Rows::Tokens)?;
        let norms = match (raw.weight, raw.weight_2) {
            (NONE, NONE) => None,
            (q, k) => Some((self.vector(q)?, self.vector(k)?)),
        };
        if norms.is_some_and(|(q, k)| {
            self.weights.vectors[q].len() != heads.head_dim
                || self.weights.vectors[k].len() != heads.head_dim
        }) {
            return Err(Error::argument(format!(
                "a head's norm has not head_dim = {} elements",
                heads.head_dim
            )));
        }
        Ok(Op::RotaryWrite {
            qkv,
            layer: raw.layer as usize,
            norms,
            epsilon: raw.value,
        })
    }

    /// Attention over the pages of a layer.
    fn check_attention(&self, raw: &RawOp) -> Result<Op> {
        let heads = self.options.heads;
        self.expect_attention(raw.layer)?;
        let src = self.expect(raw.src, float(heads.qkv_width()))?;
        let dst = self.expect(raw.dst, rounded(heads.q_width()))?;
        self.expect_rows(src, Rows::Tokens)?;
        self.expect_rows(dst, Rows::Tokens)?;
        if raw.value <= 0.0 {
            return Err(Error::argument(format!(
                "its score factor is {}; it must be above 0",
                raw.value
            )));
        }
        Ok(Op::Attention {
            src,
            dst,
            layer: raw.layer as usize,
            scale: raw.value,
        })
    }

    /// A gate of two halves.
    fn check_swiglu(&self, raw: &RawOp) -> Result<Op> {
        let dst_width = self.buffer(raw.dst)?.width;
        let (src, dst) = (
            self.expect(raw.src, float(2 * dst_width))?,
            self.expect(raw.dst, rounded(dst_width))?,
        );
        self.expect_same_rows(src, dst)?;
        Ok(Op::SwiGlu { src, dst })
    }

    /// The choice of rows whose logits are wanted.
    fn check_rows(&self, raw: &RawOp) -> Result<Op> {
        let Buffer { width, rounded, .. } = *self.buffer(raw.src)?;
        let kind = Expected { width, rounded };
        let (src, dst) = (self.expect(raw.src, kind)?, self.expect(raw.dst, kind)?);
        self.expect_rows(src, Rows::Tokens)?;
        self.expect_rows(dst, Rows::Logits)?;
        Ok(Op::SelectRows { src, dst })
    }

    /// The linear to the logits.
    fn check_logits(&self, raw: &RawOp) -> Result<Op> {
        let weight = self.linear_index(raw.weight)?;
        let linear = &self.weights.linears[weight];
        if linear.n_outputs() != self.options.limits.vocab_size {
            return Err(Error::argument(format!(
                "its linear has {} outputs for a vocabulary of {}",
                linear.n_outputs(),
                self.options.limits.vocab_size
            )));
        }
        let src = self.expect(raw.src, rounded(linear.n_inputs()))?;
        self.expect_rows(src, Rows::Logits)?;
        Ok(Op::Logits { src, weight })
    }

    /// The sum with a vector.
    fn check_vector(&self, raw: &RawOp) -> Result<Op> {
        let weight = self.vector(raw.weight)?;
        let dst = self.expect(raw.dst, float(self.weights.vectors[weight].len()))?;
        Ok(Op::AddVector { dst, weight })
    }

    /// What adapters add to some columns of a linear.
    fn check_lora(&self, raw: &RawOp) -> Result<Op> {
        let src_width = self.buffer(raw.src)?.width;
        let dst_width = self.buffer(raw.dst)?.width;
        let src = self.expect(raw.src, rounded(src_width))?;
        let dst = self.expect(raw.dst, float(dst_width))?;
        self.expect_same_rows(src, dst)?;
        let (column, n_outputs) = (raw.weight as usize, raw.weight_2 as usize);
        if n_outputs == 0 || column + n_outputs > dst_width {
            return Err(Error::argument(format!(
                "its columns {column} to {} are not those of a buffer of {dst_width}",
                column + n_outputs
            )));
        }
        Ok(Op::Lora {
            src,
            dst,
            slot: raw.layer,
            column,
            n_outputs,
        })
    }

    fn vector(&self, idx: u32) -> Result<usize> {
        index(idx, self.weights.vectors.len(), "vector")
    }

    fn linear_index(&self, idx: u32) -> Result<usize> {
        index(idx, self.weights.linears.len(), "linear")
    }

    fn expect_attention(&self, layer: u32) -> Result<()> {
        if !self.has_kv {
            return Err(Error::argument("the plan has no memory of keys and values"));
        }
        index(layer, self.options.kv.n_layers, "layer").map(|_| ())
    }

    fn buffer(&self, idx: u32) -> Result<&Buffer> {
        Ok(&self.buffers[index(idx, self.buffers.len(), "buffer")?])
    }

    fn expect(&self, idx: u32, expected: Expected) -> Result<usize> {
        let found = self.buffer(idx)?;
        if found.width == expected.width && found.rounded == expected.rounded {
            return Ok(idx as usize);
        }
        let kind = |rounded| if rounded { "rounded" } else { "f32" };
        Err(Error::argument(format!(
            "buffer {idx} is {} x {}, not {} x {}",
            found.width,
            kind(found.rounded),
            expected.width,
            kind(expected.rounded)
        )))
    }

    fn expect_rows(&self, idx: usize, rows: Rows) -> Result<()> {
        if self.buffers[idx].rows == rows {
            return Ok(());
        }
        Err(Error::argument(format!(
            "buffer {idx} has rows of {:?}, not of {rows:?}",
            self.buffers[idx].rows
        )))
    }

    fn expect_same_rows(&self, a: usize, b: usize) -> Result<()> {
        if a == b {
            return Err(Error::argument(format!("buffer {a} is read and written")));
        }
        self.expect_rows(b, self.buffers[a].rows)
    }
}

fn index(idx: u32, len: usize, what: &str) -> Result<usize> {
    if (idx as usize) < len {
        Ok(idx as usize)
    } else {
        Err(Error::argument(format!("{what} {idx} of {len}")))
    }
}
