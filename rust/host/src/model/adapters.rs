//! The adapters of a model by the names that users give them, and what they are made of.
//!
//! A *version* is what the weights of an adapter are at one time. It never changes: to load or to change an adapter
//! puts another version in its place, a fork is a second name of the same one. The core and the driver know a version
//! by a digest of its files, so that equal weights have equal identities, whoever made them, when, and beside what
//! else: also those that were saved, and are loaded by the next engine. A version lives as long as a name, or tokens
//! of a context that were computed with it; then the driver forgets it. So nothing that is under way loses what it
//! computes with.
//!
//! | what holds a version | until |
//! |---|---|
//! | a name | the adapter is loaded anew, changed or destroyed |
//! | a context, a snapshot in memory | its last token that was computed with it is gone |
//! | a command whose program waits no more | the driver has carried it out |
//!
//! A snapshot on disk holds none: whoever opens it has an adapter of the same weights under a name.
//!
//! Whoever locks [`Adapters`] waits for nothing and drops no version meanwhile: a version may be dropped under the lock
//! of the core, and locks this one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use pie_core::{AdapterName, Engine, EngineConfig, ErrorCode, UserId};
use sha2::{Digest as _, Sha256};

use super::adapter_folders::{AdapterFolder, AdapterFolders};
use super::listing::names_there_are;
use crate::Error;
use crate::program::shown;
use crate::sync::lock;

/// The longest name of an adapter, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// An adapter in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterInfo {
    /// Whose it is.
    pub user: String,
    /// The name that a program gave it.
    pub name: String,
    /// Of the files of its weights. Names of the same version share them.
    pub n_bytes: u64,
}

/// What the weights of an adapter are at one time.
#[derive(Debug)]
pub(crate) struct Version {
    /// Those among which it is counted.
    adapters: Weak<Adapters>,
    user: UserId,
    pub(crate) name: AdapterName,
    /// Where they lie.
    pub(crate) folder: Arc<AdapterFolder>,
    /// How they came about.
    pub(crate) recipe: Recipe,
    /// Of their files, once the user is charged with them.
    n_bytes: AtomicU64,
}

/// A digest of how weights came about: of files, or, until these are there, of what they are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recipe([u8; 32]);

/// The adapters of a model.
#[derive(Debug)]
pub(crate) struct Adapters {
    state: Mutex<State>,
    /// Versions were dropped that the driver may have.
    has_dropped: AtomicBool,
    /// Versions that the driver may be at, and that nobody waits for.
    abandoned: Mutex<Vec<Arc<Version>>>,
    has_abandoned: AtomicBool,
    limits: AdapterLimits,
    pub(crate) folders: AdapterFolders,
}

/// How many adapters there may be, and how large those of a user.
#[derive(Clone, Copy, Debug)]
struct AdapterLimits {
    n_names: u32,
    n_user_names: u32,
    user_bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    named: BTreeMap<(UserId, String), Arc<Version>>,
    users: BTreeMap<UserId, OfUser>,
    /// By what the driver knows them by: the versions that live, of all users.
    living: BTreeMap<AdapterName, Living>,
    dropped: Vec<AdapterName>,
}

/// What a user has.
#[derive(Clone, Debug, Default)]
struct OfUser {
    /// What they are called, where an adapter of theirs has a name.
    called: String,
    n_names: u32,
    n_bytes: u64,
    n_versions: usize,
}

/// Versions with the same weights.
#[derive(Debug, Default)]
struct Living {
    n_versions: usize,
    /// What the driver has read last, and would read again. It stays as long as any of the versions.
    last: Option<Arc<AdapterFolder>>,
}

impl Recipe {
    /// Of the kind of a recipe, and what it consists of.
    pub(crate) fn new(kind: &str, parts: &[&[u8]]) -> Self {
        let mut digest = Sha256::new();
        for part in std::iter::once(&kind.as_bytes()).chain(parts) {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        Self(digest.finalize().into())
    }

    /// Of the digests of both files of an adapter.
    pub(crate) fn of_files(config: &[u8; 32], weights: &[u8; 32]) -> Self {
        Self::new("files", &[config, weights])
    }

    /// Its bytes, as a part of another recipe.
    pub(crate) const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// What the core and the driver know the weights by: 96 bits of the digest.
    fn name(&self) -> AdapterName {
        let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = self.0;
        AdapterName {
            id: u64::from_le_bytes([a, b, c, d, e, f, g, h]).max(1),
            version: u32::from_le_bytes([i, j, k, l]),
        }
    }
}

impl Adapters {
    /// None, with the limits of a configuration; their files lie in a folder of `above`.
    pub(crate) fn new(config: &EngineConfig, above: Option<&Path>) -> Self {
        Self {
            state: Mutex::default(),
            has_dropped: AtomicBool::new(false),
            abandoned: Mutex::default(),
            has_abandoned: AtomicBool::new(false),
            limits: AdapterLimits {
                n_names: config.max_adapters,
                n_user_names: config.user_adapters(),
                user_bytes: config.max_user_adapter_bytes,
            },
            folders: AdapterFolders::new(above.map(Path::to_owned)),
        }
    }

    /// The versions that nobody has any more, once. One that was made anew meanwhile is not among them.
    pub(super) fn take_dropped(&self) -> Vec<AdapterName> {
        if !self.has_dropped.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        let mut state = lock(&self.state);
        let mut dropped = std::mem::take(&mut state.dropped);
        dropped.retain(|name| !state.living.contains_key(name));
        dropped
    }

    /// Nobody waits any more until the driver has made or read a version. It is kept until the driver is done.
    pub(super) fn abandon(&self, version: Arc<Version>) {
        lock(&self.abandoned).push(version);
        self.has_abandoned.store(true, Ordering::Release);
    }

    /// Drops what was abandoned, where the driver is at no command.
    pub(super) fn drop_abandoned(&self, engine: &Engine) {
        if !self.has_abandoned.load(Ordering::Acquire) || engine.runs_command() {
            return;
        }
        self.has_abandoned.store(false, Ordering::Release);
        let abandoned = std::mem::take(&mut *lock(&self.abandoned));
        for version in abandoned {
            // The driver may have read it all the same.
            version.note_read(engine);
        }
    }

    /// The adapter of that name.
    ///
    /// # Errors
    /// `adapter-missing`.
    pub(crate) fn find(&self, user: UserId, name: &str) -> Result<Arc<Version>, Error> {
        let state = lock(&self.state);
        let found = state.named.get(&(user, name.to_owned()));
        found.cloned().ok_or_else(|| state.missing(user, name))
    }

    /// A version of a user, before its weights are there.
    pub(super) fn new_version(
        self: &Arc<Self>,
        user: UserId,
        recipe: Recipe,
        folder: Arc<AdapterFolder>,
    ) -> Arc<Version> {
        let name = recipe.name();
        let mut state = lock(&self.state);
        state.living.entry(name).or_default().n_versions += 1;
        state.users.entry(user).or_default().n_versions += 1;
        drop(state);
        Arc::new(Version {
            adapters: Arc::downgrade(self),
            user,
            name,
            folder,
            recipe,
            n_bytes: AtomicU64::new(0),
        })
    }

    /// What the driver knows by that name, where an adapter of the user is that now.
    pub(super) fn current(&self, user: UserId, name: AdapterName) -> Option<Arc<Version>> {
        let state = lock(&self.state);
        let of_user = state.named.range((user, String::new())..);
        let mut of_user = of_user.take_while(|((of, _), _)| *of == user);
        let found = of_user.find(|(_, version)| version.name == name);
        found.map(|(_, version)| version.clone())
    }

    /// The name under which a user has an adapter as it is.
    pub(super) fn called(&self, user: UserId, name: AdapterName) -> Option<String> {
        let state = lock(&self.state);
        let of_user = state.named.range((user, String::new())..);
        let mut of_user = of_user.take_while(|((of, _), _)| *of == user);
        let found = of_user.find(|(_, version)| version.name == name);
        found.map(|((_, called), _)| called.clone())
    }

    /// The names of a user, sorted.
    pub(crate) fn names(&self, user: UserId) -> Vec<String> {
        let state = lock(&self.state);
        state.names(user).map(str::to_owned).collect()
    }

    /// The adapters of a user, or of all, by user and name.
    pub(super) fn list(&self, user: Option<UserId>) -> Vec<AdapterInfo> {
        let state = lock(&self.state);
        let wanted = state.named.iter();
        let wanted = wanted.filter(|((of, _), _)| user.is_none_or(|user| user == *of));
        let listed = wanted.map(|((of, name), version)| AdapterInfo {
            user: state
                .users
                .get(of)
                .map_or_else(String::new, |of_user| of_user.called.clone()),
            name: name.clone(),
            n_bytes: version.n_bytes(),
        });
        let mut listed: Vec<AdapterInfo> = listed.collect();
        drop(state);
        listed.sort_by(|one, other| (&one.user, &one.name).cmp(&(&other.user, &other.name)));
        listed
    }

    /// How many adapters of a user, or of all, have names.
    pub(super) fn count(&self, user: Option<UserId>) -> usize {
        let state = lock(&self.state);
        match user {
            Some(user) => {
                let of_user = state.users.get(&user).map_or(0, |it| it.n_names);
                usize::try_from(of_user).unwrap_or(usize::MAX)
            }
            None => state.named.len(),
        }
    }

    /// Whether a user may have another adapter of that name.
    ///
    /// # Errors
    /// `invalid-argument` for the name, `adapter-exists`, `limit-adapters`.
    pub(crate) fn check_new(&self, user: UserId, name: &str) -> Result<(), Error> {
        self.check_new_in(&lock(&self.state), user, name)
    }

    fn check_new_in(&self, state: &State, user: UserId, name: &str) -> Result<(), Error> {
        check_name(name)?;
        if state.named.contains_key(&(user, name.to_owned())) {
            return Err(Error::new(
                ErrorCode::AdapterExists,
                format!(
                    "there is an adapter {name:?} already; open it, delete it first (`Adapter.delete(model, name)` in Python, `adapter.destroy()` in JavaScript and Rust), or take another name"
                ),
            ));
        }
        let of_user = state.users.get(&user).map_or(0, |of_user| of_user.n_names);
        let n_names = u32::try_from(state.named.len()).unwrap_or(u32::MAX);
        for (n, limit, whose, setting) in [
            (
                of_user,
                self.limits.n_user_names,
                "adapters of the user have names, and one user may have",
                "max_user_adapters",
            ),
            (
                n_names,
                self.limits.n_names,
                "adapters have names, and the engine keeps",
                "max_adapters",
            ),
        ] {
            if n >= limit {
                return Err(Error::with_values(
                    ErrorCode::LimitAdapters,
                    format!("{n} {whose} at most {limit}; delete some, or raise {setting}"),
                    &[("adapters", u64::from(n)), ("limit", u64::from(limit))],
                ));
            }
        }
        Ok(())
    }

    /// Gives a version a name that is new, of a user who is called so.
    ///
    /// # Errors
    /// As [`Adapters::check_new`].
    pub(crate) fn name(
        &self,
        (user, called): (UserId, &str),
        name: &str,
        version: Arc<Version>,
    ) -> Result<(), Error> {
        let mut state = lock(&self.state);
        // Where it is refused, the version is dropped behind the lock: arguments outlive locals.
        self.check_new_in(&state, user, name)?;
        state.named.insert((user, name.to_owned()), version);
        let of_user = state.users.entry(user).or_default();
        of_user.n_names += 1;
        if of_user.called != called {
            called.clone_into(&mut of_user.called);
        }
        Ok(())
    }

    /// Puts a version in the place of another one.
    ///
    /// # Errors
    /// `adapter-missing` where the name is gone; `adapter-busy` where the adapter is no longer `former`, if given.
    pub(crate) fn replace(
        &self,
        user: UserId,
        name: &str,
        former: Option<&Arc<Version>>,
        version: Arc<Version>,
    ) -> Result<(), Error> {
        let mut state = lock(&self.state);
        let Some(place) = state.named.get_mut(&(user, name.to_owned())) else {
            return Err(state.missing(user, name));
        };
        if former.is_some_and(|former| !Arc::ptr_eq(former, place)) {
            return Err(Error::new(
                ErrorCode::AdapterBusy,
                format!("another program has changed the adapter {name:?} meanwhile; try it again"),
            ));
        }
        let replaced = std::mem::replace(place, version);
        drop(state);
        drop(replaced);
        Ok(())
    }

    /// Takes the name of an adapter.
    ///
    /// # Errors
    /// `adapter-missing`.
    pub(crate) fn destroy(&self, user: UserId, name: &str) -> Result<(), Error> {
        let mut state = lock(&self.state);
        let Some(version) = state.named.remove(&(user, name.to_owned())) else {
            return Err(state.missing(user, name));
        };
        if let Some(of_user) = state.users.get_mut(&user) {
            of_user.n_names -= 1;
        }
        state.forget_idle(user);
        drop(state);
        drop(version);
        Ok(())
    }

    /// Bytes that the adapters of a user may take beside those that there are.
    ///
    /// # Errors
    /// `limit-adapters` where that is nothing.
    pub(crate) fn bytes_left(&self, user: UserId) -> Result<u64, Error> {
        let state = lock(&self.state);
        let taken = state.users.get(&user).map_or(0, |of_user| of_user.n_bytes);
        match self.limits.user_bytes.saturating_sub(taken) {
            0 => Err(self.too_large(taken, 0)),
            left => Ok(left),
        }
    }

    fn too_large(&self, taken: u64, n_bytes: u64) -> Error {
        let limit = self.limits.user_bytes;
        Error::with_values(
            ErrorCode::LimitAdapters,
            format!(
                "the adapters of the user take {taken} bytes, and {n_bytes} more would be more than \
                 max_user_adapter_bytes = {limit}; delete some, drop contexts that were computed with them, or raise \
                 the limit"
            ),
            &[("bytes", taken.saturating_add(n_bytes)), ("limit", limit)],
        )
    }
}

impl State {
    /// The names of a user, sorted.
    fn names(&self, user: UserId) -> impl Iterator<Item = &str> {
        let of_user = self.named.range((user, String::new())..);
        let of_user = of_user.take_while(move |((of, _), _)| *of == user);
        of_user.map(|((_, name), _)| name.as_str())
    }

    /// The error of a name that the user has no adapter of.
    fn missing(&self, user: UserId, name: &str) -> Error {
        let names: Vec<&str> = self.names(user).collect();
        let there_are = names_there_are(name, "adapters", &names);
        Error::new(
            ErrorCode::AdapterMissing,
            format!("there is no adapter {:?}{there_are}", shown(name)),
        )
    }

    /// Users who have nothing are not kept.
    fn forget_idle(&mut self, user: UserId) {
        let of_user = self.users.get(&user);
        if of_user.is_some_and(|it| it.n_names == 0 && it.n_versions == 0) {
            self.users.remove(&user);
        }
    }
}

impl Version {
    /// Bytes of its files.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.n_bytes.load(Ordering::Relaxed)
    }

    /// The driver has it, in files of so many bytes: its user is charged with them.
    pub(super) fn charge(&self, n_bytes: u64) -> Result<(), Error> {
        let Some(adapters) = self.adapters.upgrade() else {
            return Ok(());
        };
        let mut state = lock(&adapters.state);
        let of_user = state.users.entry(self.user).or_default();
        let taken = of_user.n_bytes;
        if n_bytes > adapters.limits.user_bytes.saturating_sub(taken) {
            return Err(adapters.too_large(taken, n_bytes));
        }
        of_user.n_bytes += n_bytes;
        self.n_bytes.store(n_bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Keeps its folder as long as there are versions with its weights, where it is what the driver has read last.
    pub(super) fn note_read(&self, engine: &Engine) {
        let read = engine.adapter_path(self.name).map(Path::new);
        let Some(adapters) = self.adapters.upgrade() else {
            return;
        };
        if read == Some(self.folder.path())
            && let Some(living) = lock(&adapters.state).living.get_mut(&self.name)
        {
            living.last = Some(self.folder.clone());
        }
    }
}

impl Drop for Version {
    fn drop(&mut self) {
        let Some(adapters) = self.adapters.upgrade() else {
            return;
        };
        let mut state = lock(&adapters.state);
        let mut is_last = false;
        if let Some(living) = state.living.get_mut(&self.name) {
            living.n_versions -= 1;
            is_last = living.n_versions == 0;
        }
        if is_last {
            state.living.remove(&self.name);
            state.dropped.push(self.name);
        }
        if let Some(of_user) = state.users.get_mut(&self.user) {
            of_user.n_bytes -= self.n_bytes();
            of_user.n_versions -= 1;
        }
        state.forget_idle(self.user);
        drop(state);
        if is_last {
            adapters.has_dropped.store(true, Ordering::Release);
        }
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let message = if let Some(control) = name.chars().find(|it| it.is_control()) {
        let code = u32::from(control);
        format!(
            "the name of an adapter has the control character U+{code:04X}: {name:?}; use a name that can be shown"
        )
    } else if (1..=MAX_NAME_BYTES).contains(&name.len()) {
        return Ok(());
    } else {
        let n_bytes = name.len();
        format!(
            "the name of an adapter has {n_bytes} bytes; use a name of 1 to {MAX_NAME_BYTES} bytes"
        )
    };
    Err(Error::new(ErrorCode::InvalidArgument, message))
}

#[cfg(test)]
mod tests;
