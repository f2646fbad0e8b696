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
    /// Those that are about to begin are counted too.
    n_started: u64,
}

/// A child that lives, or is about to begin, as its family counts it. Dropping it ends that.
#[derive(Debug)]
pub(crate) struct Member(Arc<Family>);

/// A child that is about to begin, as one of those that its family has started. Dropping it takes that back.
#[derive(Debug)]
pub(crate) struct Start(Option<Arc<Family>>);

impl Family {
    /// Counts one more child, `depth` generations below the launch.
    ///
    /// # Errors
    /// `limit-child-depth`, `limit-children`, `limit-spawns`.
    pub(crate) fn admit(
        self: &Arc<Self>,
        depth: usize,
        limits: &Limits,
    ) -> Result<(Member, Start), Error> {
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
        let Counts { n_live, n_started } = *counts;
        if n_live >= limits.children {
            let (code, limit) = (ErrorCode::LimitChildren, limits.children as u64);
            return Err(refusal(code, limit, |limit| {
                format!(
                    "{n_live} children of this launch live, limits.children = {limit}; wait for one to end"
                )
            }));
        }
        if n_started >= limits.spawns {
            return Err(refusal(ErrorCode::LimitSpawns, limits.spawns, |limit| {
                format!(
                    "this launch has started {n_started} children, limits.spawns = {limit}; give each more to do"
                )
            }));
        }
        counts.n_live += 1;
        counts.n_started += 1;
        Ok((Member(self.clone()), Start(Some(self.clone()))))
    }
}

/// The error of a family that has as many children as it may; what is said of it ends with what else can be done.
fn refusal(code: ErrorCode, limit: u64, said: impl FnOnce(u64) -> String) -> Error {
    let message = format!("{}, or raise the limit", said(limit));
    Error::with_values(code, message, &[("limit", limit)])
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut counts = lock(&self.0.0);
        debug_assert!(counts.n_live > 0, "a member that lives is counted");
        counts.n_live = counts.n_live.saturating_sub(1);
    }
}

impl Start {
    /// The child has begun, and stays counted.
    pub(crate) fn succeed(mut self) {
        self.0 = None;
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        let Some(family) = self.0.take() else {
            return;
        };
        let mut counts = lock(&family.0);
        debug_assert!(counts.n_started > 0, "a child that begins is counted");
        counts.n_started = counts.n_started.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            child_depth: 2,
            children: 2,
            spawns: 3,
            ..Limits::default()
        }
    }

    #[test]
    fn each_bound_has_an_error_of_its_own() {
        let (family, limits) = (Arc::new(Family::default()), limits());
        let refused = |depth| family.admit(depth, &limits).unwrap_err();
        let started = |depth| {
            let (member, start) = family.admit(depth, &limits).unwrap();
            start.succeed();
            member
        };
        assert_eq!(refused(3).code, ErrorCode::LimitChildDepth);
        let (first, second) = (started(1), started(2));
        let error = refused(1);
        assert_eq!(error.code, ErrorCode::LimitChildren);
        assert_eq!(
            error.message,
            "2 children of this launch live, limits.children = 2; wait for one to end, or raise the limit"
        );
        drop(first);
        let third = started(1);
        drop((second, third));
        let error = refused(1);
        assert_eq!(error.code, ErrorCode::LimitSpawns);
        assert_eq!(
            error.message,
            "this launch has started 3 children, limits.spawns = 3; give each more to do, or raise the limit"
        );
    }

    #[test]
    fn a_child_that_does_not_begin_is_counted_no_more() {
        let (family, limits) = (Arc::new(Family::default()), limits());
        for _ in 0..5 {
            drop(family.admit(1, &limits).unwrap());
        }
        // One that is about to begin is counted before it has, so that no two take the last place.
        let beginning = [(); 2].map(|()| family.admit(1, &limits).unwrap());
        assert_eq!(
            family.admit(1, &limits).unwrap_err().code,
            ErrorCode::LimitChildren
        );
        for (member, start) in beginning {
            start.succeed();
            drop(member);
        }
        let last = family.admit(1, &limits).unwrap();
        assert_eq!(
            family.admit(1, &limits).unwrap_err().code,
            ErrorCode::LimitSpawns
        );
        drop(last);
        drop(family.admit(1, &limits).unwrap());
    }
}
