//! How users share the places of processes, and how long one that stands still keeps its place.
//!
//! Where every place is taken, one of the user with the most ends for one of a user who would have fewer: first one
//! without a client, of these the one that has stood still the longest. So nobody keeps the others out, however many
//! processes they launch detached.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use pie_host::{Error, ErrorCode};

use super::still::{Clients, Done, WaitsFor};
use super::{Entry, Table};

/// How often it is looked which processes stand still, at most.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// And at least so often within the time that one may stand still.
const LOOKS: u32 = 8;

impl Entry {
    fn lives(&self) -> bool {
        self.end.is_none()
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
    /// place is taken and no user has more than this one would.
    pub(in crate::processes) fn reserve(
        &mut self,
        user: &str,
        waits_for: &mut WaitsFor,
        now: Instant,
    ) -> Result<bool, Error> {
        self.check_open()?;
        self.check_own(user)?;
        if self.n_live < self.most_live {
            self.count(user);
            return Ok(true);
        }
        let is_ending = |pid| self.entry(pid).is_some_and(Entry::lives);
        if !waits_for.0.is_some_and(is_ending) {
            let pid = self.give_way(user, now).ok_or_else(|| self.full())?;
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
            self.give_way(user, now);
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

    /// Ends a process of the user who has the most for one of `user`; none where nobody has more than that one would.
    fn give_way(&mut self, user: &str, now: Instant) -> Option<u64> {
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
        let pid = others
            .iter()
            .find_map(|(_, of)| self.least_needed(of, now))?;
        let entry = self.entries.get_mut(&pid)?;
        entry.still.gives_way = true;
        tracing::info!(
            pid,
            user = entry.user,
            "a process gives its place to another user's"
        );
        entry.process.end(ErrorCode::LimitProcesses, &format!(
            "all {} places of engine.max_processes were taken, and this one went to a user who has fewer; launch fewer at once, stay connected to those that matter, or raise the limit",
            self.most_live
        ));
        Some(pid)
    }

    /// The process of a user that is missed the least: one without a client that has stood still for the longest, or
    /// else the youngest.
    fn least_needed(&mut self, user: &str, now: Instant) -> Option<u64> {
        let pids = self.of_user.get(user)?.values();
        for pid in pids {
            if let Some(entry) = self.entries.get_mut(pid) {
                entry.look(now);
            }
        }
        let candidates = || {
            self.of(user)
                .filter(|entry| entry.lives() && !entry.still.gives_way)
        };
        let alone = candidates().filter(|entry| !entry.has_client());
        let stillest = alone.min_by_key(|entry| (entry.still.since, entry.place));
        let chosen = stillest.or_else(|| candidates().max_by_key(|entry| entry.place));
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
