//! The places of connected clients, by address and by user. Where there is none left, whoever holds the most gives one
//! up to whoever holds fewer: one client cannot keep the others out, and nobody loses a place to somebody who has as
//! many.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, Weak};

use pie_host::{Account, Budget, Error, ErrorCode};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::ServerConfig;
use crate::address_share::{AddressMost, AddressShare};
use crate::sync::lock;
use crate::threads::{Part, Threads};

/// Where a client connects from, as far as places are counted: a host, or of IPv6 the network of one customer (64
/// bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address(IpAddr);

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
            address @ IpAddr::V4(_) => address,
        })
    }
}

/// What the connections of one user share.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) name: String,
    /// What pays for the messages, answers and uploads of all of them.
    pub(crate) account: Account,
    /// Bytes of uploads that they hold.
    pub(crate) upload_bytes: AtomicUsize,
    /// Their part of the threads, however many connect.
    pub(crate) part: Arc<Part>,
}

/// The places of connected clients.
pub(crate) struct ClientPlaces {
    most: usize,
    most_of_user: usize,
    most_of_address: usize,
    /// What an address may hold, where clients make up their names.
    most_held: Option<AddressMost>,
    budget: Arc<Budget>,
    threads: Threads,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    by_address: HashMap<Address, OfAddress>,
    by_user: HashMap<String, OfUser>,
    n: usize,
    next: u64,
}

#[derive(Default)]
struct OfAddress {
    share: Weak<AddressShare>,
    by_user: HashMap<String, Vec<TakenPlace>>,
    n: usize,
}

struct OfUser {
    user: Weak<User>,
    n: usize,
}

/// What operators see of a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visitor {
    pub(crate) role: &'static str,
    /// The id of the key by which it came in.
    pub(crate) key: Option<String>,
    pub(crate) address: String,
    /// What it calls itself.
    pub(crate) client: String,
    /// Seconds since 1970.
    pub(crate) since_s: f64,
}

/// One place that is taken.
struct TakenPlace {
    number: u64,
    visitor: Visitor,
    /// Dropping it tells the connection that it has lost the place, sending that an operator has ended it.
    kept: oneshot::Sender<()>,
}

/// A place among the connected clients, which becomes free when it is dropped.
pub(crate) struct ClientPlace {
    places: Arc<ClientPlaces>,
    user: Arc<User>,
    address: Address,
    share: Arc<AddressShare>,
    number: u64,
}

impl ClientPlace {
    /// What it holds together with the others of its address.
    pub(crate) const fn address_share(&self) -> &Arc<AddressShare> {
        &self.share
    }

    /// Where the client is, where addresses are counted because names can be made up.
    pub(crate) fn counted_address(&self) -> Option<Address> {
        self.places.most_held.map(|_| self.address)
    }

    pub(crate) fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// Its number, for the life of the server.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }
}

impl ClientPlaces {
    pub(crate) fn new(config: &ServerConfig, budget: Arc<Budget>) -> Self {
        Self {
            most: config.max_connections,
            most_of_user: config.max_user_connections,
            most_of_address: config.max_address_connections,
            most_held: None,
            budget,
            threads: Threads::new(),
            table: Mutex::default(),
        }
    }

    /// The same where clients may give themselves any name: then an address may hold only so much, under all of them.
    pub(crate) fn with_free_names(self, config: &ServerConfig) -> Self {
        let most = AddressMost {
            upload_bytes: config.max_address_upload_bytes,
            installs: config.max_address_installs,
        };
        Self {
            most_held: Some(most),
            ..self
        }
    }

    /// Clients that have a place.
    pub(crate) fn count(&self) -> usize {
        lock(&self.table).n
    }

    /// Clients of a user that have a place.
    pub(crate) fn count_of(&self, user: &str) -> usize {
        lock(&self.table).by_user.get(user).map_or(0, |of| of.n)
    }

    /// A row for each client that has a place, as they came.
    pub(crate) fn list(&self) -> Vec<Value> {
        let table = lock(&self.table);
        let by_user = table.by_address.values().flat_map(|of| &of.by_user);
        let mut rows: Vec<(u64, Value)> = by_user
            .flat_map(|(user, places)| places.iter().map(move |place| (user, place)))
            .map(|(user, TakenPlace { number, visitor, .. })| {
                let row = json!({
                    "connection": number, "user": user, "role": visitor.role, "key": visitor.key,
                    "address": visitor.address, "client": visitor.client, "since": visitor.since_s,
                });
                (*number, row)
            })
            .collect();
        rows.sort_by_key(|(number, _)| *number);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// Ends the connection that has the place of that number; false where there is none.
    pub(crate) fn end(&self, number: u64) -> bool {
        lock(&self.table).end(number)
    }

    /// The place of one more client. The receiver tells when it is lost to another one, or was ended.
    ///
    /// # Errors
    /// `limit-connections`.
    pub(crate) fn enter(
        self: &Arc<Self>,
        user: &str,
        address: Address,
        visitor: Visitor,
    ) -> Result<(ClientPlace, oneshot::Receiver<()>), Error> {
        let mut table = lock(&self.table);
        let of_user = table.by_user.get(user).map_or(0, |of| of.n);
        if of_user >= self.most_of_user {
            return Err(full(&format!(
                "{of_user} clients of {user:?} are connected, the most that server.max_user_connections allows"
            )));
        }
        let of_address = table.by_address.get(&address).map_or(0, |of| of.n);
        if of_address >= self.most_of_address && !table.displace_at(address, user) {
            return Err(full(&format!(
                "{of_address} clients of your address are connected, the most that server.max_address_connections allows"
            )));
        }
        if table.n >= self.most && !table.displace(address, user) {
            return Err(full(&format!(
                "{} clients are connected, the most that server.max_connections allows",
                table.n
            )));
        }
        let (kept, lost) = oneshot::channel();
        let taken = (visitor, kept);
        let (user, number) = table.place(user, address, taken, || self.user(user));
        let place = ClientPlace {
            places: self.clone(),
            share: table.share(address, self.most_held),
            user,
            address,
            number,
        };
        Ok((place, lost))
    }

    /// What the clients of an address have of the threads that ask programs by HTTP. Who they are shows with each
    /// request.
    pub(crate) fn part_of(&self, address: Address) -> Arc<Part> {
        // No user is called so.
        self.threads.part(&format!("{address:?}"))
    }

    /// A user of whom nobody is connected.
    fn user(&self, name: &str) -> User {
        User {
            name: name.to_owned(),
            account: self.budget.account(name),
            upload_bytes: AtomicUsize::new(0),
            part: self.threads.part(name),
        }
    }
}

fn full(what: &str) -> Error {
    Error::new(
        ErrorCode::LimitConnections,
        format!("{what}; come back later, or raise the limit"),
    )
}

impl Table {
    fn place(
        &mut self,
        name: &str,
        address: Address,
        (visitor, kept): (Visitor, oneshot::Sender<()>),
        new: impl FnOnce() -> User,
    ) -> (Arc<User>, u64) {
        self.next += 1;
        self.n += 1;
        let of_address = self.by_address.entry(address).or_default();
        of_address.n += 1;
        let places = of_address.by_user.entry(name.to_owned()).or_default();
        places.push(TakenPlace {
            number: self.next,
            visitor,
            kept,
        });
        let of_user = self.by_user.entry(name.to_owned()).or_insert(OfUser {
            user: Weak::new(),
            n: 0,
        });
        of_user.n += 1;
        let user = of_user.user.upgrade().unwrap_or_else(|| Arc::new(new()));
        of_user.user = Arc::downgrade(&user);
        (user, self.next)
    }

    /// What the clients of an address hold together.
    fn share(&mut self, address: Address, most: Option<AddressMost>) -> Arc<AddressShare> {
        let of_address = self.by_address.entry(address).or_default();
        of_address.share.upgrade().unwrap_or_else(|| {
            let share = Arc::new(AddressShare::within(most));
            of_address.share = Arc::downgrade(&share);
            share
        })
    }

    /// Frees a place of the address that holds the most, for a client of `address`. False where nobody holds more than
    /// it would.
    fn displace(&mut self, address: Address, user: &str) -> bool {
        let own = self.by_address.get(&address).map_or(0, |of| of.n);
        let greatest = self.by_address.iter().max_by_key(|(_, of)| of.n);
        match greatest.map(|(at, of)| (*at, of.n)) {
            Some((at, n)) if at != address && n > own + 1 => {
                self.free_of_greatest(at);
                true
            }
            _ => self.displace_at(address, user),
        }
    }

    /// Frees a place of the user who holds the most at an address, for `user`. False where nobody there holds more than
    /// that one would.
    fn displace_at(&mut self, address: Address, user: &str) -> bool {
        let Some(of_address) = self.by_address.get(&address) else {
            return false;
        };
        let own = of_address.by_user.get(user).map_or(0, Vec::len);
        let most = of_address.by_user.values().map(Vec::len).max();
        if most.is_none_or(|most| most <= own + 1) {
            return false;
        }
        self.free_of_greatest(address);
        true
    }

    /// Frees the youngest place of the user who holds the most at an address.
    fn free_of_greatest(&mut self, address: Address) {
        let Some(of_address) = self.by_address.get(&address) else {
            return;
        };
        let greatest = of_address
            .by_user
            .iter()
            .max_by_key(|(_, places)| places.len());
        let youngest =
            greatest.and_then(|(user, places)| Some((user.clone(), places.last()?.number)));
        if let Some((user, number)) = youngest {
            tracing::info!(user, "a client gives its place to another one");
            self.free(address, &user, number);
        }
    }

    /// Frees the place of that number, whose connection is told that an operator has ended it; false where there is
    /// none.
    fn end(&mut self, number: u64) -> bool {
        let found = self.by_address.iter().find_map(|(address, of)| {
            let mut by_user = of.by_user.iter();
            let (user, _) =
                by_user.find(|(_, places)| places.iter().any(|place| place.number == number))?;
            Some((*address, user.clone()))
        });
        let Some((address, user)) = found else {
            return false;
        };
        if let Some(kept) = self.free(address, &user, number) {
            // One that disconnects at this moment need not be told.
            kept.send(()).unwrap_or_default();
        }
        true
    }

    /// Frees a place, and gives what tells its connection; none where it is free.
    fn free(&mut self, address: Address, user: &str, number: u64) -> Option<oneshot::Sender<()>> {
        let of_address = self.by_address.get_mut(&address)?;
        let places = of_address.by_user.get_mut(user)?;
        let at = places.iter().position(|place| place.number == number)?;
        let TakenPlace { kept, .. } = places.remove(at);
        if places.is_empty() {
            of_address.by_user.remove(user);
        }
        of_address.n -= 1;
        if of_address.n == 0 {
            self.by_address.remove(&address);
        }
        self.n -= 1;
        if let Some(of_user) = self.by_user.get_mut(user) {
            of_user.n -= 1;
            if of_user.n == 0 {
                self.by_user.remove(user);
            }
        }
        Some(kept)
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        lock(&self.places.table).free(self.address, &self.user.name, self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    type Entered = (ClientPlace, oneshot::Receiver<()>);

    fn places(most: usize, of_user: usize, of_address: usize) -> Arc<ClientPlaces> {
        let config = ServerConfig {
            max_connections: most,
            max_user_connections: of_user,
            max_address_connections: of_address,
            ..ServerConfig::new(PathBuf::new())
        };
        Arc::new(ClientPlaces::new(&config, Budget::new(1 << 30, None)))
    }

    fn at(last: u8) -> Address {
        IpAddr::from([192, 0, 2, last]).into()
    }

    fn enter(places: &Arc<ClientPlaces>, user: &str, address: u8) -> Result<Entered, String> {
        places
            .enter(user, at(address), Visitor::default())
            .map_err(|error| error.message)
    }

    /// Whether a place went to another client.
    fn is_lost(entered: &mut Entered) -> bool {
        entered.1.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    fn n_lost(entered: &mut [Entered]) -> usize {
        entered.iter_mut().map(is_lost).filter(|lost| *lost).count()
    }

    #[test]
    fn users_and_addresses_have_their_bounds() {
        let places = places(10, 2, 3);
        let mut held = vec![
            enter(&places, "a", 1).unwrap(),
            enter(&places, "a", 2).unwrap(),
        ];
        let message = enter(&places, "a", 3).err().unwrap();
        assert!(message.contains("max_user_connections"), "{message}");
        held.push(enter(&places, "b", 1).unwrap());
        held.push(enter(&places, "c", 1).unwrap());
        let message = enter(&places, "d", 1).err().unwrap();
        assert!(message.contains("max_address_connections"), "{message}");
        assert_eq!((places.count(), n_lost(&mut held)), (4, 0));
        drop(held);
        assert_eq!(places.count(), 0);
        let table = lock(&places.table);
        assert!(table.by_address.is_empty() && table.by_user.is_empty());
    }

    #[test]
    fn bounds_of_one_let_one_in() {
        let places = places(10, 1, 1);
        let _held = enter(&places, "a", 1).unwrap();
        for (user, address, bound) in [
            ("a", 2, "max_user_connections"),
            ("b", 1, "max_address_connections"),
        ] {
            let message = enter(&places, user, address).err().unwrap();
            assert!(message.contains(bound), "{message}");
        }
    }

    #[test]
    fn whoever_holds_the_most_gives_way_at_a_full_address() {
        let places = places(10, 3, 4);
        let mut greedy: Vec<Entered> = (0..3).map(|_| enter(&places, "a", 1).unwrap()).collect();
        let mut other = vec![enter(&places, "b", 1).unwrap()];
        let mut late = vec![enter(&places, "c", 1).unwrap()];
        assert_eq!((n_lost(&mut greedy), n_lost(&mut other)), (1, 0));
        // The youngest has lost its place. Freeing it once more changes nothing.
        assert!(is_lost(&mut greedy[2]));
        greedy.truncate(2);
        assert_eq!(places.count(), 4);
        // Nobody holds more than one more than a newcomer would have.
        let message = enter(&places, "c", 1).err().unwrap();
        assert!(message.contains("max_address_connections"), "{message}");
        assert_eq!(n_lost(&mut late), 0);
    }

    #[test]
    fn a_full_server_takes_from_the_address_that_holds_the_most() {
        let places = places(6, 100, 5);
        let mut greedy: Vec<Entered> = (0..5)
            .map(|n| enter(&places, &format!("a{n}"), 1).unwrap())
            .collect();
        let mut other = vec![enter(&places, "b", 2).unwrap()];
        let mut late: Vec<Entered> = (0..2).map(|_| enter(&places, "c", 3).unwrap()).collect();
        assert_eq!(
            (n_lost(&mut greedy), n_lost(&mut other), n_lost(&mut late)),
            (2, 0, 0)
        );
        // No address has more than this one would: it gives way itself, by the user who has more.
        let _other = enter(&places, "d", 3).unwrap();
        assert_eq!((n_lost(&mut greedy), n_lost(&mut late)), (2, 1));
        let message = enter(&places, "e", 3).err().unwrap();
        assert!(message.contains("max_connections"), "{message}");
        assert_eq!(places.count(), 6);
    }

    #[test]
    fn what_an_address_holds_is_bounded_where_names_are_free() {
        let config = ServerConfig {
            max_address_upload_bytes: 2048,
            max_address_installs: 2,
            ..ServerConfig::new(PathBuf::new())
        };
        let budget = Budget::new(1 << 30, None);
        let places = ClientPlaces::new(&config, budget.clone()).with_free_names(&config);
        let places = Arc::new(places);
        let shares = |places: &Arc<ClientPlaces>| {
            [("a", 1), ("b", 1), ("c", 2)]
                .map(|(user, address)| enter(places, user, address).unwrap())
        };
        let [first, second, elsewhere] = &shares(&places);
        let [first, second, elsewhere] =
            [first, second, elsewhere].map(|(place, _)| place.address_share());
        first.hold_upload(1500).unwrap();
        let refused = second.hold_upload(549).unwrap_err();
        assert_eq!(refused.code, ErrorCode::LimitUpload);
        assert!(
            refused
                .message
                .contains("server.max_address_upload_bytes = 2048"),
            "{refused}"
        );
        second.hold_upload(548).unwrap();
        elsewhere.hold_upload(2048).unwrap();
        first.free_upload(1500);
        second.hold_upload(1500).unwrap();
        let installing = [first.install().unwrap(), second.install().unwrap()];
        let refused = second.install().unwrap_err();
        assert_eq!(refused.code, ErrorCode::LimitQueue);
        assert!(
            refused.message.contains("server.max_address_installs"),
            "{refused}"
        );
        drop(elsewhere.install().unwrap());
        drop(installing);
        drop(second.install().unwrap());
        // Where names have to be proved, users are counted.
        let places = Arc::new(ClientPlaces::new(&config, budget));
        let [known, ..] = &shares(&places);
        let known = known.0.address_share();
        known.hold_upload(1 << 30).unwrap();
        let many: Vec<_> = (0..100).map(|_| known.install().unwrap()).collect();
        assert_eq!(many.len(), 100);
    }

    #[test]
    fn an_operator_sees_and_ends_each() {
        let places = places(6, 6, 6);
        let mut entered: Vec<Entered> = [("a", 1), ("b", 2), ("a", 2)]
            .map(|(user, address)| enter(&places, user, address).unwrap())
            .into();
        let listed = || -> Vec<(u64, String)> {
            let rows = places.list().into_iter();
            let row = |row: Value| {
                let user = row["user"].as_str().unwrap().to_owned();
                (row["connection"].as_u64().unwrap(), user)
            };
            rows.map(row).collect()
        };
        let numbers: Vec<u64> = entered.iter().map(|(place, _)| place.number()).collect();
        let users = ["a", "b", "a"].map(str::to_owned);
        assert_eq!(
            listed(),
            numbers.iter().copied().zip(users).collect::<Vec<_>>()
        );
        assert!(places.end(numbers[1]));
        assert!(!places.end(numbers[1]));
        assert_eq!(entered[1].1.try_recv(), Ok(()));
        assert_eq!((places.count(), places.count_of("b")), (2, 0));
        assert!(!is_lost(&mut entered[0]) && !is_lost(&mut entered[2]));
        drop(entered);
        assert!(listed().is_empty());
    }

    #[test]
    fn networks_of_ipv6_count_as_one_and_mapped_addresses_as_what_they_map() {
        let address = |text: &str| Address::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:1"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
        assert_ne!(address("192.0.2.1"), address("192.0.2.2"));
    }

    #[test]
    fn the_connections_of_a_user_share_one_account() {
        let places = places(6, 6, 6);
        let (first, _lost) = enter(&places, "a", 1).unwrap();
        let (second, _lost) = enter(&places, "a", 2).unwrap();
        assert!(Arc::ptr_eq(first.user(), second.user()));
    }
}
