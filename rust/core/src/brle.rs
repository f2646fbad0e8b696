//! Masks as run lengths: alternating runs, forbidden first, 1 = allowed. `[F, F, T, T, T, F]` is `[2, 3, 1]`. Beyond
//! the last run everything is forbidden. An empty list is no restriction at all, and no operation turns "all forbidden"
//! into it.

use std::ops::Range;

use crate::errors::{Error, ErrorCode, Result};

/// Checks that the runs fit a row of `len` elements.
///
/// # Errors
/// `invalid-argument` naming both lengths, when the runs are longer than the row.
pub fn check(runs: &[u32], len: u32) -> Result<()> {
    let total: u64 = runs.iter().map(|&run| u64::from(run)).sum();
    if total <= u64::from(len) {
        return Ok(());
    }
    Err(Error::with_values(
        ErrorCode::InvalidArgument,
        format!(
            "a mask covers {total} elements and its row has {len}; give runs that add up to {len} at most"
        ),
        &[("covered", total), ("length", u64::from(len))],
    ))
}

/// The allowed elements of a row of `len` elements, as ascending ranges that are not empty. Runs beyond the row are
/// cut.
pub fn allowed(runs: &[u32], len: u32) -> impl Iterator<Item = Range<u32>> + '_ {
    let everything = if runs.is_empty() && len > 0 {
        Some(0..len)
    } else {
        None
    };
    let mut start = 0u32;
    let ranges = runs.iter().enumerate().filter_map(move |(index, &run)| {
        let range = start..start.saturating_add(run).min(len);
        start = range.end;
        (index % 2 == 1 && !range.is_empty()).then_some(range)
    });
    everything.into_iter().chain(ranges)
}

/// Whether element `index` of a row of `len` elements is allowed.
pub fn is_allowed(runs: &[u32], len: u32, index: u32) -> bool {
    allowed(runs, len).any(|range| range.contains(&index))
}

/// The first of `tokens` that is not allowed in a row of `len` elements; none where all are.
///
/// The runs are gone over once: a row is drawn from up to thousands of times.
pub fn first_forbidden(runs: &[u32], len: u32, tokens: &[u32]) -> Option<u32> {
    let forbidden = |is_allowed: &dyn Fn(u32) -> bool| {
        let mut tokens = tokens.iter().copied();
        tokens.find(|&token| !is_allowed(token))
    };
    if runs.is_empty() || tokens.len() == 1 {
        return forbidden(&|token| is_allowed(runs, len, token));
    }
    let ranges: Vec<Range<u32>> = allowed(runs, len).collect();
    forbidden(&|token| {
        let range = ranges.get(ranges.partition_point(|range| range.end <= token));
        range.is_some_and(|range| range.contains(&token))
    })
}

/// The canonical runs of ascending, disjoint ranges: neighbours joined, no run of 0 but perhaps the first, nothing
/// after the last allowed run. No range at all gives `[0]`, which allows nothing.
pub fn from_ranges(ranges: impl IntoIterator<Item = Range<u32>>) -> Vec<u32> {
    let mut runs: Vec<u32> = Vec::new();
    let mut end = 0;
    for range in ranges {
        if range.is_empty() {
            continue;
        }
        match runs.last_mut() {
            Some(last) if range.start == end => *last += range.end - range.start,
            _ => runs.extend([range.start - end, range.end - range.start]),
        }
        end = range.end;
    }
    if runs.is_empty() {
        runs.push(0);
    }
    runs
}

/// The canonical runs of what both masks allow in a row of `len` elements; empty when neither restricts.
pub fn and(left: &[u32], right: &[u32], len: u32) -> Vec<u32> {
    if left.is_empty() && right.is_empty() {
        return Vec::new();
    }
    let (mut lefts, mut rights) = (
        allowed(left, len).peekable(),
        allowed(right, len).peekable(),
    );
    let mut both = Vec::new();
    while let (Some(a), Some(b)) = (lefts.peek().cloned(), rights.peek().cloned()) {
        both.push(a.start.max(b.start)..a.end.min(b.end));
        if a.end <= b.end {
            lefts.next();
        }
        if b.end <= a.end {
            rights.next();
        }
    }
    from_ranges(both)
}

/// The shortest runs that allow the same elements of a row of `len`: canonical, cut at the row, and empty where
/// everything is allowed.
pub fn shortest(runs: &[u32], len: u32) -> Vec<u32> {
    if runs.is_empty() {
        return Vec::new();
    }
    shortest_of(allowed(runs, len), len)
}

/// The same of the mask that allows ascending, disjoint ranges.
pub fn shortest_of(ranges: impl IntoIterator<Item = Range<u32>>, len: u32) -> Vec<u32> {
    let runs = from_ranges(ranges);
    if runs == [0, len] || len == 0 {
        Vec::new()
    } else {
        runs
    }
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
        let mut bits: Vec<bool> = runs
            .iter()
            .enumerate()
            .flat_map(|(index, &run)| vec![index % 2 == 1; run as usize])
            .collect();
        bits.resize(len as usize, false);
        bits
    }

    fn runs() -> impl Strategy<Value = Vec<u32>> {
        prop::collection::vec(0u32..6, 0..8)
    }

    // rows: RS-138
    #[test]
    fn the_example_of_the_definition() {
        assert_eq!(bits(&[2, 3, 1], 6), [false, false, true, true, true, false]);
        assert_eq!(allowed(&[2, 3, 1], 6).collect::<Vec<_>>(), vec![2..5]);
        assert_eq!(allowed(&[], 3).collect::<Vec<_>>(), vec![0..3]);
        assert_eq!(allowed(&[0], 3).count(), 0);
    }

    // rows: RS-138
    #[test]
    fn a_mask_that_allows_everything_restricts_nothing() {
        for full in [&[0, 5][..], &[0, 9], &[0, 2, 0, 3], &[0, 5, 4]] {
            assert!(shortest(full, 5).is_empty(), "{full:?}");
        }
        assert_eq!(shortest(&[0, 4], 5), [0, 4]);
        assert_eq!(shortest(&[1, 4], 5), [1, 4]);
        assert_eq!(shortest(&[7], 5), [0]);
    }

    // rows: RS-138
    #[test]
    fn runs_longer_than_the_row_are_refused() {
        assert!(check(&[2, 3], 5).is_ok());
        let error = check(&[2, 4], 5).unwrap_err();
        assert!(
            error.message.contains('6') && error.message.contains('5'),
            "{}",
            error.message
        );
        assert!(check(&[u32::MAX, u32::MAX], u32::MAX).is_err());
    }

    proptest! {
        // rows: RS-138
        #[test]
        fn ranges_are_the_set_bits(runs in runs(), n_beyond in 0u32..20) {
            let len = runs.iter().sum::<u32>() + n_beyond;
            prop_assert!(check(&runs, len).is_ok());
            let expected = bits(&runs, len);
            let mut found = vec![false; len as usize];
            for range in allowed(&runs, len) {
                prop_assert!(!range.is_empty());
                for index in range {
                    prop_assert!(!found[index as usize]);
                    found[index as usize] = true;
                }
            }
            for index in 0..len {
                prop_assert_eq!(is_allowed(&runs, len, index), expected[index as usize]);
                let forbidden = (!expected[index as usize]).then_some(index);
                prop_assert_eq!(first_forbidden(&runs, len, &[index]), forbidden);
                prop_assert_eq!(first_forbidden(&runs, len, &[index, index]), forbidden);
            }
            prop_assert_eq!(found, expected);
        }

        // rows: RS-138
        #[test]
        fn the_shortest_runs_are_equal_exactly_when_the_masks_are(left in runs(), right in runs(), len in 1u32..30) {
            let (short, other) = (shortest(&left, len), shortest(&right, len));
            let cut = |runs: &[u32]| bits(runs, 100)[..len as usize].to_vec();
            prop_assert_eq!(cut(&short), cut(&left));
            prop_assert_eq!(short == other, cut(&left) == cut(&right));
        }

        // rows: RS-135 RS-138
        #[test]
        fn conjunction_is_elementwise_and_canonical(left in runs(), right in runs()) {
            let len = 50;
            let both = and(&left, &right, len);
            let expected: Vec<bool> = bits(&left, len).iter().zip(bits(&right, len)).map(|(a, b)| *a && b).collect();
            prop_assert_eq!(bits(&both, len), expected);
            prop_assert_eq!(both.is_empty(), left.is_empty() && right.is_empty());
            prop_assert!(both.iter().skip(1).all(|&run| run > 0));
            prop_assert!(both.len().is_multiple_of(2) || both == [0]);
        }
    }

    /// Thousands of draws by a mask of a million runs: what goes over the runs for each does not end.
    #[test]
    fn many_draws_are_checked_by_going_over_a_mask_once() {
        let len = 1 << 21;
        let runs = vec![1; len as usize];
        let drawn = vec![len - 1; 65_536];
        for _ in 0..20 {
            assert_eq!(first_forbidden(&runs, len, &drawn), None);
        }
        let wrong = [&drawn[..], &[2, 4]].concat();
        assert_eq!(first_forbidden(&runs, len, &wrong), Some(2));
        assert_eq!(first_forbidden(&[], len, &wrong), None);
        assert_eq!(first_forbidden(&[], len, &[1, len]), Some(len));
    }
}
