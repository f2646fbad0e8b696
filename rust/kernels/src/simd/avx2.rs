//! Sixteen lanes in two 256-bit registers.
#![allow(unsafe_code)] // Vector instructions: sound because a value of `Avx2` exists only on a CPU that has them.

use std::arch::x86_64::*;
use std::hint::black_box;

use super::lanes::{LANES, Simd};
use crate::float_env::FloatEnvironment;

/// Lanes of one register.
const HALF: usize = LANES / 2;

/// AVX2 and FMA.
#[derive(Clone, Copy)]
pub(crate) struct Avx2 {
    /// Keeps values from being made outside of `detect`.
    _detected: (),
}

impl Avx2 {
    /// The proof that this CPU has the instructions, where it has.
    pub(super) fn detect() -> Option<Self> {
        let has_all = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        has_all.then_some(Self { _detected: () })
    }
}

/// Eight lanes of ones for each of the first `n` lanes of a register, zeros for the rest.
#[inline(always)]
fn first(n: usize) -> __m256i {
    // SAFETY: plain integer arithmetic, by the proof that every caller holds.
    unsafe {
        let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_cmpgt_epi32(_mm256_set1_epi32(n.min(HALF) as i32), lanes)
    }
}

/// An operation on both registers.
macro_rules! both {
    ($f:ident, $($v:expr),+) => {
        unsafe { [$f($($v[0]),+), $f($($v[1]),+)] }
    };
}

// SAFETY of the blocks below: `self` proves that the CPU has the instructions; loads and stores stay inside their
// references, which the types or the masks bound.
impl Simd for Avx2 {
    type V = [__m256; 2];
    type W = [__m256i; 2];

    // Sixteen registers: six vectors of sums are twelve of them.
    const TILE_ROWS: usize = 3;
    const TILE_SUMS: usize = 6;

    #[inline(always)]
    fn vectorize<R, F: FnOnce() -> R>(self, f: F) -> R {
        #[target_feature(enable = "avx2,fma")]
        #[inline]
        fn call<R, F: FnOnce() -> R>(f: F) -> R {
            f()
        }
        unsafe { call(f) }
    }

    /// Sets flush-to-zero and denormals-are-zero, which `vdpbf16ps` implies, for the time of the call.
    ///
    /// The compiler knows nothing of the control register. What keeps the arithmetic of `f` between its two changes is
    /// data: the operands come out of a black box after the first change, the results go into one before the second.
    #[inline(always)]
    fn flushing<R, F: FnOnce() -> R>(self, f: F) -> R {
        let _environment = FloatEnvironment::enter_flushing();
        let f = black_box(f);
        black_box(self.vectorize(f))
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        unsafe { [_mm256_set1_ps(x); 2] }
    }

    #[inline(always)]
    fn load(self, x: &[f32; LANES]) -> Self::V {
        unsafe {
            [
                _mm256_loadu_ps(x.as_ptr()),
                _mm256_loadu_ps(x.as_ptr().add(HALF)),
            ]
        }
    }

    #[inline(always)]
    fn load_some(self, x: &[f32]) -> Self::V {
        if let Some(x) = x.first_chunk() {
            return self.load(x);
        }
        let n = x.len();
        unsafe {
            [
                _mm256_maskload_ps(x.as_ptr(), first(n)),
                _mm256_maskload_ps(x.as_ptr().wrapping_add(HALF), first(n.saturating_sub(HALF))),
            ]
        }
    }

    #[inline(always)]
    fn store(self, v: Self::V, out: &mut [f32; LANES]) {
        unsafe {
            _mm256_storeu_ps(out.as_mut_ptr(), v[0]);
            _mm256_storeu_ps(out.as_mut_ptr().add(HALF), v[1]);
        }
    }

    #[inline(always)]
    fn store_some(self, v: Self::V, out: &mut [f32]) {
        if let Some(out) = out.first_chunk_mut() {
            return self.store(v, out);
        }
        let (n, start) = (out.len(), out.as_mut_ptr());
        unsafe {
            _mm256_maskstore_ps(start, first(n), v[0]);
            _mm256_maskstore_ps(
                start.wrapping_add(HALF),
                first(n.saturating_sub(HALF)),
                v[1],
            );
        }
    }

    #[inline(always)]
    fn load_bf16_some(self, x: &[u16]) -> Self::V {
        let mut some = [0u16; LANES];
        let x: &[u16; LANES] = x.first_chunk().unwrap_or_else(|| {
            some[..x.len()].copy_from_slice(x);
            &some
        });
        unsafe {
            let halves = [
                _mm_loadu_si128(x.as_ptr().cast()),
                _mm_loadu_si128(x.as_ptr().add(HALF).cast()),
            ];
            halves.map(|half| {
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(half)))
            })
        }
    }

    #[inline(always)]
    fn store_bf16_some(self, v: Self::V, out: &mut [u16]) {
        unsafe {
            let [low, high] = v.map(|v| narrow(v));
            // Packing works on 128-bit lanes: the quarters come out as low, high, low, high.
            let mixed = _mm256_packus_epi32(low, high);
            let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(mixed);
            if out.len() >= LANES {
                _mm256_storeu_si256(out.as_mut_ptr().cast(), ordered);
                return;
            }
            let mut some = [0u16; LANES];
            _mm256_storeu_si256(some.as_mut_ptr().cast(), ordered);
            out.copy_from_slice(&some[..out.len()]);
        }
    }

    #[inline(always)]
    fn load_words(self, x: &[u32; LANES]) -> Self::W {
        unsafe {
            [
                _mm256_loadu_si256(x.as_ptr().cast()),
                _mm256_loadu_si256(x.as_ptr().add(HALF).cast()),
            ]
        }
    }

    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        both!(_mm256_add_ps, a, b)
    }

    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        both!(_mm256_sub_ps, a, b)
    }

    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        both!(_mm256_mul_ps, a, b)
    }

    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        both!(_mm256_div_ps, a, b)
    }

    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        both!(_mm256_fmadd_ps, a, b, c)
    }

    #[inline(always)]
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        both!(_mm256_max_ps, a, b)
    }

    #[inline(always)]
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        both!(_mm256_min_ps, a, b)
    }

    #[inline(always)]
    fn zero_below(self, x: Self::V, limit: Self::V, v: Self::V) -> Self::V {
        let keep = both!(not_less, x, limit);
        both!(_mm256_and_ps, keep, v)
    }

    #[inline(always)]
    fn pow2(self, shifted: Self::V) -> Self::V {
        unsafe {
            let one = _mm256_castps_si256(_mm256_set1_ps(1.0));
            shifted.map(|x| {
                let exponent = _mm256_slli_epi32::<23>(_mm256_castps_si256(x));
                _mm256_castsi256_ps(_mm256_add_epi32(exponent, one))
            })
        }
    }

    #[inline(always)]
    fn dot_f32(self, acc: Self::V, x: u32, w: Self::W) -> Self::V {
        let x = self.splat(f32::from_bits(x));
        let w = unsafe { w.map(|w| _mm256_castsi256_ps(w)) };
        self.fma(x, w, acc)
    }

    #[inline(always)]
    fn dot_bf16(self, acc: Self::V, x: u32, w: Self::W) -> Self::V {
        unsafe {
            let upper = _mm256_set1_epi32(0xffff_0000u32 as i32);
            let x = _mm256_set1_epi32(x as i32);
            let (x_even, x_odd) = (_mm256_slli_epi32::<16>(x), _mm256_and_si256(x, upper));
            let (x_even, x_odd) = (_mm256_castsi256_ps(x_even), _mm256_castsi256_ps(x_odd));
            std::array::from_fn(|half| {
                let w_odd = _mm256_castsi256_ps(_mm256_and_si256(w[half], upper));
                let w_even = _mm256_castsi256_ps(_mm256_slli_epi32::<16>(w[half]));
                _mm256_fmadd_ps(x_even, w_even, _mm256_fmadd_ps(x_odd, w_odd, acc[half]))
            })
        }
    }

    #[inline(always)]
    fn prefetch(self, address: *const u32) {
        // A prefetch never faults, so any address will do.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
}

/// All ones where `x >= limit`, or one of them is NaN.
#[inline(always)]
unsafe fn not_less(x: __m256, limit: __m256) -> __m256 {
    unsafe { _mm256_cmp_ps::<_CMP_NLT_UQ>(x, limit) }
}

/// f32 to bfloat16 in the lower half of each lane, as `vcvtneps2bf16` does it.
#[inline(always)]
unsafe fn narrow(v: __m256) -> __m256i {
    unsafe {
        let bits = _mm256_castps_si256(v);
        let upper = _mm256_srli_epi32::<16>(bits);
        let last = _mm256_and_si256(upper, _mm256_set1_epi32(1));
        let rounder = _mm256_add_epi32(_mm256_set1_epi32(0x7fff), last);
        let rounded = _mm256_srli_epi32::<16>(_mm256_add_epi32(bits, rounder));
        let exponent = _mm256_and_si256(bits, _mm256_set1_epi32(0x7f80_0000));
        let is_denormal = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
        let signed_zero = _mm256_and_si256(upper, _mm256_set1_epi32(0x8000));
        let rounded = _mm256_blendv_epi8(rounded, signed_zero, is_denormal);
        let quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
        let is_nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(v, v));
        _mm256_blendv_epi8(rounded, quiet, is_nan)
    }
}
