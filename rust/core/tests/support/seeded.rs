//! Runs that are drawn: what the environment asks for, and the generator of a seed.

use std::env;

use proptest::test_runner::{RngAlgorithm, TestRng};

use super::fold;

/// The number of an environment variable.
pub fn setting(name: &str, default: u64) -> u64 {
    match env::var(name) {
        Ok(value) => value.parse().expect("a number"),
        Err(_) => default,
    }
}

/// The generator of a seed. Not ChaCha: a strategy makes a generator for each of its values, which costs a third of a
/// run of the simulation there.
pub fn rng(seed: u64) -> TestRng {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&fold(seed, 1).to_le_bytes());
    bytes[8..].copy_from_slice(&fold(seed, 2).to_le_bytes());
    TestRng::from_seed(RngAlgorithm::XorShift, &bytes)
}
