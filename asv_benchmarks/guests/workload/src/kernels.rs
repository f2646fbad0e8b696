//! Three computing kernels of different shape: branches, bytes, floats. Each answers a checksum of all that it
//! computed.

use serde::Deserialize;

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kernel {
    /// Sorts 16,384 numbers: branches and calls.
    Sort,
    /// Hashes 64 KiB byte by byte: the tightest loop that there is.
    Hash,
    /// Multiplies two matrices of 64 x 64 float64 numbers.
    Matrix,
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Runs a kernel so often.
pub fn run(kernel: Kernel, rounds: u32) -> u64 {
    (0..rounds).fold(SEED, |state, _| match kernel {
        Kernel::Sort => sort(state),
        Kernel::Hash => hash(state),
        Kernel::Matrix => matrix(state),
    })
}

/// The next of a sequence of numbers (xorshift64).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn sort(mut state: u64) -> u64 {
    let mut numbers: Vec<u64> = (0..16_384).map(|_| next(&mut state)).collect();
    numbers.sort_unstable();
    state ^ numbers[8_192]
}

fn hash(state: u64) -> u64 {
    let bytes: Vec<u8> = (0..65_536_u64).map(|n| (n ^ state) as u8).collect();
    let mixed = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mixed | 1
}

fn matrix(mut state: u64) -> u64 {
    const N: usize = 64;
    let mut filled = || -> Vec<f64> {
        (0..N * N)
            .map(|_| (next(&mut state) >> 40) as f64)
            .collect()
    };
    let (left, right) = (filled(), filled());
    let mut product = vec![0.0_f64; N * N];
    for row in 0..N {
        for middle in 0..N {
            let factor = left[row * N + middle];
            for column in 0..N {
                product[row * N + column] += factor * right[middle * N + column];
            }
        }
    }
    state ^ product.iter().sum::<f64>().to_bits()
}
