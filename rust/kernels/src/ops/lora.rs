//! Adapters: what low-rank changes of a linear add to its outputs.
//!
//! A change of y = x W^T is y + scale * (x A^T) B^T with A [rank, inputs] and B [outputs, rank] (LoRA, arXiv
//! 2106.09685). The rows of a batch that are computed with one adapter form a group, so that its weights are read once
//! for all of them; a row without an adapter is not looked at. Every product with a row of A sums every sixteenth
//! element and then the lanes; every output sums over the rank in order. So the bits of a row are the same in every
//! group.
//!
//! A perturbed adapter has `weight + sigma * noise` in the place of each weight. The noise is made for the stretch of
//! weights that a thread works on, and forgotten.
#![allow(unsafe_code)] // Threads write disjoint parts of two arrays.

use crate::element::{Bf16, Dtype, Element};
use crate::error::{Error, Result};
use crate::memory::Disjoint;
use crate::noise::NoiseStream;
use crate::pool::Pool;
use crate::simd::{Isa, Kernel, LANES, Simd};

/// Columns of the output that a thread takes at once: with a rank of 16 their weights fit the nearest cache.
const COLUMNS_AT_ONCE: usize = 256;
/// Sums that are in progress at once, so that a sum does not wait for its own last addition.
const SUMS: usize = 4;

/// The change of one linear.
#[derive(Debug)]
pub(crate) struct LowRank {
    rank: usize,
    n_inputs: usize,
    n_outputs: usize,
    scale: f32,
    factors: Factors,
}

/// Both matrices in the type that they came in. B is transposed: [rank, outputs].
#[derive(Debug)]
enum Factors {
    Bf16(Vec<Bf16>, Vec<Bf16>),
    F32(Vec<f32>, Vec<f32>),
}

/// The sizes of a [`LowRank`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct LowRankShape {
    pub(crate) rank: usize,
    pub(crate) n_inputs: usize,
    pub(crate) n_outputs: usize,
}

/// By what an adapter is perturbed in one linear.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Perturbation {
    pub(crate) a: NoiseStream,
    pub(crate) b: NoiseStream,
    pub(crate) sigma: f32,
}

/// Rows that are computed with one adapter, perturbed alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LowRankRows<'a> {
    pub(crate) change: &'a LowRank,
    pub(crate) perturbation: Option<Perturbation>,
    /// Which rows, each in one group alone.
    pub(crate) rows: &'a [u32],
}

/// Rows of x, and the outputs that are added to: row r of y at `[r * y_width + column ..]`.
pub(crate) struct Target<'a, E> {
    pub(crate) x: &'a [E],
    pub(crate) x_width: usize,
    pub(crate) y: &'a mut [f32],
    pub(crate) y_width: usize,
    pub(crate) column: usize,
}

impl LowRank {
    /// Copies the matrices A [rank, inputs] and B [outputs, rank], row-major, little-endian, of one type.
    ///
    /// # Errors
    /// Where the bytes do not fit the shape.
    pub(crate) fn new(
        shape: LowRankShape,
        scale: f32,
        dtype: Dtype,
        a: &[u8],
        b: &[u8],
    ) -> Result<Self> {
        let LowRankShape {
            rank,
            n_inputs,
            n_outputs,
        } = shape;
        let n_bytes = dtype.n_bytes();
        if a.len() != rank * n_inputs * n_bytes || b.len() != n_outputs * rank * n_bytes {
            return Err(Error::argument(format!(
                "factors of {} and {} bytes do not fit {shape:?}",
                a.len(),
                b.len()
            )));
        }
        let factors = match dtype {
            Dtype::Bf16 => {
                let read = |bytes: &[u8]| Bf16(u16::from_le_bytes([bytes[0], bytes[1]]));
                let a = a.chunks_exact(2).map(read).collect();
                let b: Vec<Bf16> = b.chunks_exact(2).map(read).collect();
                Factors::Bf16(a, transposed(&b, rank))
            }
            Dtype::F32 => {
                let read =
                    |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                let a = a.chunks_exact(4).map(read).collect();
                let b: Vec<f32> = b.chunks_exact(4).map(read).collect();
                Factors::F32(a, transposed(&b, rank))
            }
        };
        Ok(Self {
            rank,
            n_inputs,
            n_outputs,
            scale,
            factors,
        })
    }

    /// Row `rank_idx` of A, perturbed.
    fn perturbed_a(&self, rank_idx: usize, by: Perturbation) -> Vec<f32> {
        let first = rank_idx * self.n_inputs;
        let mut row = vec![0.0; self.n_inputs];
        by.a.fill(first as u64, &mut row);
        for (idx, value) in row.iter_mut().enumerate() {
            *value = self.factors.a(first + idx) + by.sigma * *value;
        }
        row
    }

    /// Columns of B, transposed and perturbed: [rank, columns].
    fn perturbed_b(&self, columns: std::ops::Range<usize>, by: Perturbation) -> Vec<f32> {
        let (rank, width) = (self.rank, columns.len());
        let mut noise = vec![0.0; rank * width];
        by.b.fill((columns.start * rank) as u64, &mut noise);
        let mut values = vec![0.0; rank * width];
        for (column_idx, noise) in noise.chunks_exact(rank).enumerate() {
            for (rank_idx, noise) in noise.iter().enumerate() {
                let weight = self
                    .factors
                    .b(rank_idx * self.n_outputs + columns.start + column_idx);
                values[rank_idx * width + column_idx] = weight + by.sigma * *noise;
            }
        }
        values
    }
}

impl Factors {
    fn a(&self, idx: usize) -> f32 {
        match self {
            Self::Bf16(a, _) => widened(a[idx]),
            Self::F32(a, _) => a[idx],
        }
    }

    fn b(&self, idx: usize) -> f32 {
        match self {
            Self::Bf16(_, b) => widened(b[idx]),
            Self::F32(_, b) => b[idx],
        }
    }
}

fn widened(value: Bf16) -> f32 {
    f32::from_bits(u32::from(value.0) << 16)
}

/// [outputs, rank] as [rank, outputs].
fn transposed<T: Copy>(b: &[T], rank: usize) -> Vec<T> {
    let columns = (0..rank).map(|rank_idx| b.iter().skip(rank_idx).step_by(rank).copied());
    columns.flatten().collect()
}

/// Adds what the adapters of some rows change. Nothing is done where there are no groups.
pub(crate) fn apply<E: Element>(
    pool: &mut Pool,
    isa: Isa,
    groups: &[LowRankRows<'_>],
    target: Target<'_, E>,
) -> Result<()> {
    if groups.is_empty() {
        return Ok(());
    }
    check(groups, &target)?;
    let Target {
        x,
        x_width,
        y,
        y_width,
        column,
    } = target;
    // The products with A: for each group [rows, rank].
    let starts: Vec<usize> = groups
        .iter()
        .scan(0, |end, group| {
            let start = *end;
            *end += group.rows.len() * group.change.rank;
            Some(start)
        })
        .collect();
    let n_products: usize = groups
        .iter()
        .map(|group| group.rows.len() * group.change.rank)
        .sum();
    let mut products = vec![0.0f32; n_products];
    {
        let tasks: Vec<(usize, usize)> = (groups.iter().enumerate())
            .flat_map(|(idx, group)| (0..group.change.rank).map(move |rank_idx| (idx, rank_idx)))
            .collect();
        let out = Disjoint::new(&mut products);
        pool.for_each(tasks.len(), 1, |range, _thread_idx| {
            for &(idx, rank_idx) in &tasks[range] {
                let down = Down {
                    group: groups[idx],
                    rank_idx,
                    x,
                    x_width,
                    out,
                    start: starts[idx],
                };
                // SAFETY: each pair of a group and a row of A is one task, which alone writes its products.
                unsafe { down.run(isa) };
            }
        })?;
    }
    let tasks: Vec<(usize, usize)> = (groups.iter().enumerate())
        .flat_map(|(idx, group)| {
            (0..group.change.n_outputs)
                .step_by(COLUMNS_AT_ONCE)
                .map(move |first| (idx, first))
        })
        .collect();
    let (out, products) = (Disjoint::new(y), &products);
    pool.for_each(tasks.len(), 1, |range, _thread_idx| {
        for &(idx, first) in &tasks[range] {
            let up = Up {
                group: groups[idx],
                first,
                products: &products[starts[idx]..],
                out,
                y_width,
                column,
            };
            // SAFETY: a row is in one group, and each stretch of its columns is one task.
            unsafe { up.run(isa) };
        }
    })
}

/// That rows and columns lie in the arrays.
fn check<E>(groups: &[LowRankRows<'_>], target: &Target<'_, E>) -> Result<()> {
    let fits = |group: &LowRankRows<'_>| {
        let change = group.change;
        change.n_inputs == target.x_width
            && target.column + change.n_outputs <= target.y_width
            && group.rows.iter().all(|&row| {
                let end = row as usize + 1;
                end * target.x_width <= target.x.len() && end * target.y_width <= target.y.len()
            })
    };
    if groups.iter().all(fits) {
        return Ok(());
    }
    Err(Error::internal(
        "the change of a linear does not fit its buffers",
    ))
}

/// The products of the rows of a group with one row of A.
struct Down<'a, E> {
    group: LowRankRows<'a>,
    rank_idx: usize,
    x: &'a [E],
    x_width: usize,
    out: Disjoint<'a, f32>,
    start: usize,
}

impl<E: Element> Down<'_, E> {
    /// # Safety
    /// Nobody else writes these products.
    unsafe fn run(&self, isa: Isa) {
        let change = self.group.change;
        let row = self.rank_idx * change.n_inputs..(self.rank_idx + 1) * change.n_inputs;
        // SAFETY: forwarded.
        unsafe {
            match (self.group.perturbation, &change.factors) {
                (Some(by), _) => self.with(isa, &change.perturbed_a(self.rank_idx, by)),
                (None, Factors::Bf16(a, _)) => self.with(isa, &a[row]),
                (None, Factors::F32(a, _)) => self.with(isa, &a[row]),
            }
        }
    }

    /// # Safety
    /// Nobody else writes these products.
    unsafe fn with<W: Element>(&self, isa: Isa, weights: &[W]) {
        let (rank, scale) = (self.group.change.rank, self.group.change.scale);
        for (block_idx, rows) in self.group.rows.chunks(SUMS).enumerate() {
            let sums = isa.run(Dots {
                x: self.x,
                x_width: self.x_width,
                rows,
                weights,
            });
            for (row_idx, sum) in sums.into_iter().take(rows.len()).enumerate() {
                let at = self.start + (block_idx * SUMS + row_idx) * rank + self.rank_idx;
                // SAFETY: forwarded.
                let product = unsafe { self.out.part(at..at + 1) };
                product[0] = scale * sum;
            }
        }
    }
}

/// The products of at most [`SUMS`] rows with the same weights.
struct Dots<'a, X, W> {
    x: &'a [X],
    x_width: usize,
    rows: &'a [u32],
    weights: &'a [W],
}

impl<X: Element, W: Element> Kernel for Dots<'_, X, W> {
    type Output = [f32; SUMS];

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> [f32; SUMS] {
        let mut rows: [&[X]; SUMS] = [&[]; SUMS];
        for (slice, &row) in rows.iter_mut().zip(self.rows) {
            *slice = &self.x[row as usize * self.x_width..][..self.x_width];
        }
        let mut sums = [s.splat(0.0); SUMS];
        for (idx, weights) in self.weights.chunks(LANES).enumerate() {
            let w = W::load_some(s, weights);
            for (sum, row) in sums.iter_mut().zip(rows) {
                // Rows that are not there are empty, and so are their pieces.
                let piece = row.get(idx * LANES..).unwrap_or_default();
                *sum = s.fma(X::load_some(s, piece), w, *sum);
            }
        }
        sums.map(
            #[inline(always)]
            |sum| s.sum(sum),
        )
    }
}

/// Some columns of the outputs of a group.
struct Up<'a> {
    group: LowRankRows<'a>,
    first: usize,
    products: &'a [f32],
    out: Disjoint<'a, f32>,
    y_width: usize,
    column: usize,
}

impl Up<'_> {
    /// # Safety
    /// Nobody else writes these columns of these rows.
    unsafe fn run(&self, isa: Isa) {
        let change = self.group.change;
        let columns = self.first..change.n_outputs.min(self.first + COLUMNS_AT_ONCE);
        let (stride, n_columns) = (change.n_outputs, columns.len());
        // SAFETY: forwarded.
        unsafe {
            match (self.group.perturbation, &change.factors) {
                (Some(by), _) => {
                    let weights = change.perturbed_b(columns, by);
                    self.with(isa, &weights, n_columns, n_columns);
                }
                (None, Factors::Bf16(_, b)) => {
                    self.with(isa, &b[self.first..], stride, n_columns);
                }
                (None, Factors::F32(_, b)) => {
                    self.with(isa, &b[self.first..], stride, n_columns);
                }
            }
        }
    }

    /// # Safety
    /// Nobody else writes these columns of these rows.
    unsafe fn with<W: Element>(&self, isa: Isa, weights: &[W], stride: usize, n_columns: usize) {
        let rank = self.group.change.rank;
        for (row_idx, &row) in self.group.rows.iter().enumerate() {
            let start = row as usize * self.y_width + self.column + self.first;
            // SAFETY: forwarded.
            let y = unsafe { self.out.part(start..start + n_columns) };
            isa.run(Outer {
                products: &self.products[row_idx * rank..][..rank],
                weights,
                stride,
                y,
            });
        }
    }
}

/// y += products * weights, where the weights are [rank, columns] with `stride` between their rows.
struct Outer<'a, W> {
    products: &'a [f32],
    weights: &'a [W],
    stride: usize,
    y: &'a mut [f32],
}

impl<W: Element> Kernel for Outer<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for (block_idx, y) in self.y.chunks_mut(SUMS * LANES).enumerate() {
            let first = block_idx * SUMS * LANES;
            let mut sums = [s.splat(0.0); SUMS];
            for (rank_idx, &product) in self.products.iter().enumerate() {
                let row = &self.weights[rank_idx * self.stride + first..][..y.len()];
                let product = s.splat(product);
                for (sum, weights) in sums.iter_mut().zip(row.chunks(LANES)) {
                    *sum = s.fma(product, W::load_some(s, weights), *sum);
                }
            }
            for (sum, y) in sums.into_iter().zip(y.chunks_mut(LANES)) {
                s.store_some(s.add(s.load_some(y), sum), y);
            }
        }
    }
}

#[cfg(test)]
mod tests;
