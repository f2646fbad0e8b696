//! The snapshots of a model, as whoever runs the engine sees them.

use pie_core::ErrorCode;

use super::Model;
use super::conversation::SavedConversation;
use super::listing::no_snapshot;
use crate::Error;

/// A snapshot in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Whose it is.
    pub user: String,
    /// The name under which it was saved.
    pub name: String,
    /// Its tokens.
    pub n_tokens: u32,
}

impl Model {
    /// The snapshots of a user, or of all. It blocks where they are kept on disk.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn snapshots(&self, user: Option<&str>) -> Result<Vec<SnapshotInfo>, Error> {
        let id = user.map(|user| self.user(user));
        let mut snapshots: Vec<SnapshotInfo> = self.with_engine(|engine| {
            let each = engine.each_snapshot(id);
            each.map(|(name, n_tokens, host_data)| SnapshotInfo {
                user: host_data
                    .downcast_ref::<SavedConversation>()
                    .map_or_else(String::new, |kept| kept.user.clone()),
                name: name.to_owned(),
                n_tokens,
            })
            .collect()
        });
        if let Some(keeping) = &self.keeping {
            let listed = keeping.store.list(user)?.into_iter();
            snapshots.extend(listed.map(|snapshot| SnapshotInfo {
                user: snapshot.owner.to_string(),
                name: snapshot.name,
                n_tokens: snapshot.n_tokens,
            }));
        }
        Ok(snapshots)
    }

    /// How many snapshots a user has, or all have, as far as is known at once.
    pub fn n_snapshots(&self, user: Option<&str>) -> u64 {
        let in_memory = match user {
            Some(user) => self.user_stats(user).n_snapshots,
            None => self.stats().n_snapshots,
        };
        let on_disk = self.keeping.as_ref();
        in_memory + on_disk.map_or(0, |keeping| keeping.store.n_known(user))
    }

    /// Forgets a snapshot of a user. It blocks where snapshots are kept on disk.
    ///
    /// # Errors
    /// `snapshot-missing`; those of the disk.
    pub fn delete_snapshot(&self, user: &str, name: &str) -> Result<(), Error> {
        let id = self.user(user);
        let deleted = self.with_engine(|engine| engine.delete_snapshot_of(id, name));
        let deleted = match (deleted, &self.keeping) {
            (Err(absent), Some(keeping)) if absent.code == ErrorCode::SnapshotMissing => {
                let is_there = keeping.store.named(user, name).delete()?;
                is_there.then_some(()).ok_or(absent)
            }
            (deleted, _) => deleted,
        };
        match deleted {
            Err(absent) if absent.code == ErrorCode::SnapshotMissing => {
                let there_are = self.snapshots(Some(user))?.into_iter();
                let mut names: Vec<String> = there_are.map(|snapshot| snapshot.name).collect();
                names.sort_unstable();
                names.dedup();
                Err(no_snapshot(name, &names))
            }
            deleted => deleted,
        }
    }

    /// Another engine may use the snapshots on disk from now on. It blocks.
    pub(crate) fn close_snapshots(&self) {
        if let Some(keeping) = &self.keeping {
            keeping.store.close();
        }
    }
}
