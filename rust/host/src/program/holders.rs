//! Who holds a program: each user is charged for its bytes once, however many processes are launched with it at the
//! same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use crate::Error;
use crate::budget::{Budget, Charge, Purpose};
use crate::sync::lock;

/// How often the bytes of a program are counted: as they came, and as they are read.
const COPIES: u64 = 2;

/// The users who hold a program.
#[derive(Debug, Default)]
pub(crate) struct Holders(Mutex<HashMap<String, Weak<Charge>>>);

impl Holders {
    /// Charges `user` for a program of `n_bytes`, or shares the charge of another launch of theirs.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(crate) fn hold(
        &self,
        budget: &Arc<Budget>,
        user: &str,
        n_bytes: usize,
    ) -> Result<Arc<Charge>, Error> {
        let mut holders = lock(&self.0);
        if let Some(charge) = holders.get(user).and_then(Weak::upgrade) {
            return Ok(charge);
        }
        holders.retain(|_, charge| charge.strong_count() > 0);
        let n_bytes = (n_bytes as u64).saturating_mul(COPIES);
        let charge = Arc::new(budget.account(user).charge(Purpose::Program, n_bytes)?);
        holders.insert(user.to_owned(), Arc::downgrade(&charge));
        Ok(charge)
    }
}

#[cfg(test)]
mod tests {
    use pie_core::ErrorCode;

    use super::*;

    #[test]
    fn a_user_is_charged_once_until_nobody_of_theirs_holds_it() {
        let (budget, holders) = (Budget::new(6400, Some(1000)), Holders::default());
        let first = holders.hold(&budget, "ada", 300).unwrap();
        let second = holders.hold(&budget, "ada", 300).unwrap();
        assert_eq!(budget.held_bytes(), 600);
        let other = holders.hold(&budget, "grace", 300).unwrap();
        assert_eq!(budget.held_bytes(), 1200);
        drop((first, other));
        assert_eq!(budget.held_bytes(), 600);
        drop(second);
        assert_eq!(budget.held_bytes(), 0);
        drop(holders.hold(&budget, "grace", 1).unwrap());
        assert_eq!(lock(&holders.0).len(), 1);
    }

    #[test]
    fn a_program_that_is_too_large_for_the_user_is_refused() {
        let (budget, holders) = (Budget::new(6400, Some(1000)), Holders::default());
        let error = holders.hold(&budget, "ada", 501).unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitEngineMemory);
        assert!(error.message.contains("programs"), "{}", error.message);
        assert_eq!(budget.held_bytes(), 0);
    }
}
