//! Contexts that are kept under names, for the programs of one user.
//!
//! A snapshot is a context of no process: it holds what it needs and uses no page. What it shares with others is stored
//! once; pages of it that others need are copied to the host or computed again when it is opened. It is not touched by
//! the end of the process that saved it.
//!
//! Where as many are kept as the engine keeps, one gives way for the next: of a user without a process who has more
//! than the one that saves, the one that was not used for the longest. So users who have gone do not keep others from
//! saving, and nobody who is there loses any.

use super::Engine;
use super::kept::{HostData, Snapshot};
use crate::context::Context;
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::Seeds;
use crate::ids::{ContextId, ProcessId, UserId};

/// Bytes of the longest name.
const MAX_NAME_BYTES: usize = 256;

/// What a snapshot is called.
enum SnapshotName<'a> {
    Given(&'a str),
    /// A name is made up that the user has not given, and that is not taken elsewhere.
    MadeUp(&'a dyn Fn(&str) -> bool),
}

impl Engine {
    /// Keeps a copy of the context under a name of its user's, in place of an older one. It counts as a fork of the
    /// context for the seeds of later forks.
    ///
    /// # Errors
    /// `limit-snapshots` when too many are kept, of the user or in all; `invalid-argument` for a name that is empty,
    /// too long or has control characters; `context-busy`, `context-released`.
    pub fn save(&mut self, context: ContextId, name: &str, host_data: HostData) -> Result<()> {
        check_snapshot_name(name)?;
        let user = self.idle_context(context, "saved")?.lane.owner();
        if self.owned.snapshots.get(user, name).is_none() {
            self.give_way(user);
            self.check_room_for_snapshot(user)?;
        }
        self.keep(context, user, SnapshotName::Given(name), host_data)?;
        Ok(())
    }

    /// Keeps a copy of the context under a name that is made up, and returns the name. It follows from the launch seed
    /// and the path of the context, with a number behind it where the user has that name already.
    ///
    /// # Errors
    /// Those of [`Engine::save`].
    pub fn snapshot(&mut self, context: ContextId, host_data: HostData) -> Result<String> {
        self.snapshot_beside(context, host_data, |_| false)
    }

    /// The same, under none of the names of the user that are taken elsewhere.
    ///
    /// # Errors
    /// Those of [`Engine::save`].
    pub fn snapshot_beside(
        &mut self,
        context: ContextId,
        host_data: HostData,
        is_taken: impl Fn(&str) -> bool,
    ) -> Result<String> {
        let user = self.idle_context(context, "saved")?.lane.owner();
        self.give_way(user);
        self.check_room_for_snapshot(user)?;
        self.keep(context, user, SnapshotName::MadeUp(&is_taken), host_data)
    }

    /// Has a snapshot of a user who has gone give way for one of `user`, where as many are kept as the engine keeps.
    fn give_way(&mut self, user: UserId) {
        let n_of_user = self.owned.snapshots.n_of(user);
        let is_full = self.owned.snapshots.len() >= self.config.max_snapshots as usize;
        if !is_full || n_of_user >= self.config.user_snapshots() as usize {
            return;
        }
        let users = &self.owned.users;
        let least = self
            .owned
            .snapshots
            .least_missed(n_of_user, |other| !users.contains_key(&other));
        if let Some((other, name)) = least
            && let Some(snapshot) = self.owned.snapshots.remove(other, &name)
        {
            snapshot.context.lane.release(&mut self.device.store);
        }
    }

    fn keep(
        &mut self,
        context: ContextId,
        user: UserId,
        name: SnapshotName<'_>,
        host_data: HostData,
    ) -> Result<String> {
        let page_size = self.config.driver.page_size;
        let state = self.owned.live_mut(context)?;
        state.settle(page_size);
        let frozen = state.freeze(&mut self.device.store);
        let name = match name {
            SnapshotName::Given(name) => name.to_owned(),
            SnapshotName::MadeUp(is_taken) => self.make_name(user, &frozen, is_taken),
        };
        let snapshot = Snapshot {
            context: frozen,
            host_data,
            used: self.owned.snapshots.note_use(),
        };
        let kept = name.clone();
        if let Some(older) = self.owned.snapshots.insert(user, name, snapshot) {
            older.context.lane.release(&mut self.device.store);
        }
        Ok(kept)
    }

    /// A name that the user has not given to any.
    fn make_name(
        &mut self,
        user: UserId,
        frozen: &Context,
        is_taken: &dyn Fn(&str) -> bool,
    ) -> String {
        let (process, path) = (frozen.process, frozen.path);
        let mut name = match self.owned.processes.get_mut(&process) {
            Some(process) => process.seeds.name(path),
            None => {
                self.totals.faults.count("a context has no process");
                Seeds::new(0).name(path)
            }
        };
        // No number of a process is in it: that would tell what others have launched.
        let first = name.clone();
        let mut n = 1;
        while self.owned.snapshots.get(user, &name).is_some() || is_taken(&name) {
            n += 1;
            name = format!("{first}-{n}");
        }
        name
    }

    /// A context of the process with the content of a snapshot of its user's, which stays. Its tokens count against the
    /// budget of the process. Its seeds are those of the n-th opening, where n counts those that the process has made
    /// from snapshots of that path.
    ///
    /// # Errors
    /// `snapshot-missing` naming it; `token-budget`, `limit-resources`; `invalid-argument` for a name that cannot be
    /// one, or an unknown process.
    pub fn open_snapshot(
        &mut self,
        process: ProcessId,
        name: &str,
    ) -> Result<(ContextId, HostData)> {
        let user = self.check_opening(process, name)?;
        self.charge_opening(process, user, name)?;
        let used = self.owned.snapshots.note_use();
        let snapshot = self.owned.snapshots.get_mut(user, name);
        let Snapshot {
            context,
            host_data,
            used: last,
        } = snapshot.ok_or_else(|| missing(name))?;
        *last = used;
        let (path, host_data) = (context.path, host_data.clone());
        let context = context.fork(&mut self.device.store);
        Ok((self.own(process, context, path), host_data))
    }

    /// The same, and the snapshot goes: of two that take it one gets it.
    ///
    /// # Errors
    /// Those of [`Engine::open_snapshot`]; the snapshot stays then.
    pub fn take_snapshot(
        &mut self,
        process: ProcessId,
        name: &str,
    ) -> Result<(ContextId, HostData)> {
        let user = self.check_opening(process, name)?;
        self.charge_opening(process, user, name)?;
        let snapshot = self.owned.snapshots.remove(user, name);
        let Snapshot {
            context, host_data, ..
        } = snapshot.ok_or_else(|| missing(name))?;
        let path = context.path;
        Ok((self.own(process, context, path), host_data))
    }

    /// Forgets a snapshot of the user of the process.
    ///
    /// # Errors
    /// `snapshot-missing` naming it; `invalid-argument` for a name that cannot be one, or an unknown process.
    pub fn delete_snapshot(&mut self, process: ProcessId, name: &str) -> Result<()> {
        check_snapshot_name(name)?;
        let user = self.owned.process(process)?.user;
        self.delete_snapshot_of(user, name)
    }

    /// Forgets a snapshot of a user, for whoever looks after them and is not a process.
    ///
    /// # Errors
    /// `snapshot-missing` naming it.
    pub fn delete_snapshot_of(&mut self, user: UserId, name: &str) -> Result<()> {
        let snapshot = self.owned.snapshots.remove(user, name);
        let snapshot = snapshot.ok_or_else(|| missing(name))?;
        snapshot.context.lane.release(&mut self.device.store);
        Ok(())
    }

    /// Every snapshot, of one user or of all: its name, its tokens, and what the host keeps beside it.
    pub fn each_snapshot(
        &self,
        user: Option<UserId>,
    ) -> impl Iterator<Item = (&str, u32, &HostData)> {
        let all = self.owned.snapshots.iter();
        let wanted = all.filter(move |(of, ..)| user.is_none_or(|user| user == *of));
        wanted.map(|(_, name, snapshot)| (name, snapshot.context.length(), &snapshot.host_data))
    }

    /// The names of the snapshots of the user of the process, sorted.
    ///
    /// # Errors
    /// `invalid-argument` for an unknown process.
    pub fn snapshots(&self, process: ProcessId) -> Result<Vec<String>> {
        let user = self.owned.process(process)?.user;
        Ok(self
            .owned
            .snapshots
            .names(user)
            .map(str::to_owned)
            .collect())
    }

    /// Whether a process may have a context of that snapshot. Returns the user.
    fn check_opening(&self, process: ProcessId, name: &str) -> Result<UserId> {
        check_snapshot_name(name)?;
        let user = self.owned.process(process)?.user;
        self.snapshot_length(user, name)?;
        self.check_room_for_context(process)?;
        Ok(user)
    }

    /// Charges the tokens of a snapshot to a process that opens it.
    fn charge_opening(&self, process: ProcessId, user: UserId, name: &str) -> Result<()> {
        match self.owned.budget(process) {
            Some(budget) => budget.spend(self.snapshot_length(user, name)? as usize),
            None => Ok(()),
        }
    }

    /// Tokens of a snapshot.
    fn snapshot_length(&self, user: UserId, name: &str) -> Result<u32> {
        let snapshot = self.owned.snapshots.get(user, name);
        Ok(snapshot.ok_or_else(|| missing(name))?.context.length())
    }

    /// Makes a context with the content of a snapshot of that path one of the process.
    pub(super) fn own(&mut self, process: ProcessId, context: Context, path: u64) -> ContextId {
        let path = match self.owned.processes.get_mut(&process) {
            Some(process) => process.seeds.open(path),
            None => {
                self.totals.faults.count("who opens a snapshot is missing");
                path
            }
        };
        self.owned.add_context(context.given_to(process, path))
    }
}

/// Checks that a snapshot can have that name.
///
/// # Errors
/// `invalid-argument` for one that is empty, too long or has control characters.
pub fn check_snapshot_name(name: &str) -> Result<()> {
    if let Some((at, control)) = name.char_indices().find(|(_, it)| it.is_control()) {
        return Err(Error::with_values(
            ErrorCode::InvalidArgument,
            format!(
                "the name of a snapshot has the control character U+{:04X} at byte {at}: {name:?}; use a name that \
                 can be shown",
                u32::from(control)
            ),
            &[("byte", at as u64)],
        ));
    }
    if (1..=MAX_NAME_BYTES).contains(&name.len()) {
        return Ok(());
    }
    let n_bytes = name.len();
    Err(Error::with_values(
        ErrorCode::InvalidArgument,
        format!(
            "the name of a snapshot has {n_bytes} bytes; use a name of 1 to {MAX_NAME_BYTES} bytes"
        ),
        &[("bytes", n_bytes as u64), ("limit", MAX_NAME_BYTES as u64)],
    ))
}

fn missing(name: &str) -> Error {
    Error::new(
        ErrorCode::SnapshotMissing,
        format!("there is no snapshot {name:?}; save a context under that name first"),
    )
}
