//! How many of something each user has at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::sync::lock;

/// The places that each user has.
#[derive(Debug)]
pub(crate) struct UserPlaces {
    most: usize,
    /// Those who have taken some.
    users: Mutex<HashMap<Arc<str>, usize>>,
}

/// A place of a user, until it is dropped.
#[derive(Debug)]
pub(crate) struct UserPlace {
    places: Arc<UserPlaces>,
    user: Arc<str>,
}

impl UserPlaces {
    /// `most` for each user.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            users: Mutex::default(),
        })
    }

    /// A place of a user; none where all are taken.
    pub(crate) fn take(self: &Arc<Self>, user: &str) -> Option<UserPlace> {
        let mut users = lock(&self.users);
        let user: Arc<str> = user.into();
        let n = users.get(&user).copied().unwrap_or_default();
        if n >= self.most {
            return None;
        }
        users.insert(user.clone(), n + 1);
        Some(UserPlace {
            places: self.clone(),
            user,
        })
    }

    /// How many a user may have.
    pub(crate) const fn most(&self) -> usize {
        self.most
    }
}

impl Drop for UserPlace {
    fn drop(&mut self) {
        let mut users = lock(&self.places.users);
        match users.get_mut(&self.user) {
            Some(n) if *n > 1 => *n -= 1,
            _ => {
                users.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_places_of_their_own() {
        let places = UserPlaces::new(2);
        let ada = [places.take("ada").unwrap(), places.take("ada").unwrap()];
        assert!(places.take("ada").is_none());
        let bob = places.take("bob").unwrap();
        let [first, second] = ada;
        drop(first);
        drop(places.take("ada").unwrap());
        drop((second, bob));
        assert!(lock(&places.users).is_empty());
    }
}
