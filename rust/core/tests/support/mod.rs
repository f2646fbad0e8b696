//! What the engine must give on the dummy driver, written naively and apart from the engine.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file is a crate of its own and uses a part"
)]

pub mod probing;
pub mod sampling;
pub mod seeded;
pub mod world;

use pie_core::Adapter;
use pie_core::sampling::{Key, Params};

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

/// A slot of a context: what was written there, and the hash of it and of all that it saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    pub token: u32,
    pub position: u32,
    /// Whether the token sees each slot up to its own.
    pub seen: Vec<bool>,
    pub adapter: Adapter,
    pub hash: u64,
}

/// What a token comes to behind other slots.
pub fn write(
    before: &[Slot],
    token: u32,
    position: u32,
    seen: Vec<bool>,
    adapter: Adapter,
) -> Slot {
    let zo = adapter.zo_seed;
    let own = [
        u64::from(token),
        u64::from(position),
        adapter.id,
        u64::from(adapter.version),
        u64::from(zo.is_some()),
        zo.unwrap_or(0),
        0,
    ];
    let mut hash = fold_all(0, own);
    for (slot, _) in before.iter().zip(&seen).filter(|(_, seen)| **seen) {
        hash = fold(hash, slot.hash);
    }
    hash = fold(hash, u64::from(seen[before.len()]));
    Slot {
        token,
        position,
        seen,
        adapter,
        hash,
    }
}

/// The same at its own position, seeing everything.
pub fn write_plain(before: &[Slot], token: u32, adapter: Adapter) -> Slot {
    let seen = vec![true; before.len() + 1];
    write(before, token, before.len() as u32, seen, adapter)
}

/// The logits behind a slot.
pub fn row_of(model: &str, vocab_size: u32, slot: &Slot) -> Vec<f32> {
    let name = fold_all(fold(0, model.len() as u64), model.bytes().map(u64::from));
    values(fold(slot.hash, name), vocab_size)
}

/// The hidden state behind a slot.
pub fn state_of(model: &str, vocab_size: u32, slot: &Slot) -> Vec<f32> {
    let name = fold_all(fold(0, model.len() as u64), model.bytes().map(u64::from));
    values(fold(fold(slot.hash, name), 1), vocab_size.min(8))
}

fn values(base: u64, n: u32) -> Vec<f32> {
    (1..=u64::from(n))
        .map(|n| (mix(base.wrapping_add(n.wrapping_mul(GOLDEN))) >> 40) as f32 / 1_048_576.0 - 8.0)
        .collect()
}

/// The logits after the last of these tokens.
pub fn row(model: &str, vocab_size: u32, tokens: &[u32]) -> Vec<f32> {
    let mut slots: Vec<Slot> = Vec::new();
    for &token in tokens {
        slots.push(write_plain(&slots, token, Adapter::default()));
    }
    row_of(model, vocab_size, slots.last().unwrap())
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
    sampling::drawn(&logits, params, &[], key).unwrap()
}

/// The words in a path before the number of a saving, and before that of an opening.
pub const SAVED: u64 = u64::from_be_bytes(*b"\0\0\0saved");
pub const OPENED: u64 = u64::from_be_bytes(*b"\0\0opened");

/// The seed of a generation that nobody gave one.
pub fn derived_seed(launch_seed: u64, path: u64, tokens: &[u32], before: u64) -> u64 {
    let digest = fold_all(0, tokens.iter().map(|&token| u64::from(token)));
    fold_all(0, [launch_seed, fold(path, digest), before])
}
