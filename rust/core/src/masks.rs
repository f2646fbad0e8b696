//! Masks as programs make and combine them, over the run lengths of [`crate::brle`]. Everything takes time and memory
//! in proportion to what is given and what is returned, and both have bounds.
//!
//! The shortest form of a mask has no run of 0 but the first and no run at the end that forbids. It is empty exactly
//! where nothing is forbidden.

use std::ops::Range;
use std::sync::Arc;

use crate::brle;
use crate::errors::{Error, ErrorCode, Result};

/// The most elements of a row: that of a vocabulary and that of a context are shorter.
pub const MAX_LEN: u32 = 1 << 24;
/// The most tokens for which masks are made at once.
pub const MAX_TOKENS: u32 = 1 << 20;

/// A mask over the vocabulary, in its shortest form, that allows a token at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenMask(Arc<[u32]>);

impl TokenMask {
    /// The mask of these runs.
    ///
    /// # Errors
    /// Those of [`check`]; `invalid-argument` where it allows nothing.
    pub fn new(mask: &[u32], vocab_size: u32) -> Result<Self> {
        check(mask, vocab_size)?;
        Self::of_checked(brle::shortest(mask, vocab_size))
    }

    /// What both allow.
    pub(crate) fn and(&self, other: &[u32], vocab_size: u32) -> Result<Self> {
        if other.is_empty() {
            return Ok(self.clone());
        }
        let both = brle::and(&self.0, other, vocab_size);
        Self::of_checked(brle::shortest(&both, vocab_size))
    }

    fn of_checked(shortest: Vec<u32>) -> Result<Self> {
        if shortest == [0] {
            return Err(refused(
                "the token mask allows nothing; allow at least one token",
            ));
        }
        Ok(Self(Arc::from(shortest)))
    }

    /// Its runs.
    pub(crate) const fn runs(&self) -> &Arc<[u32]> {
        &self.0
    }
}

/// Checks that a mask fits its row, and that it has no more runs than it needs at most.
///
/// # Errors
/// `invalid-argument`, naming both lengths.
pub fn check(mask: &[u32], len: u32) -> Result<()> {
    if mask.len() as u64 > u64::from(len) + 1 {
        return Err(refused(&format!(
            "a mask has {} runs and its row {len} elements; leave out runs of 0, so that there is one for each element \
             at most",
            mask.len()
        )));
    }
    brle::check(mask, len)
}

/// The shortest form of a mask.
///
/// # Errors
/// As [`check`]; `invalid-argument` for a row of more than [`MAX_LEN`] elements.
pub fn shortest(mask: &[u32], len: u32) -> Result<Vec<u32>> {
    check_row(len)?;
    check(mask, len)?;
    Ok(brle::shortest_of(brle::allowed(mask, len), len))
}

/// The shortest form of what all masks allow; of none, of what is not restricted.
///
/// # Errors
/// As [`shortest`].
pub fn intersection<M: AsRef<[u32]>>(masks: &[M], len: u32) -> Result<Vec<u32>> {
    check_row(len)?;
    masks
        .iter()
        .try_for_each(|mask| check(mask.as_ref(), len))?;
    // Two by two: one after the other, a long mask would be gone over as often as there are others.
    let mut both = pairs(masks, len);
    while both.len() > 1 {
        both = pairs(&both, len);
    }
    let both = both.pop().unwrap_or_default();
    Ok(if both == [0, len] || len == 0 {
        Vec::new()
    } else {
        both
    })
}

/// What each two of the masks allow, in their canonical form.
fn pairs<M: AsRef<[u32]>>(masks: &[M], len: u32) -> Vec<Vec<u32>> {
    let pairs = masks.chunks(2).map(|pair| match pair {
        [left, right] => brle::and(left.as_ref(), right.as_ref(), len),
        alone => alone
            .first()
            .map_or_else(Vec::new, |mask| brle::shortest(mask.as_ref(), len)),
    });
    pairs.collect()
}

/// The shortest form of the mask that allows these elements, which may stand in any order, and repeat.
///
/// # Errors
/// `invalid-argument` for an element beyond the row, and for a row of more than [`MAX_LEN`] elements.
pub fn allowing(elements: &[u32], len: u32) -> Result<Vec<u32>> {
    check_row(len)?;
    if let Some(element) = elements.iter().find(|&&element| element >= len) {
        return Err(refused(&format!(
            "element {element} is beyond a row of {len}; give elements below {len}"
        )));
    }
    let mut sorted = elements.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    Ok(brle::shortest_of(
        sorted.into_iter().map(|element| element..element + 1),
        len,
    ))
}

/// The elements that a mask allows, ascending.
///
/// # Errors
/// As [`shortest`].
pub fn allowed(mask: &[u32], len: u32) -> Result<Vec<u32>> {
    check_row(len)?;
    check(mask, len)?;
    Ok(brle::allowed(mask, len).flatten().collect())
}

/// A bit an element, the lowest bit of each byte first; bits beyond the row are 0.
///
/// # Errors
/// As [`shortest`].
pub fn pack(mask: &[u32], len: u32) -> Result<Vec<u8>> {
    check_row(len)?;
    check(mask, len)?;
    let mut bytes = vec![0; len.div_ceil(8) as usize];
    for range in brle::allowed(mask, len) {
        set(&mut bytes, range.start as usize..range.end as usize);
    }
    Ok(bytes)
}

/// The shortest form of the mask of these bits.
///
/// # Errors
/// `invalid-argument` where there are not as many bytes as the row needs, where a bit beyond the row is set, and for a
/// row of more than [`MAX_LEN`] elements.
pub fn unpack(bits: &[u8], len: u32) -> Result<Vec<u32>> {
    check_row(len)?;
    let n_bytes = len.div_ceil(8) as usize;
    if bits.len() != n_bytes {
        return Err(refused(&format!(
            "a mask has {} bytes, and a row of {len} elements has {n_bytes}; give a bit for each element",
            bits.len()
        )));
    }
    let n_last = len % 8;
    if n_last > 0 && bits.last().is_some_and(|last| last >> n_last != 0) {
        return Err(refused(&format!(
            "a bit beyond the {len} elements of the row is set; leave those bits 0"
        )));
    }
    Ok(brle::shortest_of(ranges(bits), len))
}

/// For each of `n` tokens from slot `start` on, the attention mask that shows its own slot, the `window - 1` slots
/// before it, and the first `sinks` slots of the context.
///
/// # Errors
/// `invalid-argument` for a window of 0, more than [`MAX_TOKENS`] tokens, and slots beyond [`MAX_LEN`].
pub fn window(start: u32, n: u32, window: u32, sinks: u32) -> Result<Vec<Vec<u32>>> {
    if window == 0 {
        return Err(refused("a window of 0 shows nothing; give at least 1"));
    }
    let ends = check_tokens(start, n)?.map(|slot| slot + 1);
    let mask = |end: u32| {
        let first = end.saturating_sub(window);
        brle::from_ranges([0..sinks.min(first), first..end])
    };
    Ok(ends.map(mask).collect())
}

/// For each of `n` tokens from slot `start` on, the attention mask that shows all slots up to its own.
///
/// # Errors
/// `invalid-argument` for more than [`MAX_TOKENS`] tokens, and slots beyond [`MAX_LEN`].
pub fn causal(start: u32, n: u32) -> Result<Vec<Vec<u32>>> {
    let slots = check_tokens(start, n)?;
    Ok(slots.map(|slot| vec![0, slot + 1]).collect())
}

/// Sets bits.
fn set(bytes: &mut [u8], bits: Range<usize>) {
    let (first, last) = (bits.start / 8, (bits.end - 1) / 8);
    let from_start = 0xFF << (bits.start % 8);
    let to_end = 0xFF >> (7 - (bits.end - 1) % 8);
    if first == last {
        bytes[first] |= from_start & to_end;
        return;
    }
    bytes[first] |= from_start;
    bytes[first + 1..last].fill(0xFF);
    bytes[last] |= to_end;
}

/// The bits that are set, as ranges that are not empty and may touch.
fn ranges(bits: &[u8]) -> impl Iterator<Item = Range<u32>> + '_ {
    let bytes = bits.iter().zip(0u32..).filter(|&(&byte, _)| byte != 0);
    bytes.flat_map(|(&byte, index)| {
        let mut rest = byte;
        std::iter::from_fn(move || {
            let first = rest.trailing_zeros();
            // None, where no bit is left.
            let n = rest.checked_shr(first)?.trailing_ones();
            rest &= u8::MAX.checked_shl(first + n).unwrap_or(0);
            Some(8 * index + first..8 * index + first + n)
        })
    })
}

fn check_row(len: u32) -> Result<()> {
    if len <= MAX_LEN {
        return Ok(());
    }
    Err(refused(&format!(
        "a row has {len} elements, and may have at most {MAX_LEN}; give the length of the vocabulary or of the context"
    )))
}

fn check_tokens(start: u32, n: u32) -> Result<Range<u32>> {
    if n > MAX_TOKENS {
        return Err(refused(&format!(
            "masks of {n} tokens are wanted, and may be of at most {MAX_TOKENS} at once; ask for fewer"
        )));
    }
    match start.checked_add(n).filter(|&end| end <= MAX_LEN) {
        Some(end) => Ok(start..end),
        None => Err(refused(&format!(
            "{n} tokens from slot {start} on reach beyond slot {MAX_LEN}; give slots of a context"
        ))),
    }
}

fn refused(message: &str) -> Error {
    Error::new(ErrorCode::InvalidArgument, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The naive meaning of runs: one truth value for each element.
    fn bits(runs: &[u32], len: u32) -> Vec<bool> {
        if runs.is_empty() {
            return vec![true; len as usize];
        }
        let each = runs.iter().enumerate();
        let mut bits: Vec<bool> = each
            .flat_map(|(index, &run)| vec![index % 2 == 1; run as usize])
            .collect();
        bits.resize(len as usize, false);
        bits
    }

    /// The shortest form by its definition.
    fn of_bits(bits: &[bool]) -> Vec<u32> {
        if bits.iter().all(|&bit| bit) {
            return Vec::new();
        }
        let last = bits.iter().rposition(|&bit| bit).map_or(0, |last| last + 1);
        let (mut runs, mut allows) = (vec![0], false);
        for &bit in &bits[..last] {
            if bit != allows {
                runs.push(0);
                allows = bit;
            }
            *runs.last_mut().unwrap() += 1;
        }
        runs
    }

    /// A row, and masks that fit it.
    fn row_and_masks() -> impl Strategy<Value = (u32, Vec<Vec<u32>>)> {
        (1u32..70).prop_flat_map(|len| {
            let mask = prop::collection::vec(0u32..12, 0..len.min(20) as usize + 1);
            let fitting = mask.prop_map(move |mut runs| {
                let mut left = len;
                for run in &mut runs {
                    *run = (*run).min(left);
                    left -= *run;
                }
                runs
            });
            (Just(len), prop::collection::vec(fitting, 0..7))
        })
    }

    fn code<T: std::fmt::Debug>(outcome: Result<T>) -> ErrorCode {
        outcome.unwrap_err().code
    }

    proptest! {
        // rows: RS-138
        #[test]
        fn masks_are_what_their_bits_are((len, masks) in row_and_masks(), seed: u64) {
            let mut all = vec![true; len as usize];
            for mask in &masks {
                let own = bits(mask, len);
                let short = shortest(mask, len)?;
                prop_assert_eq!(&short, &of_bits(&own));
                let elements = allowed(mask, len)?;
                let expected: Vec<u32> = (0..len).filter(|&index| own[index as usize]).collect();
                prop_assert_eq!(&elements, &expected);
                let mut mixed: Vec<u32> = elements.iter().chain(elements.first()).copied().collect();
                mixed.sort_by_key(|&element| crate::hash::mix(seed ^ u64::from(element)));
                prop_assert_eq!(&allowing(&mixed, len)?, &short);
                let packed = pack(mask, len)?;
                let expected: Vec<u8> = own
                    .chunks(8)
                    .map(|bits| bits.iter().enumerate().map(|(at, &bit)| u8::from(bit) << at).sum())
                    .collect();
                prop_assert_eq!(&packed, &expected);
                prop_assert_eq!(unpack(&packed, len)?, short);
                all.iter_mut().zip(own).for_each(|(all, own)| *all &= own);
            }
            prop_assert_eq!(intersection(&masks, len)?, of_bits(&all));
        }

        // rows: RS-091 RS-138
        #[test]
        fn attention_masks_show_what_they_say(start in 0u32..40, n in 0u32..9, size in 1u32..50, sinks in 0u32..50) {
            let (windows, causals) = (window(start, n, size, sinks)?, causal(start, n)?);
            prop_assert_eq!((windows.len(), causals.len()), (n as usize, n as usize));
            for (slot, (window, causal)) in (start..).zip(windows.iter().zip(&causals)) {
                let shown = |at: u32| at <= slot && (at < sinks || at + size > slot);
                let row: Vec<bool> = (0..slot + 3).map(shown).collect();
                prop_assert_eq!(window, &of_bits(&row));
                let row: Vec<bool> = (0..slot + 3).map(|at| at <= slot).collect();
                prop_assert_eq!(causal, &of_bits(&row));
            }
        }
    }

    // rows: RS-091 RS-138
    #[test]
    fn the_last_slot_of_the_longest_context_has_masks() {
        let last = MAX_LEN - 1;
        assert_eq!(causal(last, 1), Ok(vec![vec![0, MAX_LEN]]));
        assert_eq!(window(last, 1, 1, 0), Ok(vec![vec![last, 1]]));
    }

    // rows: RS-138
    #[test]
    fn what_does_not_fit_is_refused_before_anything_is_made() {
        let invalid = ErrorCode::InvalidArgument;
        let many = vec![0; 10_000_000];
        let beyond = [u32::MAX, u32::MAX, 7];
        for mask in [&many[..], &beyond, &[3, 3]] {
            assert_eq!(code(check(mask, 5)), invalid);
            assert_eq!(code(shortest(mask, 5)), invalid);
            assert_eq!(code(allowed(mask, 5)), invalid);
            assert_eq!(code(pack(mask, 5)), invalid);
            assert_eq!(code(intersection(&[&[], mask], 5)), invalid);
        }
        assert_eq!(code(allowing(&[4, 5], 5)), invalid);
        assert_eq!(code(unpack(&[0, 0], 5)), invalid);
        assert_eq!(code(unpack(&[0b10_0000], 5)), invalid);
        assert_eq!(code(window(0, 1, 0, 4)), invalid);
        for (start, n) in [(0, MAX_TOKENS + 1), (MAX_LEN, 1), (u32::MAX, 1)] {
            assert_eq!(code(window(start, n, 1, 0)), invalid);
            assert_eq!(code(causal(start, n)), invalid);
        }
        let long = MAX_LEN + 1;
        assert_eq!(code(shortest(&[], long)), invalid);
        assert_eq!(code(allowing(&[], long)), invalid);
        assert_eq!(code(allowed(&[], long)), invalid);
        assert_eq!(code(pack(&[], long)), invalid);
        assert_eq!(code(unpack(&[], long)), invalid);
        assert_eq!(code(intersection(&[&[]; 2], long)), invalid);
    }

    // rows: RS-138
    #[test]
    fn a_row_of_no_elements_has_one_form() {
        assert_eq!(shortest(&[0], 0), Ok(vec![]));
        assert_eq!(allowing(&[], 0), Ok(vec![]));
        assert_eq!(unpack(&[], 0), Ok(vec![]));
        assert_eq!(pack(&[], 0), Ok(vec![]));
        assert_eq!(intersection(&[[0], [0]], 0), Ok(vec![]));
        let none: [&[u32]; 0] = [];
        assert_eq!(intersection(&none, 7), Ok(vec![]));
    }

    /// Ten million runs, and a million masks beside a long one: what is not bounded shows as a test that does not end.
    // rows: RS-138
    #[test]
    fn hostile_lists_take_no_more_than_their_length() {
        let runs = vec![1; 10_000_000];
        let short = shortest(&runs, MAX_LEN).unwrap();
        assert_eq!(short, runs);
        assert_eq!(pack(&runs, MAX_LEN).unwrap()[..3], [0b1010_1010; 3]);
        let every = vec![1; 200_000];
        let mut masks: Vec<&[u32]> = vec![&[0, 200_000]; 100_000];
        masks.push(&every);
        assert_eq!(intersection(&masks, 300_000).unwrap(), every);
    }
}
