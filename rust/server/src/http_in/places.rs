//! How many connections and requests by HTTP there are at once. Whoever finds no place is refused at once: nobody waits
//! for one, so that what waits is bounded too.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use pie_host::{Error, ErrorCode};

use crate::ServerConfig;
use crate::client_places::Address;
use crate::sync::lock;

/// The places for connections and requests by HTTP.
#[derive(Debug)]
pub(crate) struct HttpPlaces {
    most: Most,
    counts: Mutex<Counts>,
}

#[derive(Clone, Copy, Debug)]
struct Most {
    connections: usize,
    of_address: usize,
    requests: usize,
    of_user: usize,
    of_program: usize,
}

#[derive(Debug, Default)]
struct Counts {
    n_connections: usize,
    by_address: HashMap<Address, usize>,
    n_requests: usize,
    by_user: HashMap<Arc<str>, usize>,
    /// By user and label.
    by_program: HashMap<(Arc<str>, Arc<str>), usize>,
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPlace {
    places: Arc<HttpPlaces>,
    address: Address,
}

/// The place of one request, until it is dropped.
#[derive(Debug)]
pub(crate) struct RequestPlace {
    places: Arc<HttpPlaces>,
    user: Arc<str>,
    label: Arc<str>,
}

impl HttpPlaces {
    /// Those of a server.
    pub(crate) fn new(config: &ServerConfig) -> Arc<Self> {
        Arc::new(Self {
            most: Most {
                connections: config.max_connections,
                of_address: config.max_address_connections,
                requests: config.http_requests,
                of_user: config.http_user_requests,
                of_program: config.http_program_requests,
            },
            counts: Mutex::default(),
        })
    }

    /// A place for a connection of an address.
    ///
    /// # Errors
    /// `limit-connections`.
    pub(crate) fn connect(self: &Arc<Self>, address: Address) -> Result<ConnectionPlace, Error> {
        let mut counts = lock(&self.counts);
        let own = counts.by_address.get(&address).copied().unwrap_or(0);
        for (n, whose, name, most) in [
            (
                own,
                "of this address",
                "max_address_connections",
                self.most.of_address,
            ),
            (
                counts.n_connections,
                "of all clients",
                "max_connections",
                self.most.connections,
            ),
        ] {
            if n >= most {
                let message = format!(
                    "{n} connections {whose} ask programs by HTTP, of at most server.{name} = {most}; come back later, or use one connection for several requests"
                );
                return Err(Error::new(ErrorCode::LimitConnections, message));
            }
        }
        counts.n_connections += 1;
        *counts.by_address.entry(address).or_default() += 1;
        Ok(ConnectionPlace {
            places: self.clone(),
            address,
        })
    }

    /// A place for a request to the program of a user with that label.
    ///
    /// # Errors
    /// `limit-http-requests`.
    pub(crate) fn ask(self: &Arc<Self>, user: &str, label: &str) -> Result<RequestPlace, Error> {
        let (user, label): (Arc<str>, Arc<str>) = (user.into(), label.into());
        let program = (user.clone(), label.clone());
        let mut counts = lock(&self.counts);
        let of_program = counts.by_program.get(&program).copied().unwrap_or(0);
        let of_user = counts.by_user.get(&user).copied().unwrap_or(0);
        for (n, whose, name, most) in [
            (
                of_program,
                "to this program",
                "http_program_requests",
                self.most.of_program,
            ),
            (
                of_user,
                "to programs of its user",
                "http_user_requests",
                self.most.of_user,
            ),
            (
                counts.n_requests,
                "to all programs",
                "http_requests",
                self.most.requests,
            ),
        ] {
            if n >= most {
                let message = format!(
                    "{n} HTTP requests {whose} are under way, of at most server.{name} = {most}; come back later, or raise the limit"
                );
                return Err(Error::new(ErrorCode::LimitHttpRequests, message));
            }
        }
        counts.n_requests += 1;
        *counts.by_user.entry(user.clone()).or_default() += 1;
        *counts.by_program.entry(program).or_default() += 1;
        Ok(RequestPlace {
            places: self.clone(),
            user,
            label,
        })
    }
}

/// Takes one away, and the whole entry with the last.
fn take_one<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(n) = counts.get_mut(key) {
        *n = n.saturating_sub(1);
        if *n == 0 {
            counts.remove(key);
        }
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut counts = lock(&self.places.counts);
        counts.n_connections = counts.n_connections.saturating_sub(1);
        take_one(&mut counts.by_address, &self.address);
    }
}

impl Drop for RequestPlace {
    fn drop(&mut self) {
        let mut counts = lock(&self.places.counts);
        counts.n_requests = counts.n_requests.saturating_sub(1);
        take_one(&mut counts.by_user, &self.user);
        take_one(
            &mut counts.by_program,
            &(self.user.clone(), self.label.clone()),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::path::PathBuf;

    use super::*;

    fn places(change: impl FnOnce(&mut ServerConfig)) -> Arc<HttpPlaces> {
        let mut config = ServerConfig::new(PathBuf::new());
        change(&mut config);
        HttpPlaces::new(&config)
    }

    #[test]
    fn a_program_a_user_and_all_have_their_most() {
        let places = places(|config| {
            config.http_program_requests = 1;
            config.http_user_requests = 2;
            config.http_requests = 3;
        });
        let held = [
            places.ask("ada", "a@1").unwrap(),
            places.ask("ada", "b@1").unwrap(),
        ];
        let refused = |user, label| places.ask(user, label).unwrap_err().message;
        assert!(refused("ada", "a@1").contains("server.http_program_requests = 1"));
        assert!(refused("ada", "c@1").contains("server.http_user_requests = 2"));
        let other = places.ask("bob", "a@1").unwrap();
        assert!(refused("bob", "b@1").contains("server.http_requests = 3"));
        drop((held, other));
        let counts = lock(&places.counts);
        assert!(counts.by_user.is_empty() && counts.by_program.is_empty());
        assert_eq!(counts.n_requests, 0);
    }

    #[test]
    fn an_address_has_its_most() {
        let places = places(|config| config.max_address_connections = 1);
        let address = |last| Address::from(IpAddr::from([192, 0, 2, last]));
        let held = places.connect(address(1)).unwrap();
        let refused = places.connect(address(1)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::LimitConnections);
        drop((held, places.connect(address(2)).unwrap()));
        assert!(lock(&places.counts).by_address.is_empty());
    }
}
