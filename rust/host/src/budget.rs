//! The budget of bytes of an engine: whatever a guest, a client or a file can make grow is charged here before it is
//! allocated.
//!
//! | part of the total | who gets from it |
//! |---|---|
//! | a half, which is reserved | each user up to the floor, a 64th of the total |
//! | the other half | users above their floor, each up to what one user may hold |
//!
//! So a user who takes all that one may have, or several who do, leave every other user the floor. What is charged is
//! given back when the charge is dropped. A refused charge changes nothing, and nobody but the one who asked is told.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};

use pie_core::ErrorCode;

use crate::Error;
use crate::sync::lock;

/// One part in this many of the total is the floor of a user.
const FLOOR_PART: u64 = 64;
/// One part in this many of the total is reserved for users below their floor.
const RESERVED_PART: u64 = 2;
/// The least total: smaller ones have no room for one program.
pub(crate) const LEAST_BYTES: u64 = 16 << 20;

macro_rules! purposes {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal;)+) => {
        /// What bytes are held for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Purpose {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Purpose {
            /// Every purpose, in order.
            pub const ALL: [Self; N_PURPOSES] = [$(Self::$variant),+];

            /// Its name in statistics and messages.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        const N_PURPOSES: usize = [$($name),+].len();
    };
}

purposes! {
    /// Memories, tables and stacks of instances.
    Guest "guests";
    /// Texts and tokens while a call works on them, and what decoders hold.
    Text "texts";
    /// Options that live with a handle, as lists of stop tokens do.
    Options "options";
    /// Sources and components that processes hold, and installed programs that are held in memory.
    Program "programs";
    /// Contexts kept without a process.
    Snapshot "snapshots";
    /// Events, messages and files that wait.
    Queue "queues";
    /// Messages of clients while they arrive and until they are handled.
    Frame "frames";
    /// Answers until they are written.
    Answer "answers";
    /// Uploads that a connection holds.
    Upload "uploads";
    /// Logs and events of ended processes.
    Log "logs";
}

/// The bytes that an engine may hold, split by user.
#[derive(Debug)]
pub struct Budget {
    total_bytes: u64,
    user_bytes: u64,
    held: Mutex<Totals>,
}

#[derive(Debug, Default)]
struct Totals {
    n_bytes: u64,
    /// What users hold above their floors.
    n_above: u64,
    /// Those who hold something.
    users: HashMap<Arc<str>, Usage>,
}

/// What one user holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    by_purpose: [u64; N_PURPOSES],
}

impl Usage {
    /// Bytes in all.
    pub fn n_bytes(&self) -> u64 {
        self.by_purpose.iter().sum()
    }

    /// Bytes for each purpose, in the order of [`Purpose::ALL`].
    pub fn by_purpose(&self) -> impl Iterator<Item = (Purpose, u64)> + '_ {
        Purpose::ALL.into_iter().zip(self.by_purpose)
    }

    fn of(&mut self, purpose: Purpose) -> &mut u64 {
        &mut self.by_purpose[purpose as usize]
    }
}

impl Budget {
    /// A budget of `total_bytes`, of which one user may hold `user_bytes`; none: three eighths.
    pub fn new(total_bytes: u64, user_bytes: Option<u64>) -> Arc<Self> {
        let user_bytes = user_bytes.unwrap_or(total_bytes / 8 * 3);
        Arc::new(Self {
            total_bytes,
            user_bytes: user_bytes.min(total_bytes),
            held: Mutex::default(),
        })
    }

    /// Bytes that the engine may hold.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Bytes that one user may hold.
    pub fn user_bytes(&self) -> u64 {
        self.user_bytes
    }

    /// Bytes that each user gets, as long as no more than thirty-two want theirs.
    pub fn floor_bytes(&self) -> u64 {
        self.total_bytes / FLOOR_PART
    }

    /// The account of a user; the empty name is whoever has not said who they are.
    pub fn account(self: &Arc<Self>, user: &str) -> Account {
        Account {
            budget: self.clone(),
            user: user.into(),
        }
    }

    /// Bytes that are held.
    pub fn held_bytes(&self) -> u64 {
        lock(&self.held).n_bytes
    }

    /// What each user holds who holds something.
    pub fn usage(&self) -> BTreeMap<String, Usage> {
        let held = lock(&self.held);
        let users = held.users.iter();
        users
            .map(|(user, usage)| (user.to_string(), *usage))
            .collect()
    }

    /// Moves what `user` holds for `purpose` from `before` to `after` bytes.
    fn change(&self, user: &Arc<str>, purpose: Purpose, before: u64, after: u64) -> bool {
        let floor = self.floor_bytes();
        let mut held = lock(&self.held);
        let usage = held.users.get(user).copied().unwrap_or_default();
        let of_user = usage.n_bytes();
        let Some(wanted) = (of_user - before).checked_add(after) else {
            return false;
        };
        let above = held.n_above - of_user.saturating_sub(floor) + wanted.saturating_sub(floor);
        let Some(n_bytes) = (held.n_bytes - before).checked_add(after) else {
            return false;
        };
        if after > before {
            let shared = self.total_bytes - self.total_bytes / RESERVED_PART;
            let fits_user = wanted <= floor || (wanted <= self.user_bytes && above <= shared);
            if n_bytes > self.total_bytes || !fits_user {
                return false;
            }
        }
        held.n_bytes = n_bytes;
        held.n_above = above;
        if wanted == 0 {
            held.users.remove(user);
            return true;
        }
        let of_purpose = held.users.entry(user.clone()).or_default().of(purpose);
        *of_purpose = *of_purpose - before + after;
        true
    }
}

/// One user's part of a budget.
#[derive(Clone)]
pub struct Account {
    budget: Arc<Budget>,
    user: Arc<str>,
}

impl fmt::Debug for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Account")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl Account {
    /// Charges `n_bytes`, before they are allocated.
    ///
    /// # Errors
    /// `limit-engine-memory` where the user may not hold so much, or the engine has no more to give.
    pub fn charge(&self, purpose: Purpose, n_bytes: u64) -> Result<Charge, Error> {
        let mut charge = self.empty(purpose);
        charge.resize(n_bytes)?;
        Ok(charge)
    }

    /// A charge of nothing, to be resized.
    pub fn empty(&self, purpose: Purpose) -> Charge {
        Charge {
            account: self.clone(),
            purpose,
            n_bytes: 0,
        }
    }

    /// Whose it is.
    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    /// What the user holds.
    pub fn usage(&self) -> Usage {
        let held = lock(&self.budget.held);
        held.users.get(&self.user).copied().unwrap_or_default()
    }

    fn refused(&self, purpose: Purpose, more: u64) -> Error {
        let held = self.usage().n_bytes();
        let most = self.budget.user_bytes;
        let (purpose, user) = (purpose.name(), &self.user);
        let reason = if held.saturating_add(more) > most {
            format!("a user may hold {most}")
        } else {
            "the engine has no more to give".to_owned()
        };
        Error::new(
            ErrorCode::LimitEngineMemory,
            format!(
                "{more} more bytes for {purpose} are refused: the user {user:?} holds {held}, and {reason}; end what is not needed, \
                 come back later, or raise engine.memory_bytes"
            ),
        )
    }
}

/// Bytes that are held until this is dropped.
#[derive(Debug)]
pub struct Charge {
    account: Account,
    purpose: Purpose,
    n_bytes: u64,
}

impl Charge {
    /// Bytes that it stands for.
    pub fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// Makes it stand for `n_bytes`. Shrinking always succeeds.
    ///
    /// # Errors
    /// `limit-engine-memory`, and nothing has changed.
    pub fn resize(&mut self, n_bytes: u64) -> Result<(), Error> {
        let Account { budget, user } = &self.account;
        if budget.change(user, self.purpose, self.n_bytes, n_bytes) {
            self.n_bytes = n_bytes;
            return Ok(());
        }
        let more = n_bytes.saturating_sub(self.n_bytes);
        Err(self.account.refused(self.purpose, more))
    }

    /// Makes it stand for `n_bytes` more.
    ///
    /// # Errors
    /// As [`Self::resize`].
    pub fn grow(&mut self, n_bytes: u64) -> Result<(), Error> {
        self.resize(self.n_bytes.saturating_add(n_bytes))
    }

    /// Makes it stand for `n_bytes` less, at least none.
    pub fn shrink(&mut self, n_bytes: u64) {
        let left = self.n_bytes.saturating_sub(n_bytes);
        // Shrinking is never refused.
        drop(self.resize(left));
    }

    /// The same, for something else: nothing can refuse that.
    #[must_use]
    pub(crate) fn repurposed(mut self, purpose: Purpose) -> Self {
        let Account { budget, user } = &self.account;
        if let Some(usage) = lock(&budget.held).users.get_mut(user) {
            *usage.of(self.purpose) -= self.n_bytes;
            *usage.of(purpose) += self.n_bytes;
        }
        self.purpose = purpose;
        self
    }

    /// Takes so much off it as a charge of its own, which nothing can refuse.
    pub(crate) fn split(&mut self, n_bytes: u64) -> Self {
        let n_bytes = n_bytes.min(self.n_bytes);
        self.n_bytes -= n_bytes;
        Self {
            account: self.account.clone(),
            purpose: self.purpose,
            n_bytes,
        }
    }

    /// Makes it stand also for what `other` stood for, which nothing can refuse. Those of another user or purpose stay
    /// apart and are given back.
    pub(crate) fn absorb(&mut self, mut other: Self) {
        let is_alike = self.purpose == other.purpose
            && self.account.user == other.account.user
            && Arc::ptr_eq(&self.account.budget, &other.account.budget);
        if is_alike {
            self.n_bytes = self
                .n_bytes
                .saturating_add(std::mem::take(&mut other.n_bytes));
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shrink(self.n_bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOTAL: u64 = 6400;

    #[test]
    fn a_charge_is_held_until_it_is_dropped() {
        let budget = Budget::new(TOTAL, None);
        let account = budget.account("ada");
        let mut charge = account.charge(Purpose::Frame, 70).unwrap();
        charge.grow(5).unwrap();
        let other = account.charge(Purpose::Upload, 10).unwrap();
        let by_purpose: Vec<_> = account
            .usage()
            .by_purpose()
            .filter(|(_, n)| *n > 0)
            .collect();
        assert_eq!(by_purpose, [(Purpose::Frame, 75), (Purpose::Upload, 10)]);
        charge.shrink(1000);
        assert_eq!(charge.n_bytes(), 0);
        drop((charge, other));
        assert_eq!(budget.held_bytes(), 0);
        assert!(budget.usage().is_empty());
    }

    #[test]
    fn one_user_holds_at_most_a_part_and_the_error_names_it() {
        let budget = Budget::new(TOTAL, Some(1000));
        let account = budget.account("mallory");
        let mut charge = account.charge(Purpose::Guest, 999).unwrap();
        let error = charge.grow(2).unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitEngineMemory);
        assert_eq!(
            error.message,
            "2 more bytes for guests are refused: the user \"mallory\" holds 999, and a user may hold 1000; end what is not needed, \
             come back later, or raise engine.memory_bytes"
        );
        assert_eq!(charge.n_bytes(), 999);
        charge.grow(1).unwrap();
    }

    #[test]
    fn whoever_comes_late_gets_the_floor() {
        let budget = Budget::new(TOTAL, None);
        let greedy: Vec<_> = (0..10)
            .map(|n| {
                let account = budget.account(&format!("greedy {n}"));
                let mut charge = account.empty(Purpose::Guest);
                while charge.grow(10).is_ok() {}
                charge
            })
            .collect();
        let held: u64 = greedy.iter().map(Charge::n_bytes).sum();
        assert!((TOTAL / 2..=TOTAL / 2 + 10 * 100).contains(&held), "{held}");
        let late: Vec<_> = (0..22)
            .map(|n| {
                let account = budget.account(&format!("late {n}"));
                account.charge(Purpose::Guest, 100).unwrap()
            })
            .collect();
        assert_eq!(budget.held_bytes(), held + 2200);
        drop(late);
        drop(greedy);
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn more_than_can_be_counted_is_refused() {
        let budget = Budget::new(u64::MAX, None);
        let mut charge = budget.account("").charge(Purpose::Text, 10).unwrap();
        assert!(charge.resize(u64::MAX).is_err());
        assert_eq!(charge.n_bytes(), 10);
    }

    proptest! {
        /// The sums are those of the charges that live, and neither the whole nor a user goes beyond its bound.
        #[test]
        fn sums_are_those_of_the_charges(steps in prop::collection::vec((0..4_usize, 0..3_usize, 0..3000_u64), 1..200)) {
            let budget = Budget::new(TOTAL, Some(2500));
            let purposes = [Purpose::Guest, Purpose::Frame, Purpose::Log];
            let mut charges: Vec<Vec<Charge>> = (0..4)
                .map(|user| purposes.map(|purpose| budget.account(&format!("user {user}")).empty(purpose)).into())
                .collect();
            for (user, purpose, n_bytes) in steps {
                let of_user: u64 = charges[user].iter().map(Charge::n_bytes).sum();
                let in_all: u64 = charges.iter().flatten().map(Charge::n_bytes).sum();
                let above: u64 = charges.iter().enumerate().map(|(other, charges)| {
                    let n: u64 = charges.iter().map(Charge::n_bytes).sum();
                    let n = if other == user { n - charges[purpose].n_bytes() + n_bytes } else { n };
                    n.saturating_sub(100)
                }).sum();
                let charge = &mut charges[user][purpose];
                let before = charge.n_bytes();
                let wanted = of_user - before + n_bytes;
                let fits = n_bytes <= before
                    || (in_all - before + n_bytes <= TOTAL && (wanted <= 100 || (wanted <= 2500 && above <= TOTAL / 2)));
                prop_assert_eq!(charge.resize(n_bytes).is_ok(), fits);
                prop_assert_eq!(charge.n_bytes(), if fits { n_bytes } else { before });
                let sum: u64 = charges.iter().flatten().map(Charge::n_bytes).sum();
                prop_assert_eq!(budget.held_bytes(), sum);
                let usage: u64 = budget.usage().values().map(Usage::n_bytes).sum();
                prop_assert_eq!(usage, sum);
            }
        }
    }
}
