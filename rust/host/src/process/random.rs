//! WASI random as a stream from the launch seed, so that a launch is repeated whole by its seed.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use sha2::{Digest, Sha256};
use wasmtime_wasi::WasiCtxBuilder;

/// Largest number of bytes of one call.
const MAX_CALL_BYTES: u64 = 1 << 20;

/// Gives a program the random streams of its launch seed: secure, insecure and the insecure seed, each its own.
pub(crate) fn seed_wasi(builder: &mut WasiCtxBuilder, launch_seed: u64) {
    let [first, second] = [
        "wasi random insecure seed low",
        "wasi random insecure seed high",
    ]
    .map(|purpose| {
        let key = key(launch_seed, purpose);
        u64::from_le_bytes([
            key[0], key[1], key[2], key[3], key[4], key[5], key[6], key[7],
        ])
    });
    builder
        .secure_random(ChaCha20Rng::from_seed(key(
            launch_seed,
            "wasi random secure",
        )))
        .insecure_random(ChaCha20Rng::from_seed(key(
            launch_seed,
            "wasi random insecure",
        )))
        .insecure_random_seed(u128::from(first) | u128::from(second) << 64)
        .max_random_size(MAX_CALL_BYTES);
}

/// The key of one stream: SHA-256 of its purpose and the seed, little endian.
fn key(launch_seed: u64, purpose: &str) -> [u8; 32] {
    Sha256::new()
        .chain_update(purpose)
        .chain_update(launch_seed.to_le_bytes())
        .finalize()
        .into()
}
