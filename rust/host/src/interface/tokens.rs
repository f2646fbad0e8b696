//! What the tokens of a context are charged with.
//!
//! A fork shares the tokens of its original, so each token is charged once: to the context that it was added to, until that one and all that were
//! forked from it afterwards are gone.

use std::sync::Arc;

use crate::Error;
use crate::budget::{Account, Purpose};
use crate::process::holding::Holding;

/// What a token takes in the engine: four bytes, and its part of the node of its page.
pub(crate) const TOKEN_BYTES: usize = 24;
/// The most contexts of which one shares tokens; beyond, a fork is charged with all of its tokens anew.
const MAX_SHARED: usize = 16;

/// The tokens of one context.
#[derive(Debug)]
pub(crate) struct Tokens {
    account: Account,
    /// For those that were added since it was last forked.
    own: Holding,
    n_own: usize,
    /// Of those that it has in common with others.
    shared: Vec<Arc<Holding>>,
}

impl Tokens {
    /// Those of an empty context.
    pub(crate) fn new(account: Account) -> Self {
        let own = Holding::new(account.empty(Purpose::Text));
        Self {
            account,
            own,
            n_own: 0,
            shared: Vec::new(),
        }
    }

    /// `n_tokens` more come in, which makes `length`: what was truncated meanwhile is charged no more.
    ///
    /// # Errors
    /// `limit-engine-memory`, and nothing has changed.
    pub(crate) fn add(&mut self, n_tokens: usize, length: usize) -> Result<(), Error> {
        let n_own = self.n_own.saturating_add(n_tokens).min(length);
        self.own.set(n_own.saturating_mul(TOKEN_BYTES))?;
        self.n_own = n_own;
        Ok(())
    }

    /// Those of a fork of `length` tokens.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(crate) fn fork(&mut self, length: usize) -> Result<Self, Error> {
        let mut fork = Self::new(self.account.clone());
        if self.n_own > 0 {
            let own = Holding::new(self.account.empty(Purpose::Text));
            self.shared
                .push(Arc::new(std::mem::replace(&mut self.own, own)));
            self.n_own = 0;
        }
        if self.shared.len() <= MAX_SHARED {
            fork.shared.clone_from(&self.shared);
        } else {
            fork.add(length, length)?;
        }
        Ok(fork)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    const N: usize = 10_000;

    #[test]
    fn each_token_is_charged_once_until_nobody_has_it() {
        let budget = Budget::new(64 << 20, Some(32 << 20));
        let mut first = Tokens::new(budget.account("ada"));
        first.add(N, N).unwrap();
        let once = budget.held_bytes();
        assert!(once >= (N * TOKEN_BYTES) as u64);
        let mut second = first.fork(N).unwrap();
        let third = second.fork(N).unwrap();
        assert_eq!(budget.held_bytes(), once);
        second.add(N, 2 * N).unwrap();
        assert_eq!(budget.held_bytes(), 2 * once);
        drop((first, second));
        assert_eq!(budget.held_bytes(), once);
        drop(third);
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn what_is_added_and_truncated_again_does_not_sum_up() {
        let budget = Budget::new(64 << 20, Some(32 << 20));
        let mut tokens = Tokens::new(budget.account("ada"));
        for _ in 0..1000 {
            tokens.add(N, N).unwrap();
        }
        assert!(budget.held_bytes() < (2 * N * TOKEN_BYTES) as u64);
    }

    #[test]
    fn a_fork_of_a_fork_of_a_fork_keeps_few() {
        let budget = Budget::new(64 << 20, Some(32 << 20));
        let mut tokens = Tokens::new(budget.account("ada"));
        for n in 1..=100 {
            tokens.add(300, 300 * n).unwrap();
            tokens = tokens.fork(300 * n).unwrap();
            assert!(tokens.shared.len() <= MAX_SHARED);
            let bytes = (300 * n * TOKEN_BYTES) as u64;
            assert!(budget.held_bytes() <= 2 * bytes + (MAX_SHARED as u64 + 2) * (32 << 10));
        }
        drop(tokens);
        assert_eq!(budget.held_bytes(), 0);
    }
}
