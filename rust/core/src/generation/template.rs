//! What makes the rows that the passes of a generator want.

use std::sync::Arc;

use crate::batch::{Read, Reads};
use crate::sampling::{Key, Params, Probe};

/// What is read of the rows of a step: the index of a row, and how it is read. Row 0 is behind the last token that is
/// certain, row `n` behind draft `n - 1`.
pub(crate) type RowProbe = (u32, Probe);

/// How a generator draws, and what is read of each of its steps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Template {
    pub(crate) params: Params,
    pub(crate) seed: u64,
    /// The tokens that may be drawn, as run lengths over the vocabulary; none: any.
    pub(crate) mask: Option<Arc<[u32]>>,
    /// The token mask of each row may come late.
    pub(crate) masks_late: bool,
    /// In the order in which they were attached.
    pub(crate) probes: Option<Arc<[RowProbe]>>,
}

impl Template {
    /// The row behind the token at `slot`, from which the next one is drawn.
    pub(crate) fn read(&self, slot: u32) -> Read {
        self.row(slot, 0, &[])
    }

    /// The row behind the token at `slot`, which is that of an index in its step, with the probes of every step and
    /// `own` ones.
    fn row(&self, slot: u32, index: u32, own: &[RowProbe]) -> Read {
        let probes = self.probes().iter().chain(own);
        let probes = probes.filter(|(row, _)| *row == index);
        let probes: Vec<Probe> = probes.map(|(_, probe)| probe.clone()).collect();
        Read {
            slot,
            params: self.params,
            key: Key {
                seed: self.seed,
                position: slot + 1,
                slot: 0,
                draw: 0,
            },
            n_draws: 1,
            mask: self.mask.clone().filter(|_| !self.masks_late),
            is_late: self.masks_late,
            probes: (!probes.is_empty()).then(|| Arc::from(probes)),
        }
    }

    /// The rows behind the token at `slot` and behind each of the `n_drafts` that follow it.
    pub(crate) fn reads(&self, slot: u32, n_drafts: u32, own: &[RowProbe]) -> Reads {
        if n_drafts == 0 {
            return Reads::one(self.row(slot, 0, own));
        }
        let rows = (0..=n_drafts).map(|index| self.row(slot + index, index, own));
        Reads::new(rows.collect())
    }

    /// The same of a step that draws nothing: the rows that are read.
    pub(crate) fn reads_only(&self, slot: u32, own: &[RowProbe]) -> Reads {
        let Some(last) = self.rows_probed(own).max() else {
            return Reads::default();
        };
        let rows = (0..=last).map(|index| Read {
            n_draws: 0,
            mask: None,
            is_late: false,
            ..self.row(slot + index, index, own)
        });
        Reads::new(rows.collect())
    }

    /// The index of the row of each probe, in their order.
    pub(crate) fn rows_probed<'a>(
        &'a self,
        own: &'a [RowProbe],
    ) -> impl Iterator<Item = u32> + use<'a> {
        self.probes().iter().chain(own).map(|(row, _)| *row)
    }

    /// The probes of every step.
    pub(crate) fn probes(&self) -> &[RowProbe] {
        self.probes.as_deref().unwrap_or_default()
    }

    /// Whether a row is one that it makes.
    pub(crate) fn makes(&self, read: &Read) -> bool {
        *read == self.read(read.slot)
    }
}
