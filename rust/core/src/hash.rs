//! The one hash of the core: 64-bit words folded by the finalizer of SplitMix64 (Steele, Lea, Flood 2014). Seeds and
//! the dummy driver use it; it is a few lines in any language and the same everywhere. It is not meant to withstand an
//! attacker.

/// The increment of SplitMix64: 2^64 divided by the golden ratio.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes the bits of a word; a bijection.
#[inline]
pub const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Folds a word into a hash: `mix((hash + GOLDEN) xor word)`. The order of words matters.
#[inline]
pub const fn fold(hash: u64, word: u64) -> u64 {
    mix(hash.wrapping_add(GOLDEN) ^ word)
}

/// The hash of a text: its length in bytes, then each byte, folded into 0.
pub fn of_text(text: &str) -> u64 {
    text.bytes().fold(fold(0, text.len() as u64), |hash, byte| {
        fold(hash, u64::from(byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixing_counts_is_splitmix64() {
        // The first outputs of SplitMix64 seeded with 1234567, as published with its reference code.
        let outputs: Vec<u64> = (1..=3u64)
            .map(|n| mix(1_234_567u64.wrapping_add(n.wrapping_mul(GOLDEN))))
            .collect();
        assert_eq!(
            outputs,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn order_and_length_matter() {
        assert_ne!(fold(fold(0, 1), 2), fold(fold(0, 2), 1));
        assert_ne!(of_text("a"), of_text("a\0"));
    }
}
