//! The noise by which adapters are perturbed: a function of a seed, a stream and an index, made where it is used.
//!
//! A word of Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11) gives a
//! number: its four bytes are summed, and the sum is shifted to the mean 0 and scaled to the variance 1. That is close
//! to a normal distribution, and exact: integers, one conversion without rounding and one product. So every back end
//! has the same bits (`python/pie/backends/adapters/noise.py` is the other one).

/// 1 / sqrt(4 * 21845): four uniform bytes have the variance 21845, and twice their sum is taken.
const SCALE: f32 = 0.003_382_937;
/// Twice the mean of four bytes.
const TWICE_MEAN: i32 = 1020;

/// Which noise: that of a matrix under a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoiseStream {
    pub(crate) seed: u64,
    /// The number of the matrix.
    pub(crate) number: u32,
}

impl NoiseStream {
    /// Writes the numbers from the index `first` on.
    pub(crate) fn fill(self, first: u64, out: &mut [f32]) {
        let key = [self.seed as u32, (self.seed >> 32) as u32];
        let mut block_idx = first / 4;
        let mut lane = (first % 4) as usize;
        let mut rest = out;
        while !rest.is_empty() {
            let counter = [block_idx as u32, (block_idx >> 32) as u32, self.number, 0];
            let words = philox(counter, key);
            let n = rest.len().min(4 - lane);
            let (now, later) = rest.split_at_mut(n);
            for (out, &word) in now.iter_mut().zip(&words[lane..]) {
                *out = number_of(word);
            }
            rest = later;
            lane = 0;
            block_idx += 1;
        }
    }
}

/// The number of a word.
fn number_of(word: u32) -> f32 {
    let sum: u32 = word.to_le_bytes().into_iter().map(u32::from).sum();
    (2 * sum as i32 - TWICE_MEAN) as f32 * SCALE
}

/// One block of four random words.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let left = u64::from(counter[0]) * 0xd251_1f53;
        let right = u64::from(counter[2]) * 0xcd9e_8d57;
        counter = [
            (right >> 32) as u32 ^ counter[1] ^ key[0],
            right as u32,
            (left >> 32) as u32 ^ counter[3] ^ key[1],
            left as u32,
        ];
        key = [
            key[0].wrapping_add(0x9e37_79b9),
            key[1].wrapping_add(0xbb67_ae85),
        ];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: NoiseStream = NoiseStream {
        seed: 0x0123_4567_89ab_cdef,
        number: 7,
    };

    #[test]
    fn a_known_answer_of_random123() {
        let zeros = [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
        assert_eq!(philox([0; 4], [0; 2]), zeros);
    }

    #[test]
    fn a_number_depends_on_its_index_alone() {
        let mut whole = [0.0; 64];
        STREAM.fill(0, &mut whole);
        for first in 0..20 {
            let mut part = [0.0; 23];
            STREAM.fill(first, &mut part);
            assert_eq!(part, whole[first as usize..][..23]);
        }
    }

    #[test]
    fn it_has_the_mean_0_and_the_variance_1() {
        let mut numbers = vec![0.0; 1 << 18];
        STREAM.fill(0, &mut numbers);
        let n = numbers.len() as f64;
        let mean = numbers.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
        let squares = numbers.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / n;
        assert!(
            mean.abs() < 0.01 && (squares - 1.0).abs() < 0.01,
            "{mean}, {squares}"
        );
    }

    #[test]
    fn seeds_and_streams_differ() {
        let numbers = |seed, number| {
            let mut out = [0.0; 32];
            NoiseStream { seed, number }.fill(0, &mut out);
            out
        };
        assert_ne!(numbers(1, 0), numbers(2, 0));
        assert_ne!(numbers(1, 0), numbers(1, 1));
        assert_ne!(numbers(1, 0), numbers(1 << 32, 0));
    }
}
