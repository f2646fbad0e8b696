//! Reading memory and nothing else: the yardstick of every operation that streams weights.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Result;
use crate::pool::Pool;
use crate::simd::{Isa, Kernel, LANES, Simd};

/// Vectors that are read together: 256 bytes, as a strip of a linear has them.
const TOGETHER: usize = 4;
/// Words that a thread takes at once: 1 MiB.
const AT_ONCE: usize = 1 << 18;
/// How far ahead is prefetched, in words: 512 bytes, as the linears do.
const AHEAD: usize = 128;

/// Reads all words, those after the last whole group of 256 bytes aside; returns the exclusive or of what was read.
pub(crate) fn stream(pool: &mut Pool, isa: Isa, words: &[u32]) -> Result<u32> {
    let n_pieces = words.len().div_ceil(AT_ONCE);
    let parity = AtomicU32::new(0);
    pool.for_each(n_pieces, 1, |pieces, _thread_idx| {
        for piece in pieces {
            let words = &words[piece * AT_ONCE..words.len().min((piece + 1) * AT_ONCE)];
            parity.fetch_xor(isa.run(Parity { words }), Ordering::Relaxed);
        }
    })?;
    Ok(parity.into_inner())
}

/// The exclusive or of words.
struct Parity<'a> {
    words: &'a [u32],
}

impl Kernel for Parity<'_> {
    type Output = u32;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> u32 {
        let mut sums = [[0u32; LANES]; TOGETHER];
        for group in self.words.as_chunks::<{ TOGETHER * LANES }>().0 {
            for (v, sum) in sums.iter_mut().enumerate() {
                s.prefetch(group.as_ptr().wrapping_add(AHEAD + v * LANES));
                for (lane, sum) in sum.iter_mut().enumerate() {
                    *sum ^= group[v * LANES + lane];
                }
            }
        }
        sums.as_flattened()
            .iter()
            .fold(0, |parity, word| parity ^ word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::all_isas;

    #[test]
    fn every_word_is_read_once() {
        let words: Vec<u32> = (0..3 * AT_ONCE as u32 + 640)
            .map(|n| n.wrapping_mul(0x9e37_79b9).rotate_left(n % 31))
            .collect();
        let expected = words.iter().fold(0, |parity, word| parity ^ word);
        for isa in all_isas() {
            assert_eq!(
                stream(&mut Pool::new(2).unwrap(), isa, &words).unwrap(),
                expected
            );
        }
    }
}
