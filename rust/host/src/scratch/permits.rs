//! How much programs have open at once. Each file that is open takes a descriptor of the engine's process, of which the
//! system allows so many, and with none left the engine itself can open nothing.
//!
//! | part of what programs may have open | who gets from it |
//! |---|---|
//! | a half, which is reserved | each user up to the floor, a 64th of the whole, and at least four |
//! | the other half | users above their floor, each up to three eighths of the whole |
//!
//! So a user who opens all that one may leaves every other user the floor, as with the bytes of the engine
//! ([`crate::budget`]).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pie_core::ErrorCode;

use crate::Error;
use crate::counted::{Bounded, Counted};
use crate::sync::lock;

/// One part in this many of the whole is the floor of a user.
const FLOOR_PART: usize = 64;
/// The least floor: as much as the smallest `fs_open_files` lets one process open.
const LEAST_FLOOR: usize = 4;

/// What the programs of a host may have open, split by user.
#[derive(Debug)]
pub(super) struct Permits {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    n: usize,
    /// What users have above their floors.
    n_above: usize,
    /// Those who have something open.
    users: HashMap<Arc<str>, usize>,
}

impl Permits {
    /// For `most` files at once.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            taken: Mutex::default(),
        })
    }

    fn floor(&self) -> usize {
        (self.most / FLOOR_PART).max(LEAST_FLOOR)
    }

    /// What one user may have open.
    fn most_of_user(&self) -> usize {
        (self.most / 8 * 3).max(self.floor())
    }

    /// A permit for one more of `user`.
    ///
    /// # Errors
    /// `limit-resources` where the user has as much open as one may, or all users together.
    pub(super) fn take(self: &Arc<Self>, user: &Arc<str>) -> Result<UserPermit, Error> {
        let (floor, most_of_user) = (self.floor(), self.most_of_user());
        let mut taken = lock(&self.taken);
        let of_user = taken.users.get(user).copied().unwrap_or_default();
        let above = taken.n_above + usize::from(of_user >= floor);
        let fits_user = of_user < floor || (of_user < most_of_user && above <= self.most / 2);
        if taken.n >= self.most || !fits_user {
            let n = taken.n;
            let message = format!(
                "the programs of this user have {of_user} files open, of at most {most_of_user}, and those of all \
                 users {n}, of at most a quarter of what the system lets the engine open (ulimit -n) = {}; \
                 close those that are done",
                self.most
            );
            return Err(Error::new(ErrorCode::LimitResources, message));
        }
        taken.n += 1;
        taken.n_above = above;
        taken.users.insert(user.clone(), of_user + 1);
        Ok(UserPermit {
            permits: self.clone(),
            user: user.clone(),
        })
    }

    fn give_back(&self, user: &Arc<str>) {
        let floor = self.floor();
        let mut taken = lock(&self.taken);
        let Some(of_user) = taken.users.get(user).copied() else {
            debug_assert!(false, "who has a permit is known");
            tracing::error!("a file was closed that nobody had open");
            return;
        };
        taken.n -= 1;
        taken.n_above -= usize::from(of_user > floor);
        match of_user {
            1 => taken.users.remove(user),
            _ => taken.users.insert(user.clone(), of_user - 1),
        };
    }
}

/// A permit to have something open, until it is dropped.
#[derive(Debug)]
pub(super) struct UserPermit {
    permits: Arc<Permits>,
    user: Arc<str>,
}

impl Drop for UserPermit {
    fn drop(&mut self) {
        self.permits.give_back(&self.user);
    }
}

/// What one process has open, which its own limit bounds as well.
#[derive(Debug)]
pub(super) struct ProcessPermits {
    permits: Arc<Permits>,
    user: Arc<str>,
    open: Bounded,
}

impl ProcessPermits {
    /// Those of a process of `user` that may have `most` open.
    pub(super) fn new(permits: Arc<Permits>, user: Arc<str>, most: usize) -> Self {
        Self {
            permits,
            user,
            open: Bounded::new(most),
        }
    }

    /// A permit for one more.
    ///
    /// # Errors
    /// `limit-resources` where the process has as much open as it may, and as [`Permits::take`].
    pub(super) fn take(&self) -> Result<OpenPermit, Error> {
        let of_user = self.permits.take(&self.user)?;
        let open = self.open.take().ok_or_else(|| {
            let most = self.open.most();
            let message = format!(
                "{most} files are open, of at most runtime.fs_open_files = {most}; close those that are done"
            );
            Error::new(ErrorCode::LimitResources, message)
        })?;
        Ok(OpenPermit {
            _open: open,
            _of_user: of_user,
        })
    }
}

/// A permit of a process to have something open, until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenPermit {
    _open: Counted,
    _of_user: UserPermit,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// All that a user gets.
    fn all_of(permits: &Arc<Permits>, user: &str) -> Vec<UserPermit> {
        let user = Arc::from(user);
        std::iter::from_fn(|| permits.take(&user).ok()).collect()
    }

    #[test]
    fn a_user_who_opens_all_leaves_the_others_theirs() {
        let permits = Permits::new(256);
        let greedy = ["ada", "bob", "eve"].map(|user| all_of(&permits, user));
        assert_eq!(greedy.each_ref().map(Vec::len), [96, 40, 4]);
        let others: Vec<_> = (0..29)
            .map(|n| all_of(&permits, &format!("grace {n}")))
            .collect();
        assert!(others.iter().all(|of_user| of_user.len() == 4));
        drop((greedy, others));
        assert_eq!(all_of(&permits, "late").len(), 96);
        assert!(lock(&permits.taken).users.is_empty());
    }

    #[test]
    fn a_process_has_its_own_limit_and_a_refusal_takes_nothing() {
        let permits = Permits::new(256);
        let process = ProcessPermits::new(permits.clone(), "ada".into(), 4);
        let held: Vec<_> = std::iter::from_fn(|| process.take().ok()).collect();
        assert_eq!(held.len(), 4);
        let error = process.take().unwrap_err();
        assert!(
            error.message.contains("runtime.fs_open_files = 4"),
            "{}",
            error.message
        );
        assert_eq!(lock(&permits.taken).n, 4);
        drop(held);
        assert_eq!(lock(&permits.taken).n, 0);
        assert!(process.take().is_ok());
    }

    proptest! {
        /// The sums are those of the permits that are held, and neither the whole nor a user goes beyond its bound.
        #[test]
        fn sums_are_those_of_the_permits(steps in prop::collection::vec((0..6_u8, any::<bool>()), 1..400)) {
            let permits = Permits::new(64);
            let mut held: BTreeMap<u8, Vec<UserPermit>> = BTreeMap::new();
            for (user, opens) in steps {
                let of_user = held.entry(user).or_default();
                let n = of_user.len();
                match permits.take(&user.to_string().into()) {
                    Ok(permit) if opens => of_user.push(permit),
                    Ok(_) => drop(of_user.pop()),
                    Err(_) => {
                        prop_assert!(n >= 4, "the floor is everybody's");
                        of_user.pop();
                    }
                }
                let in_all: usize = held.values().map(Vec::len).sum();
                let above: usize = held.values().map(|of_user| of_user.len().saturating_sub(4)).sum();
                let taken = lock(&permits.taken);
                prop_assert_eq!((taken.n, taken.n_above), (in_all, above));
                prop_assert!(above <= 32 && held.values().all(|of_user| of_user.len() <= 24));
            }
        }
    }
}
