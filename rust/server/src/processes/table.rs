//! The table behind the processes: owners, deadlines, and the bounds on what is kept. Time is an argument.

use std::collections::{BTreeMap, VecDeque};

use super::*;

/// One process.
pub(super) struct Entry {
    pub(super) user: String,
    pub(super) label: String,
    pub(super) process: ServedProcess,
    pub(super) detached: bool,
    /// The connection that it belongs to.
    pub(super) holder: Option<ConnectionId>,
    /// When it is ended unless somebody attaches.
    pub(super) grace_until: Option<Instant>,
    /// Seconds since 1970.
    pub(super) started_s: f64,
    pub(super) end: Option<End>,
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
    max_of_user: usize,
    max_ended: usize,
    max_ended_bytes: usize,
    retention: Duration,
    grace_s: f64,
    entries: BTreeMap<u64, Entry>,
    /// Users with processes that live or are being launched, and how many.
    n_live_of: HashMap<String, usize>,
    n_live: usize,
    /// Ends that were told before the launch was through.
    early: HashMap<u64, End>,
    /// Those that have ended, the oldest first, with the bytes that are held for each.
    ended: VecDeque<(u64, usize)>,
    ended_bytes: usize,
    /// Ends of times of grace, the earliest first; one that does not stand in its entry is void.
    grace: VecDeque<(Instant, u64)>,
}

impl Table {
    pub(super) fn new(config: &ServerConfig) -> Self {
        Self {
            max_of_user: config.max_processes_per_user,
            max_ended: config.max_ended_processes,
            max_ended_bytes: config.max_ended_bytes,
            retention: config.retention,
            grace_s: config.grace.as_secs_f64(),
            entries: BTreeMap::new(),
            n_live_of: HashMap::new(),
            n_live: 0,
            early: HashMap::new(),
            ended: VecDeque::new(),
            ended_bytes: 0,
            grace: VecDeque::new(),
        }
    }

    /// Counts a process that is about to be launched; [`Table::insert`] or [`Table::release`] follows.
    pub(super) fn reserve(&mut self, user: &str) -> Result<(), Error> {
        let n_live = self.n_live_of.entry(user.to_owned()).or_default();
        if *n_live >= self.max_of_user {
            let message = format!(
                "{n_live} processes of {user:?} live, the most that server.max_processes_per_user allows; wait for one to end, or stop one"
            );
            return Err(Error::new(ErrorCode::LimitProcesses, message));
        }
        *n_live += 1;
        self.n_live += 1;
        Ok(())
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

    pub(super) fn insert(&mut self, entry: Entry) {
        let pid = entry.process.pid();
        self.entries.insert(pid, entry);
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
        let user = entry.user.clone();
        entry.end = Some(end);
        self.release(&user);
        self.ended.push_back((pid, held_bytes));
        self.ended_bytes += held_bytes;
        while self.ended.len() > self.max_ended || self.ended_bytes > self.max_ended_bytes {
            self.forget_oldest();
        }
    }

    pub(super) fn of_user(&mut self, user: &str, pid: u64) -> Result<&mut Entry, Error> {
        self.entries
            .get_mut(&pid)
            .filter(|entry| entry.user == user)
            .ok_or_else(|| {
                let message =
                    format!("there is no process {pid} of {user:?}; list them with `pie ps`");
                Error::new(ErrorCode::UnknownProcess, message)
            })
    }

    pub(super) fn of(&self, user: &str) -> impl Iterator<Item = &Entry> {
        self.entries
            .values()
            .filter(move |entry| entry.user == user)
    }

    pub(super) fn knows(&self, pid: u64) -> bool {
        self.entries.contains_key(&pid)
    }

    pub(super) fn counts(&self) -> (usize, usize) {
        (self.n_live, self.ended.len())
    }

    pub(super) fn living(&self) -> Vec<ServedProcess> {
        let living = self.entries.values().filter(|entry| entry.end.is_none());
        living.map(|entry| entry.process.clone()).collect()
    }

    pub(super) fn orphan(&mut self, connection: ConnectionId, grace_until: Instant) {
        for (pid, entry) in &mut self.entries {
            if entry.holder != Some(connection) {
                continue;
            }
            entry.holder = None;
            if !entry.detached && entry.end.is_none() {
                entry.grace_until = Some(grace_until);
                self.grace.push_back((grace_until, *pid));
            }
        }
    }

    /// Does what is due, and tells when something will be.
    pub(super) fn sweep(&mut self, now: Instant) -> Option<Instant> {
        while let Some((until, pid)) = self.grace.pop_front_if(|(until, _)| *until <= now) {
            if let Some(entry) = self.entries.get(&pid)
                && entry.grace_until == Some(until)
            {
                entry.process.cancel(&format!(
                    "no client was there for longer than server.grace_s = {} s; launch detached to live without one",
                    self.grace_s
                ));
            }
        }
        while self
            .oldest_end()
            .is_some_and(|end| end + self.retention <= now)
        {
            self.forget_oldest();
        }
        let forgetting = self.oldest_end().map(|end| end + self.retention);
        let ending = self.grace.front().map(|(until, _)| *until);
        forgetting.into_iter().chain(ending).min()
    }

    pub(super) fn clear(&mut self) -> BTreeMap<u64, Entry> {
        self.ended.clear();
        self.ended_bytes = 0;
        self.grace.clear();
        self.n_live = 0;
        self.n_live_of.clear();
        std::mem::take(&mut self.entries)
    }

    fn oldest_end(&self) -> Option<Instant> {
        let (pid, _) = self.ended.front()?;
        Some(self.entries.get(pid)?.end.as_ref()?.at)
    }

    fn forget_oldest(&mut self) {
        if let Some((pid, held_bytes)) = self.ended.pop_front() {
            self.ended_bytes -= held_bytes;
            self.entries.remove(&pid);
        }
    }
}
