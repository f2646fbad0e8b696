//! The numbers of processes. A host counts; where others must not learn from a number how many processes there are,
//! they get it permuted.
//!
//! The permutation is a Feistel network (M. Luby, C. Rackoff, "How to construct pseudorandom permutations from
//! pseudorandom functions", 1988) of twelve rounds, whose function is SHA-256 with a key. It maps the first 2^30 counts
//! among themselves, so that people can type them, and those that follow, up to 2^52, among those: all are different,
//! and whole numbers to JavaScript too.

use std::sync::Mutex;

use sha2::{Digest, Sha256};

use crate::sync::lock;

/// Bytes of the key of a permutation.
pub const KEY_BYTES: usize = 32;

const ROUNDS: u8 = 12;
/// Bits of the numbers that are given first, and of all.
const SHORT_BITS: u32 = 30;
const ALL_BITS: u32 = 52;

/// How the numbers of processes are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbering {
    /// The first count that is not used; 0 is as 1.
    pub first: u64,
    /// The key of the permutation; none: the count is the number.
    pub key: Option<[u8; KEY_BYTES]>,
    /// Numbers below this were given unpermuted, and are left out.
    pub plain_below: u64,
}

/// Gives numbers.
#[derive(Debug)]
pub(crate) struct Numbers(Mutex<Numbering>);

impl Default for Numbers {
    fn default() -> Self {
        Self(Mutex::new(Numbering {
            first: 1,
            ..Numbering::default()
        }))
    }
}

impl Numbers {
    /// Goes on by another numbering, behind what was given.
    pub(crate) fn set(&self, new: Numbering) {
        let mut state = lock(&self.0);
        let plain_below = if state.key.is_none() { state.first } else { 0 };
        *state = Numbering {
            first: new.first.max(state.first),
            plain_below: new.plain_below.max(plain_below),
            key: new.key,
        };
    }

    /// The count of the next process.
    pub(crate) fn next(&self) -> u64 {
        lock(&self.0).first
    }

    /// The number of one more process.
    pub(crate) fn give(&self) -> u64 {
        let mut state = lock(&self.0);
        loop {
            let count = state.first;
            state.first += 1;
            let number = match &state.key {
                Some(key) => permuted(key, count),
                None => return count,
            };
            if number >= state.plain_below {
                return number;
            }
        }
    }
}

/// The number of a count. Counts of 2^52 and more, which nobody reaches, stay as they are.
fn permuted(key: &[u8; KEY_BYTES], count: u64) -> u64 {
    let place = count - 1;
    let n_short = 1 << SHORT_BITS;
    let mut number = place;
    if place < n_short {
        number = feistel(key, SHORT_BITS, place);
    } else if place < 1 << ALL_BITS {
        // What falls among the short ones is permuted again, until it does not.
        loop {
            number = feistel(key, ALL_BITS, number);
            if number >= n_short {
                break;
            }
        }
    }
    number + 1
}

/// A permutation of the numbers of an even number of bits.
fn feistel(key: &[u8; KEY_BYTES], bits: u32, number: u64) -> u64 {
    let half = bits / 2;
    let mask = (1 << half) - 1;
    let (mut left, mut right) = (number >> half, number & mask);
    for round in 0..ROUNDS {
        let mut hash = Sha256::new();
        hash.update(key);
        hash.update([round, half as u8]);
        hash.update(right.to_le_bytes());
        let digest: [u8; 32] = hash.finalize().into();
        let (mixed, _) = digest.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
        (left, right) = (right, left ^ (u64::from_le_bytes(*mixed) & mask));
    }
    left << half | right
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const KEY: [u8; KEY_BYTES] = [7; KEY_BYTES];

    #[test]
    fn a_network_maps_all_numbers_among_themselves() {
        for bits in [2, 8, 12] {
            let images: HashSet<u64> = (0..1 << bits).map(|n| feistel(&KEY, bits, n)).collect();
            assert_eq!(images.len(), 1 << bits);
            assert!(images.iter().all(|image| image >> bits == 0));
        }
    }

    #[test]
    fn numbers_differ_stay_short_and_tell_nothing_of_their_order() {
        let numbers: Vec<u64> = (1..=20_000).map(|count| permuted(&KEY, count)).collect();
        assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), numbers.len());
        assert!(
            numbers
                .iter()
                .all(|number| (1..=1 << SHORT_BITS).contains(number))
        );
        let n_up = numbers.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((9_500..10_500).contains(&n_up), "{n_up}");
        let other: Vec<u64> = (1..=100)
            .map(|count| permuted(&[8; KEY_BYTES], count))
            .collect();
        assert_ne!(other, numbers[..100]);
    }

    #[test]
    fn what_follows_is_never_what_was() {
        let first = 1 << SHORT_BITS;
        let last = permuted(&KEY, first);
        assert!(last <= first);
        for count in [first + 1, first + 2, 1 << 40, 1 << ALL_BITS] {
            let number = permuted(&KEY, count);
            assert!(
                (first + 1..=1 << ALL_BITS).contains(&number),
                "{count} {number}"
            );
        }
        assert_eq!(permuted(&KEY, u64::MAX), u64::MAX);
    }

    #[test]
    fn what_was_given_unpermuted_is_left_out() {
        let numbers = Numbers::default();
        assert_eq!((numbers.give(), numbers.give()), (1, 2));
        numbers.set(Numbering {
            first: 1,
            key: Some(KEY),
            plain_below: 1 << 29,
        });
        assert!((0..200).all(|_| numbers.give() >= 1 << 29));
        assert!(numbers.next() > 200);
        let numbers = Numbers::default();
        numbers.set(Numbering {
            first: 900,
            key: Some(KEY),
            plain_below: 0,
        });
        assert_eq!((numbers.next(), numbers.give()), (900, permuted(&KEY, 900)));
    }
}
