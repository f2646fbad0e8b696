//! The adapters that the driver has, so that one that comes in its place is given them again.
//!
//! An adapter is known by the path that it was loaded from; a copy has that of its source. Where the device is lost,
//! the next driver is given a command for each of them, before any batch and before the commands that wait. Programs
//! notice nothing but time. An adapter that cannot be loaded again is forgotten, and whoever computes with it is told
//! by the driver that it is not there. So is one over which several drivers in a row were lost: it would end each of
//! them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::command::{AdapterName, Command};

/// Drivers that may be lost in a row over an adapter that is loaded again.
const MAX_LOSSES: u32 = 3;

/// What the driver has loaded, and what of it a new one still has to load.
#[derive(Debug, Default)]
pub(super) struct Adapters {
    loaded: BTreeMap<AdapterName, Loaded>,
    missing: VecDeque<AdapterName>,
    /// Nobody computes with them any more, and the driver may have them.
    unwanted: BTreeSet<AdapterName>,
}

#[derive(Debug)]
struct Loaded {
    path: String,
    /// Drivers in a row that were lost while they loaded it again.
    n_losses: u32,
}

impl Adapters {
    /// The driver has carried out a command.
    pub(super) fn note(&mut self, command: &Command) {
        match command {
            Command::LoadAdapter { adapter, path }
            | Command::CreateAdapter { adapter, path, .. }
            | Command::ChangeAdapter {
                to: adapter, path, ..
            } => self.put(*adapter, path.clone()),
            Command::CopyAdapter { from, to } => {
                if let Some(source) = self.loaded.get(from) {
                    let path = source.path.clone();
                    self.put(*to, path);
                }
            }
            Command::DropAdapter { adapter } => self.forget(*adapter),
            Command::ExportPages { .. } | Command::ImportPages { .. } => {}
        }
    }

    fn put(&mut self, adapter: AdapterName, path: String) {
        let n_losses = 0;
        self.loaded.insert(adapter, Loaded { path, n_losses });
    }

    /// The driver could not load it again.
    pub(super) fn forget(&mut self, adapter: AdapterName) {
        self.loaded.remove(&adapter);
    }

    /// Where the driver has read an adapter last.
    pub(super) fn path(&self, adapter: AdapterName) -> Option<&str> {
        self.loaded.get(&adapter).map(|loaded| loaded.path.as_str())
    }

    /// Nobody computes with it any more: the driver is to forget it, where it has it or `is_coming`.
    pub(super) fn drop_unwanted(&mut self, adapter: AdapterName, is_coming: bool) {
        self.missing.retain(|&missing| missing != adapter);
        if self.loaded.remove(&adapter).is_some() || is_coming {
            self.unwanted.insert(adapter);
        }
    }

    /// Whether the driver has some that it is to forget.
    pub(super) fn are_unwanted(&self) -> bool {
        !self.unwanted.is_empty()
    }

    /// The command to forget the next one.
    pub(super) fn drop_next(&mut self) -> Option<Command> {
        let adapter = self.unwanted.pop_first()?;
        Some(Command::DropAdapter { adapter })
    }

    /// The driver is gone, while it loaded `again`, where it did. Returns that one where it is given up.
    pub(super) fn lose(&mut self, again: Option<AdapterName>) -> Option<AdapterName> {
        let loaded = again.and_then(|adapter| self.loaded.get_mut(&adapter));
        let n_losses = loaded.map_or(0, |loaded| {
            loaded.n_losses += 1;
            loaded.n_losses
        });
        let given_up = again.filter(|_| n_losses >= MAX_LOSSES);
        if let Some(adapter) = given_up {
            self.forget(adapter);
        }
        self.missing = self.loaded.keys().copied().collect();
        // The next one has none of them.
        self.unwanted.clear();
        given_up
    }

    /// Whether a new driver still has to load some.
    pub(super) fn are_missing(&self) -> bool {
        !self.missing.is_empty()
    }

    /// The command to load the next one again.
    pub(super) fn load_next(&mut self) -> Option<Command> {
        let adapter = self.missing.pop_front()?;
        let path = self.loaded.get(&adapter)?.path.clone();
        Some(Command::LoadAdapter { adapter, path })
    }

    /// What is missing was loaded before.
    pub(super) fn check(&self) -> Result<(), String> {
        let unknown = |adapter: &&AdapterName| !self.loaded.contains_key(adapter);
        match self.missing.iter().find(unknown) {
            Some(adapter) => Err(format!("{adapter:?} is missing and was never loaded")),
            None => Ok(()),
        }
    }
}
