//! How many connections and requests by HTTP there are at once. Whoever finds no place is refused at once: nobody waits
//! for one, so that what waits is bounded too. Where all connections are taken, the oldest of the address that has the
//! most ends for one of an address that has fewer.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use pie_host::{Error, ErrorCode};
use tokio::sync::oneshot;

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
    /// The oldest of each first.
    by_address: HashMap<Address, VecDeque<Kept>>,
    /// The number of the next connection.
    next: u64,
    n_requests: usize,
    by_user: HashMap<Arc<str>, usize>,
    /// By user and label.
    by_program: HashMap<(Arc<str>, Arc<str>), usize>,
}

/// A connection that has its place.
#[derive(Debug)]
struct Kept {
    number: u64,
    /// Dropping it tells the connection that it has lost the place.
    _kept: oneshot::Sender<()>,
}

impl Counts {
    /// Takes a place from the address that has the most, where that leaves it more than `own`; false where none does.
    fn give_one_up(&mut self, own: usize) -> bool {
        let held = self.by_address.iter_mut();
        let most = held.max_by_key(|(_, held)| held.len());
        let most = most.filter(|(_, held)| held.len() > own + 1);
        let has_given = most.is_some_and(|(_, held)| held.pop_front().is_some());
        self.n_connections -= usize::from(has_given);
        has_given
    }

    fn leave(&mut self, address: Address, number: u64) {
        let Some(held) = self.by_address.get_mut(&address) else {
            return;
        };
        let before = held.len();
        held.retain(|kept| kept.number != number);
        self.n_connections -= before - held.len();
        if held.is_empty() {
            self.by_address.remove(&address);
        }
    }
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPlace {
    places: Arc<HttpPlaces>,
    address: Address,
    number: u64,
}

/// A connection that has its place, and what ends when it is lost to another one.
pub(crate) type Connected = (ConnectionPlace, oneshot::Receiver<()>);

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

    /// A place for a connection of an address, and what ends when it is lost to another one.
    ///
    /// # Errors
    /// `limit-connections`.
    pub(crate) fn connect(self: &Arc<Self>, address: Address) -> Result<Connected, Error> {
        let mut counts = lock(&self.counts);
        let own = counts.by_address.get(&address).map_or(0, VecDeque::len);
        let most = self.most;
        if own >= most.of_address {
            return Err(too_many_connections(
                own,
                "of this address",
                "max_address_connections",
                most.of_address,
            ));
        }
        if counts.n_connections >= most.connections && !counts.give_one_up(own) {
            let n = counts.n_connections;
            return Err(too_many_connections(
                n,
                "of all clients",
                "max_connections",
                most.connections,
            ));
        }
        let (kept, lost) = oneshot::channel();
        let number = counts.next;
        counts.next += 1;
        counts.n_connections += 1;
        let held = counts.by_address.entry(address).or_default();
        held.push_back(Kept {
            number,
            _kept: kept,
        });
        let place = ConnectionPlace {
            places: self.clone(),
            address,
            number,
        };
        Ok((place, lost))
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

fn too_many_connections(n: usize, whose: &str, name: &str, most: usize) -> Error {
    let message = format!(
        "{n} connections {whose} ask programs by HTTP, of at most server.{name} = {most}; come back later, or use one connection for several requests"
    );
    Error::new(ErrorCode::LimitConnections, message)
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
        lock(&self.places.counts).leave(self.address, self.number);
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

    fn address(last: u8) -> Address {
        IpAddr::from([192, 0, 2, last]).into()
    }

    #[test]
    fn an_address_has_its_most() {
        let places = places(|config| config.max_address_connections = 1);
        let held = places.connect(address(1)).unwrap();
        let refused = places.connect(address(1)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::LimitConnections);
        drop((held, places.connect(address(2)).unwrap()));
        assert!(lock(&places.counts).by_address.is_empty());
    }

    #[test]
    fn who_has_the_most_gives_one_up_to_who_has_fewer() {
        let places = places(|config| config.max_connections = 3);
        let mut greedy: Vec<_> = (0..3)
            .map(|_| places.connect(address(1)).unwrap())
            .collect();
        let refused = places.connect(address(1)).unwrap_err();
        assert!(refused.message.contains("server.max_connections = 3"));
        let honest = places.connect(address(2)).unwrap();
        let lost: Vec<_> = greedy
            .iter_mut()
            .map(|(_, lost)| lost.try_recv() == Err(oneshot::error::TryRecvError::Closed))
            .collect();
        assert_eq!(lost, [true, false, false]);
        // Nobody loses a place to somebody who has as many.
        assert!(places.connect(address(2)).is_err());
        drop((greedy, honest));
        let counts = lock(&places.counts);
        assert!(counts.by_address.is_empty() && counts.n_connections == 0);
    }
}
