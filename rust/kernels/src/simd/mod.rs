//! Sixteen float lanes, written once for every instruction set.
//!
//! An operation is a [`Kernel`] that is generic over [`Simd`], so that the order of its arithmetic stands in one place;
//! the implementations differ only in how a lane operation is done, and each lane operation has one IEEE-defined
//! result. That is why all instruction sets give the same bits. A value of an implementation is the proof that the CPU
//! has the instructions.

mod portable;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
pub(crate) use portable::Portable;

use crate::error::{Error, Result};

/// Lanes of a vector.
pub(crate) const LANES: usize = 16;

/// Vector arithmetic in f32, round to nearest even, without flushing of denormals unless said otherwise.
pub(crate) trait Simd: Copy + Send + Sync + 'static {
    /// Sixteen floats.
    type V: Copy;
    /// Sixteen words: bfloat16 pairs, the even element in the lower half, or the bits of floats.
    type W: Copy;

    /// Most rows of a tile of a linear.
    const TILE_ROWS: usize;
    /// Most vectors of sums that a tile keeps in registers.
    const TILE_SUMS: usize;

    /// Calls `f` compiled with the instructions of this implementation, as far as it is inlined.
    fn vectorize<R, F: FnOnce() -> R>(self, f: F) -> R;

    /// Calls `f` where [`Simd::dot_bf16`] is exact. `f` does no other arithmetic on floats, and returns all that it
    /// computes.
    #[inline(always)]
    fn flushing<R, F: FnOnce() -> R>(self, f: F) -> R {
        f()
    }

    fn splat(self, x: f32) -> Self::V;
    fn load(self, x: &[f32; LANES]) -> Self::V;
    /// The first 16 elements; zeros where there are fewer.
    fn load_some(self, x: &[f32]) -> Self::V;
    fn store(self, v: Self::V, out: &mut [f32; LANES]);
    /// The first lanes, as many as `out` has room for.
    fn store_some(self, v: Self::V, out: &mut [f32]);
    /// bfloat16, exactly: the first 16 elements; zeros where there are fewer.
    fn load_bf16_some(self, x: &[u16]) -> Self::V;
    /// To bfloat16: to nearest even, denormals to zero, NaN to quiet NaN.
    fn store_bf16_some(self, v: Self::V, out: &mut [u16]);
    fn load_words(self, x: &[u32; LANES]) -> Self::W;

    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// a * b + c, rounded once.
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The greater; `b` where one is NaN.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// The smaller; `b` where one is NaN.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// `v` where `x >= limit` (or x is NaN), else 0.
    fn zero_below(self, x: Self::V, limit: Self::V, v: Self::V) -> Self::V;
    /// 2^n where `shifted` is n + 1.5 * 2^23, for n in -126..=127.
    fn pow2(self, shifted: Self::V) -> Self::V;

    /// acc + x * w for the bits of floats, rounded once.
    fn dot_f32(self, acc: Self::V, x: u32, w: Self::W) -> Self::V;
    /// (acc + x.odd * w.odd) + x.even * w.even, rounded at each +, denormal inputs and results taken as zero: what
    /// `vdpbf16ps` does (Intel SDM, and measured). Only inside of [`Simd::flushing`].
    fn dot_bf16(self, acc: Self::V, x: u32, w: Self::W) -> Self::V;

    /// Asks for the cache line at `address` of an array, which may end before it.
    fn prefetch(self, address: *const u32);

    /// The sum of all lanes as a balanced tree over halves.
    #[inline(always)]
    fn sum(self, v: Self::V) -> f32 {
        let mut lanes = [0.0; LANES];
        self.store(v, &mut lanes);
        let mut half = LANES / 2;
        while half > 0 {
            for lane in 0..half {
                lanes[lane] += lanes[lane + half];
            }
            half /= 2;
        }
        lanes[0]
    }

    /// The greatest lane.
    #[inline(always)]
    fn greatest(self, v: Self::V) -> f32 {
        let mut lanes = [0.0; LANES];
        self.store(v, &mut lanes);
        lanes
            .iter()
            .fold(f32::NEG_INFINITY, |a, &b| if a > b { a } else { b })
    }
}

/// An operation that is compiled once for each instruction set.
///
/// `run` and what it calls must be `#[inline(always)]`, else it is compiled for the baseline CPU.
pub(crate) trait Kernel {
    /// What it answers.
    type Output;
    /// Computes it with the given lanes.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// An instruction set that this CPU has.
#[derive(Clone, Copy)]
pub(crate) enum Isa {
    Portable(Portable),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl Isa {
    /// The code for "the best of this CPU" at the C boundary.
    pub(crate) const AUTO: u32 = 0;
    /// The code of the portable implementation.
    pub(crate) const PORTABLE: u32 = 1;
    /// The code of AVX-512 with bfloat16.
    pub(crate) const AVX512: u32 = 2;
    /// The code of AVX2 with FMA.
    pub(crate) const AVX2: u32 = 3;

    /// The instruction set of that code; an error where this CPU lacks it.
    pub(crate) fn choose(code: u32) -> Result<Self> {
        let lacks = |what: &str| {
            Error::argument(format!(
                "this CPU has no {what}; choose auto, or one that it has: {}",
                Self::names().join(", ")
            ))
        };
        match code {
            Self::AUTO => Ok(Self::avx512()
                .or_else(Self::avx2)
                .unwrap_or(Self::Portable(Portable))),
            Self::PORTABLE => Ok(Self::Portable(Portable)),
            Self::AVX512 => Self::avx512().ok_or_else(|| lacks("AVX-512 with bfloat16")),
            Self::AVX2 => Self::avx2().ok_or_else(|| lacks("AVX2 with FMA")),
            other => Err(Error::argument(format!(
                "instruction set {other} is unknown; 0 is auto, 1 portable, 2 AVX-512, 3 AVX2"
            ))),
        }
    }

    /// The code of this instruction set.
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::Portable(_) => Self::PORTABLE,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Self::AVX2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => Self::AVX512,
        }
    }

    /// The names, at the surface, of all that this CPU has; the best first.
    fn names() -> Vec<&'static str> {
        let found = [
            Self::avx512().map(|_| "avx512"),
            Self::avx2().map(|_| "avx2"),
            Some("portable"),
        ];
        found.into_iter().flatten().collect()
    }

    #[cfg(target_arch = "x86_64")]
    fn avx2() -> Option<Self> {
        Avx2::detect().map(Self::Avx2)
    }

    #[cfg(target_arch = "x86_64")]
    fn avx512() -> Option<Self> {
        Avx512::detect().map(Self::Avx512)
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn avx2() -> Option<Self> {
        None
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn avx512() -> Option<Self> {
        None
    }

    /// Runs a kernel compiled for this instruction set.
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            Self::Portable(simd) => simd.vectorize(
                #[inline(always)]
                || kernel.run(simd),
            ),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(simd) => simd.vectorize(
                #[inline(always)]
                || kernel.run(simd),
            ),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(simd) => simd.vectorize(
                #[inline(always)]
                || kernel.run(simd),
            ),
        }
    }
}

/// All instruction sets of this CPU.
#[cfg(test)]
pub(crate) fn all_isas() -> Vec<Isa> {
    [Isa::PORTABLE, Isa::AVX2, Isa::AVX512]
        .into_iter()
        .filter_map(|code| Isa::choose(code).ok())
        .collect()
}

#[cfg(test)]
mod tests;
