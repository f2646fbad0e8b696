//! From the outputs of the query, key and value linears to rotated queries and stored keys and values.
#![allow(unsafe_code)] // Writes into the pool of keys and values.

use crate::arena::Slot;
use crate::element::Element;
use crate::kv::KvLayer;
use crate::math::inverse_rms;
use crate::simd::{Isa, Kernel, LANES, Simd};

/// Heads of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heads {
    pub(crate) n_heads: usize,
    pub(crate) n_kv_heads: usize,
    pub(crate) head_dim: usize,
}

impl Heads {
    /// Width of a row of queries, keys and values, in this order.
    pub(crate) fn qkv_width(&self) -> usize {
        (self.n_heads + 2 * self.n_kv_heads) * self.head_dim
    }

    /// Width of a row of queries, and of attention's outputs.
    pub(crate) fn q_width(&self) -> usize {
        self.n_heads * self.head_dim
    }
}

/// RMS norms of the heads of queries and keys.
#[derive(Clone, Copy)]
pub(crate) struct HeadNorms<'a> {
    pub(crate) q: &'a [f32],
    pub(crate) k: &'a [f32],
    pub(crate) epsilon: f32,
}

/// What is the same for all tokens of a layer.
pub(crate) struct RotaryWrite<'a, E> {
    pub(crate) heads: Heads,
    pub(crate) norms: Option<HeadNorms<'a>>,
    /// `[positions][head_dim / 2]`.
    pub(crate) cos: &'a [f32],
    pub(crate) sin: &'a [f32],
    pub(crate) kv: KvLayer<'a, E>,
}

/// One token.
pub(crate) struct Token<'a> {
    /// Queries, keys and values; the queries and keys are normalised and rotated in place.
    pub(crate) qkv: &'a mut [f32],
    pub(crate) position: u32,
    /// Where its key and value go; None where they stand already.
    pub(crate) slot: Option<Slot>,
}

impl<E: Element> RotaryWrite<'_, E> {
    /// Rotates one token's queries and keys, and stores its key and value.
    ///
    /// # Safety
    /// Nobody reads the slot's page, or writes the slot, meanwhile.
    pub(crate) unsafe fn token(&self, isa: Isa, token: Token<'_>) {
        let Heads {
            n_heads,
            n_kv_heads,
            head_dim,
        } = self.heads;
        let half = head_dim / 2;
        let angles = token.position as usize * half..(token.position as usize + 1) * half;
        let (cos, sin) = (&self.cos[angles.clone()], &self.sin[angles]);
        let (qk, v) = token.qkv.split_at_mut((n_heads + n_kv_heads) * head_dim);
        let mut stored = vec![E::zeroed(); 2 * head_dim];
        for (head, x) in qk.chunks_exact_mut(head_dim).enumerate() {
            let norm = self.norms.map(|norms| {
                (
                    if head < n_heads { norms.q } else { norms.k },
                    norms.epsilon,
                )
            });
            let kv_head = head.checked_sub(n_heads).filter(|_| token.slot.is_some());
            let (key, value) = stored.split_at_mut(head_dim);
            let write = kv_head.map(|kv_head| Stored {
                key,
                value,
                v: &v[kv_head * head_dim..][..head_dim],
            });
            isa.run(RotateHead {
                x,
                norm,
                cos,
                sin,
                write,
            });
            if let (Some(kv_head), Some(slot)) = (kv_head, token.slot) {
                // SAFETY: the contract of this function.
                unsafe {
                    self.kv.write(
                        slot.page,
                        slot.idx,
                        kv_head,
                        &stored[..head_dim],
                        &stored[head_dim..],
                    )
                }
            }
        }
    }
}

/// The rounded key and value of a head.
struct Stored<'a, E> {
    key: &'a mut [E],
    value: &'a mut [E],
    v: &'a [f32],
}

/// Norm, rotation (first half against second half) and rounding of one head.
struct RotateHead<'a, E> {
    x: &'a mut [f32],
    norm: Option<(&'a [f32], f32)>,
    cos: &'a [f32],
    sin: &'a [f32],
    write: Option<Stored<'a, E>>,
}

impl<E: Element> Kernel for RotateHead<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        if let Some((weight, epsilon)) = self.norm {
            let scale = s.splat(inverse_rms(s, self.x, epsilon));
            for (x, weight) in self.x.chunks_mut(LANES).zip(weight.chunks(LANES)) {
                s.store_some(s.mul(s.mul(s.load_some(x), scale), s.load_some(weight)), x);
            }
        }
        let (first, second) = self.x.split_at_mut(self.cos.len());
        let halves = first.chunks_mut(LANES).zip(second.chunks_mut(LANES));
        for ((first, second), (cos, sin)) in
            halves.zip(self.cos.chunks(LANES).zip(self.sin.chunks(LANES)))
        {
            let (a, b) = (s.load_some(first), s.load_some(second));
            let (cos, sin) = (s.load_some(cos), s.load_some(sin));
            s.store_some(s.sub(s.mul(a, cos), s.mul(b, sin)), first);
            s.store_some(s.fma(b, cos, s.mul(a, sin)), second);
        }
        if let Some(Stored { key, value, v }) = self.write {
            for (x, key) in self.x.chunks(LANES).zip(key.chunks_mut(LANES)) {
                E::store_some(s, s.load_some(x), key);
            }
            for (v, value) in v.chunks(LANES).zip(value.chunks_mut(LANES)) {
                E::store_some(s, s.load_some(v), value);
            }
        }
    }
}
