//! A charge for what grows and shrinks often, such as a queue.

use crate::Error;
use crate::budget::Charge;

/// So much is covered by what a process is charged with at its launch.
const FREE_BYTES: u64 = 4 << 10;
/// The budget is asked for so much at a time.
const STEP_BYTES: u64 = 16 << 10;

/// Bytes that are held, charged in steps.
#[derive(Debug)]
pub(crate) struct SteppedCharge(Charge);

impl SteppedCharge {
    /// What holds nothing yet.
    pub(crate) fn new(charge: Charge) -> Self {
        Self(charge)
    }

    /// It holds `n_bytes` from now on.
    ///
    /// # Errors
    /// `limit-engine-memory`, and it holds what it held before.
    pub(crate) fn set(&mut self, n_bytes: usize) -> Result<(), Error> {
        let n_bytes = n_bytes as u64;
        let wanted = if n_bytes <= FREE_BYTES {
            0
        } else {
            n_bytes.div_ceil(STEP_BYTES).saturating_mul(STEP_BYTES)
        };
        let held = self.0.n_bytes();
        let is_near = wanted > 0 && wanted <= held && held - wanted <= STEP_BYTES;
        if wanted == held || is_near {
            return Ok(());
        }
        self.0.resize(wanted)
    }

    /// It holds `n_bytes` from now on, not more than before.
    pub(crate) fn shrink(&mut self, n_bytes: usize) {
        // Less is never refused.
        drop(self.set(n_bytes));
    }

    /// It holds also what `other` of the same user held, until it is set anew.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.0.absorb(other.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Purpose};

    #[test]
    fn the_budget_is_asked_in_steps() {
        // The floor of a user, and the most of one, are 64 KiB.
        let budget = Budget::new(4 << 20, Some(64 << 10));
        let charge = budget.account("ada").empty(Purpose::Queue);
        let mut holding = SteppedCharge::new(charge);
        for (held, charged) in [
            (4096, 0),
            (4097, 16),
            (16384, 16),
            (20000, 32),
            (5000, 32),
            (100, 0),
            (65536, 64),
            (20000, 32),
        ] {
            holding.set(held).unwrap();
            assert_eq!(budget.held_bytes(), charged << 10, "{held}");
        }
        assert!(holding.set(65537).is_err());
        assert_eq!(budget.held_bytes(), 32 << 10);
        holding.shrink(0);
        assert_eq!(budget.held_bytes(), 0);
    }
}
