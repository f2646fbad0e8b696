//! Operations on one row at a time: embedding, normalisation, biases, the gate of the MLP.

use crate::element::{Bf16, Dtype, Element};
use crate::math::{inverse_rms, silu};
use crate::simd::{Isa, Kernel, LANES, Simd};

/// Row `token` of an embedding table, as f32, times `scale`.
pub(crate) struct Embed<'a> {
    pub(crate) table: &'a [u8],
    pub(crate) dtype: Dtype,
    pub(crate) token: u32,
    pub(crate) scale: f32,
    pub(crate) out: &'a mut [f32],
}

impl Kernel for Embed<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let n_bytes = self.dtype.n_bytes();
        let row = &self.table[self.token as usize * self.out.len() * n_bytes..]
            [..self.out.len() * n_bytes];
        // A table in a file may lie at any byte, so the elements are put together from their bytes.
        match self.dtype {
            Dtype::Bf16 => {
                for (out, bytes) in self.out.iter_mut().zip(row.chunks_exact(2)) {
                    *out =
                        f32::from_bits(u32::from(u16::from_le_bytes([bytes[0], bytes[1]])) << 16)
                            * self.scale;
                }
            }
            Dtype::F32 => {
                for (out, bytes) in self.out.iter_mut().zip(row.chunks_exact(4)) {
                    *out =
                        f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) * self.scale;
                }
            }
        }
    }
}

/// x / rms(x) * weight.
pub(crate) struct RmsNorm<'a, E> {
    pub(crate) x: &'a [f32],
    pub(crate) weight: &'a [f32],
    pub(crate) epsilon: f32,
    pub(crate) out: &'a mut [E],
}

impl<E: Element> Kernel for RmsNorm<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let scale = s.splat(inverse_rms(s, self.x, self.epsilon));
        let groups = self
            .x
            .chunks(LANES)
            .zip(self.weight.chunks(LANES))
            .zip(self.out.chunks_mut(LANES));
        for ((x, weight), out) in groups {
            let v = s.mul(s.mul(s.load_some(x), scale), s.load_some(weight));
            E::store_some(s, v, out);
        }
    }
}

/// silu(gate) * up, where a row of x is the gate's outputs followed by those of up.
pub(crate) struct SwiGlu<'a, E> {
    pub(crate) x: &'a [f32],
    pub(crate) out: &'a mut [E],
}

impl<E: Element> Kernel for SwiGlu<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (gate, up) = self.x.split_at(self.out.len());
        for ((gate, up), out) in gate
            .chunks(LANES)
            .zip(up.chunks(LANES))
            .zip(self.out.chunks_mut(LANES))
        {
            E::store_some(s, s.mul(silu(s, s.load_some(gate)), s.load_some(up)), out);
        }
    }
}

/// Adds a vector: the bias of a linear.
pub(crate) struct AddVector<'a> {
    pub(crate) vector: &'a [f32],
    pub(crate) out: &'a mut [f32],
}

impl Kernel for AddVector<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for (vector, out) in self.vector.chunks(LANES).zip(self.out.chunks_mut(LANES)) {
            s.store_some(s.add(s.load_some(out), s.load_some(vector)), out);
        }
    }
}

/// x in the type that linears take.
pub(crate) struct Round<'a, E> {
    pub(crate) x: &'a [f32],
    pub(crate) out: &'a mut [E],
}

impl<E: Element> Kernel for Round<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for (x, out) in self.x.chunks(LANES).zip(self.out.chunks_mut(LANES)) {
            E::store_some(s, s.load_some(x), out);
        }
    }
}

/// Rounds a row to words of that type: pairs of bfloat16, or floats.
pub(crate) fn round_row(isa: Isa, dtype: Dtype, x: &[f32], out: &mut [u32]) {
    match dtype {
        Dtype::Bf16 => isa.run(Round::<Bf16> {
            x,
            out: bytemuck::cast_slice_mut(out),
        }),
        Dtype::F32 => isa.run(Round::<f32> {
            x,
            out: bytemuck::cast_slice_mut(out),
        }),
    }
}
