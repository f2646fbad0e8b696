//! How users share the places of processes, and how long one that stands still keeps its place.
//!
//! Where every place is taken, one of the user with the most ends for one of a user who would have fewer: first one
//! without a client, of these the one that has stood still the longest. So nobody keeps the others out, however many
//! processes they launch detached.
//!
//! Where clients make up their names, each name can have one process. So where no user has more, one of the address
//! with the most ends for one of an address that would have fewer.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pie_host::{Error, ErrorCode};

use super::still::{Clients, Done, WaitsFor};
use super::{Entry, Table};
use crate::client_places::Address;

/// How often it is looked which processes stand still, at most.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// And at least so often within the time that one may stand still.
const LOOKS: u32 = 8;

/// Who wants a place.
#[derive(Clone, Copy, Debug)]
pub(in crate::processes) struct Asking<'a> {
    pub(in crate::processes) user: &'a str,
    /// Where the client is, where addresses are counted.
    pub(in crate::processes) address: Option<Address>,
}

impl Entry {
    fn lives(&self) -> bool {
        self.end.is_none()
    }

    /// It lives and was not told to end.
    fn stays(&self) -> bool {
        self.lives() && !self.still.gives_way
    }

    fn has_client(&self) -> bool {
        self.holder.is_some() || self.process.is_attached()
    }

    /// Notes whether anything of the process is seen; once at a moment.
    fn look(&mut self, now: Instant) {
        if self.still.looked.replace(now) == Some(now) {
            return;
        }
        let done = Done::of(&self.process);
        if done != self.still.done || self.has_client() || self.process.has_children() {
            self.still.done = done;
            self.still.since = now;
        }
    }
}

impl Table {
    /// Counts a process that is about to be launched; [`Table::insert`] or [`Table::release`] follows. False: every
    /// place is taken, and a process was told to end for this one, which tries again when one has ended.
    ///
    /// # Errors
    /// `server-draining` after [`Table::drain`], `limit-processes` when too many of the user live, and where every
    /// place is taken, and no user has more than this one would, nor any address.
    pub(in crate::processes) fn reserve(
        &mut self,
        asking: Asking<'_>,
        waits_for: &mut WaitsFor,
        now: Instant,
    ) -> Result<bool, Error> {
        self.check_open()?;
        self.check_own(asking.user)?;
        if self.n_live < self.most_live {
            self.count(asking.user);
            return Ok(true);
        }
        let is_ending = |pid| self.entry(pid).is_some_and(Entry::lives);
        if !waits_for.0.is_some_and(is_ending) {
            let pid = self.give_way(asking, now).ok_or_else(|| self.full())?;
            *waits_for = WaitsFor(Some(pid));
        }
        Ok(false)
    }

    /// Counts a process that one of the user starts, a child while others finish too; [`Table::release`] follows. Where
    /// every place is taken it is refused, and one may have ended for it by the time that it is tried again.
    ///
    /// # Errors
    /// `limit-processes`.
    pub(in crate::processes) fn reserve_child(
        &mut self,
        user: &str,
        now: Instant,
    ) -> Result<(), Error> {
        self.check_own(user)?;
        if self.n_live >= self.most_live {
            let address = self.address_of(user);
            self.give_way(Asking { user, address }, now);
            return Err(self.full());
        }
        self.count(user);
        Ok(())
    }

    fn count(&mut self, user: &str) {
        self.n_live += 1;
        *self.n_live_of.entry(user.to_owned()).or_default() += 1;
    }

    fn n_live_of(&self, user: &str) -> usize {
        self.n_live_of.get(user).copied().unwrap_or(0)
    }

    fn check_own(&self, user: &str) -> Result<(), Error> {
        let n_live = self.n_live_of(user);
        if n_live < self.max_of_user {
            return Ok(());
        }
        let message = format!(
            "{n_live} processes of {user:?} live, the most that server.max_processes_per_user allows; wait for one to end, or stop one"
        );
        Err(Error::new(ErrorCode::LimitProcesses, message))
    }

    fn full(&self) -> Error {
        let most = self.most_live;
        let message = format!(
            "{most} processes live, the most that engine.max_processes allows; wait for one to end, or raise the limit"
        );
        Error::new(ErrorCode::LimitProcesses, message)
    }

    /// Where the youngest process of a user was launched from, as far as that is known.
    pub(in crate::processes) fn address_of(&self, user: &str) -> Option<Address> {
        let launched = self.of(user).max_by_key(|entry| entry.place)?;
        launched.address
    }

    /// Ends a process of the user who has the most, or else of the address that has the most, for one of who asks; none
    /// where nobody has more than that one would.
    fn give_way(&mut self, asking: Asking<'_>, now: Instant) -> Option<u64> {
        let Asking { user, address } = asking;
        let (pid, whose) = match self.of_greatest_user(user, now) {
            Some(pid) => (pid, "a user who"),
            None => {
                let pid = self.of_greatest_address(user, address?, now)?;
                (pid, "an address that")
            }
        };
        let entry = self.entries.get_mut(&pid)?;
        entry.still.gives_way = true;
        tracing::info!(
            pid,
            user = entry.user,
            "a process gives its place to that of {whose} has fewer"
        );
        entry.process.end(ErrorCode::LimitProcesses, &format!(
            "all {} places of engine.max_processes were taken, and this one went to {whose} has fewer; launch fewer at once, stay connected to those that matter, or raise the limit",
            self.most_live
        ));
        Some(pid)
    }

    /// The process that is missed the least of the user who has the most; none where nobody has more than `user` would.
    fn of_greatest_user(&mut self, user: &str, now: Instant) -> Option<u64> {
        let own = self.n_live_of(user) + 1;
        let ending = |of: &str| {
            let own = self.of(of);
            own.filter(|entry| entry.still.gives_way && entry.lives())
                .count()
        };
        let others = self
            .n_live_of
            .iter()
            .filter(|(of, n)| *of != user && **n > own);
        let mut others: Vec<(usize, String)> = others
            .map(|(of, n)| (n - ending(of), of.clone()))
            .filter(|(n, _)| *n > own)
            .collect();
        others.sort_by_key(|(n, _)| Reverse(*n));
        others.iter().find_map(|(_, of)| {
            let pids = self.listed(Some(of));
            self.least_needed(&pids, now)
        })
    }

    /// The process that is missed the least of those that were launched from the address with the most, and are not
    /// `user`'s; none where no address has more than `address` would.
    fn of_greatest_address(&mut self, user: &str, address: Address, now: Instant) -> Option<u64> {
        let mut n_at: BTreeMap<Address, usize> = BTreeMap::new();
        let staying = self.entries.values().filter(|entry| entry.stays());
        for at in staying.filter_map(|entry| entry.address) {
            *n_at.entry(at).or_default() += 1;
        }
        let own = n_at.remove(&address).unwrap_or(0) + 1;
        let (greatest, n) = n_at.into_iter().max_by_key(|(_, n)| *n)?;
        if n <= own {
            return None;
        }
        let others = self.entries.iter().filter(|(_, entry)| {
            entry.address == Some(greatest) && entry.user != user && entry.stays()
        });
        let pids: Vec<u64> = others.map(|(pid, _)| *pid).collect();
        self.least_needed(&pids, now)
    }

    /// Of these processes the one that is missed the least: one without a client that has stood still for the longest,
    /// or else the youngest.
    fn least_needed(&mut self, pids: &[u64], now: Instant) -> Option<u64> {
        for pid in pids {
            if let Some(entry) = self.entries.get_mut(pid) {
                entry.look(now);
            }
        }
        let entries = pids.iter().filter_map(|pid| self.entries.get(pid));
        let candidates: Vec<&Entry> = entries.filter(|entry| entry.stays()).collect();
        let alone = candidates.iter().filter(|entry| !entry.has_client());
        let stillest = alone.min_by_key(|entry| (entry.still.since, entry.place));
        let youngest = || candidates.iter().max_by_key(|entry| entry.place);
        let chosen = stillest.or_else(youngest);
        chosen.map(|entry| entry.process.pid())
    }

    /// A client of the user has come.
    pub(in crate::processes) fn connect(&mut self, user: &str, now: Instant) {
        let clients = self.present.0.entry(user.to_owned());
        clients.or_insert(Clients { n: 0, last: now }).n += 1;
    }

    /// A client of the user has left.
    pub(in crate::processes) fn disconnect(&mut self, user: &str, now: Instant) {
        let has_processes = self.n_live_of.contains_key(user);
        if let Some(clients) = self.present.0.get_mut(user) {
            clients.n = clients.n.saturating_sub(1);
            clients.last = now;
            if clients.n == 0 && !has_processes {
                self.present.0.remove(user);
            }
        }
    }

    /// Ends the detached processes that have stood still for too long, where it is time to look.
    pub(super) fn end_still(&mut self, now: Instant) {
        let Some(longest) = self.detached else {
            self.look_at = None;
            return;
        };
        if self.look_at.is_none_or(|at| at > now) {
            return;
        }
        let n_live_of = &self.n_live_of;
        self.present
            .0
            .retain(|user, clients| clients.n > 0 || n_live_of.contains_key(user));
        let mut is_any = false;
        for entry in self.entries.values_mut() {
            if !entry.detached || !entry.lives() || entry.still.gives_way {
                continue;
            }
            is_any = true;
            entry.look(now);
            let left = self.present.left(&entry.user);
            let since = left.map_or(entry.still.since, |left| left.max(entry.still.since));
            if self.present.is(&entry.user) || now.saturating_duration_since(since) < longest {
                continue;
            }
            entry.still.gives_way = true;
            entry.process.cancel(&format!(
                "the detached process has stood still, and no client of its user was there, for server.detached_s = {} s; raise the setting, or set it to none",
                longest.as_secs_f64()
            ));
        }
        self.look_at = is_any.then(|| now + LOOK_EVERY.min(longest / LOOKS));
    }
}
