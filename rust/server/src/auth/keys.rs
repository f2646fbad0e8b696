//! The keys as a running server knows them: read again whenever their file has changed.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pie_host::Error;
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;

use super::public_key::PublicKey;
use super::records::{self, KeyRecord};
use super::{Role, api_key};
use crate::clock::now;
use crate::sync::lock;

/// What a client that has a key may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Credential {
    pub(super) id: String,
    pub(super) user: String,
    pub(super) role: Role,
}

impl From<&KeyRecord> for Credential {
    fn from(key: &KeyRecord) -> Self {
        Self {
            id: key.id.clone(),
            user: key.user.clone(),
            role: key.scope,
        }
    }
}

/// Tells one state of the file from another: each change makes a new file.
type Stamp = (u64, i64, i64, u64);

#[derive(Debug, Default)]
struct State {
    stamp: Option<Stamp>,
    by_id: HashMap<String, KeyRecord>,
    /// Ids by the line of the public key.
    by_line: HashMap<String, String>,
}

/// What changed in the file, by ids.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) added: Vec<String>,
    pub(super) removed: Vec<String>,
}

/// The keys of a data folder.
#[derive(Debug)]
pub(super) struct Keys {
    path: PathBuf,
    state: Mutex<State>,
    /// Held while the file is read, so that what was read last is what counts.
    reading: Mutex<()>,
    changed: watch::Sender<()>,
}

impl Keys {
    /// Reads the keys of a data folder.
    ///
    /// # Errors
    /// `invalid-config` for a file that cannot be used.
    pub(super) fn open(data_dir: &Path) -> Result<Self, Error> {
        let path = records::path(data_dir);
        let stamp = stamp_of(&path);
        let state = State::new(stamp, records::read(&path)?);
        Ok(Self {
            path,
            state: Mutex::new(state),
            reading: Mutex::default(),
            changed: watch::Sender::new(()),
        })
    }

    /// Reads the file again if it has changed. One that cannot be read any more lets nobody in: a key that was revoked
    /// might be in it. Slow: looks at the disk.
    pub(super) fn refresh(&self) -> Option<Change> {
        let _one_at_a_time = lock(&self.reading);
        let stamp = stamp_of(&self.path);
        if lock(&self.state).stamp == stamp {
            return None;
        }
        let keys = records::read(&self.path).unwrap_or_else(|error| {
            tracing::error!(%error, "no key is taken until their file can be read");
            Vec::new()
        });
        let new = State::new(stamp, keys);
        let mut state = lock(&self.state);
        let without = |these: &State, those: &State| {
            let mut ids: Vec<String> = these
                .by_id
                .keys()
                .filter(|id| !those.by_id.contains_key(*id))
                .cloned()
                .collect();
            ids.sort();
            ids
        };
        let change = Change {
            added: without(&new, &state),
            removed: without(&state, &new),
        };
        *state = new;
        drop(state);
        self.changed.send_replace(());
        Some(change)
    }

    /// Keys that have not expired.
    pub(super) fn n_usable(&self) -> usize {
        let now = now();
        lock(&self.state)
            .by_id
            .values()
            .filter(|key| !key.has_expired(now))
            .count()
    }

    /// Whose secret it is; none for one that is unknown, was revoked or has expired. The work is the same for all of
    /// these.
    pub(super) fn by_secret(&self, text: &str) -> Option<Credential> {
        let state = lock(&self.state);
        let digest = api_key::digest(text);
        let key = api_key::id_of(text).and_then(|id| state.by_id.get(id));
        let kept = key.and_then(|key| api_key::unhex(key.digest.as_deref()?));
        // A digest that no text has stands for a key that is not there.
        let is_same: bool = digest.ct_eq(&kept.unwrap_or_default()).into();
        let is_alive = key.is_some_and(|key| !key.has_expired(now()));
        (is_same & is_alive & kept.is_some())
            .then(|| key.map(Credential::from))
            .flatten()
    }

    /// Whose public key it is, if it is the user's.
    pub(super) fn by_public_key(&self, key: &PublicKey, user: &str) -> Option<Credential> {
        let line = key.line().ok()?;
        let state = lock(&self.state);
        let key = state.by_id.get(state.by_line.get(&line)?)?;
        (key.user == user && !key.has_expired(now())).then(|| key.into())
    }

    /// Waits until a key is no longer good.
    pub(super) async fn gone(&self, id: &str) {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let expires = match lock(&self.state).by_id.get(id) {
                Some(key) if !key.has_expired(now()) => key.expires,
                _ => return,
            };
            // The clock of the system may be set: it is looked at every hour.
            let left_s = expires
                .map_or(u64::MAX, |expires| expires.saturating_sub(now()))
                .clamp(1, 3600);
            tokio::select! {
                _ = changed.changed() => {}
                () = tokio::time::sleep(std::time::Duration::from_secs(left_s)) => {}
            }
        }
    }
}

impl State {
    fn new(stamp: Option<Stamp>, keys: Vec<KeyRecord>) -> Self {
        let by_line = keys
            .iter()
            .filter_map(|key| Some((key.public_key.clone()?, key.id.clone())))
            .collect();
        let by_id = keys.into_iter().map(|key| (key.id.clone(), key)).collect();
        Self {
            stamp,
            by_id,
            by_line,
        }
    }
}

fn stamp_of(path: &Path) -> Option<Stamp> {
    let about = fs::metadata(path).ok()?;
    Some((about.ino(), about.mtime(), about.mtime_nsec(), about.len()))
}

/// Reads the file again, off the threads of the connections.
pub(super) async fn refreshed(keys: &Arc<Keys>) -> Option<Change> {
    let keys = keys.clone();
    tokio::task::spawn_blocking(move || keys.refresh())
        .await
        .ok()
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::super::records::tests::new;
    use super::super::records::{NewKey, add_key, revoke_key};
    use super::*;

    #[test]
    fn changes_are_seen_and_a_damaged_file_lets_nobody_in() {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::open(folder.path()).unwrap();
        assert_eq!((keys.n_usable(), keys.refresh()), (0, None));
        let (key, text) = add_key(folder.path(), new("alice", Role::Read)).unwrap();
        let text = text.unwrap();
        assert_eq!(keys.by_secret(&text), None);
        assert_eq!(
            keys.refresh(),
            Some(Change {
                added: vec![key.id.clone()],
                removed: vec![]
            })
        );
        let credential = keys.by_secret(&text).unwrap();
        assert_eq!(
            (credential.user.as_str(), credential.role),
            ("alice", Role::Read)
        );
        assert_eq!(keys.refresh(), None);
        fs::write(records::path(folder.path()), "{").unwrap();
        assert_eq!(
            keys.refresh(),
            Some(Change {
                added: vec![],
                removed: vec![key.id]
            })
        );
        assert_eq!(keys.by_secret(&text), None);
    }

    #[test]
    fn a_key_of_the_same_id_with_another_secret_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let (key, _) = add_key(folder.path(), new("alice", Role::User)).unwrap();
        let line =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH";
        let public = NewKey {
            public_key: Some(line.to_owned()),
            ..new("bob", Role::User)
        };
        let (signing, _) = add_key(folder.path(), public).unwrap();
        let keys = Keys::open(folder.path()).unwrap();
        // Of the form of a key, with the id of another.
        let made = api_key::make().unwrap();
        let (_, rest) = made.text.split_at(16);
        for id in [&key.id, &signing.id] {
            assert_eq!(keys.by_secret(&format!("pie_{id}{rest}")), None);
        }
        let parsed = PublicKey::parse(line).unwrap();
        assert_eq!(keys.by_public_key(&parsed, "bob").unwrap().id, signing.id);
        assert_eq!(keys.by_public_key(&parsed, "alice"), None);
    }

    #[test]
    fn whoever_came_in_by_a_key_learns_of_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let (key, _) = add_key(folder.path(), new("alice", Role::User)).unwrap();
        let (brief, text) = add_key(
            folder.path(),
            NewKey {
                expires_s: Some(1),
                ..new("alice", Role::User)
            },
        )
        .unwrap();
        let keys = Arc::new(Keys::open(folder.path()).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let waiting = {
                let (keys, id) = (keys.clone(), key.id.clone());
                tokio::spawn(async move { keys.gone(&id).await })
            };
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished());
            revoke_key(folder.path(), &key.id).unwrap();
            refreshed(&keys).await.unwrap();
            waiting.await.unwrap();
            keys.gone(&brief.id).await;
            assert_eq!(keys.by_secret(&text.unwrap()), None);
        });
    }
}
