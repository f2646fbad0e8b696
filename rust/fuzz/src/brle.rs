//! Masks as run lengths, against plain lists of truth values.

use std::ops::RangeInclusive;

use arbitrary::Unstructured;
use pie_core::brle as masks;

/// Rows of the oracle are as long as this, at most.
const MAX_LEN: u32 = 400;
const MAX_RUN: u32 = 40;
const MAX_RUNS: usize = 24;

/// Makes masks of the bytes, once with short runs and once with any, and compares what becomes of them with what
/// becomes of their elements.
pub fn brle(data: &[u8]) {
    let mut bytes = Unstructured::new(data);
    if let Ok((len, [left, right, third])) = drawn(&mut bytes, 1..=MAX_LEN, 0..=MAX_RUN) {
        agree(len, &left, &right);
        let grouped = masks::and(&masks::and(&left, &right, len), &third, len);
        let other = masks::and(&left, &masks::and(&right, &third, len), len);
        assert_eq!(grouped, other, "{left:?} {right:?} {third:?} of {len}");
    }
    if let Ok((len, [left, right, _])) = drawn(&mut bytes, 0..=u32::MAX, 0..=u32::MAX) {
        agree_at_edges(len, &left, &right);
    }
}

/// The length of a row, and three masks of it, which may be longer.
fn drawn(
    bytes: &mut Unstructured<'_>,
    lens: RangeInclusive<u32>,
    run: RangeInclusive<u32>,
) -> arbitrary::Result<(u32, [Vec<u32>; 3])> {
    let mut runs = || -> arbitrary::Result<Vec<u32>> {
        let n_runs = bytes.int_in_range(0..=MAX_RUNS)?;
        (0..n_runs)
            .map(|_| bytes.int_in_range(run.clone()))
            .collect()
    };
    let masks = [runs()?, runs()?, runs()?];
    Ok((bytes.int_in_range(lens)?, masks))
}

/// What runs mean: one truth value for each element.
fn elements(runs: &[u32], len: u32) -> Vec<bool> {
    if runs.is_empty() {
        return vec![true; len as usize];
    }
    let each = runs.iter().enumerate();
    let mut elements: Vec<bool> = each
        .flat_map(|(index, &run)| std::iter::repeat_n(index % 2 == 1, run as usize))
        .collect();
    elements.resize(len as usize, false);
    elements
}

fn agree(len: u32, left: &[u32], right: &[u32]) {
    let (lefts, rights) = (elements(left, len), elements(right, len));
    assert_eq!(
        masks::check(left, len).is_ok(),
        left.iter().sum::<u32>() <= len
    );
    let mut found = vec![false; len as usize];
    for range in masks::allowed(left, len) {
        found[range.start as usize..range.end as usize].fill(true);
    }
    assert_eq!(found, lefts, "{left:?} of {len}");
    for (index, &allowed) in (0..).zip(&lefts) {
        assert_eq!(masks::is_allowed(left, len, index), allowed);
    }
    let short = masks::shortest(left, len);
    assert_eq!(elements(&short, len), lefts, "{left:?} of {len}");
    assert_eq!(short.is_empty(), lefts.iter().all(|&allowed| allowed));
    assert_eq!(masks::shortest(&short, len), short);
    assert_eq!(
        short == masks::shortest(right, len),
        lefts == rights,
        "{left:?} {right:?} of {len}"
    );
    let both = masks::and(left, right, len);
    let expected: Vec<bool> = lefts
        .iter()
        .zip(&rights)
        .map(|(left, right)| left & right)
        .collect();
    assert_eq!(
        elements(&both, len),
        expected,
        "{left:?} {right:?} of {len}"
    );
    assert_eq!(both, masks::and(right, left, len));
    // "Nothing is allowed" never becomes the empty list, which allows everything.
    assert_eq!(both.is_empty(), left.is_empty() && right.is_empty());
    if !both.is_empty() {
        assert_eq!(both, masks::from_ranges(masks::allowed(&both, len)));
    }
}

/// The same for runs and rows of any length, at the elements where something may change.
fn agree_at_edges(len: u32, left: &[u32], right: &[u32]) {
    let n_covered: u64 = left.iter().map(|&run| u64::from(run)).sum();
    assert_eq!(masks::check(left, len).is_ok(), n_covered <= u64::from(len));
    let mut end = 0;
    for range in masks::allowed(left, len) {
        assert!(range.start >= end && range.start < range.end && range.end <= len);
        end = range.end;
    }
    let (both, short) = (masks::and(left, right, len), masks::shortest(left, len));
    let ranges = masks::allowed(left, len).chain(masks::allowed(right, len));
    for edge in ranges.flat_map(|range| [range.start, range.end]) {
        for index in [edge.saturating_sub(1), edge] {
            let allowed = |runs: &[u32]| masks::is_allowed(runs, len, index);
            assert_eq!(allowed(&both), allowed(left) && allowed(right));
            assert_eq!(allowed(&short), allowed(left));
        }
    }
}
