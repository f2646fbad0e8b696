//! Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1,
//! 2, 3" (SC11).

/// What a draw depends on, beside the distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The seed of the generator or of the sampler.
    pub seed: u64,
    /// The index in the context of the token that is drawn.
    pub position: u32,
    /// Which of the sampled rows of a pass this is; 0 in a generator.
    pub slot: u32,
    /// Which of the draws of a slot this is.
    pub draw: u32,
}

impl Key {
    /// 64 random bits: the first two words of the block at counter (position, slot, draw, 0) under the seed.
    pub fn bits(&self) -> u64 {
        let block = philox(
            [self.position, self.slot, self.draw, 0],
            [self.seed as u32, (self.seed >> 32) as u32],
        );
        u64::from(block[0]) | u64::from(block[1]) << 32
    }
}

/// One block of four random words.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
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

    // rows: RS-110 RS-117
    #[test]
    fn known_answers_of_random123() {
        let cases = [
            (
                [0; 4],
                [0; 2],
                [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8],
            ),
            (
                [u32::MAX; 4],
                [u32::MAX; 2],
                [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
            ),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, expected) in cases {
            assert_eq!(philox(counter, key), expected);
        }
    }

    // rows: RS-110 RS-117
    #[test]
    fn every_part_of_the_key_matters() {
        let key = Key {
            seed: 7,
            position: 1,
            slot: 0,
            draw: 0,
        };
        let others = [
            Key {
                seed: 7 << 32,
                ..key
            },
            Key { position: 2, ..key },
            Key { slot: 1, ..key },
            Key { draw: 1, ..key },
        ];
        for other in others {
            assert_ne!(key.bits(), other.bits());
        }
    }
}
