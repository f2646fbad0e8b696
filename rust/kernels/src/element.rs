//! How a number is stored: f32, or bfloat16.

use bytemuck::{Pod, Zeroable};

use crate::simd::Simd;

/// The type of weights, of the inputs of linears and of stored keys and values. Arithmetic is in f32 for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    /// 16 bits: 8 of exponent, 7 of mantissa.
    Bf16,
    /// 32 bits.
    F32,
}

impl Dtype {
    /// The type of that code at the C boundary.
    pub(crate) fn from_code(code: u32) -> Option<Self> {
        match code {
            1 => Some(Self::Bf16),
            2 => Some(Self::F32),
            _ => None,
        }
    }

    /// Bytes of one element.
    pub(crate) fn n_bytes(self) -> usize {
        match self {
            Self::Bf16 => 2,
            Self::F32 => 4,
        }
    }
}

/// The bits of a bfloat16.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Bf16(pub(crate) u16);

/// A stored number that lanes of f32 can be made of.
pub(crate) trait Element: Pod + Send + Sync {
    /// The first 16 elements; zeros where there are fewer.
    fn load_some<S: Simd>(s: S, x: &[Self]) -> S::V;
    /// The first lanes, rounded, as many as `out` has room for.
    fn store_some<S: Simd>(s: S, v: S::V, out: &mut [Self]);
}

impl Element for f32 {
    #[inline(always)]
    fn load_some<S: Simd>(s: S, x: &[f32]) -> S::V {
        s.load_some(x)
    }

    #[inline(always)]
    fn store_some<S: Simd>(s: S, v: S::V, out: &mut [f32]) {
        s.store_some(v, out);
    }
}

impl Element for Bf16 {
    #[inline(always)]
    fn load_some<S: Simd>(s: S, x: &[Bf16]) -> S::V {
        s.load_bf16_some(bytemuck::cast_slice(x))
    }

    #[inline(always)]
    fn store_some<S: Simd>(s: S, v: S::V, out: &mut [Bf16]) {
        s.store_bf16_some(v, bytemuck::cast_slice_mut(out));
    }
}
