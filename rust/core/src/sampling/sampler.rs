//! Draws one token from one row of logits.

use std::cmp::Ordering;

use super::candidate::{Candidate, LANES, Scale, last_of_nucleus, part_of};
use super::crowd::{Crowd, Row};
use super::method::Params;
use super::philox::Key;
use super::weight::ONE;
use super::wide::widest;
use crate::brle;

/// Why no token can be drawn from a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFault {
    /// The logit of this token is NaN or infinite.
    NotFinite(u32),
    /// The mask allows no token of the vocabulary.
    NothingAllowed,
}

/// Memory that rows use one after the other.
#[derive(Debug, Default)]
pub struct Scratch {
    kept: Vec<Candidate>,
    ranked: Vec<Candidate>,
    sums: Vec<u64>,
    bins: Vec<u64>,
}

/// What a token is drawn from.
#[derive(Clone, Copy, Debug)]
enum Choice<'a> {
    /// This one alone.
    One(u32),
    /// The candidates that [`Scratch`] keeps.
    Kept,
    /// So many that no list of them is made for one draw: [`Scratch`] keeps none.
    Crowd(Crowd<'a>),
}

/// Draws a token: temperature, softmax, top-k, top-p, min-p, each over what is left, then the draw in the order of ids.
///
/// `logits` is float32 `[V]`, V at most 2^21; `mask` is run lengths over the vocabulary, empty for no restriction.
/// Temperature 0 takes the greatest logit, ties to the lowest id.
///
/// # Errors
/// When a logit is not finite, masked or not, or when the mask allows nothing.
pub fn sample(
    logits: &[f32],
    params: &Params,
    mask: &[u32],
    key: Key,
    scratch: &mut Scratch,
) -> Result<u32, RowFault> {
    let best = best(logits, mask)?;
    if params.takes_best() {
        return Ok(best.id);
    }
    let drawn = match choice(logits, params, mask, best, scratch) {
        Choice::One(token) => Some(token),
        Choice::Kept => draw(&scratch.kept, key),
        Choice::Crowd(crowd) => crowd.find(target(key, crowd.total)),
    };
    Ok(drawn.unwrap_or(best.id))
}

/// Draws `n_draws` tokens from one row, with the keys whose `draw` counts from 0, and appends them to `drawn`. The row
/// is checked even if `n_draws` is 0.
///
/// # Errors
/// As [`sample`]; nothing is appended then.
pub fn sample_many(
    logits: &[f32],
    params: &Params,
    mask: &[u32],
    key: Key,
    n_draws: u32,
    scratch: &mut Scratch,
    drawn: &mut Vec<u32>,
) -> Result<(), RowFault> {
    if n_draws == 1 {
        let key = Key { draw: 0, ..key };
        drawn.push(sample(logits, params, mask, key, scratch)?);
        return Ok(());
    }
    let best = best(logits, mask)?;
    if n_draws == 0 {
        return Ok(());
    }
    match choice(logits, params, mask, best, scratch) {
        Choice::One(token) => {
            drawn.extend((0..n_draws).map(|_| token));
            return Ok(());
        }
        Choice::Kept => {}
        Choice::Crowd(crowd) => crowd.list(&mut scratch.kept),
    }
    // Summed once: thousands of draws cost little more than one.
    let Scratch { kept, sums, .. } = scratch;
    let mut total = 0;
    sums.clear();
    sums.extend(kept.iter().map(|candidate| {
        total += candidate.weight;
        total
    }));
    drawn.extend((0..n_draws).map(|index| {
        let target = target(Key { draw: index, ..key }, total);
        let chosen = kept.get(sums.partition_point(|&sum| sum <= target));
        chosen.map_or(best.id, |candidate| candidate.id)
    }));
    Ok(())
}

/// The most probable token of a row, which is checked.
fn best(logits: &[f32], mask: &[u32]) -> Result<Candidate, RowFault> {
    let Some(top) = greatest(logits) else {
        let token = logits
            .iter()
            .position(|logit| !logit.is_finite())
            .unwrap_or(0);
        return Err(RowFault::NotFinite(token as u32));
    };
    if mask.is_empty() && !logits.is_empty() {
        return Ok(candidate(0, logits, top));
    }
    argmax(logits, mask).ok_or(RowFault::NothingAllowed)
}

/// What may be drawn from a row whose most probable token is `best`.
fn choice<'a>(
    logits: &'a [f32],
    params: &Params,
    mask: &'a [u32],
    best: Candidate,
    scratch: &mut Scratch,
) -> Choice<'a> {
    let Scratch {
        kept, ranked, bins, ..
    } = scratch;
    if params.takes_best() {
        return Choice::One(best.id);
    }
    let scale = Scale {
        top: f64::from(best.logit),
        temperature: f64::from(params.temperature),
    };
    kept.clear();
    if params.top_k > 0 {
        keep_top_k(logits, mask, params.top_k as usize, kept);
        for candidate in kept.iter_mut() {
            candidate.weight = scale.weight(candidate.logit);
        }
        if params.top_p < 1.0 {
            keep_nucleus(params.top_p, kept, ranked);
        }
    } else if params.top_p < 1.0 || params.min_p == 0.0 {
        let row = Row {
            logits,
            mask,
            scale,
        };
        let crowd = if params.top_p < 1.0 {
            row.nucleus(params.top_p, ranked, bins)
        } else {
            row.all()
        };
        if params.min_p == 0.0 {
            return Choice::Crowd(crowd);
        }
        crowd.list(kept);
    } else {
        // What min-p drops has no part in the draw.
        keep_above(logits, mask, scale, scale.floor(params.min_p), kept);
    }
    if params.min_p > 0.0 {
        let least = (f64::from(params.min_p) * ONE as f64).ceil() as u64;
        kept.retain(|candidate| candidate.weight >= least);
    }
    Choice::Kept
}

/// The greatest allowed logit, ties to the lowest id. The row is finite.
fn argmax(logits: &[f32], mask: &[u32]) -> Option<Candidate> {
    let mut best: Option<Candidate> = None;
    for range in brle::allowed(mask, logits.len() as u32) {
        let row = &logits[range.start as usize..range.end as usize];
        let Some(top) = greatest(row) else { continue };
        if best.is_none_or(|best| top > best.logit) {
            best = Some(candidate(range.start, row, top));
        }
    }
    best
}

/// The first of a row's values that equals `top`; the row begins at token `first`.
fn candidate(first: u32, row: &[f32], top: f32) -> Candidate {
    let start = block_with(row, top) * LANES;
    let rest = row.get(start..).unwrap_or_default();
    let offset = rest.iter().position(|&logit| logit == top).unwrap_or(0);
    Candidate {
        id: first + (start + offset) as u32,
        logit: top,
        weight: 0,
    }
}

widest! {
    /// How many whole blocks of a row come before the first that holds a value.
    fn block_with(row: &[f32], value: f32) -> usize {
        let (blocks, _) = row.as_chunks::<LANES>();
        let mut n_before = 0;
        for block in blocks {
            // A whole block is compared without a branch, so that the compiler can use vectors.
            let mut holds = false;
            for &logit in block {
                holds |= logit == value;
            }
            if holds {
                break;
            }
            n_before += 1;
        }
        n_before
    }
}

/// The greatest of the values, minus infinity when there are none; nothing when one of them is not finite.
pub(super) fn greatest(row: &[f32]) -> Option<f32> {
    go_over(row)
}

widest! {
    /// [`greatest`]. One pass, since a batch of rows is larger than the caches.
    fn go_over(row: &[f32]) -> Option<f32> {
        let larger = |a: f32, b: f32| if a > b { a } else { b };
        let mut tops = [f32::NEG_INFINITY; WIDE];
        // What is not finite never leaves a sum again. A sum may also be too large for a float.
        let mut sums = [0.0_f32; WIDE];
        let (blocks, rest) = row.as_chunks::<WIDE>();
        for block in blocks {
            for ((top, sum), &logit) in tops.iter_mut().zip(&mut sums).zip(block) {
                *top = larger(logit, *top);
                *sum += logit;
            }
        }
        for ((top, sum), &logit) in tops.iter_mut().zip(&mut sums).zip(rest) {
            *top = larger(logit, *top);
            *sum += logit;
        }
        // By their bits, which compare as whole numbers.
        let most = sums
            .iter()
            .fold(0, |most: u32, sum| most.max(sum.abs().to_bits()));
        let are_finite = most < f32::INFINITY.to_bits();
        let is_finite = are_finite || row.iter().all(|logit| logit.is_finite());
        // Vector by vector: which of equal values is found makes no difference.
        let (vectors, _) = tops.as_chunks::<VECTOR>();
        let mut last = [f32::NEG_INFINITY; VECTOR];
        for vector in vectors {
            for (top, &other) in last.iter_mut().zip(vector) {
                *top = larger(other, *top);
            }
        }
        is_finite.then(|| last.into_iter().fold(f32::NEG_INFINITY, larger))
    }
}

/// Values that a whole row is gone over by: as many vectors as hide how long one operation waits for the one before.
const WIDE: usize = 32;
/// Values of a vector that most instruction sets have.
const VECTOR: usize = 8;

widest! {
    /// Keeps the tokens whose logit is not below `floor`, with their weights, in the order of ids.
    fn keep_above(logits: &[f32], mask: &[u32], scale: Scale, floor: f32, kept: &mut Vec<Candidate>) {
        let mut keep = |id: u32, logit: f32, weight: u64| {
            if logit >= floor {
                kept.push(Candidate { id, logit, weight });
            }
        };
        for range in brle::allowed(mask, logits.len() as u32) {
            let row = &logits[range.start as usize..range.end as usize];
            let (blocks, rest) = row.as_chunks::<LANES>();
            let mut id = range.start;
            for block in blocks {
                if block
                    .iter()
                    .fold(false, |hit, &logit| hit | (logit >= floor))
               {
                    // All of a block, without a branch, so that the compiler can use vectors.
                    let weights = scale.weights(block);
                    for ((id, &logit), weight) in (id..).zip(block).zip(weights) {
                        keep(id, logit, weight);
                    }
                }
                id += LANES as u32;
            }
            for (id, &logit) in (id..).zip(rest) {
                keep(id, logit, scale.weight(logit));
            }
        }
    }
}

/// The `k` first by rank, in the order of ids. One pass: one comparison skips a block of which nothing can be among the
/// `k`, and whenever the candidates have doubled they are cut back to `k`.
fn keep_top_k(logits: &[f32], mask: &[u32], k: usize, kept: &mut Vec<Candidate>) {
    kept.clear();
    let mut cutoff = f32::NEG_INFINITY;
    for range in brle::allowed(mask, logits.len() as u32) {
        let row = &logits[range.start as usize..range.end as usize];
        for (first, block) in (range.start..).step_by(LANES).zip(row.chunks(LANES)) {
            if !block
                .iter()
                .fold(false, |hit, &logit| hit | (logit > cutoff))
            {
                continue;
            }
            for (id, &logit) in (first..).zip(block) {
                // A later id loses a tie with the k candidates that rank before it.
                if logit <= cutoff {
                    continue;
                }
                let weight = 0;
                kept.push(Candidate { id, logit, weight });
                if kept.len() >= k.saturating_mul(2) {
                    kept.select_nth_unstable_by(k - 1, Candidate::rank);
                    kept.truncate(k);
                    cutoff = kept[k - 1].logit;
                }
            }
        }
    }
    if kept.len() > k {
        kept.select_nth_unstable_by(k - 1, Candidate::rank);
        kept.truncate(k);
    }
    kept.sort_unstable_by_key(|candidate| candidate.id);
}

/// The `k` most probable tokens with their logits, the most probable first, among equals the lower id.
pub(super) fn most_probable<'a>(
    logits: &[f32],
    k: usize,
    scratch: &'a mut Scratch,
) -> impl Iterator<Item = (u32, f32)> + Clone + use<'a> {
    let kept = &mut scratch.kept;
    keep_top_k(logits, &[], k, kept);
    kept.sort_unstable_by(Candidate::rank);
    kept.iter().map(|candidate| (candidate.id, candidate.logit))
}

/// Keeps the fewest candidates, first by rank, whose weights reach the share `p` of the total. The order of ids stays.
fn keep_nucleus(p: f32, kept: &mut Vec<Candidate>, ranked: &mut Vec<Candidate>) {
    let total: u64 = kept.iter().map(|candidate| candidate.weight).sum();
    ranked.clear();
    ranked.extend_from_slice(kept);
    if let Some(last) = last_of_nucleus(ranked, part_of(p, total)) {
        kept.retain(|candidate| candidate.rank(&last) != Ordering::Greater);
    }
}

/// Which part of a sum of weights a key draws: uniform below `total`.
fn target(key: Key, total: u64) -> u64 {
    ((u128::from(key.bits()) * u128::from(total)) >> 64) as u64
}

/// The candidate, in the order of ids, in whose share of the total the random number falls; none where there is none.
fn draw(kept: &[Candidate], key: Key) -> Option<u32> {
    if kept.is_empty() {
        return None;
    }
    let total: u64 = kept.iter().map(|candidate| candidate.weight).sum();
    let target = target(key, total);
    let mut sum = 0;
    kept.iter()
        .find(|candidate| {
            sum += candidate.weight;
            sum > target
        })
        .map(|candidate| candidate.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the whole numbers below the total each belongs to one candidate, and each candidate has as many as it weighs.
    // rows: RS-110 RS-117
    #[test]
    fn a_draw_falls_into_the_share_of_its_candidate() {
        let weights = [2, 0, 1, 3, 0];
        let kept = weights.iter().zip(0..).map(|(&weight, id)| Candidate {
            id,
            logit: 0.0,
            weight,
        });
        let kept: Vec<Candidate> = kept.collect();
        let owners = [0, 0, 2, 3, 3, 3];
        let mut seen = [false; 6];
        for position in 0..200 {
            let key = Key {
                seed: 1,
                position,
                slot: 0,
                draw: 0,
            };
            let drawn = target(key, 6) as usize;
            seen[drawn] = true;
            assert_eq!(draw(&kept, key), Some(owners[drawn]));
        }
        assert_eq!(seen, [true; 6]);
    }

    /// Which token is drawn does not tell whether the others were listed; what the list has room for does.
    // rows: RS-115
    #[test]
    fn what_min_p_drops_takes_no_memory() {
        let mut logits = vec![0.0_f32; 20_000];
        (logits[7], logits[15_000]) = (5.0, 4.5);
        let params = Params {
            temperature: 1.0,
            min_p: 0.5,
            ..Params::ARGMAX
        };
        let key = Key {
            seed: 1,
            position: 0,
            slot: 0,
            draw: 0,
        };
        let mut scratch = Scratch::default();
        let drawn = sample(&logits, &params, &[], key, &mut scratch).unwrap();
        assert!([7, 15_000].contains(&drawn), "{drawn}");
        let n_places = scratch.kept.capacity();
        assert!(n_places < 100, "{n_places} places for 2 tokens");
    }
}
