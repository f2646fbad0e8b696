//! Errors of calls that return no `Result`, kept until a fallible call can return them.
//!
//! They live beside their owners, not in them, so that one whose owner was dropped or leaked is still found at the end.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use crate::Result;

thread_local! {
    static NEXT_OWNER: Cell<u64> = const { Cell::new(0) };
    static KEPT: RefCell<BTreeMap<u64, String>> = const { RefCell::new(BTreeMap::new()) };
}

/// The place of one owner: it holds the first error until it is met.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeper(u64);

impl Keeper {
    /// An empty place.
    pub(crate) fn new() -> Self {
        Self(NEXT_OWNER.with(|next| {
            let owner = next.get();
            next.set(owner + 1);
            owner
        }))
    }

    /// Keeps `error` unless an earlier one waits.
    pub(crate) fn keep(self, error: impl Into<String>) {
        KEPT.with_borrow_mut(|kept| {
            kept.entry(self.0).or_insert_with(|| error.into());
        });
    }

    /// The value, or the default with the error kept.
    pub(crate) fn value_of<T: Default, E: Into<String>>(
        self,
        result: std::result::Result<T, E>,
    ) -> T {
        result.unwrap_or_else(|error| {
            self.keep(error);
            T::default()
        })
    }

    /// Returns the kept error, once.
    pub(crate) fn meet(self) -> Result<()> {
        KEPT.with_borrow_mut(|kept| kept.remove(&self.0))
            .map_or(Ok(()), Err)
    }
}

/// Runs a call that may use anything of the program; returns the first error that it made an owner keep.
pub(crate) fn met_in<T>(call: impl FnOnce() -> T) -> Result<T> {
    let before: BTreeSet<u64> = KEPT.with_borrow(|kept| kept.keys().copied().collect());
    let value = call();
    KEPT.with_borrow_mut(|kept| {
        let new = kept.keys().copied().find(|owner| !before.contains(owner));
        new.and_then(|owner| kept.remove(&owner))
            .map_or(Ok(value), Err)
    })
}

/// Takes the kept error of the oldest owner, and forgets the others.
pub(crate) fn take_unmet() -> Option<String> {
    KEPT.take().into_values().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_waits_and_is_met_once() {
        let keeper = Keeper::new();
        keeper.keep("first");
        keeper.keep("second");
        assert_eq!(keeper.meet(), Err("first".to_owned()));
        assert_eq!(keeper.meet(), Ok(()));
    }

    #[test]
    fn owners_do_not_meet_each_others_errors() {
        let (one, other) = (Keeper::new(), Keeper::new());
        assert_eq!(one.value_of::<u32, String>(Err("one's".into())), 0);
        assert_eq!(other.meet(), Ok(()));
        assert_eq!(one.meet(), Err("one's".to_owned()));
    }

    #[test]
    fn a_call_meets_what_it_made_others_keep() {
        let (one, other) = (Keeper::new(), Keeper::new());
        one.keep("before");
        assert_eq!(met_in(|| other.keep("in it")), Err("in it".to_owned()));
        assert_eq!(met_in(|| one.keep("again")), Ok(()));
        assert_eq!(one.meet(), Err("before".to_owned()));
    }

    #[test]
    fn what_nobody_met_is_found_at_the_end() {
        let (one, other) = (Keeper::new(), Keeper::new());
        other.keep("later owner");
        one.keep("earlier owner");
        assert_eq!(take_unmet().as_deref(), Some("earlier owner"));
        assert_eq!(take_unmet(), None);
    }
}
