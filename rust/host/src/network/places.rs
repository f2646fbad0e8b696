//! How many requests are under way at once: of a process, of a user, of all.
//!
//! | part of the places | who gets from it |
//! |---|---|
//! | a half, which is reserved | each user up to the floor, a 512th of the whole, and at least one |
//! | the other half | users above their floor, each up to a half of what the others leave of it |
//!
//! So the share of a user shrinks as others come, and however many take all that they may, whoever comes next finds a
//! place: the floors of as many users as processes live where nothing else is set fit into the reserved half.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pie_core::ErrorCode;
use tokio::sync::Semaphore;

use crate::Error;
use crate::sync::lock;

/// Names of servers that are looked up at once for one user: what looks one up is a thread.
const LOOKUPS_OF_USER: usize = 8;
/// One part in this many of the whole is the floor of a user. By default that is 2 of 1,024, for which a half has room
/// with 256 users, as many as processes live.
const FLOOR_PART: usize = 512;

/// The places for requests of an engine.
#[derive(Debug)]
pub(crate) struct Places {
    most_of_user: usize,
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    n: usize,
    /// What users have above their floors.
    n_above: usize,
    /// Those who have some.
    users: HashMap<Arc<str>, OfUser>,
}

#[derive(Debug)]
struct OfUser {
    n: usize,
    lookups: Arc<Semaphore>,
}

/// The place of one request, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    user: Arc<str>,
    /// Who may have a name looked up.
    pub(crate) lookups: Arc<Semaphore>,
}

impl Places {
    /// `most` in all, and `most_of_user` for each user.
    pub(crate) fn new(most_of_user: usize, most: usize) -> Arc<Self> {
        Arc::new(Self {
            most_of_user,
            most,
            state: Mutex::default(),
        })
    }

    /// What each user gets, whatever the others have.
    fn floor(&self) -> usize {
        (self.most / FLOOR_PART).max(1)
    }

    /// What a user may have where the others have so many above their floors.
    fn share(&self, above_of_others: usize) -> usize {
        let shared = self.most - self.most / 2;
        self.floor() + shared.saturating_sub(above_of_others).div_ceil(2)
    }

    /// A place for a request of a user.
    ///
    /// # Errors
    /// `limit-http-requests`.
    pub(crate) fn take(self: &Arc<Self>, user: &str) -> Result<Place, Error> {
        let floor = self.floor();
        let mut state = lock(&self.state);
        let of_user = state.users.get(user).map_or(0, |of_user| of_user.n);
        let share = self.share(state.n_above - of_user.saturating_sub(floor));
        if of_user >= self.most_of_user {
            let limit = "runtime.net_user_requests";
            return Err(too_many(of_user, "of this user", limit, self.most_of_user));
        }
        if state.n >= self.most {
            let limit = "runtime.net_requests";
            return Err(too_many(state.n, "of all users", limit, self.most));
        }
        if of_user >= share {
            let limit = format!(
                "what others leave to one user (of runtime.net_requests = {})",
                self.most
            );
            return Err(too_many(of_user, "of this user", &limit, share));
        }
        let user: Arc<str> = user.into();
        state.n += 1;
        state.n_above += usize::from(of_user >= floor);
        let of_user = state.users.entry(user.clone()).or_insert_with(|| OfUser {
            n: 0,
            lookups: Arc::new(Semaphore::new(LOOKUPS_OF_USER)),
        });
        of_user.n += 1;
        Ok(Place {
            places: self.clone(),
            user,
            lookups: of_user.lookups.clone(),
        })
    }

    #[cfg(test)]
    pub(crate) fn n_taken(&self) -> usize {
        lock(&self.state).n
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let floor = self.places.floor();
        let mut state = lock(&self.places.state);
        let Some(of_user) = state.users.get_mut(&self.user) else {
            debug_assert!(false, "who has a place is known");
            tracing::error!("a request has ended that nobody had");
            return;
        };
        let is_above = of_user.n > floor;
        of_user.n -= 1;
        if of_user.n == 0 {
            state.users.remove(&self.user);
        }
        state.n -= 1;
        state.n_above -= usize::from(is_above);
    }
}

/// The error of a request for which there is no place.
pub(crate) fn too_many(n: usize, whose: &str, limit: &str, most: usize) -> Error {
    Error::new(
        ErrorCode::LimitHttpRequests,
        format!(
            "{n} HTTP requests {whose} are under way, of at most {limit} = {most}; read or drop the answers that there are, or raise the limit"
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// All that a user gets.
    fn all_of(places: &Arc<Places>, user: &str) -> Vec<Place> {
        std::iter::from_fn(|| places.take(user).ok()).collect()
    }

    #[test]
    fn a_user_has_a_part_and_all_have_the_whole() {
        let places = Places::new(2, 3);
        let ada = all_of(&places, "ada");
        assert_eq!(ada.len(), 2);
        let error = places.take("ada").unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitHttpRequests);
        assert!(error.message.contains(
            "2 HTTP requests of this user are under way, of at most runtime.net_user_requests = 2"
        ));
        let bob = places.take("bob").unwrap();
        let error = places.take("bob").unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitHttpRequests);
        assert!(
            error.message.contains("runtime.net_requests = 3"),
            "{}",
            error.message
        );
        drop((ada, bob));
        assert_eq!(places.n_taken(), 0);
        assert!(lock(&places.state).users.is_empty());
    }

    /// Eight names of 128 requests were all places of the defaults.
    #[test]
    fn names_that_take_all_they_may_leave_a_place_to_each_newcomer() {
        let places = Places::new(128, 1024);
        let greedy: Vec<_> = (0..16)
            .map(|n| all_of(&places, &format!("greedy {n}")))
            .collect();
        let first: Vec<_> = greedy.iter().map(Vec::len).take(6).collect();
        assert_eq!(first, [128, 128, 128, 69, 36, 19]);
        let error = places.take("greedy 15").unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitHttpRequests);
        assert!(
            error.message.contains("runtime.net_requests = 1024"),
            "{}",
            error.message
        );
        // As many names as processes that live by default: each has the floor.
        let others: Vec<_> = (16..256)
            .map(|n| all_of(&places, &format!("other {n}")))
            .collect();
        assert!(others.iter().all(|of_user| of_user.len() >= 2));
        drop((greedy, others));
        assert_eq!(all_of(&places, "late").len(), 128);
        let state = lock(&places.state);
        assert_eq!((state.n, state.n_above, state.users.len()), (0, 0, 0));
    }

    #[test]
    fn one_place_is_somebodys() {
        let places = Places::new(8, 1);
        let only = places.take("ada").unwrap();
        assert!(places.take("bob").is_err());
        drop(only);
        assert!(places.take("bob").is_ok());
    }

    proptest! {
        /// The sums are those of the places that are held, nothing goes beyond its bound, and the floor is everybody's.
        #[test]
        fn sums_are_those_of_the_places(steps in prop::collection::vec((0..8_u8, any::<bool>()), 1..400)) {
            let places = Places::new(16, 64);
            let mut held: BTreeMap<u8, Vec<Place>> = BTreeMap::new();
            for (user, sends) in steps {
                let of_user = held.entry(user).or_default();
                match places.take(&user.to_string()) {
                    Ok(place) if sends => of_user.push(place),
                    Ok(_) => drop(of_user.pop()),
                    Err(_) => {
                        prop_assert!(!of_user.is_empty(), "the floor is everybody's");
                        of_user.pop();
                    }
                }
                let in_all: usize = held.values().map(Vec::len).sum();
                let above: usize = held.values().map(|of_user| of_user.len().saturating_sub(1)).sum();
                let state = lock(&places.state);
                prop_assert_eq!((state.n, state.n_above), (in_all, above));
                prop_assert!(above <= 32 && held.values().all(|of_user| of_user.len() <= 16));
            }
        }
    }
}
