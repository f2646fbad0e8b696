//! Tokens that may be drawn, what they weigh, and how they rank.

use std::cmp::Ordering;

use super::weight::{weight, weights};

/// A token that may be drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) id: u32,
    pub(super) logit: f32,
    pub(super) weight: u64,
}

impl Candidate {
    /// The more probable first, among equals the lower id. Logits are finite, so that they compare.
    pub(super) fn rank(&self, other: &Self) -> Ordering {
        other
            .logit
            .partial_cmp(&self.logit)
            .unwrap_or(Ordering::Equal)
            .then(self.id.cmp(&other.id))
    }
}

/// Values that are looked at side by side, so that the compiler can use vectors: a float's order of comparison is free
/// here, but only the program may say so.
pub(super) const LANES: usize = 16;

/// What makes weights of logits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// The greatest logit.
    pub(super) top: f64,
    pub(super) temperature: f64,
}

/// A logit that lies so far below the greatest one, over the temperature, has weight 0.
pub(super) const VANISHED: f64 = -30.0;

impl Scale {
    pub(super) fn weight(self, logit: f32) -> u64 {
        weight((f64::from(logit) - self.top) / self.temperature)
    }

    /// The weights of some logits, side by side.
    #[inline(always)]
    pub(super) fn weights<const N: usize>(self, logits: &[f32; N]) -> [u64; N] {
        weights(logits.map(|logit| (f64::from(logit) - self.top) / self.temperature))
    }

    /// No logit below it has a weight and at least `p` times the probability of the greatest. It is a little
    /// too low, so that no rounding matters.
    pub(super) fn floor(self, p: f32) -> f32 {
        let distance = f64::from(p).ln().max(VANISHED) - 0.01;
        let floor = self.top + distance * self.temperature;
        (floor - 1e-6 * floor.abs()) as f32
    }
}

/// The share `p` of a total, rounded up.
pub(super) fn part_of(p: f32, total: u64) -> u64 {
    ((f64::from(p) * total as f64).ceil() as u64).min(total)
}

/// The last by rank of the fewest candidates, first by rank, whose weights add up to `wanted`. Halves the part that
/// holds it, so that the expected time is linear.
pub(super) fn last_of_nucleus(ranked: &mut [Candidate], mut wanted: u64) -> Option<Candidate> {
    let mut part = ranked;
    while part.len() > 16 {
        let middle = part.len() / 2;
        part.select_nth_unstable_by(middle, Candidate::rank);
        let (left, right) = part.split_at_mut(middle);
        let sum: u64 = left.iter().map(|candidate| candidate.weight).sum();
        part = if sum >= wanted {
            left
        } else {
            wanted -= sum;
            right
        };
    }
    part.sort_unstable_by(Candidate::rank);
    let mut sum = 0;
    part.iter()
        .find(|candidate| {
            sum += candidate.weight;
            sum >= wanted
        })
        .or(part.last())
        .copied()
}
