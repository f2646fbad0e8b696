//! Rows of a pass whose token masks come late: they are kept until these are there, and drawn from then.

use std::sync::Arc;

use super::Pass;
use crate::batch::{MaskFault, Read};

impl Pass {
    /// Rows whose masks come late and that were not drawn from yet.
    pub(crate) const fn n_late(&self) -> usize {
        self.rows.reads.n_late()
    }

    /// Whether the mask of a row has not come.
    pub(crate) fn lacks_mask(&self) -> bool {
        self.rows.reads.lacks_mask()
    }

    /// The mask of a row that comes late, by its place; none where it has not come.
    pub(crate) fn mask_at(&self, place: usize) -> Option<Arc<[u32]>> {
        self.rows.reads.mask_at(place)
    }

    /// Whether a program asked for it, and nothing is missing but token masks.
    pub(crate) const fn is_awaiting(&self) -> bool {
        self.phase.is_awaiting()
    }

    /// Whether nothing is missing but token masks, asked for or not.
    pub(crate) fn awaits_masks(&self) -> bool {
        self.phase.awaits_masks()
    }

    /// The next row that was kept, whose mask has come and from which nobody draws.
    pub(crate) fn next_draw(&mut self) -> Option<(usize, Arc<[f32]>, &Read)> {
        self.rows.reads.next_draw()
    }

    /// The mask of a row came.
    pub(crate) fn give_mask(&mut self, row: usize, mask: Arc<[u32]>) -> Result<(), MaskFault> {
        self.rows.reads.give_mask(row, mask)
    }

    /// Tokens were drawn from a row that was kept. False: it is not kept.
    pub(crate) fn read_late(&mut self, place: usize, tokens: &[u32]) -> bool {
        self.rows.reads.answer_late(place, tokens)
    }

    /// Nothing is missing but token masks.
    pub(crate) fn await_masks(&mut self) -> bool {
        self.phase.await_masks()
    }

    /// Its last masks came. The first `n_accepted` of the tokens that were drawn are its own.
    pub(crate) fn resume(&mut self, n_accepted: u32) -> bool {
        let resumes = self.phase.resume();
        if resumes {
            self.push_drawn(n_accepted);
        }
        resumes
    }
}
