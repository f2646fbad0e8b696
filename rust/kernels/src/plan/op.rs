//! Buffers and operations of a plan, as the caller gives them and as they are once checked.

use super::step::Counts;
use super::{Options, Plan};
use crate::element::Dtype;
use crate::error::{Error, Result};
use crate::memory::Words;
use crate::ops::linear::n_words;

/// The index that stands for "none" at the C boundary.
const NONE: u32 = u32::MAX;

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

/// `pie_k_op`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawOp {
    /// Which operation: see `Op`.
    pub kind: u32,
    /// Buffer read.
    pub src: u32,
    /// Buffer written.
    pub dst: u32,
    /// Layer of the pool.
    pub layer: u32,
    /// Index of a linear or vector.
    pub weight: u32,
    /// Index of a second vector.
    pub weight_2: u32,
    /// Epsilon or scale.
    pub value: f32,
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

/// A checked operation; the numbers are those of `RawOp::kind`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    /// 1: rows of the embedding table times `value`, to `dst` (f32).
    Embed { dst: usize, scale: f32 },
    /// 2: `src` (f32) normalised, times the vector `weight`, to `dst` (rounded).
    RmsNorm {
        src: usize,
        dst: usize,
        weight: usize,
        epsilon: f32,
    },
    /// 3: `src` (rounded) through the linear `weight` to `dst` (f32); 4: added to `dst`.
    Linear {
        src: usize,
        dst: usize,
        weight: usize,
        accumulate: bool,
    },
    /// 5: queries and keys of `dst` (f32) normalised by `weight` and `weight_2`, if given, and rotated; keys and values
    /// stored.
    RotaryWrite {
        qkv: usize,
        layer: usize,
        norms: Option<(usize, usize)>,
        epsilon: f32,
    },
    /// 6: attention of the queries in `src` (f32) with score factor `value`, to `dst` (rounded).
    Attention {
        src: usize,
        dst: usize,
        layer: usize,
        scale: f32,
    },
    /// 7: silu of the first half of `src` (f32) times its second half, to `dst` (rounded).
    SwiGlu { src: usize, dst: usize },
    /// 8: the rows of `src` whose logits are wanted, to `dst` of the same kind.
    SelectRows { src: usize, dst: usize },
    /// 9: `src` (rounded) through the linear `weight` to the caller's logits.
    Logits { src: usize, weight: usize },
    /// 10: the vector `weight` added to each row of `dst` (f32).
    AddVector { dst: usize, weight: usize },
}

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

impl Plan {
    /// Checks an operation against the plan: buffers, widths, weights, tables.
    pub(super) fn check_op(&self, buffers: &[Buffer], raw: &RawOp) -> Result<Op> {
        if !raw.value.is_finite() {
            return Err(Error::argument(format!("its value is {}", raw.value)));
        }
        match raw.kind {
            1 => self.check_embed(buffers, raw),
            2 => self.check_norm(buffers, raw),
            3 | 4 => self.check_linear(buffers, raw),
            5 => self.check_rotary(buffers, raw),
            6 => self.check_attention(buffers, raw),
            7 => Self::check_swiglu(buffers, raw),
            8 => Self::check_rows(buffers, raw),
            9 => self.check_logits(buffers, raw),
            10 => self.check_vector(buffers, raw),
            other => Err(Error::argument(format!("kind {other} is unknown"))),
        }
    }

    /// Rows of the embedding table.
    fn check_embed(&self, buffers: &[Buffer], raw: &RawOp) -> Result<Op> {
        let Some(table) = self.table else {
            return Err(Error::argument("the plan has no embedding table"));
        };
        let dst = expect(buffers, raw.dst, float(table.width))?;
        expect_rows(buffers, dst, Rows::Tokens)?;
        Ok(Op::Embed {
            dst,
            scale: raw.value,
        })
    }

    /// A norm of rows.
    fn check_norm(&self, buffers: &[Buffer], raw: &RawOp) -> Result<Op> {
        let weight = self.vector(raw.weight)?;
        let width = self.vectors[weight].len();
        let (src, dst) = (
            expect(buffers, raw.src, float(width))?,
            expect(buffers, raw.dst, rounded(width))?,
        );
        expect_same_rows(buffers, src, dst)?;
        Ok(Op::RmsNorm {
            src,
            dst,
            weight,
            epsilon: raw.value,
        })
    }

    /// A linear, which may add to what is there.
    fn check_linear(&self, buffers: &[Buffer], raw: &RawOp) -> Result<Op> {
        let weight = self.linear_index(raw.weight)?;
        let linear = &self.linears[weight];
        let src = expect(buffers, raw.src, rounded(linear.n_inputs()))?;
        let dst = expect(buffers, raw.dst, float(linear.n_outputs()))?;
        expect_same_rows(buffers, src, dst)?;
        Ok(Op::Linear {
            src,
            dst,
            weight,
            accumulate: raw.kind == 4,
        })
    }

    /// Rotation of queries and keys, and where keys and values go.
    fn check_rotary(&self, buffers: &[Buffer], raw: &RawOp) -> Result<Op> {
        let heads = self.options.heads;
        self.expect_attention(raw.layer)?;
        if self.rotary.is_none() {
            return Err(Error::argument("the plan has no rotary tables"));
        }
        let qkv = expect(buffers, raw.dst, float(heads.qkv_width()))?;
        expect_rows(buffers, qkv, Rows::Tokens)?;
        let norms = match (raw.weight, raw.weight_2) {
            (NONE, NONE) => None,
            (q, k) => Some((self.vector(q)?, self.vector(k)?)),
        };
        if norms.is_some_and(|(q, k)| {
            self.vectors[q].len() != heads.head_dim || self.vectors[k].len() != heads.head_dim
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
    fn check_attention(&self, buffers: &[Buffer], raw: &RawOp) -> Result<Op> {
        let heads = self.options.heads;
        self.expect_attention(raw.layer)?;
        let src = expect(buffers, raw.src, float(heads.qkv_width()))?;
        let dst = expect(buffers, raw.dst, rounded(heads.q_width()))?;
        expect_rows(buffers, src, Rows::Tokens)?;
        expect_rows(buffers, dst, Rows::Tokens)?;
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
    fn check_swiglu(buffers: &[Buffer], raw: &RawOp) -> Result<Op> {
        let dst_width = buffer(buffers, raw.dst)?.width;
        let (src, dst) = (
            expect(buffers, raw.src, float(2 * dst_width))?,
            expect(buffers, raw.dst, rounded(dst_width))?,
        );
        expect_same_rows(buffers, src, dst)?;
        Ok(Op::SwiGlu { src, dst })
    }

    /// The choice of rows whose logits are wanted.
    fn check_rows(buffers: &[Buffer], raw: &RawOp) -> Result<Op> {
        let Buffer { width, rounded, .. } = *buffer(buffers, raw.src)?;
        let kind = Expected { width, rounded };
        let (src, dst) = (
            expect(buffers, raw.src, kind)?,
            expect(buffers, raw.dst, kind)?,
        );
        expect_rows(buffers, src, Rows::Tokens)?;
        expect_rows(buffers, dst, Rows::Logits)?;
        Ok(Op::SelectRows { src, dst })
    }

    /// The linear to the logits.
    fn check_logits(&self, buffers: &[Buffer], raw: &RawOp) -> Result<Op> {
        let weight = self.linear_index(raw.weight)?;
        let linear = &self.linears[weight];
        if linear.n_outputs() != self.options.limits.vocab_size {
            return Err(Error::argument(format!(
                "its linear has {} outputs for a vocabulary of {}",
                linear.n_outputs(),
                self.options.limits.vocab_size
            )));
        }
        let src = expect(buffers, raw.src, rounded(linear.n_inputs()))?;
        expect_rows(buffers, src, Rows::Logits)?;
        Ok(Op::Logits { src, weight })
    }

    /// The sum with a vector.
    fn check_vector(&self, buffers: &[Buffer], raw: &RawOp) -> Result<Op> {
        let weight = self.vector(raw.weight)?;
        let dst = expect(buffers, raw.dst, float(self.vectors[weight].len()))?;
        Ok(Op::AddVector { dst, weight })
    }

    fn vector(&self, idx: u32) -> Result<usize> {
        index(idx, self.vectors.len(), "vector")
    }

    fn linear_index(&self, idx: u32) -> Result<usize> {
        index(idx, self.linears.len(), "linear")
    }

    fn expect_attention(&self, layer: u32) -> Result<()> {
        if self.kv.is_none() {
            return Err(Error::argument("the plan has no memory of keys and values"));
        }
        index(layer, self.options.kv.n_layers, "layer").map(|_| ())
    }
}

fn index(idx: u32, len: usize, what: &str) -> Result<usize> {
    if (idx as usize) < len {
        Ok(idx as usize)
    } else {
        Err(Error::argument(format!("{what} {idx} of {len}")))
    }
}

fn buffer(buffers: &[Buffer], idx: u32) -> Result<&Buffer> {
    Ok(&buffers[index(idx, buffers.len(), "buffer")?])
}

fn expect(buffers: &[Buffer], idx: u32, expected: Expected) -> Result<usize> {
    let found = buffer(buffers, idx)?;
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

fn expect_rows(buffers: &[Buffer], idx: usize, rows: Rows) -> Result<()> {
    if buffers[idx].rows == rows {
        return Ok(());
    }
    Err(Error::argument(format!(
        "buffer {idx} has rows of {:?}, not of {rows:?}",
        buffers[idx].rows
    )))
}

fn expect_same_rows(buffers: &[Buffer], a: usize, b: usize) -> Result<()> {
    if a == b {
        return Err(Error::argument(format!("buffer {a} is read and written")));
    }
    expect_rows(buffers, b, buffers[a].rows)
}
