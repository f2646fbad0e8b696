//! What one process has.

use std::collections::BTreeSet;

use crate::ids::ProcessId;

/// The account of a process, in micro-credits. `balance + paid = endowment + dividends`, always.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// What it began with, less what its children have of it. Dividends are in proportion to it.
    pub endowment: u128,
    /// What it has.
    pub balance: u128,
    /// The rent and the prices that it paid.
    pub paid: u128,
    /// Its shares of the rent of all.
    pub dividends: u128,
    /// The last of them.
    pub dividend: u128,
    /// Where what is left goes when it is closed; none: it leaves the market.
    pub(super) parent: Option<ProcessId>,
    /// Accounts whose endowments came from this one.
    pub(super) children: BTreeSet<ProcessId>,
}

impl Account {
    /// One that begins with an endowment.
    pub(super) fn new(endowment: u128, parent: Option<ProcessId>) -> Self {
        Self {
            endowment,
            balance: endowment,
            parent,
            ..Self::default()
        }
    }

    /// Whether what it has is what it got less what it gave.
    pub(super) const fn is_exact(&self) -> bool {
        self.balance + self.paid == self.endowment + self.dividends
    }

    /// Pays an amount, or all that it has where that is less. Returns what it paid.
    pub(super) fn pay(&mut self, due: u128) -> u128 {
        let paid = due.min(self.balance);
        self.balance -= paid;
        self.paid += paid;
        paid
    }

    /// Gets a share of the rent.
    pub(super) const fn receive(&mut self, share: u128) {
        self.balance += share;
        self.dividends += share;
        self.dividend = share;
    }

    /// Gives a child a part of its endowment, no more than it still has of it. Returns how much.
    pub(super) fn endow(&mut self, wanted: u128) -> u128 {
        let given = wanted.min(self.balance).min(self.endowment);
        self.balance -= given;
        self.endowment -= given;
        given
    }

    /// Takes over all that a child had that ends, and what it did.
    pub(super) const fn inherit(&mut self, ended: &Self) {
        self.endowment += ended.endowment;
        self.balance += ended.balance;
        self.paid += ended.paid;
        self.dividends += ended.dividends;
    }
}
