//! How many requests are under way at once: of a process, of a user, of all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pie_core::ErrorCode;
use tokio::sync::Semaphore;

use crate::Error;
use crate::sync::lock;

/// Names of servers that are looked up at once for one user: what looks one up is a thread.
const LOOKUPS_OF_USER: usize = 8;

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

    /// A place for a request of a user.
    ///
    /// # Errors
    /// `limit-http-requests`.
    pub(crate) fn take(self: &Arc<Self>, user: &str) -> Result<Place, Error> {
        let mut state = lock(&self.state);
        let of_user = state.users.get(user).map_or(0, |of_user| of_user.n);
        let (n, whose, name, most) = if of_user >= self.most_of_user {
            (
                of_user,
                "of this user",
                "net_user_requests",
                self.most_of_user,
            )
        } else if state.n >= self.most {
            (state.n, "of all users", "net_requests", self.most)
        } else {
            let user: Arc<str> = user.into();
            state.n += 1;
            let of_user = state.users.entry(user.clone()).or_insert_with(|| OfUser {
                n: 0,
                lookups: Arc::new(Semaphore::new(LOOKUPS_OF_USER)),
            });
            of_user.n += 1;
            return Ok(Place {
                places: self.clone(),
                user,
                lookups: of_user.lookups.clone(),
            });
        };
        Err(too_many(n, whose, &format!("runtime.{name}"), most))
    }

    #[cfg(test)]
    pub(crate) fn n_taken(&self) -> usize {
        lock(&self.state).n
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = lock(&self.places.state);
        state.n = state.n.saturating_sub(1);
        if let Some(of_user) = state.users.get_mut(&self.user) {
            of_user.n = of_user.n.saturating_sub(1);
            if of_user.n == 0 {
                state.users.remove(&self.user);
            }
        }
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
    use super::*;

    #[test]
    fn a_user_has_a_part_and_all_have_the_whole() {
        let places = Places::new(2, 3);
        let ada: Vec<_> = (0..2).map(|_| places.take("ada").unwrap()).collect();
        let error = places.take("ada").unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitHttpRequests);
        assert!(error.message.contains(
            "2 HTTP requests of this user are under way, of at most runtime.net_user_requests = 2"
        ));
        let bob = places.take("bob").unwrap();
        let error = places.take("bob").unwrap_err();
        assert!(
            error.message.contains("runtime.net_requests = 3"),
            "{}",
            error.message
        );
        drop((ada, bob));
        assert_eq!(places.n_taken(), 0);
        assert!(lock(&places.state).users.is_empty());
    }
}
