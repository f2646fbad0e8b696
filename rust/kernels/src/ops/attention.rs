//! Attention over paged keys and values.
//!
//! A row (one head of one token) scores every slot that it sees in a lane of its own, takes the softmax over slots in
//! storage order (lanes sum every sixteenth slot, by its index in the sequence), and adds the values in storage order,
//! one accumulator an element. Nothing depends on page borders, on where the pages lie, or on which rows are computed
//! together.
#![allow(unsafe_code)] // Reads the pool of keys and values, and threads write disjoint parts of the output.

use std::ops::Range;

use crate::arena::Batch;
use crate::element::Element;
use crate::error::Result;
use crate::kv::KvLayer;
use crate::math::exp;
use crate::memory::Disjoint;
use crate::ops::rotary::Heads;
use crate::pool::Pool;
use crate::simd::{Isa, Kernel, LANES, Simd};

/// Rows that share each read of a key or value.
const ROWS_TOGETHER: usize = 4;
/// Tokens of one unit of work.
const TOKENS_TOGETHER: usize = 16;
/// Groups of sixteen slots that are scored at once, so that enough sums are under way to hide the latency of each.
const GROUPS_TOGETHER: usize = 4;
/// Vectors of values in registers for each row.
const VECTORS_TOGETHER: usize = 4;

/// Attention of one layer for a whole batch.
pub(crate) struct Attention<'a, E> {
    pub(crate) heads: Heads,
    /// Scores are multiplied by this before the softmax.
    pub(crate) scale: f32,
    pub(crate) kv: KvLayer<'a, E>,
    pub(crate) batch: &'a Batch<'a>,
    /// Rotated queries: rows of `heads.qkv_width()`.
    pub(crate) qkv: &'a [f32],
    /// Rows of `heads.q_width()`, rounded to the type that linears take.
    pub(crate) out: &'a mut [E],
    /// For each thread `scratch_len(..)` floats.
    pub(crate) scratch: &'a mut [f32],
}

/// Floats of scratch memory that a thread needs where the longest sequence has `kv_len` slots.
pub(crate) fn scratch_len(kv_len: usize, heads: Heads) -> usize {
    ROWS_TOGETHER * (kv_len.next_multiple_of(LANES) + heads.head_dim)
}

impl<E: Element> Attention<'_, E> {
    /// Computes all rows on all threads.
    pub(crate) fn run(self, pool: &mut Pool, isa: Isa) -> Result<()> {
        let units = units(self.batch);
        let n_kv_heads = self.heads.n_kv_heads;
        let scratch_len = scratch_len(self.batch.longest(), self.heads);
        let scratch = Disjoint::new(self.scratch);
        let job = Job {
            heads: self.heads,
            scale: self.scale,
            kv: self.kv,
            batch: self.batch,
            qkv: self.qkv,
            out: Disjoint::new(self.out),
        };
        pool.for_each(units.len() * n_kv_heads, 1, |range, thread_idx| {
            // SAFETY: each thread has a part of its own.
            let scratch =
                unsafe { scratch.part(thread_idx * scratch_len..(thread_idx + 1) * scratch_len) };
            for item in range {
                let (seq_idx, tokens) = &units[item / n_kv_heads];
                let unit = Unit {
                    seq_idx: *seq_idx,
                    tokens: tokens.clone(),
                    kv_head: item % n_kv_heads,
                };
                isa.run(UnitRows {
                    job: &job,
                    unit,
                    scratch,
                });
            }
        })
    }
}

/// Tokens of one sequence that one thread handles together.
fn units(batch: &Batch<'_>) -> Vec<(usize, Range<usize>)> {
    let mut units = Vec::new();
    for seq_idx in 0..batch.n_seqs() {
        let tokens = batch.seq_tokens(seq_idx);
        for start in tokens.clone().step_by(TOKENS_TOGETHER) {
            units.push((seq_idx, start..tokens.end.min(start + TOKENS_TOGETHER)));
        }
    }
    units
}

/// What all units share.
struct Job<'a, E> {
    heads: Heads,
    scale: f32,
    kv: KvLayer<'a, E>,
    batch: &'a Batch<'a>,
    qkv: &'a [f32],
    out: Disjoint<'a, E>,
}

/// Some tokens of a sequence under one head of keys and values.
struct Unit {
    seq_idx: usize,
    tokens: Range<usize>,
    kv_head: usize,
}

struct UnitRows<'a, E> {
    job: &'a Job<'a, E>,
    unit: Unit,
    scratch: &'a mut [f32],
}

/// One head of one token.
#[derive(Clone, Copy)]
struct Row {
    token: usize,
    head: usize,
    /// Slots `[0, limit)` are not in the future.
    limit: usize,
}

impl<E: Element> Kernel for UnitRows<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Heads {
            n_heads,
            n_kv_heads,
            ..
        } = self.job.heads;
        let group = n_heads / n_kv_heads;
        let n_rows = self.unit.tokens.len() * group;
        let row = |idx: usize| {
            let token = self.unit.tokens.start + idx / group;
            Row {
                token,
                head: self.unit.kv_head * group + idx % group,
                limit: self.job.batch.slot_of(self.unit.seq_idx, token) + 1,
            }
        };
        let head = HeadPages {
            kv: self.job.kv,
            pages: self.job.batch.seq_pages(self.unit.seq_idx),
            kv_head: self.unit.kv_head,
            head_dim: self.job.heads.head_dim,
        };
        let is_masked = |idx: usize| self.job.batch.is_masked(row(idx).token);
        let mut idx = 0;
        while idx < n_rows {
            let n_unmasked = (idx..n_rows.min(idx + ROWS_TOGETHER))
                .take_while(|&idx| !is_masked(idx))
                .count();
            idx += match n_unmasked {
                ROWS_TOGETHER => {
                    self.job
                        .rows::<S, ROWS_TOGETHER>(s, &head, |r| row(idx + r), self.scratch)
                }
                2 | 3 => self
                    .job
                    .rows::<S, 2>(s, &head, |r| row(idx + r), self.scratch),
                _ => self
                    .job
                    .rows::<S, 1>(s, &head, |r| row(idx + r), self.scratch),
            };
        }
    }
}

impl<E: Element> Job<'_, E> {
    /// Attention of R rows of one sequence; returns R. Of more than one row none is masked.
    #[inline(always)]
    fn rows<S: Simd, const R: usize>(
        &self,
        s: S,
        head: &HeadPages<'_, E>,
        row: impl Fn(usize) -> Row,
        scratch: &mut [f32],
    ) -> usize {
        let rows: [Row; R] = std::array::from_fn(row);
        let Heads { head_dim, .. } = self.heads;
        let (stride, width) = (self.heads.qkv_width(), self.heads.q_width());
        let queries: [&[f32]; R] =
            rows.map(|row| &self.qkv[row.token * stride + row.head * head_dim..][..head_dim]);
        let longest = rows
            .iter()
            .map(|row| row.limit)
            .max()
            .unwrap_or(0)
            .next_multiple_of(LANES);
        let (scores, sums) = scratch.split_at_mut(scratch.len() - ROWS_TOGETHER * head_dim);
        let scores = &mut scores[..R * longest];
        let sums = &mut sums[..R * head_dim];
        scores.fill(f32::NEG_INFINITY);
        sums.fill(0.0);

        // What all rows see is read once for all; the rest of each row by itself.
        let shared = rows.iter().map(|row| row.limit).min().unwrap_or(0);
        let runs = self.batch.allowed(rows[0].token, shared);
        for run in runs.clone() {
            head.score(s, queries, run, scores, longest);
        }
        for (r, row) in rows.iter().enumerate() {
            head.score(
                s,
                [queries[r]],
                shared..row.limit,
                &mut scores[r * longest..][..longest],
                longest,
            );
        }
        let mut totals = [0.0; R];
        for (r, total) in totals.iter_mut().enumerate() {
            *total = softmax_weights(s, &mut scores[r * longest..][..longest], self.scale);
        }
        for run in runs {
            head.add_values::<S, R>(s, scores, longest, run, sums);
        }
        for (r, row) in rows.iter().enumerate() {
            let weights = &scores[r * longest..][..longest];
            head.add_values::<S, 1>(
                s,
                weights,
                longest,
                shared..row.limit,
                &mut sums[r * head_dim..][..head_dim],
            );
        }

        for (r, row) in rows.iter().enumerate() {
            let start = row.token * width + row.head * head_dim;
            // SAFETY: this token and head are in this unit alone.
            let out = unsafe { self.out.part(start..start + head_dim) };
            let total = s.splat(totals[r]);
            for (sum, out) in sums[r * head_dim..][..head_dim]
                .chunks(LANES)
                .zip(out.chunks_mut(LANES))
            {
                E::store_some(s, s.div(s.load_some(sum), total), out);
            }
        }
        R
    }
}

/// Turns scores into e^(score * scale - greatest) and returns their sum; a score of minus infinity becomes 0.
#[inline(always)]
fn softmax_weights<S: Simd>(s: S, scores: &mut [f32], scale: f32) -> f32 {
    let groups = scores.as_chunks_mut::<LANES>().0;
    let mut greatest = s.splat(f32::NEG_INFINITY);
    for group in &mut *groups {
        let scaled = s.mul(s.load(group), s.splat(scale));
        s.store(scaled, group);
        greatest = s.max(greatest, scaled);
    }
    let greatest = s.splat(s.greatest(greatest));
    let mut total = s.splat(0.0);
    for group in groups {
        let weight = exp(s, s.sub(s.load(group), greatest));
        s.store(weight, group);
        total = s.add(total, weight);
    }
    s.sum(total)
}

/// Where scores go: that of row r and a slot to `scores[r * stride + slot]`, for `slots` alone.
struct Scores<'a> {
    slots: Range<usize>,
    scores: &'a mut [f32],
    stride: usize,
}

/// Up to sixteen neighbouring slots of a page.
struct Group<'a, E> {
    /// The page's keys from the first slot on.
    keys: &'a [E],
    /// The first slot, in the sequence.
    first: usize,
    n: usize,
}

/// The keys and values of one head of one sequence.
struct HeadPages<'a, E> {
    kv: KvLayer<'a, E>,
    pages: &'a [u32],
    kv_head: usize,
    head_dim: usize,
}

impl<E: Element> HeadPages<'_, E> {
    /// Writes the products of the queries and the keys of `slots` to `scores[r * stride + slot]`.
    #[inline(always)]
    fn score<S: Simd, const R: usize>(
        &self,
        s: S,
        queries: [&[f32]; R],
        slots: Range<usize>,
        scores: &mut [f32],
        stride: usize,
    ) {
        if slots.is_empty() {
            return;
        }
        let page_size = self.kv.page_size();
        let group_of =
            |slot: usize| slot / page_size * page_size.div_ceil(LANES) + slot % page_size / LANES;
        let (mut group, end) = (group_of(slots.start), group_of(slots.end - 1) + 1);
        let mut scores = Scores {
            slots,
            scores,
            stride,
        };
        while group < end {
            if group + GROUPS_TOGETHER <= end {
                self.score_groups::<S, R, GROUPS_TOGETHER>(s, queries, group, &mut scores);
                group += GROUPS_TOGETHER;
            } else {
                self.score_groups::<S, R, 1>(s, queries, group, &mut scores);
                group += 1;
            }
        }
    }

    /// Scores `G` groups of slots from `first_group` on.
    #[inline(always)]
    fn score_groups<S: Simd, const R: usize, const G: usize>(
        &self,
        s: S,
        queries: [&[f32]; R],
        first_group: usize,
        out: &mut Scores<'_>,
    ) {
        let page_size = self.kv.page_size();
        let page_groups = page_size.div_ceil(LANES);
        let groups: [Group<'_, E>; G] = std::array::from_fn(|g| {
            let group = first_group + g;
            let (page_idx, offset) = (group / page_groups, group % page_groups * LANES);
            // SAFETY: nothing writes pages during attention.
            let keys = unsafe { self.kv.keys(self.pages[page_idx], self.kv_head) };
            Group {
                keys: &keys[offset..],
                first: page_idx * page_size + offset,
                n: LANES.min(page_size - offset),
            }
        });
        let mut products = [[s.splat(0.0); G]; R];
        for d in 0..self.head_dim {
            let keys: [S::V; G] = std::array::from_fn(|g| {
                E::load_some(s, &groups[g].keys[d * page_size..][..groups[g].n])
            });
            for (products, query) in products.iter_mut().zip(queries) {
                let query = s.splat(query[d]);
                for (product, key) in products.iter_mut().zip(keys) {
                    *product = s.fma(query, key, *product);
                }
            }
        }
        for (r, products) in products.iter().enumerate() {
            for (product, group) in products.iter().zip(&groups) {
                let mut lanes = [0.0; LANES];
                s.store(*product, &mut lanes);
                let wanted =
                    out.slots.start.max(group.first)..out.slots.end.min(group.first + group.n);
                let lanes = &lanes[wanted.start - group.first..wanted.end - group.first];
                out.scores[r * out.stride..][wanted].copy_from_slice(lanes);
            }
        }
    }

    /// Adds `weights[r * stride + slot]` times the value of each of `slots` to row r of `sums`, in the order of the
    /// slots.
    #[inline(always)]
    fn add_values<S: Simd, const R: usize>(
        &self,
        s: S,
        weights: &[f32],
        stride: usize,
        slots: Range<usize>,
        sums: &mut [f32],
    ) {
        if slots.is_empty() {
            return;
        }
        let mut column = 0;
        while column < self.head_dim {
            if column + VECTORS_TOGETHER * LANES <= self.head_dim {
                self.add_columns::<S, R, VECTORS_TOGETHER>(
                    s,
                    weights,
                    stride,
                    slots.clone(),
                    sums,
                    column,
                );
                column += VECTORS_TOGETHER * LANES;
            } else {
                self.add_columns::<S, R, 1>(s, weights, stride, slots.clone(), sums, column);
                column += LANES;
            }
        }
    }

    #[inline(always)]
    fn add_columns<S: Simd, const R: usize, const C: usize>(
        &self,
        s: S,
        weights: &[f32],
        stride: usize,
        slots: Range<usize>,
        sums: &mut [f32],
        column: usize,
    ) {
        let end = self.head_dim.min(column + C * LANES);
        let mut totals = [[s.splat(0.0); C]; R];
        for (r, totals) in totals.iter_mut().enumerate() {
            for (total, sum) in totals
                .iter_mut()
                .zip(sums[r * self.head_dim..][column..end].chunks(LANES))
            {
                *total = s.load_some(sum);
            }
        }
        let page_size = self.kv.page_size();
        for page_idx in slots.start / page_size..slots.end.div_ceil(page_size) {
            // SAFETY: nothing writes pages during attention.
            let values = unsafe { self.kv.values(self.pages[page_idx], self.kv_head) };
            let first = page_idx * page_size;
            for slot in slots.start.max(first)..slots.end.min(first + page_size) {
                let value = &values[(slot - first) * self.head_dim..][column..end];
                let vectors: [S::V; C] =
                    std::array::from_fn(|c| E::load_some(s, &value[c * LANES..]));
                for (r, totals) in totals.iter_mut().enumerate() {
                    let weight = s.splat(weights[r * stride + slot]);
                    for (total, vector) in totals.iter_mut().zip(vectors) {
                        *total = s.fma(weight, vector, *total);
                    }
                }
            }
        }
        for (r, totals) in totals.iter().enumerate() {
            for (total, sum) in totals
                .iter()
                .zip(sums[r * self.head_dim..][column..end].chunks_mut(LANES))
            {
                s.store_some(*total, sum);
            }
        }
    }
}
