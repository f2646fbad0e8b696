//! The slots in the memory of the host, each as large as a page.

use crate::ids::HostSlot;

/// A pool of host slots, handed out one by one; memory grows with the slots ever used.
#[derive(Debug)]
pub(crate) struct HostPool {
    n_slots: u32,
    n_touched: u32,
    free: Vec<HostSlot>,
}

impl HostPool {
    pub(crate) const fn new(n_slots: u32) -> Self {
        Self {
            n_slots,
            n_touched: 0,
            free: Vec::new(),
        }
    }

    pub(crate) fn n_used(&self) -> u32 {
        self.n_touched - self.free.len() as u32
    }

    pub(crate) fn allocate(&mut self) -> Option<HostSlot> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        (self.n_touched < self.n_slots).then(|| {
            self.n_touched += 1;
            HostSlot(self.n_touched - 1)
        })
    }

    pub(crate) fn release(&mut self, slot: HostSlot) {
        debug_assert!(!self.free.contains(&slot), "{slot:?} is released twice");
        self.free.push(slot);
    }
}
