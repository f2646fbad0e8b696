//! How many connections and requests by HTTP there are at once. Whoever finds no place is refused at once: nobody waits
//! for one, so that what waits is bounded too. Where all connections are taken, the oldest of the address that has the
//! most ends for one of an address that has fewer. Users share the places for requests: whoever is asked much, as a
//! program that anybody may ask, leaves some to all others. A server of one program has one user, and keeps none for
//! others.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use pie_host::{Error, ErrorCode, SharedPlace, SharedPlaces};
use tokio::sync::oneshot;

use crate::ServerConfig;
use crate::client_places::Address;
use crate::sync::lock;

/// The places for connections and requests by HTTP.
#[derive(Debug)]
pub(crate) struct HttpPlaces {
    most_connections: usize,
    most_of_address: usize,
    connections: Mutex<Connections>,
    /// For requests, by the user of the program.
    by_user: Arc<SharedPlaces>,
    /// For requests, by user and label.
    by_program: Arc<SharedPlaces>,
}

#[derive(Debug, Default)]
struct Connections {
    n: usize,
    /// The oldest of each first.
    by_address: HashMap<Address, VecDeque<PlacedConnection>>,
    /// The number of the next connection.
    next: u64,
}

/// A connection that has its place.
#[derive(Debug)]
struct PlacedConnection {
    number: u64,
    /// Dropping it tells the connection that it has lost the place.
    _kept: oneshot::Sender<()>,
}

impl Connections {
    /// Takes a place from the address that has the most, where that leaves it more than `own`; false where none does.
    fn give_one_up(&mut self, own: usize) -> bool {
        let held = self.by_address.iter_mut();
        let most = held.max_by_key(|(_, held)| held.len());
        let most = most.filter(|(_, held)| held.len() > own + 1);
        let has_given = most.is_some_and(|(_, held)| held.pop_front().is_some());
        self.n -= usize::from(has_given);
        has_given
    }

    fn leave(&mut self, address: Address, number: u64) {
        let Some(held) = self.by_address.get_mut(&address) else {
            return;
        };
        let before = held.len();
        held.retain(|kept| kept.number != number);
        self.n -= before - held.len();
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
    _of_program: SharedPlace,
    _of_user: SharedPlace,
}

impl HttpPlaces {
    /// Those of a server.
    pub(crate) fn new(config: &ServerConfig) -> Arc<Self> {
        let by_user = match config.mount {
            None => SharedPlaces::of_all(config.http_user_requests, config.http_requests),
            Some(_) => SharedPlaces::of_whole(config.http_user_requests, config.http_requests),
        };
        Arc::new(Self {
            most_connections: config.max_connections,
            most_of_address: config.max_address_connections,
            connections: Mutex::default(),
            by_user,
            by_program: SharedPlaces::of_each(config.http_program_requests),
        })
    }

    /// A place for a connection of an address, and what ends when it is lost to another one.
    ///
    /// # Errors
    /// `limit-connections`.
    pub(crate) fn connect(self: &Arc<Self>, address: Address) -> Result<Connected, Error> {
        let mut connections = lock(&self.connections);
        let own = connections
            .by_address
            .get(&address)
            .map_or(0, VecDeque::len);
        if own >= self.most_of_address {
            return Err(too_many_connections(
                own,
                "of this address",
                "max_address_connections",
                self.most_of_address,
            ));
        }
        if connections.n >= self.most_connections && !connections.give_one_up(own) {
            return Err(too_many_connections(
                connections.n,
                "of all clients",
                "max_connections",
                self.most_connections,
            ));
        }
        let (kept, lost) = oneshot::channel();
        let number = connections.next;
        connections.next += 1;
        connections.n += 1;
        let held = connections.by_address.entry(address).or_default();
        held.push_back(PlacedConnection {
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
    pub(crate) fn ask(&self, user: &str, label: &str) -> Result<RequestPlace, Error> {
        // Neither part of a key holds this byte.
        let program = format!("{user}/{label}");
        let of_program = self.by_program.take(&program).map_err(|full| {
            let limit = "server.http_program_requests";
            too_many_requests(full.n(), "to this program", &full.bound(limit, limit))
        })?;
        let of_user = self.by_user.take(user).map_err(|full| {
            let whose = match full.is_of_all() {
                true => "to all programs",
                false => "to programs of its user",
            };
            let bound = full.bound("server.http_user_requests", "server.http_requests");
            too_many_requests(full.n(), whose, &bound)
        })?;
        Ok(RequestPlace {
            _of_program: of_program,
            _of_user: of_user,
        })
    }
}

fn too_many_requests(n: usize, whose: &str, bound: &str) -> Error {
    let message = format!(
        "{n} HTTP requests {whose} are under way, of at most {bound}; come back later, or raise the limit"
    );
    Error::new(ErrorCode::LimitHttpRequests, message)
}

fn too_many_connections(n: usize, whose: &str, name: &str, most: usize) -> Error {
    let message = format!(
        "{n} connections {whose} ask programs by HTTP, of at most server.{name} = {most}; come back later, or use one connection for several requests"
    );
    Error::new(ErrorCode::LimitConnections, message)
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        lock(&self.places.connections).leave(self.address, self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::path::PathBuf;

    use pie_host::{Component, HttpInstance, Launch};

    use super::*;
    use crate::config::MountedProgram;

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
        assert_eq!(places.by_user.n_taken() + places.by_program.n_taken(), 0);
    }

    /// Four users of the defaults could take all.
    #[test]
    fn programs_that_are_asked_much_leave_places_to_those_of_others() {
        let places = places(|_| {});
        let mut held = Vec::new();
        for user in 0..8 {
            for program in 0..2 {
                let label = format!("{program}@1");
                let all = std::iter::from_fn(|| places.ask(&format!("user {user}"), &label).ok());
                held.extend(all);
            }
        }
        assert!(held.len() < 1024);
        let late = [(); 2].map(|()| places.ask("late", "a@1").unwrap());
        drop((held, late));
        assert_eq!(places.by_user.n_taken(), 0);
    }

    /// With the split by user, one had 258 of the 1,024.
    #[test]
    fn the_user_of_a_server_of_one_program_has_all_places() {
        let most = |is_mounted: bool| {
            let places = places(|config| {
                (config.http_program_requests, config.http_user_requests) = (2048, 2048);
                config.mount = is_mounted.then(|| MountedProgram {
                    label: "a".to_owned(),
                    launch: Launch::new(Component::new(b"a program".as_slice()), "null"),
                    instance: HttpInstance::Shared,
                });
            });
            let held: Vec<_> = std::iter::from_fn(|| places.ask("me", "a").ok()).collect();
            (held.len(), places.ask("me", "a").unwrap_err().message)
        };
        let (n, message) = most(true);
        assert_eq!(n, 1024);
        assert!(
            message.contains("1024 HTTP requests to all programs")
                && message.contains("server.http_requests = 1024"),
            "{message}"
        );
        let (n, message) = most(false);
        assert_eq!(n, 258);
        assert!(
            message.contains("what others leave to one user"),
            "{message}"
        );
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
        assert!(lock(&places.connections).by_address.is_empty());
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
        let connections = lock(&places.connections);
        assert!(connections.by_address.is_empty() && connections.n == 0);
    }
}
