//! Work that is counted, so that a small schema or document does not make much of it.

use std::cell::Cell;

/// Steps that may still be made.
#[derive(Debug)]
pub(super) struct Steps {
    most: u64,
    left: Cell<u64>,
    /// Whether more were asked for than there were.
    is_over: Cell<bool>,
}

impl Steps {
    pub(super) fn new(most: u64) -> Self {
        Self {
            most,
            left: Cell::new(most),
            is_over: Cell::new(false),
        }
    }

    /// How many there were.
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    /// Makes so many steps; whether there were as many.
    pub(super) fn make(&self, n_steps: usize) -> bool {
        match self.left.get().checked_sub(n_steps as u64) {
            Some(left) if !self.is_over.get() => self.left.set(left),
            _ => self.give_up(),
        }
        !self.is_over.get()
    }

    /// Leaves no step to be made.
    pub(super) fn give_up(&self) {
        self.is_over.set(true);
    }

    /// Whether more were asked for than there were.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.get()
    }
}
