//! The contexts that are kept under names, by user.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::context::Context;
use crate::ids::UserId;

/// What the host keeps beside a context. The core does not look at it, and does not know what it is: it is kept, copied
/// and dropped with the snapshot, also where the snapshot makes way for another one.
pub type HostData = Arc<dyn Any + Send + Sync>;

/// All snapshots, by user and name.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    by_user: HashMap<UserId, BTreeMap<String, Snapshot>>,
    n: usize,
    /// Times that one was saved or opened.
    n_uses: u64,
}

/// A context that is kept.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) context: Context,
    pub(super) host_data: HostData,
    /// Which of the uses of all was its last.
    pub(super) used: u64,
}

impl Snapshots {
    pub(super) const fn len(&self) -> usize {
        self.n
    }

    pub(super) fn n_of(&self, user: UserId) -> usize {
        self.by_user.get(&user).map_or(0, BTreeMap::len)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (UserId, &str, &Snapshot)> {
        self.by_user.iter().flat_map(|(user, of_user)| {
            let named = of_user.iter();
            named.map(|(name, snapshot)| (*user, name.as_str(), snapshot))
        })
    }

    pub(super) fn names(&self, user: UserId) -> impl Iterator<Item = &str> {
        let of_user = self.by_user.get(&user).into_iter().flatten();
        of_user.map(|(name, _)| name.as_str())
    }

    pub(super) fn get(&self, user: UserId, name: &str) -> Option<&Snapshot> {
        self.by_user.get(&user)?.get(name)
    }

    pub(super) fn get_mut(&mut self, user: UserId, name: &str) -> Option<&mut Snapshot> {
        self.by_user.get_mut(&user)?.get_mut(name)
    }

    /// Returns the one that had the name before.
    pub(super) fn insert(
        &mut self,
        user: UserId,
        name: String,
        snapshot: Snapshot,
    ) -> Option<Snapshot> {
        let older = self.by_user.entry(user).or_default().insert(name, snapshot);
        self.n += usize::from(older.is_none());
        older
    }

    pub(super) fn remove(&mut self, user: UserId, name: &str) -> Option<Snapshot> {
        let of_user = self.by_user.get_mut(&user)?;
        let removed = of_user.remove(name)?;
        self.n -= 1;
        if of_user.is_empty() {
            self.by_user.remove(&user);
        }
        Some(removed)
    }

    /// Notes that one is used; returns which use that is.
    pub(super) const fn note_use(&mut self) -> u64 {
        self.n_uses += 1;
        self.n_uses
    }

    /// The name of the one that was not used for the longest, of the user who has gone with the most of them, where
    /// those are more than `than`.
    pub(super) fn least_missed(
        &self,
        than: usize,
        is_gone: impl Fn(UserId) -> bool,
    ) -> Option<(UserId, String)> {
        let gone = self.by_user.iter().filter(|(user, _)| is_gone(**user));
        let longest = |of_user: &BTreeMap<String, Snapshot>| {
            let oldest = of_user.iter().min_by_key(|(_, snapshot)| snapshot.used);
            oldest.map(|(name, snapshot)| (snapshot.used, name.clone()))
        };
        let candidates = gone.filter(|(_, of_user)| of_user.len() > than);
        let candidates = candidates.filter_map(|(user, of_user)| {
            let (used, name) = longest(of_user)?;
            Some((of_user.len(), std::cmp::Reverse(used), *user, name))
        });
        candidates
            .max_by_key(|(n, used, _, _)| (*n, *used))
            .map(|(_, _, user, name)| (user, name))
    }
}
