//! The adapters of a plan: by name, for each linear that they change a low-rank change.
//!
//! The operations of a plan name the linears that may be changed (*slots*); an adapter has a change for some of them.
//! It belongs to the plan once it is put there, and is replaced by one of the same name.

use std::collections::BTreeMap;

use crate::arena::{AdapterKey, AdapterUse, Batch};
use crate::element::Dtype;
use crate::error::{Error, Result};
use crate::noise::NoiseStream;
use crate::ops::lora::{LowRank, LowRankShape, Perturbation};

/// The most of a rank.
const MAX_RANK: usize = 1 << 12;

/// What an adapter changes in one linear, in memory of the caller: A [rank, inputs] and B [outputs, rank], row-major.
#[derive(Clone, Copy)]
pub(crate) struct LowRankPart<'a> {
    pub(crate) slot: u32,
    pub(crate) rank: usize,
    pub(crate) scale: f32,
    pub(crate) dtype: Dtype,
    pub(crate) a: &'a [u8],
    pub(crate) b: &'a [u8],
}

/// The sizes of a linear that may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotShape {
    pub(super) n_inputs: usize,
    pub(super) n_outputs: usize,
}

/// One adapter.
#[derive(Debug)]
pub(super) struct Adapter {
    changes: BTreeMap<u32, LowRank>,
    /// By how much it is perturbed where a sequence asks for that.
    sigma: f32,
}

/// All adapters.
#[derive(Default)]
pub(super) struct Adapters {
    slots: BTreeMap<u32, SlotShape>,
    loaded: BTreeMap<AdapterKey, Adapter>,
}

/// Rows that are computed with one adapter, perturbed alike.
pub(super) struct AdaptedRows<'a> {
    pub(super) rows: Vec<u32>,
    adapter: &'a Adapter,
    zo_seed: Option<u64>,
}

/// The adapted rows of a batch: of buffers with a row for each token, and of those with one for each row of logits.
#[derive(Default)]
pub(super) struct Adapted<'a> {
    pub(super) tokens: Vec<AdaptedRows<'a>>,
    pub(super) logits: Vec<AdaptedRows<'a>>,
}

impl Adapters {
    /// Names a linear that may be changed.
    pub(super) fn add_slot(&mut self, slot: u32, shape: SlotShape) -> Result<()> {
        match self.slots.insert(slot, shape) {
            None => Ok(()),
            Some(_) => Err(Error::argument(format!("slot {slot} is named twice"))),
        }
    }

    /// Copies an adapter, in place of one of the same name.
    pub(super) fn put(
        &mut self,
        key: AdapterKey,
        sigma: f32,
        parts: &[LowRankPart<'_>],
    ) -> Result<()> {
        if key.id == 0 {
            return Err(Error::argument(
                "an adapter has the identity 0, which is that of none",
            ));
        }
        if !(sigma.is_finite() && sigma >= 0.0) {
            return Err(Error::argument(format!(
                "sigma is {sigma}; it must be finite and at least 0"
            )));
        }
        let mut changes = BTreeMap::new();
        for part in parts {
            let change = self.change(part)?;
            if changes.insert(part.slot, change).is_some() {
                return Err(Error::argument(format!(
                    "slot {} is changed twice",
                    part.slot
                )));
            }
        }
        self.loaded.insert(key, Adapter { changes, sigma });
        Ok(())
    }

    fn change(&self, part: &LowRankPart<'_>) -> Result<LowRank> {
        let Some(shape) = self.slots.get(&part.slot) else {
            return Err(Error::argument(format!(
                "slot {} is none of the {} of this plan",
                part.slot,
                self.slots.len()
            )));
        };
        if part.rank == 0 || part.rank > MAX_RANK || !part.scale.is_finite() {
            return Err(Error::argument(format!(
                "rank {} is not 1 to {MAX_RANK}, or scale {} not finite",
                part.rank, part.scale
            )));
        }
        let shape = LowRankShape {
            rank: part.rank,
            n_inputs: shape.n_inputs,
            n_outputs: shape.n_outputs,
        };
        LowRank::new(shape, part.scale, part.dtype, part.a, part.b)
    }

    /// Forgets an adapter.
    pub(super) fn forget(&mut self, key: AdapterKey) {
        self.loaded.remove(&key);
    }

    /// The rows of a batch that are computed with adapters that are there.
    pub(super) fn adapted(&self, batch: &Batch<'_>) -> Adapted<'_> {
        let tokens = batch.adapted_tokens();
        if tokens.is_empty() {
            return Adapted::default();
        }
        let of_row = |(row, token): (usize, &u32)| {
            let at = tokens.binary_search_by_key(token, |&(_, token)| token);
            at.ok().map(|at| (tokens[at].0, row as u32))
        };
        let logits = batch.row_token.iter().enumerate().filter_map(of_row);
        let logits = logits.collect();
        Adapted {
            logits: self.groups(logits),
            tokens: self.groups(tokens),
        }
    }

    /// Rows by what they are computed with.
    fn groups(&self, mut rows: Vec<(AdapterUse, u32)>) -> Vec<AdaptedRows<'_>> {
        rows.sort_unstable();
        let groups = rows.chunk_by(|(one, _), (other, _)| one == other);
        let groups = groups.filter_map(|group| {
            let (adapter, _) = group.first()?;
            Some(AdaptedRows {
                rows: group.iter().map(|&(_, row)| row).collect(),
                adapter: self.loaded.get(&adapter.key)?,
                zo_seed: adapter.zo_seed,
            })
        });
        groups.collect()
    }
}

impl AdaptedRows<'_> {
    /// What the adapter changes in a linear, and by what it is perturbed there.
    pub(super) fn change(&self, slot: u32) -> Option<(&LowRank, Option<Perturbation>)> {
        let change = self.adapter.changes.get(&slot)?;
        let stream = |seed, number| NoiseStream { seed, number };
        let perturbation = self.zo_seed.map(|seed| Perturbation {
            a: stream(seed, 2 * slot),
            b: stream(seed, 2 * slot + 1),
            sigma: self.adapter.sigma,
        });
        Some((change, perturbation))
    }
}
