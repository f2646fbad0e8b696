//! Rows of which so many tokens may be drawn that it costs less to go over the row once more than to write a list.
//!
//! Weights are whole numbers, so that their sum does not depend on how often and in which order they are added.

use std::cmp::Ordering;

use super::candidate::{Candidate, LANES, Scale, VANISHED, last_of_nucleus, part_of};
use super::wide::widest;
use crate::brle;

/// Bins by which a nucleus is found.
const N_BINS: usize = 2048;
/// Adding it rounds to a whole number below 2^23, which is in the low bits then: 2^23.
const ROUNDER: f32 = 8_388_608.0;

/// A row with its mask, and what makes weights of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    pub(super) logits: &'a [f32],
    pub(super) mask: &'a [u32],
    pub(super) scale: Scale,
}

/// The tokens of a row that rank no later than one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowd<'a> {
    row: Row<'a>,
    last: Candidate,
    /// Of all their weights.
    pub(super) total: u64,
}

/// Which bin a logit belongs to, by its distance to the greatest one. The less probable is never in an earlier bin,
/// since each operation keeps the order.
#[derive(Clone, Copy, Debug)]
struct Binning {
    top: f32,
    per_bin: f32,
}

impl Binning {
    fn of(scale: Scale) -> Self {
        let width = (-VANISHED * scale.temperature) as f32;
        Self {
            top: scale.top as f32,
            per_bin: (N_BINS as f32 / width).min(f32::MAX),
        }
    }

    #[inline(always)]
    fn bin(self, logit: f32) -> usize {
        let place = (self.top - logit) * self.per_bin;
        // What is not a number is in the last one, too.
        let last = (N_BINS - 1) as f32;
        let place = if place < last { place } else { last };
        ((place + ROUNDER).to_bits() - ROUNDER.to_bits()) as usize % N_BINS
    }

    /// No logit below it is in one of the bins up to this one.
    fn floor(self, bin: usize) -> f32 {
        let floor = self.top - (bin + 2) as f32 / self.per_bin;
        floor - 1e-6 * floor.abs()
    }
}

impl<'a> Row<'a> {
    /// Goes over all blocks of allowed logits of which one is `floor` at least, each with the id of its first, until
    /// `work` finds something. What is missing of a block has no weight, and is no number of a row.
    #[inline(always)]
    fn find_map<T>(
        self,
        floor: f32,
        mut work: impl FnMut(u32, &[f32; LANES]) -> Option<T>,
    ) -> Option<T> {
        let reaches = |block: &[f32; LANES]| {
            block
                .iter()
                .fold(false, |hit, &logit| hit | (logit >= floor))
        };
        for range in brle::allowed(self.mask, self.logits.len() as u32) {
            let row = &self.logits[range.start as usize..range.end as usize];
            for (id, part) in (range.start..).step_by(LANES).zip(row.chunks(LANES)) {
                let mut block = [f32::NEG_INFINITY; LANES];
                match part.first_chunk() {
                    Some(whole) => block = *whole,
                    None => block[..part.len()].copy_from_slice(part),
                }
                // The one call of `work`: it is inlined, and so compiled for the instructions that [`widest`] found.
                if reaches(&block)
                    && let Some(found) = work(id, &block)
                {
                    return Some(found);
                }
            }
        }
        None
    }

    /// The same, to the end.
    #[inline(always)]
    fn each(self, floor: f32, mut work: impl FnMut(u32, &[f32; LANES])) {
        let none: Option<()> = self.find_map(floor, |id, block| {
            work(id, block);
            None
        });
        debug_assert!(none.is_none());
    }

    /// All tokens that have a weight.
    pub(super) fn all(self) -> Crowd<'a> {
        let floor = self.scale.floor(0.0);
        let mut total = 0;
        widest(|| {
            self.each(floor, |_, block| {
                total += self.scale.weights(block).iter().sum::<u64>();
            });
        });
        let last = Candidate {
            id: u32::MAX,
            logit: floor,
            weight: 0,
        };
        Crowd {
            row: self,
            last,
            total,
        }
    }

    /// The fewest tokens, first by rank, whose weights reach the share `p` of the total.
    ///
    /// Weights are added up in bins. Only the tokens of the bin that reaches the share have to be ranked.
    pub(super) fn nucleus(
        self,
        p: f32,
        ranked: &mut Vec<Candidate>,
        bins: &mut Vec<u64>,
    ) -> Crowd<'a> {
        let binning = Binning::of(self.scale);
        bins.clear();
        bins.resize(N_BINS, 0);
        widest(|| self.fill(binning, bins));
        let (wanted, mut before) = (part_of(p, bins.iter().sum()), 0);
        let reached = bins.iter().position(|&sum| {
            let is_reached = before + sum >= wanted;
            before += if is_reached { 0 } else { sum };
            is_reached
        });
        let Some(reached) = reached else {
            return self.all();
        };
        ranked.clear();
        widest(|| self.rank(binning, reached, ranked));
        let Some(last) = last_of_nucleus(ranked, wanted - before) else {
            return self.all();
        };
        let of_bin = ranked
            .iter()
            .filter(|it| it.rank(&last) != Ordering::Greater);
        let of_bin: u64 = of_bin.map(|candidate| candidate.weight).sum();
        Crowd {
            row: self,
            last,
            total: before + of_bin,
        }
    }

    #[inline(always)]
    fn fill(self, binning: Binning, bins: &mut [u64]) {
        let Some(bins) = bins.first_chunk_mut::<N_BINS>() else {
            return;
        };
        self.each(self.scale.floor(0.0), |_, block| {
            let weights = self.scale.weights(block);
            let places = block.map(|logit| binning.bin(logit));
            for (place, weight) in places.into_iter().zip(weights) {
                bins[place] += weight;
            }
        });
    }

    /// The tokens of a bin.
    #[inline(always)]
    fn rank(self, binning: Binning, bin: usize, ranked: &mut Vec<Candidate>) {
        self.each(binning.floor(bin), |id, block| {
            let is_in = block.map(|logit| binning.bin(logit) == bin);
            if !is_in.iter().fold(false, |any, &one| any | one) {
                return;
            }
            for ((id, &logit), is_in) in (id..).zip(block).zip(is_in) {
                if is_in && logit.is_finite() {
                    let weight = self.scale.weight(logit);
                    ranked.push(Candidate { id, logit, weight });
                }
            }
        });
    }
}

impl Crowd<'_> {
    /// The weights of a block of which the first has an id; 0 for those that do not belong here.
    #[inline(always)]
    fn weights(&self, id: u32, block: &[f32; LANES]) -> [u64; LANES] {
        let mut weights = self.row.scale.weights(block);
        for ((id, &logit), weight) in (id..).zip(block).zip(&mut weights) {
            let Candidate {
                id: last,
                logit: least,
                ..
            } = self.last;
            let belongs = (logit > least) | ((logit == least) & (id <= last));
            *weight = if belongs { *weight } else { 0 };
        }
        weights
    }

    /// The token, in the order of ids, in whose share of the total `target` falls.
    pub(super) fn find(&self, target: u64) -> Option<u32> {
        let mut sum = 0;
        widest(|| {
            self.row.find_map(self.last.logit, |id, block| {
                let weights = self.weights(id, block);
                let of_block: u64 = weights.iter().sum();
                if sum + of_block <= target {
                    sum += of_block;
                    return None;
                }
                let mut tokens = (id..).zip(weights);
                let found = tokens.find(|&(_, weight)| {
                    sum += weight;
                    sum > target
                });
                found.map(|(id, _)| id)
            })
        })
    }

    /// Those that have a weight, in the order of ids.
    pub(super) fn list(&self, kept: &mut Vec<Candidate>) {
        kept.clear();
        widest(|| {
            self.row.each(self.last.logit, |id, block| {
                let weights = self.weights(id, block);
                for ((id, &logit), weight) in (id..).zip(block).zip(weights) {
                    if weight > 0 {
                        kept.push(Candidate { id, logit, weight });
                    }
                }
            });
        });
    }
}
