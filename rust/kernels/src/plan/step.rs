//! The interpreter: one batch through all operations of a plan.

use super::adapters::Adapted;
use super::buffer::{Buffer, Counts, Rows};
use super::op::Op;
use super::options::Options;
use super::weights::Weights;
use crate::arena::{Batch, Slot};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::kv::KvMemory;
use crate::memory::Words;
use crate::ops::attention::Attention;
use crate::ops::linear::{Outputs, n_words};
use crate::ops::lora;
use crate::ops::rotary::{HeadNorms, RotaryWrite, Token};
use crate::ops::rows::{AddVector, Embed, RmsNorm, SwiGlu};
use crate::pool::Pool;

/// A batch on its way through a plan.
pub(super) struct Step<'a> {
    pub(super) options: &'a Options,
    pub(super) pool: &'a mut Pool,
    pub(super) weights: &'a Weights,
    pub(super) kv: Option<&'a KvMemory>,
    pub(super) buffers: &'a mut [Buffer],
    pub(super) scratch: &'a mut Words,
    pub(super) counts: Counts,
    pub(super) batch: &'a Batch<'a>,
    pub(super) slots: Vec<Option<Slot>>,
    pub(super) adapted: Adapted<'a>,
    pub(super) logits: &'a mut [f32],
}

impl Step<'_> {
    /// Runs one operation, where linears take elements of type `E`.
    pub(super) fn run<E: Element>(&mut self, op: &Op) -> Result<()> {
        match *op {
            Op::Embed { dst, scale } => self.embed(dst, scale),
            Op::RmsNorm {
                src,
                dst,
                weight,
                epsilon,
            } => self.rms_norm::<E>(src, dst, weight, epsilon),
            Op::Linear {
                src,
                dst,
                weight,
                accumulate,
            } => self.linear(src, dst, weight, accumulate),
            Op::RotaryWrite {
                qkv,
                layer,
                norms,
                epsilon,
            } => self.rotary_write::<E>(qkv, layer, norms, epsilon),
            Op::Attention {
                src,
                dst,
                layer,
                scale,
            } => self.attention::<E>(src, dst, layer, scale),
            Op::SwiGlu { src, dst } => self.swiglu::<E>(src, dst),
            Op::SelectRows { src, dst } => self.select_rows(src, dst),
            Op::Logits { src, weight } => self.logits(src, weight),
            Op::AddVector { dst, weight } => self.add_vector(dst, weight),
            Op::Lora {
                src,
                dst,
                slot,
                column,
                ..
            } => self.lora::<E>(src, dst, slot, column),
        }
    }

    fn embed(&mut self, dst: usize, scale: f32) -> Result<()> {
        let Some(table) = self.weights.table else {
            return Err(unchecked());
        };
        let (isa, tokens, width) = (self.options.isa, self.batch.tokens, self.buffers[dst].width);
        let out = &mut self.buffers[dst].words.view_mut::<f32>()[..tokens.len() * width];
        self.pool.for_each_row(out, width, |row, out| {
            isa.run(Embed {
                table: table.bytes,
                dtype: table.dtype,
                token: tokens[row],
                scale,
                out,
            });
        })
    }

    fn rms_norm<E: Element>(
        &mut self,
        src: usize,
        dst: usize,
        weight: usize,
        epsilon: f32,
    ) -> Result<()> {
        let (isa, weight) = (self.options.isa, &self.weights.vectors[weight]);
        let (src, dst, n_rows) = two(self.buffers, self.counts, src, dst)?;
        let (x, width) = (src.words.view::<f32>(), src.width);
        let out = &mut dst.words.view_mut::<E>()[..n_rows * width];
        self.pool.for_each_row(out, width, |row, out| {
            isa.run(RmsNorm {
                x: &x[row * width..][..width],
                weight,
                epsilon,
                out,
            })
        })
    }

    fn linear(&mut self, src: usize, dst: usize, weight: usize, accumulate: bool) -> Result<()> {
        let (isa, linear) = (self.options.isa, &self.weights.linears[weight]);
        let (src, dst, n_rows) = two(self.buffers, self.counts, src, dst)?;
        let outputs = Outputs {
            stride: dst.width,
            y: dst.words.view_mut(),
            accumulate,
        };
        linear.apply(self.pool, isa, src.words.view(), n_rows, outputs)
    }

    fn add_vector(&mut self, dst: usize, weight: usize) -> Result<()> {
        let (isa, vector) = (self.options.isa, &self.weights.vectors[weight]);
        let dst = &mut self.buffers[dst];
        let (n_rows, width) = (dst.n_rows(self.counts), dst.width);
        let out = &mut dst.words.view_mut::<f32>()[..n_rows * width];
        self.pool.for_each_row(out, width, |_row, out| {
            isa.run(AddVector { vector, out });
        })
    }

    /// What adapters change in a linear, for the rows that have one.
    fn lora<E: Element>(&mut self, src: usize, dst: usize, slot: u32, column: usize) -> Result<()> {
        let adapted = match self.buffers[dst].rows {
            Rows::Tokens => &self.adapted.tokens,
            Rows::Logits => &self.adapted.logits,
        };
        let groups = adapted.iter().filter_map(|rows| {
            let (change, perturbation) = rows.change(slot)?;
            let rows = &rows.rows;
            Some(lora::LowRankRows {
                change,
                perturbation,
                rows,
            })
        });
        let groups: Vec<lora::LowRankRows<'_>> = groups.collect();
        if groups.is_empty() {
            return Ok(());
        }
        let (src, dst, n_rows) = two(self.buffers, self.counts, src, dst)?;
        let (x_width, y_width) = (src.width, dst.width);
        let target = lora::Target {
            x: &src.words.view::<E>()[..n_rows * x_width],
            x_width,
            y: &mut dst.words.view_mut::<f32>()[..n_rows * y_width],
            y_width,
            column,
        };
        lora::apply(self.pool, self.options.isa, &groups, target)
    }

    #[allow(unsafe_code)] // Writes the pool of keys and values.
    fn rotary_write<E: Element>(
        &mut self,
        qkv: usize,
        layer: usize,
        norms: Option<(usize, usize)>,
        epsilon: f32,
    ) -> Result<()> {
        let (Some(kv), Some(rotary)) = (self.kv, &self.weights.rotary) else {
            return Err(unchecked());
        };
        let write = RotaryWrite::<E> {
            heads: self.options.heads,
            norms: norms.map(|(q, k)| HeadNorms {
                q: &self.weights.vectors[q],
                k: &self.weights.vectors[k],
                epsilon,
            }),
            cos: &rotary.cos,
            sin: &rotary.sin,
            kv: kv.layer(layer),
        };
        let (isa, positions, slots) = (self.options.isa, self.batch.positions, &self.slots);
        let width = self.buffers[qkv].width;
        let rows = &mut self.buffers[qkv].words.view_mut::<f32>()[..positions.len() * width];
        self.pool.for_each_row(rows, width, |row, qkv| {
            let token = Token {
                qkv,
                position: positions[row],
                slot: slots[row],
            };
            // SAFETY: the check of the batch gave each written page to one sequence, whose tokens have a slot each;
            // attention reads pages only after this operation has ended on all threads.
            unsafe { write.token(isa, token) }
        })
    }

    fn attention<E: Element>(
        &mut self,
        src: usize,
        dst: usize,
        layer: usize,
        scale: f32,
    ) -> Result<()> {
        let Some(kv) = self.kv else {
            return Err(unchecked());
        };
        let [src, dst] = self
            .buffers
            .get_disjoint_mut([src, dst])
            .map_err(|_| unchecked())?;
        let attention = Attention::<E> {
            heads: self.options.heads,
            scale,
            kv: kv.layer(layer),
            batch: self.batch,
            qkv: src.words.view(),
            out: dst.words.view_mut(),
            scratch: self.scratch.view_mut(),
        };
        attention.run(self.pool, self.options.isa)
    }

    fn swiglu<E: Element>(&mut self, src: usize, dst: usize) -> Result<()> {
        let isa = self.options.isa;
        let (src, dst, n_rows) = two(self.buffers, self.counts, src, dst)?;
        let (x, width) = (src.words.view::<f32>(), dst.width);
        let out = &mut dst.words.view_mut::<E>()[..n_rows * width];
        self.pool.for_each_row(out, width, |row, out| {
            isa.run(SwiGlu {
                x: &x[row * 2 * width..][..2 * width],
                out,
            })
        })
    }

    fn select_rows(&mut self, src: usize, dst: usize) -> Result<()> {
        let (dtype, rows) = (self.options.dtype, self.batch.row_token);
        let [src, dst] = self
            .buffers
            .get_disjoint_mut([src, dst])
            .map_err(|_| unchecked())?;
        let row_words = if src.rounded {
            n_words(src.width, dtype)
        } else {
            src.width
        };
        let (src, dst) = (src.words.view::<u32>(), dst.words.view_mut::<u32>());
        for (row, &token) in dst.chunks_exact_mut(row_words).zip(rows) {
            row.copy_from_slice(&src[token as usize * row_words..][..row_words]);
        }
        Ok(())
    }

    /// The logits of each row, or in their place what they are made of: the hidden state behind the final norm, and
    /// zeros behind it.
    fn logits(&mut self, src: usize, weight: usize) -> Result<()> {
        let linear = &self.weights.linears[weight];
        let outputs = Outputs {
            stride: linear.n_outputs(),
            y: self.logits,
            accumulate: false,
        };
        linear.apply(
            self.pool,
            self.options.isa,
            self.buffers[src].words.view(),
            self.counts.n_rows,
            outputs,
        )?;
        let width = linear.n_outputs();
        for row in self.batch.embedded_rows() {
            let values = &mut self.logits[row * width..][..width];
            self.buffers[src].read_row(self.options.dtype, row, values)?;
        }
        Ok(())
    }
}

/// Two buffers and the number of their rows.
fn two(
    buffers: &mut [Buffer],
    counts: Counts,
    src: usize,
    dst: usize,
) -> Result<(&mut Buffer, &mut Buffer, usize)> {
    let [src, dst] = buffers
        .get_disjoint_mut([src, dst])
        .map_err(|_| unchecked())?;
    let n_rows = dst.n_rows(counts);
    Ok((src, dst, n_rows))
}

/// The plan was sealed with an operation that it cannot run.
fn unchecked() -> Error {
    Error::internal("an operation was not checked when the plan was sealed")
}
