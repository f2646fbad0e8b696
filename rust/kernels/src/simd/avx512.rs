//! Sixteen lanes in a 512-bit register.
#![allow(unsafe_code)] // Vector instructions: sound because a value of `Avx512` exists only on a CPU that has them.

use std::arch::x86_64::*;

use super::lanes::{LANES, Simd};

/// AVX-512 F, BW, DQ, VL and BF16.
#[derive(Clone, Copy)]
pub(crate) struct Avx512 {
    /// Keeps values from being made outside of `detect`.
    _detected: (),
}

impl Avx512 {
    /// The proof that this CPU has the instructions, where it has.
    pub(super) fn detect() -> Option<Self> {
        let has_all = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bf16")
            && is_x86_feature_detected!("fma");
        has_all.then_some(Self { _detected: () })
    }
}

/// The lowest `n` lanes.
#[inline(always)]
fn first(n: usize) -> __mmask16 {
    if n >= LANES { !0 } else { (1 << n) - 1 }
}

// SAFETY of the blocks below: `self` proves that the CPU has the instructions; loads and stores stay inside their
// references, which the types or the masks bound.
impl Simd for Avx512 {
    type V = __m512;
    type W = __m512i;

    // 24 of 32 registers; 8 are left for W and x.
    const TILE_ROWS: usize = 6;
    const TILE_SUMS: usize = 24;

    #[inline(always)]
    fn vectorize<R, F: FnOnce() -> R>(self, f: F) -> R {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma")]
        #[inline]
        fn call<R, F: FnOnce() -> R>(f: F) -> R {
            f()
        }
        unsafe { call(f) }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    fn load(self, x: &[f32; LANES]) -> __m512 {
        unsafe { _mm512_loadu_ps(x.as_ptr()) }
    }

    #[inline(always)]
    fn load_some(self, x: &[f32]) -> __m512 {
        unsafe { _mm512_maskz_loadu_ps(first(x.len()), x.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, v: __m512, out: &mut [f32; LANES]) {
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), v) }
    }

    #[inline(always)]
    fn store_some(self, v: __m512, out: &mut [f32]) {
        unsafe { _mm512_mask_storeu_ps(out.as_mut_ptr(), first(out.len()), v) }
    }

    #[inline(always)]
    fn load_bf16_some(self, x: &[u16]) -> __m512 {
        unsafe { widen(_mm256_maskz_loadu_epi16(first(x.len()), x.as_ptr().cast())) }
    }

    #[inline(always)]
    fn store_bf16_some(self, v: __m512, out: &mut [u16]) {
        unsafe {
            let narrow: __m256i = std::mem::transmute(_mm512_cvtneps_pbh(v));
            _mm256_mask_storeu_epi16(out.as_mut_ptr().cast(), first(out.len()), narrow);
        }
    }

    #[inline(always)]
    fn load_words(self, x: &[u32; LANES]) -> __m512i {
        unsafe { _mm512_loadu_si512(x.as_ptr().cast()) }
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_div_ps(a, b) }
    }

    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_min_ps(a, b) }
    }

    #[inline(always)]
    fn zero_below(self, x: __m512, limit: __m512, v: __m512) -> __m512 {
        unsafe { _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, limit), v) }
    }

    #[inline(always)]
    fn pow2(self, shifted: __m512) -> __m512 {
        unsafe {
            let exponent = _mm512_slli_epi32::<23>(_mm512_castps_si512(shifted));
            _mm512_castsi512_ps(_mm512_add_epi32(
                exponent,
                _mm512_castps_si512(_mm512_set1_ps(1.0)),
            ))
        }
    }

    #[inline(always)]
    fn dot_f32(self, acc: __m512, x: u32, w: __m512i) -> __m512 {
        unsafe {
            _mm512_fmadd_ps(
                _mm512_set1_ps(f32::from_bits(x)),
                _mm512_castsi512_ps(w),
                acc,
            )
        }
    }

    #[inline(always)]
    fn dot_bf16(self, acc: __m512, x: u32, w: __m512i) -> __m512 {
        unsafe {
            let x: __m512bh = std::mem::transmute(_mm512_set1_epi32(x as i32));
            _mm512_dpbf16_ps(acc, x, std::mem::transmute::<__m512i, __m512bh>(w))
        }
    }

    #[inline(always)]
    fn prefetch(self, address: *const u32) {
        // A prefetch never faults, so any address will do.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
}

#[inline(always)]
fn widen(halves: __m256i) -> __m512 {
    unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves))) }
}
