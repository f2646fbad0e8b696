//! Rows of which so many tokens may be drawn that it costs less to go over the row once more than to write a list.
//!
//! Weights are whole numbers, so that their sum does not depend on how often and in which order they are added.

use std::cmp::Ordering;
use std::ops::Range;

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

    /// The bins of some logits, side by side.
    #[inline(always)]
    fn bins(self, block: &[f32; LANES]) -> [usize; LANES] {
        let mut bins = [0; LANES];
        for (bin, &logit) in bins.iter_mut().zip(block) {
            *bin = self.bin(logit);
        }
        bins
    }

    /// No logit below it is in one of the bins up to this one.
    fn floor(self, bin: usize) -> f32 {
        let floor = self.top - (bin + 2) as f32 / self.per_bin;
        floor - 1e-6 * floor.abs()
    }
}

/// The blocks of allowed logits of which one is `floor` at least, each with the id of its first. What is missing of a
/// block has no weight, and is no number of a row.
#[derive(Debug)]
struct Blocks<'a, I> {
    logits: &'a [f32],
    /// What the mask allows.
    ranges: I,
    /// What is left of a range, and the id of its first.
    left: &'a [f32],
    id: u32,
    floor: f32,
}

impl<I: Iterator<Item = Range<u32>>> Iterator for Blocks<'_, I> {
    type Item = (u32, [f32; LANES]);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (id, mut block) = (self.id, [f32::NEG_INFINITY; LANES]);
            if let Some((whole, left)) = self.left.split_first_chunk() {
                (block, self.left) = (*whole, left);
            } else if self.left.is_empty() {
                let range = self.ranges.next()?;
                self.id = range.start;
                self.left = &self.logits[range.start as usize..range.end as usize];
                continue;
            } else {
                block[..self.left.len()].copy_from_slice(self.left);
                self.left = &[];
            }
            self.id += LANES as u32;
            let mut reaches = false;
            for logit in block {
                reaches |= logit >= self.floor;
            }
            if reaches {
                return Some((id, block));
            }
        }
    }
}

impl<'a> Row<'a> {
    #[inline(always)]
    fn blocks(self, floor: f32) -> Blocks<'a, impl Iterator<Item = Range<u32>> + use<'a>> {
        Blocks {
            logits: self.logits,
            ranges: brle::allowed(self.mask, self.logits.len() as u32),
            left: &[],
            id: 0,
            floor,
        }
    }

    /// All tokens that have a weight.
    pub(super) fn all(self) -> Crowd<'a> {
        let floor = self.scale.floor(0.0);
        let last = Candidate {
            id: u32::MAX,
            logit: floor,
            weight: 0,
        };
        Crowd {
            row: self,
            last,
            total: total(self, floor),
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
        fill(self, binning, bins);
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
        rank(self, binning, reached, ranked);
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
}

widest! {
    /// The sum of all weights.
    fn total(row: Row<'_>, floor: f32) -> u64 {
        // Side by side, so that the compiler can use vectors.
        let mut totals = [0; LANES];
        for (_, block) in row.blocks(floor) {
            for (total, weight) in totals.iter_mut().zip(row.scale.weights(&block)) {
                *total += weight;
            }
        }
        totals.iter().sum()
    }
}

widest! {
    /// Adds all weights up in their bins.
    fn fill(row: Row<'_>, binning: Binning, bins: &mut [u64]) {
        let Some(bins) = bins.first_chunk_mut::<N_BINS>() else {
            return;
        };
        for (_, block) in row.blocks(row.scale.floor(0.0)) {
            let weights = row.scale.weights(&block);
            for (place, weight) in binning.bins(&block).into_iter().zip(weights) {
                bins[place] += weight;
            }
        }
    }
}

widest! {
    /// The tokens of a bin.
    fn rank(row: Row<'_>, binning: Binning, bin: usize, ranked: &mut Vec<Candidate>) {
        for (id, block) in row.blocks(binning.floor(bin)) {
            let (bins, mut any) = (binning.bins(&block), false);
            for of in bins {
                any |= of == bin;
            }
            if !any {
                continue;
            }
            for ((id, &logit), of) in (id..).zip(&block).zip(bins) {
                if of == bin && logit.is_finite() {
                    let weight = row.scale.weight(logit);
                    ranked.push(Candidate { id, logit, weight });
                }
            }
        }
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
        find(self, target)
    }

    /// Adds those that have a weight, in the order of ids.
    pub(super) fn list(&self, kept: &mut Vec<Candidate>) {
        list(self, kept);
    }
}

widest! {
    fn find(crowd: &Crowd<'_>, target: u64) -> Option<u32> {
        let mut sum = 0;
        for (id, block) in crowd.row.blocks(crowd.last.logit) {
            let weights = crowd.weights(id, &block);
            let of_block: u64 = weights.iter().sum();
            if sum + of_block <= target {
                sum += of_block;
                continue;
            }
            let mut tokens = (id..).zip(weights);
            let found = tokens.find(|&(_, weight)| {
                sum += weight;
                sum > target
            });
            return found.map(|(id, _)| id);
        }
        None
    }
}

widest! {
    fn list(crowd: &Crowd<'_>, kept: &mut Vec<Candidate>) {
        for (id, block) in crowd.row.blocks(crowd.last.logit) {
            let weights = crowd.weights(id, &block);
            for ((id, &logit), weight) in (id..).zip(&block).zip(weights) {
                if weight > 0 {
                    kept.push(Candidate { id, logit, weight });
                }
            }
        }
    }
}
