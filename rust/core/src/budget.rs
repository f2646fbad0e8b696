//! The cap on the tokens that enter the contexts of one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::errors::{Error, ErrorCode, Result};

/// A hard cap on tokens, shared by everything that one process does in the engines of all its models.
///
/// Tokens enter with an append and when the result of a generation is taken; whether their keys and values are
/// computed, copied or shared makes no difference. Forks share what has entered. What is cancelled, fails or is
/// truncated gives nothing back and, where it never entered, costs nothing. Tokens that a program puts in place of
/// those that a step accepted cost nothing as far as those reach, and one at least: what is taken back is not given
/// back.
///
/// Each of those engines is behind a lock of its own, so a budget counts by itself. To spend is to exchange its number
/// at once, and then those above it, or none of them where one does not fit. It guards no other memory, so that no
/// order is needed.
#[derive(Clone, Debug)]
pub struct TokenBudget(Arc<State>);

#[derive(Debug)]
struct State {
    limit: u64,
    used: AtomicU64,
    /// That of the process that has started this one: what enters here enters there too.
    parent: Option<TokenBudget>,
}

impl TokenBudget {
    /// A budget of `limit` tokens.
    pub fn new(limit: u64) -> Self {
        Self::under(None, limit)
    }

    /// A budget of `limit` tokens, each of which is also taken from this one.
    #[must_use]
    pub fn part(&self, limit: u64) -> Self {
        Self::under(Some(self.clone()), limit)
    }

    fn under(parent: Option<Self>, limit: u64) -> Self {
        Self(Arc::new(State {
            limit,
            used: AtomicU64::new(0),
            parent,
        }))
    }

    /// Tokens that have entered.
    pub fn n_used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Tokens that may still enter.
    pub fn left(&self) -> u64 {
        let own = self.own_left();
        self.0
            .parent
            .as_ref()
            .map_or(own, |parent| own.min(parent.left()))
    }

    fn own_left(&self) -> u64 {
        self.0
            .limit
            .saturating_sub(self.0.used.load(Ordering::Relaxed))
    }

    /// Lets `n` tokens enter.
    ///
    /// # Errors
    /// `token-budget` when fewer are left; none enters then.
    pub fn spend(&self, n: usize) -> Result<()> {
        let fits = |used: u64| {
            used.checked_add(n as u64)
                .filter(|used| *used <= self.0.limit)
        };
        let spent = self
            .0
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        spent.map_err(|_| self.exhausted(n as u64))?;
        let Some(parent) = &self.0.parent else {
            return Ok(());
        };
        parent.spend(n).inspect_err(|_| self.refund_own(n))
    }

    /// Gives `n` tokens back that were to enter, and did not.
    pub(crate) fn refund(&self, n: usize) {
        self.refund_own(n);
        if let Some(parent) = &self.0.parent {
            parent.refund(n);
        }
    }

    fn refund_own(&self, n: usize) {
        let back = |used: u64| Some(used.saturating_sub(n as u64));
        let refunded = self
            .0
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, back);
        debug_assert!(refunded.is_ok(), "it always has a new value");
    }

    /// The error of `n` tokens that do not fit.
    pub(crate) fn exhausted(&self, n: u64) -> Error {
        if let Some(parent) = self
            .0
            .parent
            .as_ref()
            .filter(|parent| parent.left() < self.own_left())
        {
            return parent.exhausted(n);
        }
        let (limit, left) = (self.0.limit, self.own_left());
        Error::with_values(
            ErrorCode::TokenBudget,
            format!(
                "{n} more tokens do not fit token_budget = {limit}, of which {left} are left; use fewer tokens, or launch with a larger token_budget"
            ),
            &[("tokens", n), ("token_budget", limit), ("left", left)],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_costs_nothing() {
        let budget = TokenBudget::new(10);
        let same = budget.clone();
        budget.spend(6).unwrap();
        let error = same.spend(5).unwrap_err();
        assert_eq!(error.code, ErrorCode::TokenBudget);
        assert_eq!(budget.left(), 4);
        same.spend(4).unwrap();
        assert_eq!(budget.left(), 0);
        assert!(budget.spend(usize::MAX).is_err());
        budget.spend(0).unwrap();
        budget.refund(3);
        assert_eq!((same.left(), same.n_used()), (3, 7));
    }

    #[test]
    fn a_part_takes_from_the_whole_too() {
        let whole = TokenBudget::new(10);
        let (small, large) = (whole.part(4), whole.part(u64::MAX));
        small.spend(3).unwrap();
        assert_eq!((small.left(), large.left(), whole.left()), (1, 7, 7));
        let error = small.spend(2).unwrap_err();
        assert!(
            error.message.contains("token_budget = 4"),
            "{}",
            error.message
        );
        let error = large.spend(8).unwrap_err();
        assert!(
            error.message.contains("token_budget = 10"),
            "{}",
            error.message
        );
        assert_eq!((large.n_used(), whole.n_used()), (0, 3));
        large.spend(7).unwrap();
        assert_eq!((small.left(), whole.left()), (0, 0));
        assert!(small.spend(1).is_err());
        assert_eq!((small.n_used(), whole.n_used()), (3, 10));
        small.refund(2);
        assert_eq!((small.n_used(), whole.n_used(), large.left()), (1, 8, 2));
    }
}
