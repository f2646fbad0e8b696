//! What an instruction set does with sixteen lanes, and operations that are written over it.

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
