//! The table behind the processes: owners, deadlines, and the bounds on what is kept. Time is an argument.

mod sharing;
mod still;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use pie_host::{Error, ErrorCode, ServedProcess};

pub(super) use self::sharing::Asking;
use self::still::Present;
pub(super) use self::still::{Still, WaitsFor};
use super::shelf::{By, EndedProcess, Shelf, Whose};
use crate::ServerConfig;
use crate::client_places::Address;

/// Forgotten processes whose events a client is still taking.
const MAX_LEAVING: usize = 1024;

/// The number of a connection, for the life of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// Processes of one user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) n_live: usize,
    /// Those that have ended and are kept.
    pub(crate) n_ended: usize,
    /// Tokens that have entered their contexts.
    pub(crate) n_tokens: u64,
}

/// One process.
pub(super) struct Entry {
    pub(super) user: String,
    /// Where it was launched from, where addresses are counted.
    pub(super) address: Option<Address>,
    /// Its place among the processes that were entered.
    pub(super) place: u64,
    pub(super) label: String,
    /// What the client calls the file that it has uploaded.
    pub(super) name: Option<String>,
    pub(super) process: ServedProcess,
    pub(super) detached: bool,
    /// The connection that it belongs to.
    pub(super) holder: Option<ConnectionId>,
    /// When it is ended unless somebody attaches.
    pub(super) grace_until: Option<Instant>,
    /// Seconds since 1970.
    pub(super) started_s: f64,
    pub(super) end: Option<End>,
    /// Since when nothing of it was seen.
    pub(super) still: Still,
}

/// How and when a process ended.
#[derive(Debug)]
pub(super) struct End {
    pub(super) at: Instant,
    /// Seconds since 1970.
    pub(super) at_s: f64,
    /// `return`, or the code of the error.
    pub(super) exit: String,
    /// Bytes that the last event carries.
    pub(super) last_bytes: usize,
}

/// The processes and their deadlines.
pub(super) struct Table {
    /// Processes that may live at once.
    most_live: usize,
    max_of_user: usize,
    max_ended: usize,
    max_ended_bytes: usize,
    retention: Duration,
    grace_s: f64,
    /// How long a detached process may stand still.
    detached: Option<Duration>,
    entries: HashMap<u64, Entry>,
    /// Those of each user, as they were launched.
    of_user: BTreeMap<String, BTreeMap<u64, u64>>,
    /// Processes that were entered so far.
    n_entered: u64,
    /// Users with processes that live or are being launched, and how many.
    n_live_of: HashMap<String, usize>,
    n_live: usize,
    /// The users of whom clients are connected, and those who have processes and were.
    present: Present,
    /// When it is looked next which processes stand still.
    look_at: Option<Instant>,
    /// Ends that were told before the launch was through.
    early: HashMap<u64, End>,
    /// Those that have ended and stand in the entries.
    ended: Shelf,
    /// Those that stand there no more, while a client that is attached takes the rest of their events.
    leaving: Shelf,
    /// When times of grace end, of the processes that have one: one each, however often their clients come and go.
    grace: BTreeSet<(Instant, u64)>,
    /// No launches any more.
    draining: bool,
    /// Why every process is cancelled, also one that is just being launched.
    cancelled: Option<String>,
}

impl Table {
    /// A table of at most so many processes that live.
    pub(super) fn new(config: &ServerConfig, most_live: usize) -> Self {
        Self {
            most_live,
            max_of_user: config.max_processes_per_user,
            max_ended: config.max_ended_processes,
            max_ended_bytes: config.max_ended_bytes,
            retention: config.retention,
            grace_s: config.grace.as_secs_f64(),
            detached: config.detached,
            entries: HashMap::new(),
            of_user: BTreeMap::new(),
            n_entered: 0,
            n_live_of: HashMap::new(),
            n_live: 0,
            present: Present::default(),
            look_at: None,
            early: HashMap::new(),
            ended: Shelf::default(),
            leaving: Shelf::default(),
            grace: BTreeSet::new(),
            draining: false,
            cancelled: None,
        }
    }

    /// A process lives no more, or was not launched.
    pub(super) fn release(&mut self, user: &str) {
        self.n_live = self.n_live.saturating_sub(1);
        if let Some(n_live) = self.n_live_of.get_mut(user) {
            *n_live -= 1;
            if *n_live == 0 {
                self.n_live_of.remove(user);
            }
        }
    }

    /// Looks whether launches are still taken.
    ///
    /// # Errors
    /// `server-draining` after [`Table::drain`].
    pub(super) fn check_open(&self) -> Result<(), Error> {
        if self.draining {
            let message = "the server is about to end and takes no new launches; come back when it has started again";
            return Err(Error::new(ErrorCode::ServerDraining, message));
        }
        Ok(())
    }

    /// From now on nothing is launched.
    pub(super) fn drain(&mut self) {
        self.draining = true;
    }

    /// Ends every process that lives, and those whose launch is under way as soon as they stand here.
    pub(super) fn cancel_all(&mut self, reason: &str) {
        self.drain();
        self.cancelled.get_or_insert_with(|| reason.to_owned());
        for entry in self.entries.values() {
            if entry.end.is_none() {
                entry.process.cancel(reason);
            }
        }
    }

    pub(super) fn insert(&mut self, entry: Entry) {
        let pid = entry.process.pid();
        if let Some(reason) = &self.cancelled {
            entry.process.cancel(reason);
        }
        if entry.detached && entry.holder.is_none() {
            self.look_at = Some(entry.still.since);
        }
        self.n_entered += 1;
        let own = self.of_user.entry(entry.user.clone()).or_default();
        own.insert(self.n_entered, pid);
        self.entries.insert(
            pid,
            Entry {
                place: self.n_entered,
                ..entry
            },
        );
        if let Some(end) = self.early.remove(&pid) {
            self.end(pid, end);
        }
    }

    pub(super) fn end(&mut self, pid: u64, end: End) {
        let Some(entry) = self.entries.get_mut(&pid) else {
            self.early.insert(pid, end);
            return;
        };
        let held_bytes = entry.process.held_bytes() + end.last_bytes;
        let ended = EndedProcess::new(entry.process.clone(), held_bytes, end.at + self.retention);
        let now = end.at;
        let whose = Whose {
            user: entry.user.clone(),
            label: entry.label.clone(),
        };
        entry.end = Some(end);
        if let Some(until) = entry.grace_until.take() {
            self.grace.remove(&(until, pid));
        }
        self.release(&whose.user);
        self.ended.push(whose, ended);
        self.make_room(now);
    }

    pub(super) fn of_user(&mut self, user: &str, pid: u64) -> Result<&mut Entry, Error> {
        self.entries
            .get_mut(&pid)
            .filter(|entry| entry.user == user)
            .ok_or_else(|| unknown(user, pid))
    }

    /// The process of anybody, for `asking`.
    pub(super) fn of_anybody(&mut self, asking: &str, pid: u64) -> Result<&mut Entry, Error> {
        self.entries
            .get_mut(&pid)
            .ok_or_else(|| unknown(asking, pid))
    }

    /// Those of a user, as they were launched. What others have takes none of the time.
    pub(super) fn of(&self, user: &str) -> impl Iterator<Item = &Entry> {
        let own = self.of_user.get(user).into_iter().flatten();
        own.filter_map(|(_, pid)| self.entries.get(pid))
    }

    /// Whose processes stand here.
    pub(super) fn users(&self) -> impl Iterator<Item = &str> {
        self.of_user.keys().map(String::as_str)
    }

    /// The numbers of those of a user as they were launched, or of those of all.
    pub(super) fn listed(&self, user: Option<&str>) -> Vec<u64> {
        let own = user.and_then(|user| self.of_user.get(user));
        let all = self.of_user.values().filter(|_| user.is_none());
        let places = own.into_iter().chain(all);
        places.flat_map(BTreeMap::values).copied().collect()
    }

    pub(super) fn entry(&self, pid: u64) -> Option<&Entry> {
        self.entries.get(&pid)
    }

    pub(super) fn counts_of(&self, user: &str) -> Counts {
        let mut counts = Counts::default();
        for entry in self.of(user) {
            counts.n_live += usize::from(entry.end.is_none());
            counts.n_ended += usize::from(entry.end.is_some());
            counts.n_tokens = counts.n_tokens.saturating_add(entry.process.n_tokens());
        }
        counts
    }

    fn remove(&mut self, pid: u64) {
        let Some(entry) = self.entries.remove(&pid) else {
            return;
        };
        if let Some(own) = self.of_user.get_mut(&entry.user) {
            own.remove(&entry.place);
            if own.is_empty() {
                self.of_user.remove(&entry.user);
            }
        }
    }

    pub(super) fn knows(&self, pid: u64) -> bool {
        self.entries.contains_key(&pid)
    }

    pub(super) fn counts(&self) -> (usize, usize) {
        (self.n_live, self.ended.len())
    }

    /// A connection is attached to a process, which belongs to it from then on.
    pub(super) fn hold(&mut self, pid: u64, connection: ConnectionId) {
        if let Some(entry) = self.entries.get_mut(&pid) {
            entry.holder = Some(connection);
            if let Some(until) = entry.grace_until.take() {
                self.grace.remove(&(until, pid));
            }
        }
    }

    /// A connection has ended: its processes have no client from then on.
    pub(super) fn orphan(&mut self, connection: ConnectionId, now: Instant, grace: Duration) {
        let grace_until = now + grace;
        for (pid, entry) in &mut self.entries {
            if entry.holder != Some(connection) {
                continue;
            }
            entry.holder = None;
            entry.still.since = now;
            if entry.detached && self.detached.is_some() {
                self.look_at = Some(now);
            }
            if !entry.detached && entry.end.is_none() {
                entry.grace_until = Some(grace_until);
                self.grace.insert((grace_until, *pid));
            }
        }
    }

    /// Does what is due, and tells when something will be.
    pub(super) fn sweep(&mut self, now: Instant) -> Option<Instant> {
        while let Some(&(until, pid)) = self.grace.first() {
            if until > now {
                break;
            }
            self.grace.pop_first();
            if let Some(entry) = self.entries.get_mut(&pid) {
                entry.grace_until = None;
                entry.process.cancel(&format!(
                    "no client was there for longer than server.grace_s = {} s; launch detached to live without one",
                    self.grace_s
                ));
            }
        }
        while let Some((whose, ended)) = self.ended.pop_due(now) {
            self.forget(whose, ended, now);
        }
        while let Some((_, ended)) = self.leaving.pop_due(now) {
            ended.process.forget();
        }
        self.end_still(now);
        let forgetting = [self.ended.next_due(), self.leaving.next_due(), self.look_at];
        let ending = self.grace.first().map(|(until, _)| *until);
        forgetting.into_iter().flatten().chain(ending).min()
    }

    pub(super) fn clear(&mut self) -> HashMap<u64, Entry> {
        self.ended = Shelf::default();
        self.leaving = Shelf::default();
        self.grace.clear();
        self.n_live = 0;
        self.n_live_of.clear();
        self.of_user.clear();
        std::mem::take(&mut self.entries)
    }

    /// Forgets ended processes until what is kept is within its bounds.
    fn make_room(&mut self, now: Instant) {
        for taken in self.leaving.take_unless(ServedProcess::is_being_read) {
            taken.process.forget();
        }
        while self.ended.len() > self.max_ended {
            let Some((whose, ended)) = self.ended.pop_of_greatest(By::Count) else {
                break;
            };
            self.forget(whose, ended, now);
        }
        while self.ended.bytes() + self.leaving.bytes() > self.max_ended_bytes {
            let shelf = if self.leaving.most_bytes() >= self.ended.most_bytes() {
                &mut self.leaving
            } else {
                &mut self.ended
            };
            let Some((_, ended)) = shelf.pop_of_greatest(By::Bytes) else {
                break;
            };
            self.remove(ended.process.pid());
            ended.process.forget();
        }
    }

    /// Forgets a process; a client that is attached gets the rest of its events first, within the bounds on those.
    fn forget(&mut self, whose: Whose, ended: EndedProcess, now: Instant) {
        self.remove(ended.process.pid());
        if !ended.process.is_being_read() {
            ended.process.forget();
            return;
        }
        let until = now + self.retention;
        self.leaving.push(whose, EndedProcess { until, ..ended });
        if self.leaving.len() > MAX_LEAVING
            && let Some((_, ended)) = self.leaving.pop_of_greatest(By::Count)
        {
            ended.process.forget();
        }
    }
}

fn unknown(user: &str, pid: u64) -> Error {
    let message = format!("there is no process {pid} of {user:?}; list them with `pie ps`");
    Error::new(ErrorCode::UnknownProcess, message)
}

#[cfg(test)]
mod tests;
