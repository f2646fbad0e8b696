//! Sixteen lanes as an array: for every CPU, and the definition that the others are tested against.

use super::lanes::{LANES, Simd};

/// Lanes without vector instructions.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

type Lanes = [f32; LANES];

#[inline(always)]
fn each(f: impl FnMut(usize) -> f32) -> Lanes {
    std::array::from_fn(f)
}

impl Simd for Portable {
    type V = Lanes;
    type W = [u32; LANES];

    const TILE_ROWS: usize = 6;
    const TILE_SUMS: usize = 24;

    #[inline(always)]
    fn vectorize<R, F: FnOnce() -> R>(self, f: F) -> R {
        f()
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Lanes {
        [x; LANES]
    }

    #[inline(always)]
    fn load(self, x: &[f32; LANES]) -> Lanes {
        *x
    }

    #[inline(always)]
    fn load_some(self, x: &[f32]) -> Lanes {
        let mut lanes = [0.0; LANES];
        let n = x.len().min(LANES);
        lanes[..n].copy_from_slice(&x[..n]);
        lanes
    }

    #[inline(always)]
    fn store(self, v: Lanes, out: &mut [f32; LANES]) {
        *out = v;
    }

    #[inline(always)]
    fn store_some(self, v: Lanes, out: &mut [f32]) {
        let n = out.len().min(LANES);
        out[..n].copy_from_slice(&v[..n]);
    }

    #[inline(always)]
    fn load_bf16_some(self, x: &[u16]) -> Lanes {
        each(|lane| x.get(lane).map_or(0.0, |&bits| widen(bits)))
    }

    #[inline(always)]
    fn store_bf16_some(self, v: Lanes, out: &mut [u16]) {
        for (out, x) in out.iter_mut().zip(v) {
            *out = narrow(x);
        }
    }

    #[inline(always)]
    fn load_words(self, x: &[u32; LANES]) -> [u32; LANES] {
        *x
    }

    #[inline(always)]
    fn add(self, a: Lanes, b: Lanes) -> Lanes {
        each(|lane| a[lane] + b[lane])
    }

    #[inline(always)]
    fn sub(self, a: Lanes, b: Lanes) -> Lanes {
        each(|lane| a[lane] - b[lane])
    }

    #[inline(always)]
    fn mul(self, a: Lanes, b: Lanes) -> Lanes {
        each(|lane| a[lane] * b[lane])
    }

    #[inline(always)]
    fn div(self, a: Lanes, b: Lanes) -> Lanes {
        each(|lane| a[lane] / b[lane])
    }

    #[inline(always)]
    fn fma(self, a: Lanes, b: Lanes, c: Lanes) -> Lanes {
        each(|lane| a[lane].mul_add(b[lane], c[lane]))
    }

    #[inline(always)]
    fn max(self, a: Lanes, b: Lanes) -> Lanes {
        each(|lane| if a[lane] > b[lane] { a[lane] } else { b[lane] })
    }

    #[inline(always)]
    fn min(self, a: Lanes, b: Lanes) -> Lanes {
        each(|lane| if a[lane] < b[lane] { a[lane] } else { b[lane] })
    }

    #[inline(always)]
    fn zero_below(self, x: Lanes, limit: Lanes, v: Lanes) -> Lanes {
        each(|lane| if x[lane] < limit[lane] { 0.0 } else { v[lane] })
    }

    #[inline(always)]
    fn pow2(self, shifted: Lanes) -> Lanes {
        each(|lane| f32::from_bits((shifted[lane].to_bits() << 23).wrapping_add(1.0f32.to_bits())))
    }

    #[inline(always)]
    fn dot_f32(self, acc: Lanes, x: u32, w: [u32; LANES]) -> Lanes {
        let x = f32::from_bits(x);
        each(|lane| x.mul_add(f32::from_bits(w[lane]), acc[lane]))
    }

    #[inline(always)]
    fn dot_bf16(self, acc: Lanes, x: u32, w: [u32; LANES]) -> Lanes {
        let (x_even, x_odd) = halves(x);
        each(|lane| {
            let (w_even, w_odd) = halves(w[lane]);
            let odd = fma_flushed(x_odd, w_odd, flush(acc[lane]));
            fma_flushed(x_even, w_even, odd)
        })
    }

    #[inline(always)]
    fn prefetch(self, _address: *const u32) {}
}

/// bfloat16 to f32, exactly.
#[inline(always)]
fn widen(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// f32 to bfloat16 as `vcvtneps2bf16` does it.
#[inline(always)]
fn narrow(x: f32) -> u16 {
    if x.is_nan() {
        // Quiet, and never an infinity for want of payload bits.
        return ((x.to_bits() >> 16) | 0x40) as u16;
    }
    let bits = flush(x).to_bits();
    (bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}

/// The even (lower) and the odd element of a bfloat16 pair, denormals taken as zero.
#[inline(always)]
fn halves(pair: u32) -> (f32, f32) {
    (
        flush(f32::from_bits(pair << 16)),
        flush(f32::from_bits(pair & 0xffff_0000)),
    )
}

/// Denormals to zero of the same sign.
#[inline(always)]
fn flush(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE {
        0.0f32.copysign(x)
    } else {
        x
    }
}

/// a * b + c rounded once, a denormal result flushed as x86 does it.
#[inline(always)]
fn fma_flushed(a: f32, b: f32, c: f32) -> f32 {
    let sum = a.mul_add(b, c);
    if sum.abs() > f32::MIN_POSITIVE || sum.is_nan() {
        return sum;
    }
    flush_at_the_edge(a, b, c, sum)
}

/// The rare part of [`fma_flushed`]: x86 judges a result as denormal after rounding it to 24 bits with unbounded
/// exponent, so a sum that IEEE rounds up to the least normal number is flushed where it lies below the midpoint of
/// that wider grid.
#[cold]
fn flush_at_the_edge(a: f32, b: f32, c: f32, sum: f32) -> f32 {
    // Both operands have 8 bits: the product is exact, and so is the sum this close to 2^-126.
    let exact = f64::from(a) * f64::from(b) + f64::from(c);
    let midpoint = f64::from(f32::MIN_POSITIVE) * (1.0 - f64::powi(2.0, -25));
    if exact.abs() < midpoint {
        0.0f32.copysign(sum)
    } else {
        sum
    }
}
