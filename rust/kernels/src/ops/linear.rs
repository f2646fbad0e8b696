//! Linear maps: y[M, N] = x[M, K] W[N, K]^T with W packed once.
//!
//! W is packed as `[N / 64][K words][64]`, where a word is a pair of bfloat16 or one float. A tile has a few rows and
//! columns, as many as the sums fit the registers of the instruction set (AVX-512: 6 rows by 64 columns), and each sum
//! walks K in order, so no output depends on its neighbours. With one row the kernel streams W at the bandwidth of
//! memory; measured on 2 cores with AVX-512: 45 to 54 of 53 GB/s at M = 1, 1.0 TFLOP/s at M = 512.
#![allow(unsafe_code)] // The tile's loop reads through pointers: bounds checks would halve its speed.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::element::Dtype;
use crate::error::{Error, Result};
use crate::memory::{Disjoint, Words};
use crate::pool::Pool;
use crate::simd::{Isa, Kernel, LANES, Simd};

/// Columns of one packed strip of W.
const STRIP: usize = 64;
/// Vectors of a strip's row.
const VECTORS: usize = STRIP / LANES;
/// Up to this many rows K is walked in panels, so that a panel of W stays in the nearest cache for all rows.
const PANEL_ROWS: usize = 96;
/// Words of K in a panel: 64 x 64 words are 16 KiB.
const PANEL_WORDS: usize = 64;
/// How far ahead of the loop W is prefetched, in words: 512 bytes.
const AHEAD_WORDS: usize = 128;
/// Most strips that a thread takes at once.
const MAX_STRIPS_AT_ONCE: usize = 8;

/// A packed matrix.
pub(crate) struct Linear {
    packed: Words,
    n_outputs: usize,
    n_inputs: usize,
    dtype: Dtype,
}

/// Rows of a matrix in memory of the caller: row-major, `n_rows` x the matrix's `n_inputs`.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) n_rows: usize,
    pub(crate) dtype: Dtype,
}

/// Where the outputs go: row r to `[r * stride ..]`.
pub(crate) struct Outputs<'a> {
    pub(crate) y: &'a mut [f32],
    pub(crate) stride: usize,
    /// Adds to what stands there.
    pub(crate) accumulate: bool,
}

impl Linear {
    /// Packs the parts, stacked by rows. Their elements are widened where the matrix is f32 and they are bfloat16.
    pub(crate) fn pack(parts: &[Part<'_>], n_inputs: usize, dtype: Dtype) -> Result<Self> {
        if n_inputs == 0 || parts.iter().all(|part| part.n_rows == 0) {
            return Err(Error::argument("a linear has no inputs or no outputs"));
        }
        if dtype == Dtype::Bf16 && n_inputs % 2 == 1 {
            return Err(Error::argument(format!(
                "a bfloat16 linear needs an even number of inputs, not {n_inputs}; use float32"
            )));
        }
        let n_outputs = parts.iter().map(|part| part.n_rows).sum::<usize>();
        let n_words = n_words(n_inputs, dtype);
        let mut packed = Words::zeroed(n_outputs.div_ceil(STRIP) * n_words * STRIP);
        let words: &mut [u32] = packed.view_mut();
        let mut output_idx = 0;
        for part in parts {
            let row_bytes = n_inputs * part.dtype.n_bytes();
            if part.bytes.len() != part.n_rows * row_bytes {
                return Err(Error::argument(format!(
                    "a part of {} bytes is not {} rows of {n_inputs} inputs",
                    part.bytes.len(),
                    part.n_rows
                )));
            }
            for row in part.bytes.chunks_exact(row_bytes) {
                let strip = &mut words[output_idx / STRIP * n_words * STRIP..][..n_words * STRIP];
                pack_row(row, part.dtype, dtype, &mut strip[output_idx % STRIP..])?;
                output_idx += 1;
            }
        }
        Ok(Self {
            packed,
            n_outputs,
            n_inputs,
            dtype,
        })
    }

    /// Columns of x.
    pub(crate) fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// Columns of y.
    pub(crate) fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    /// The type of x.
    pub(crate) fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// y = x W^T, or y += x W^T, for `n_rows` rows of x, whose words lie without gaps.
    pub(crate) fn apply(
        &self,
        pool: &mut Pool,
        isa: Isa,
        x: &[u32],
        n_rows: usize,
        outputs: Outputs<'_>,
    ) -> Result<()> {
        let n_words = n_words(self.n_inputs, self.dtype);
        let fits = x.len() >= n_rows * n_words
            && outputs.stride >= self.n_outputs
            && (n_rows == 0 || outputs.y.len() >= (n_rows - 1) * outputs.stride + self.n_outputs);
        if !fits {
            return Err(Error::internal(format!(
                "{n_rows} rows do not fit the buffers of a linear"
            )));
        }
        if n_rows == 0 {
            return Ok(());
        }
        let n_strips = self.n_outputs.div_ceil(STRIP);
        let at_once = (n_strips / (4 * pool.n_threads())).clamp(1, MAX_STRIPS_AT_ONCE);
        let job = Job {
            packed: self.packed.view(),
            x,
            n_rows,
            n_words,
            n_outputs: self.n_outputs,
            stride: outputs.stride,
            accumulate: outputs.accumulate,
            y: Disjoint::new(outputs.y),
            next: AtomicUsize::new(0),
            at_once,
            n_strips,
        };
        let dtype = self.dtype;
        let work = |_thread_idx: usize| match dtype {
            Dtype::Bf16 => isa.run(Strips::<BfloatPairs> {
                job: &job,
                dot: BfloatPairs,
            }),
            Dtype::F32 => isa.run(Strips::<Floats> {
                job: &job,
                dot: Floats,
            }),
        };
        if n_strips <= at_once {
            work(0);
            return Ok(());
        }
        pool.run(&work)
    }
}

/// Words of a row of `n` elements.
pub(crate) fn n_words(n: usize, dtype: Dtype) -> usize {
    match dtype {
        Dtype::Bf16 => n.div_ceil(2),
        Dtype::F32 => n,
    }
}

/// Writes one row of W to every 64th word.
fn pack_row(row: &[u8], from: Dtype, to: Dtype, strip: &mut [u32]) -> Result<()> {
    let columns = strip.iter_mut().step_by(STRIP);
    match (from, to) {
        (Dtype::F32, Dtype::Bf16) => {
            return Err(Error::argument(
                "float32 weights are not rounded to bfloat16; run the model in float32",
            ));
        }
        (Dtype::Bf16, Dtype::F32) => {
            for (word, bytes) in columns.zip(row.chunks_exact(2)) {
                *word = u32::from(u16::from_le_bytes([bytes[0], bytes[1]])) << 16;
            }
        }
        (Dtype::Bf16, Dtype::Bf16) | (Dtype::F32, Dtype::F32) => {
            for (word, bytes) in columns.zip(row.chunks_exact(4)) {
                *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            }
        }
    }
    Ok(())
}

/// One linear in progress.
struct Job<'a> {
    packed: &'a [u32],
    x: &'a [u32],
    n_rows: usize,
    n_words: usize,
    n_outputs: usize,
    y: Disjoint<'a, f32>,
    stride: usize,
    accumulate: bool,
    next: AtomicUsize,
    at_once: usize,
    n_strips: usize,
}

/// How a word of x meets words of W.
trait Dot: Copy {
    fn dot<S: Simd>(self, s: S, acc: S::V, x: u32, w: S::W) -> S::V;

    /// Calls `f`, which does nothing but dots, in the floating-point environment that they need.
    #[inline(always)]
    fn within<S: Simd, R, F: FnOnce() -> R>(self, _simd: S, f: F) -> R {
        f()
    }
}

#[derive(Clone, Copy)]
struct BfloatPairs;

impl Dot for BfloatPairs {
    #[inline(always)]
    fn dot<S: Simd>(self, s: S, acc: S::V, x: u32, w: S::W) -> S::V {
        s.dot_bf16(acc, x, w)
    }

    #[inline(always)]
    fn within<S: Simd, R, F: FnOnce() -> R>(self, s: S, f: F) -> R {
        s.flushing(f)
    }
}

#[derive(Clone, Copy)]
struct Floats;

impl Dot for Floats {
    #[inline(always)]
    fn dot<S: Simd>(self, s: S, acc: S::V, x: u32, w: S::W) -> S::V {
        s.dot_f32(acc, x, w)
    }
}

/// The part of a thread: strips, until none is left.
struct Strips<'a, D> {
    job: &'a Job<'a>,
    dot: D,
}

impl<D: Dot> Kernel for Strips<'_, D> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Job {
            n_rows, n_words, ..
        } = *self.job;
        // One tile reads the whole strip once, in one pass over K.
        let is_one_tile = n_rows * VECTORS <= S::TILE_SUMS;
        let panel_words = if is_one_tile || n_rows > PANEL_ROWS {
            n_words
        } else {
            PANEL_WORDS
        };
        let ahead = if panel_words == n_words {
            AHEAD_WORDS
        } else {
            PANEL_WORDS * STRIP
        };
        // Sums between two panels; with one panel nothing is kept.
        let mut partial = if panel_words < n_words {
            vec![0.0; n_rows * STRIP]
        } else {
            Vec::new()
        };
        loop {
            let start = self.job.next.fetch_add(self.job.at_once, Ordering::Relaxed);
            if start >= self.job.n_strips {
                return;
            }
            for strip_idx in start..(start + self.job.at_once).min(self.job.n_strips) {
                let mut word = 0;
                while word < n_words {
                    let end = n_words.min(word + panel_words);
                    let panel = Panel {
                        strip_idx,
                        words: word..end,
                        ahead,
                    };
                    // SAFETY: this thread alone took the strip.
                    unsafe { self.panel(s, &panel, &mut partial) };
                    word = end;
                }
            }
        }
    }
}

/// A stretch of K of one strip, for all rows.
struct Panel {
    strip_idx: usize,
    words: std::ops::Range<usize>,
    ahead: usize,
}

impl<D: Dot> Strips<'_, D> {
    /// # Safety
    /// No other thread works on the strip.
    #[inline(always)]
    unsafe fn panel<S: Simd>(&self, s: S, panel: &Panel, partial: &mut [f32]) {
        let n_rows = self.job.n_rows;
        let n_tiles = n_rows.div_ceil(S::TILE_ROWS);
        let (least, n_larger) = (n_rows / n_tiles, n_rows % n_tiles);
        let mut row = 0;
        for tile_idx in 0..n_tiles {
            let n_tile_rows = least + usize::from(tile_idx < n_larger);
            // SAFETY: forwarded.
            unsafe {
                match n_tile_rows {
                    1 => self.row_of_tiles::<S, 1>(s, panel, row, partial),
                    2 => self.row_of_tiles::<S, 2>(s, panel, row, partial),
                    3 => self.row_of_tiles::<S, 3>(s, panel, row, partial),
                    4 if S::TILE_ROWS >= 4 => self.row_of_tiles::<S, 4>(s, panel, row, partial),
                    5 if S::TILE_ROWS >= 5 => self.row_of_tiles::<S, 5>(s, panel, row, partial),
                    _ => self.row_of_tiles::<S, 6>(s, panel, row, partial),
                }
            }
            row += n_tile_rows;
        }
    }

    /// The tiles that cover a strip's columns: as wide as the registers allow.
    ///
    /// # Safety
    /// No other thread works on the strip.
    #[inline(always)]
    unsafe fn row_of_tiles<S: Simd, const ROWS: usize>(
        &self,
        s: S,
        panel: &Panel,
        row: usize,
        partial: &mut [f32],
    ) {
        // SAFETY: forwarded.
        unsafe {
            if ROWS * VECTORS <= S::TILE_SUMS {
                self.tile::<S, ROWS, VECTORS>(s, panel, Corner { row, vector: 0 }, partial);
            } else {
                for vector in (0..VECTORS).step_by(2) {
                    self.tile::<S, ROWS, 2>(s, panel, Corner { row, vector }, partial);
                }
            }
        }
    }

    /// # Safety
    /// No other thread works on the strip.
    #[inline(always)]
    unsafe fn tile<S: Simd, const ROWS: usize, const WIDTH: usize>(
        &self,
        s: S,
        panel: &Panel,
        corner: Corner,
        partial: &mut [f32],
    ) {
        let job = self.job;
        let Corner { row, vector } = corner;
        let strip = &job.packed[panel.strip_idx * job.n_words * STRIP..][..job.n_words * STRIP];
        let x = &job.x[row * job.n_words..(row + ROWS) * job.n_words];
        assert!(
            panel.words.end <= job.n_words && vector + WIDTH <= VECTORS,
            "a tile lies in its strip"
        );
        let mut sums = [[s.splat(0.0); WIDTH]; ROWS];
        if panel.words.start > 0 {
            for (sums, kept) in sums
                .iter_mut()
                .zip(partial[row * STRIP..].chunks_exact(STRIP))
            {
                for (sum, kept) in sums.iter_mut().zip(&kept.as_chunks().0[vector..]) {
                    *sum = s.load(kept);
                }
            }
        }
        let sums = self.dot.within(
            s,
            #[inline(always)]
            || {
                for word in panel.words.clone() {
                    // SAFETY: `word` is below n_words, so the line lies in the strip, and `r * n_words + word` in the
                    // rows of x.
                    unsafe {
                        let line = strip.as_ptr().add(word * STRIP + vector * LANES);
                        let mut w = [s.load_words(&*line.cast()); WIDTH];
                        for (v, w) in w.iter_mut().enumerate() {
                            s.prefetch(line.wrapping_add(panel.ahead + v * LANES));
                            *w = s.load_words(&*line.add(v * LANES).cast());
                        }
                        for (r, sums) in sums.iter_mut().enumerate() {
                            let x = *x.as_ptr().add(r * job.n_words + word);
                            for (sum, w) in sums.iter_mut().zip(w) {
                                *sum = self.dot.dot(s, *sum, x, w);
                            }
                        }
                    }
                }
                sums
            },
        );
        let is_last = panel.words.end == job.n_words;
        for (r, sums) in sums.iter().enumerate() {
            if !is_last {
                let kept = &mut partial[(row + r) * STRIP..][..STRIP].as_chunks_mut().0[vector..];
                for (sum, kept) in sums.iter().zip(kept) {
                    s.store(*sum, kept);
                }
                continue;
            }
            let column = panel.strip_idx * STRIP + vector * LANES;
            let n_columns = (WIDTH * LANES).min(job.n_outputs.saturating_sub(column));
            let start = (row + r) * job.stride + column.min(job.n_outputs);
            // SAFETY: the columns of this strip are this thread's.
            let y = unsafe { job.y.part(start..start + n_columns) };
            for (sum, y) in sums.iter().zip(y.chunks_mut(LANES)) {
                let total = if job.accumulate {
                    s.add(s.load_some(y), *sum)
                } else {
                    *sum
                };
                s.store_some(total, y);
            }
        }
    }
}

/// Where a tile begins: its first row of x, and its first vector of the strip.
#[derive(Clone, Copy)]
struct Corner {
    row: usize,
    vector: usize,
}

#[cfg(test)]
mod tests;
