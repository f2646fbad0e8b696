//! The snapshots of a model, as whoever runs the engine sees them.

use super::Model;
use super::conversation::SavedConversation;
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
    /// The snapshots of a user, or of all.
    pub fn snapshots(&self, user: Option<&str>) -> Vec<SnapshotInfo> {
        let user = user.map(|user| self.user(user));
        self.with_engine(|engine| {
            let each = engine.each_snapshot(user);
            each.map(|(name, n_tokens, host_data)| SnapshotInfo {
                user: host_data
                    .downcast_ref::<SavedConversation>()
                    .map_or_else(String::new, |kept| kept.user.clone()),
                name: name.to_owned(),
                n_tokens,
            })
            .collect()
        })
    }

    /// Forgets a snapshot of a user.
    ///
    /// # Errors
    /// `snapshot-missing`.
    pub fn delete_snapshot(&self, user: &str, name: &str) -> Result<(), Error> {
        let user = self.user(user);
        self.with_engine(|engine| engine.delete_snapshot_of(user, name))
    }
}
