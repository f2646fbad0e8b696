//! The children of one launch, theirs included: how many live, and how many there were.

use std::sync::{Arc, Mutex};

use pie_core::ErrorCode;

use crate::Error;
use crate::limits::Limits;
use crate::sync::lock;

/// A launch and all that came of it.
#[derive(Debug, Default)]
pub(crate) struct Family(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    n_live: usize,
    n_started: u64,
}

/// A child that lives, as its family counts it. Dropping it ends that.
#[derive(Debug)]
pub(crate) struct Member(Arc<Family>);

impl Family {
    /// Counts one more child, `depth` generations below the launch.
    ///
    /// # Errors
    /// `limit-child-depth`, `limit-children`, `limit-spawns`.
    pub(crate) fn admit(self: &Arc<Self>, depth: usize, limits: &Limits) -> Result<Member, Error> {
        if depth > limits.child_depth {
            let message = format!(
                "the child would be {depth} generations below the launch, more than limits.child_depth = {}; do more in one program, or raise the limit",
                limits.child_depth
            );
            return Err(Error::with_values(
                ErrorCode::LimitChildDepth,
                message,
                &[
                    ("depth", depth as u64),
                    ("limit", limits.child_depth as u64),
                ],
            ));
        }
        let mut counts = lock(&self.0);
        if counts.n_live >= limits.children {
            let message = format!(
                "{} children of this launch live, limits.children = {}; wait for one to end, or raise the limit",
                counts.n_live, limits.children
            );
            return Err(Error::with_values(
                ErrorCode::LimitChildren,
                message,
                &[("limit", limits.children as u64)],
            ));
        }
        if counts.n_started >= limits.spawns {
            let message = format!(
                "this launch has started {} children, limits.spawns = {}; give each more to do, or raise the limit",
                counts.n_started, limits.spawns
            );
            return Err(Error::with_values(
                ErrorCode::LimitSpawns,
                message,
                &[("limit", limits.spawns)],
            ));
        }
        counts.n_live += 1;
        counts.n_started += 1;
        Ok(Member(self.clone()))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut counts = lock(&self.0.0);
        debug_assert!(counts.n_live > 0, "a member that lives is counted");
        counts.n_live = counts.n_live.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bound_has_an_error_of_its_own() {
        let limits = Limits {
            child_depth: 2,
            children: 2,
            spawns: 3,
            ..Limits::default()
        };
        let family = Arc::new(Family::default());
        let refused = |depth| family.admit(depth, &limits).unwrap_err().code;
        assert_eq!(refused(3), ErrorCode::LimitChildDepth);
        let first = family.admit(1, &limits).unwrap();
        let second = family.admit(2, &limits).unwrap();
        assert_eq!(refused(1), ErrorCode::LimitChildren);
        drop(first);
        let third = family.admit(1, &limits).unwrap();
        drop((second, third));
        assert_eq!(refused(1), ErrorCode::LimitSpawns);
    }
}
