//! The accounts of all processes of a model.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::account::Account;
use super::amount::{MAX_CREDITS, MICRO};
use crate::ids::ProcessId;

/// The most micro-credits of an endowment. So the rent of all, times an endowment, fits into 128 bits however many
/// accounts there are.
const MAX_ENDOWMENT: u64 = MAX_CREDITS * MICRO;

/// All accounts, and what went in and out of them together.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    accounts: BTreeMap<ProcessId, Account>,
    /// The endowments that came from nobody.
    granted: u128,
    /// The prices of pages, which nobody gets.
    sunk: u128,
    /// What was left of accounts that were closed, and went to nobody.
    retired: u128,
    /// The rent of all ticks, which went to everybody.
    rented: u128,
    /// The clearing price of the last batch, in micro-credits a page; 0 where pages were not short.
    rent: u64,
    /// Batches for which pages were short.
    n_auctions: u64,
}

impl Ledger {
    /// Opens an account with an endowment that comes from nobody, [`MAX_CREDITS`] at most. One that is open stays as it
    /// is.
    pub(crate) fn open(&mut self, process: ProcessId, endowment: u64) {
        if let Entry::Vacant(entry) = self.accounts.entry(process) {
            let endowment = u128::from(endowment.min(MAX_ENDOWMENT));
            entry.insert(Account::new(endowment, None));
            self.granted += endowment;
        }
    }

    /// Opens the account of a child, whose endowment comes from its parent: what is wanted, or half of what the parent
    /// has and `usual` at most; never more than the parent has. A parent without an account gives nothing. One that is
    /// open stays as it is.
    pub(crate) fn open_child(
        &mut self,
        process: ProcessId,
        parent: ProcessId,
        wanted: Option<u64>,
        usual: u64,
    ) {
        if self.accounts.contains_key(&process) {
            return;
        }
        let mut account = Account::default();
        if let Some(above) = self.accounts.get_mut(&parent) {
            let half = (above.balance / 2).min(u128::from(usual));
            let given = above.endow(wanted.map_or(half, u128::from));
            above.children.insert(process);
            account = Account::new(given, Some(parent));
        }
        self.accounts.insert(process, account);
    }

    /// Closes an account: what is left goes to the parent, and its children are the parent's from then on. An unknown
    /// one is none.
    pub(crate) fn close(&mut self, process: ProcessId) {
        let Some(closed) = self.accounts.remove(&process) else {
            return;
        };
        for child in &closed.children {
            if let Some(child) = self.accounts.get_mut(child) {
                child.parent = closed.parent;
            }
        }
        let parent = closed.parent.and_then(|id| self.accounts.get_mut(&id));
        match parent {
            Some(parent) => {
                parent.children.remove(&process);
                parent.children.extend(&closed.children);
                parent.inherit(&closed);
            }
            None => self.retired += closed.balance,
        }
    }

    /// The account of a process.
    pub(crate) fn account(&self, process: ProcessId) -> Option<&Account> {
        self.accounts.get(&process)
    }

    /// The process pays for pages that it filled, as far as it can.
    pub(crate) fn charge(&mut self, process: ProcessId, price: u128) {
        if let Some(account) = self.accounts.get_mut(&process) {
            self.sunk += account.pay(price);
        }
    }

    /// The clearing price of the last batch.
    pub(crate) const fn rent(&self) -> u64 {
        self.rent
    }

    /// Batches for which pages were short.
    pub(crate) const fn n_auctions(&self) -> u64 {
        self.n_auctions
    }

    /// The rent that was paid so far.
    pub(crate) const fn rented(&self) -> u128 {
        self.rented
    }

    /// A batch was planned, and pages were not short.
    pub(crate) const fn rest(&mut self) {
        self.rent = 0;
    }

    /// A batch was planned, and pages were short: at that clearing price, each process owes so much rent. It pays as
    /// far as it can, and what is paid returns to all.
    pub(crate) fn settle(&mut self, rent: u64, owed: &BTreeMap<ProcessId, u128>) {
        self.rent = rent;
        self.n_auctions += 1;
        let weights = self.accounts.values().map(|account| account.endowment);
        let endowed: u128 = weights.sum();
        if endowed == 0 {
            // There is nobody whom the rent could go to.
            return;
        }
        let mut revenue = 0;
        for (process, due) in owed {
            if let Some(account) = self.accounts.get_mut(process) {
                revenue += account.pay(*due);
            }
        }
        self.rented += revenue;
        self.distribute(revenue, endowed);
    }

    /// Gives each account its share of the rent, rounded down, and one more to those with the largest remainders until
    /// all is given; among equals the lower number comes first.
    fn distribute(&mut self, revenue: u128, endowed: u128) {
        let mut left = revenue;
        let mut remainders = Vec::new();
        for (process, account) in &mut self.accounts {
            let part = revenue * account.endowment;
            account.receive(part / endowed);
            left -= account.dividend;
            if !part.is_multiple_of(endowed) {
                remainders.push((Reverse(part % endowed), *process));
            }
        }
        remainders.sort_unstable();
        // Remainders add up to what is left, and each is less than one.
        for (_, process) in remainders.into_iter().take(left as usize) {
            if let Some(account) = self.accounts.get_mut(&process) {
                account.balance += 1;
                account.dividends += 1;
                account.dividend += 1;
            }
        }
    }

    /// Verifies that no micro-credit was made or lost, of any account and of all together.
    ///
    /// # Errors
    /// A sentence that names the first account that is wrong, or the sums.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (process, account) in &self.accounts {
            if !account.is_exact() {
                return Err(format!(
                    "the account of {process:?} is not exact: {account:?}"
                ));
            }
            let parent = account.parent.and_then(|id| self.accounts.get(&id));
            let knows = |parent: &Account| parent.children.contains(process);
            if account.parent.is_some() && !parent.is_some_and(knows) {
                return Err(format!("the parent of {process:?} does not know it"));
            }
        }
        let held: u128 = self.accounts.values().map(|account| account.balance).sum();
        if held + self.sunk + self.retired != self.granted {
            return Err(format!(
                "of {} micro-credits accounts hold {held}, {} were spent and {} are gone",
                self.granted, self.sunk, self.retired
            ));
        }
        Ok(())
    }
}
