//! What an instance takes of the machine's memory, charged to its user in the budget of the engine.
//!
//! Two figures bound it from above, and the larger one is charged:
//!
//! | figure | what it sums |
//! |---|---|
//! | promised | what the program may touch without asking again: memory and tables that it grew, and what the host holds for it. Charged before it is there |
//! | met | pages that its threads met for the first time while it ran, as the kernel counts them: also those of the image of a language runtime, which a program shares until it writes to them, and of the stack |
//!
//! What is met is known when a turn of the program is over, so a program may be ahead of its charge by what it touches
//! of image and stack in one turn. It is exact for pages of one size, so a server has no others ([`super::pages`]).
//! Pages that are only read count too, and memory that the allocator of the host gave back and took again counts twice.
//! So what is met never counts beyond everything that the program could touch.
//! A page of each table that an earlier instance left, wiped, is not met again.

use std::sync::Mutex;

use crate::Error;
use crate::budget::{Account, Charge, Purpose};
use crate::sync::lock;

/// What a process is charged with at its launch: an idle program in Rust takes 48 KiB, and others are charged with more
/// when their first turn is over.
const STARTED_BYTES: u64 = 64 << 10;
/// The budget is asked for so much at a time.
const STEP_BYTES: u64 = 64 << 10;
/// The most that the host holds for the handles and calls of one program, beside what has a charge of its own.
const HOST_BYTES: u64 = 16 << 20;

/// The memory of one process.
#[derive(Debug)]
pub(crate) struct Footprint(Mutex<State>);

#[derive(Debug)]
struct State {
    charge: Charge,
    promised: u64,
    /// What the program may touch beside that: the first part of its memories, and its stack.
    unasked: u64,
    met: u64,
}

impl Footprint {
    /// That of a process which begins, on a stack of so many bytes.
    ///
    /// # Errors
    /// `limit-engine-memory` where there is no room for one more.
    pub(crate) fn new(account: &Account, stack_bytes: u64) -> Result<Self, Error> {
        Ok(Self(Mutex::new(State {
            charge: account.charge(Purpose::Guest, STARTED_BYTES)?,
            promised: STARTED_BYTES,
            unasked: stack_bytes,
            met: 0,
        })))
    }

    /// The program gets so many bytes more.
    ///
    /// # Errors
    /// `limit-engine-memory`, and nothing has changed.
    pub(crate) fn promise(&self, n_bytes: u64) -> Result<(), Error> {
        let mut state = lock(&self.0);
        state.promised = state.promised.saturating_add(n_bytes);
        let granted = state.recharge();
        if granted.is_err() {
            state.promised -= n_bytes;
        }
        granted
    }

    /// So many bytes of what was promised are gone.
    pub(crate) fn withdraw(&self, n_bytes: u64) {
        let mut state = lock(&self.0);
        state.promised = state.promised.saturating_sub(n_bytes);
        // Shrinking is never refused.
        drop(state.recharge());
    }

    /// The program may touch so many bytes more, which count when it has met them.
    pub(crate) fn lend(&self, n_bytes: u64) {
        let mut state = lock(&self.0);
        state.unasked = state.unasked.saturating_add(n_bytes);
    }

    /// The program has met so many bytes so far.
    ///
    /// # Errors
    /// `limit-engine-memory`: it has to end.
    pub(crate) fn settle(&self, met: u64) -> Result<(), Error> {
        let mut state = lock(&self.0);
        state.met = met;
        state.recharge()
    }

    /// The instance is gone.
    pub(crate) fn release(&self) {
        let mut state = lock(&self.0);
        (state.promised, state.unasked, state.met) = (0, 0, 0);
        // Shrinking is never refused.
        drop(state.charge.resize(0));
    }
}

impl State {
    fn recharge(&mut self) -> Result<(), Error> {
        let most = self
            .promised
            .saturating_add(self.unasked)
            .saturating_add(HOST_BYTES);
        let n_bytes = self.promised.max(self.met.min(most));
        let n_bytes = n_bytes.div_ceil(STEP_BYTES).saturating_mul(STEP_BYTES);
        if n_bytes == self.charge.n_bytes() {
            return Ok(());
        }
        self.charge.resize(n_bytes)
    }
}

#[cfg(test)]
mod tests {
    use pie_core::ErrorCode;

    use super::*;
    use crate::budget::Budget;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_larger_of_the_two_figures_is_charged() {
        let budget = Budget::new(64 * MIB, Some(64 * MIB));
        let footprint = Footprint::new(&budget.account("ada"), MIB).unwrap();
        assert_eq!(budget.held_bytes(), STARTED_BYTES);
        footprint.promise(4 * MIB).unwrap();
        assert_eq!(budget.held_bytes(), STARTED_BYTES + 4 * MIB);
        footprint.settle(2 * MIB).unwrap();
        assert_eq!(budget.held_bytes(), STARTED_BYTES + 4 * MIB);
        footprint.settle(5 * MIB).unwrap();
        assert_eq!(budget.held_bytes(), 5 * MIB);
        footprint.withdraw(4 * MIB);
        footprint.release();
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn what_is_met_counts_up_to_all_that_can_be_touched() {
        let budget = Budget::new(256 * MIB, Some(256 * MIB));
        let footprint = Footprint::new(&budget.account("ada"), 2 * MIB).unwrap();
        footprint.lend(3 * MIB);
        footprint.settle(100 * MIB).unwrap();
        assert_eq!(budget.held_bytes(), STARTED_BYTES + 5 * MIB + HOST_BYTES);
    }

    #[test]
    fn a_refusal_changes_nothing() {
        let budget = Budget::new(64 * MIB, Some(8 * MIB));
        let footprint = Footprint::new(&budget.account("ada"), 32 * MIB).unwrap();
        let refused = footprint.promise(8 * MIB).unwrap_err();
        assert_eq!(refused.code, ErrorCode::LimitEngineMemory);
        assert_eq!(budget.held_bytes(), STARTED_BYTES);
        footprint.promise(6 * MIB).unwrap();
        assert!(footprint.settle(9 * MIB).is_err());
        drop(footprint);
        assert_eq!(budget.held_bytes(), 0);
    }
}
