//! How many requests are under way at once: of a user and of all.

use std::sync::Arc;

use pie_core::ErrorCode;
use tokio::sync::Semaphore;

use crate::Error;
use crate::shared_places::{SharedPlace, SharedPlaces};

/// Names of servers that are looked up at once for one user: what looks one up is a thread.
const LOOKUPS_OF_USER: usize = 8;

/// The places for requests of an engine.
#[derive(Debug)]
pub(crate) struct Places(Arc<SharedPlaces<Lookups>>);

/// The place of one request, until it is dropped.
pub(crate) type OutgoingPlace = SharedPlace<Lookups>;

/// The turns in which names are looked up for one user.
#[derive(Clone, Debug)]
pub(crate) struct Lookups(pub(crate) Arc<Semaphore>);

impl Default for Lookups {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LOOKUPS_OF_USER)))
    }
}

impl Places {
    /// `most` in all, and `most_of_user` for each user.
    pub(crate) fn new(most_of_user: usize, most: usize) -> Self {
        Self(SharedPlaces::of_all(most_of_user, most))
    }

    /// A place for a request of a user.
    ///
    /// # Errors
    /// `limit-http-requests`.
    pub(crate) fn take(&self, user: &str) -> Result<OutgoingPlace, Error> {
        self.0.take(user).map_err(|full| {
            let whose = match full.is_of_all() {
                true => "of all users",
                false => "of this user",
            };
            let bound = full.bound("runtime.net_user_requests", "runtime.net_requests");
            too_many(full.n(), whose, &bound)
        })
    }

    #[cfg(test)]
    pub(crate) fn n_taken(&self) -> usize {
        self.0.n_taken()
    }
}

/// The error of a request for which there is no place.
pub(crate) fn too_many(n: usize, whose: &str, bound: &str) -> Error {
    Error::new(
        ErrorCode::LimitHttpRequests,
        format!(
            "{n} HTTP requests {whose} are under way, of at most {bound}; read or drop the answers that there are, or raise the limit"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_finds_no_place_is_told_which_bound_was_met() {
        let places = Places::new(2, 3);
        let held = ["ada", "ada", "bob"].map(|user| places.take(user).unwrap());
        for (user, part) in [
            (
                "ada",
                "2 HTTP requests of this user are under way, of at most runtime.net_user_requests = 2",
            ),
            (
                "bob",
                "3 HTTP requests of all users are under way, of at most runtime.net_requests = 3",
            ),
        ] {
            let error = places.take(user).unwrap_err();
            assert_eq!(error.code, ErrorCode::LimitHttpRequests);
            assert!(error.message.starts_with(part), "{}", error.message);
        }
        drop(held);
        assert_eq!(places.n_taken(), 0);
    }
}
