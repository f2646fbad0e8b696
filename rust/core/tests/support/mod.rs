//! What the engine must give on the dummy driver, written naively and apart from the engine.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file is a crate of its own and uses a part"
)]

pub mod world;

use pie_core::sampling::{Key, Params, Scratch, sample};

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub fn fold(hash: u64, word: u64) -> u64 {
    mix(hash.wrapping_add(GOLDEN) ^ word)
}

pub fn fold_all(start: u64, words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(start, fold)
}

/// The logits after the last of these tokens.
pub fn row(model: &str, vocab_size: u32, tokens: &[u32]) -> Vec<f32> {
    let mut seen: Vec<u64> = Vec::new();
    for (position, &token) in tokens.iter().enumerate() {
        let own = fold_all(0, [u64::from(token), position as u64, 0, 0, 0, 0, 0]);
        seen.push(fold(fold_all(own, seen.iter().copied()), 1));
    }
    let name = fold_all(fold(0, model.len() as u64), model.bytes().map(u64::from));
    let base = fold(*seen.last().unwrap(), name);
    (1..=u64::from(vocab_size))
        .map(|n| (mix(base.wrapping_add(n.wrapping_mul(GOLDEN))) >> 40) as f32 / 1_048_576.0 - 8.0)
        .collect()
}

/// The token that follows these.
pub fn next_token(model: &str, vocab_size: u32, tokens: &[u32], params: &Params, seed: u64) -> u32 {
    let logits = row(model, vocab_size, tokens);
    let key = Key {
        seed,
        position: tokens.len() as u32,
        slot: 0,
        draw: 0,
    };
    sample(&logits, params, &[], key, &mut Scratch::default()).unwrap()
}

/// The seed of a generation that nobody gave one.
pub fn derived_seed(launch_seed: u64, path: u64, tokens: &[u32], before: u64) -> u64 {
    let digest = fold_all(0, tokens.iter().map(|&token| u64::from(token)));
    fold_all(0, [launch_seed, fold(path, digest), before])
}
