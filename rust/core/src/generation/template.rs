//! What makes the rows that the passes of a generator want.

use crate::batch::Read;
use crate::sampling::{Key, Params};

/// How a generator draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Template {
    pub(crate) params: Params,
    pub(crate) seed: u64,
    /// The token mask of each row may come late.
    pub(crate) masks_late: bool,
}

impl Template {
    /// The row behind the token at `slot`, from which the next one is drawn.
    pub(crate) fn read(&self, slot: u32) -> Read {
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
            mask: None,
            is_late: self.masks_late,
            probes: None,
        }
    }

    /// Whether a row is one that it makes.
    pub(crate) fn makes(&self, read: &Read) -> bool {
        *read == self.read(read.slot)
    }
}
