//! The folder of snapshots while an engine uses it, with its index: removes what nobody needs any more, and makes room
//! for what is new.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pie_core::ErrorCode;

use super::binding::{Binding, ModelIdentity};
use super::config::SnapshotConfig;
use super::folder::{FileName, Folder, NameKey, PagesName};
use super::index::{Contents, Entry, Usage};
use super::loading::entry_of;
use crate::Error;

/// The folder, and what its files hold.
#[derive(Debug)]
pub(super) struct OpenFolder {
    pub(super) folder: Arc<Folder>,
    pub(super) binding: Binding,
    pub(super) contents: Contents,
    /// Files that were replaced and could not be removed.
    stale: BTreeSet<u64>,
}

/// Removes what an engine was writing when it ended, and pages whose file it had removed: the names of files tell so.
/// Where the folder cannot be used, or another engine uses it, nothing is done.
pub(super) fn remove_leftovers(path: &Path, free_bytes: u64) {
    if path.is_dir()
        && let Ok(folder) = Folder::open(path, free_bytes)
        && let Ok(files) = folder.files()
        && let Ok(pages) = folder.pages()
    {
        let numbers: BTreeSet<u64> = files.iter().map(|file| file.number).collect();
        let orphans = pages.into_iter().map(|(name, _)| name);
        let orphans = orphans.filter(|name| !numbers.contains(&name.number));
        orphans.for_each(|name| folder.remove_pages(name));
    }
}

impl OpenFolder {
    /// Reads the index of the folder, and removes what nobody needs. It gives up once `is_closed`.
    ///
    /// # Errors
    /// `invalid-config` where another engine uses it; `disk-error` and its like, `engine-stopped`.
    pub(super) fn open(
        path: &Path,
        free_bytes: u64,
        model: &ModelIdentity,
        is_closed: &AtomicBool,
    ) -> Result<Self, Error> {
        let folder = Folder::open(path, free_bytes)?;
        let binding = Binding::of(model, |name| folder.beside(name), is_closed)?;
        let entries: Result<Vec<Entry>, Error> = folder
            .files()?
            .into_iter()
            .map(|file| entry_of(&folder, file, &binding))
            .collect();
        let (mut contents, unnamed) = Contents::of(entries?);
        for (name, n_bytes) in folder.pages()? {
            if !contents.add_pages(name, n_bytes) {
                // An engine ended between the removal of the file and that of its pages.
                folder.remove_pages(name);
            }
        }
        let mut opened = Self {
            folder: Arc::new(folder),
            binding,
            contents,
            stale: BTreeSet::new(),
        };
        for number in unnamed {
            opened.try_to_tidy(number);
        }
        Ok(opened)
    }

    /// Removes a file that is no snapshot of a name where nobody needs it, and all that only it needed. One whose runs
    /// others share is kept for them.
    fn tidy(&mut self, number: u64) -> Result<(), Error> {
        let mut numbers = vec![number];
        while let Some(number) = numbers.pop() {
            let Some(file) = self.contents.get(number).map(|entry| entry.file) else {
                continue;
            };
            if self.contents.is_unneeded(number) {
                self.remove(file)?;
                numbers.extend(self.contents.forget(number));
            } else if !file.is_retired {
                let retired = self.folder.retire(file)?;
                numbers.extend(self.contents.note_retired(number, retired));
            }
        }
        Ok(())
    }

    /// Removes a file, and the pages of its runs.
    pub(super) fn remove(&mut self, file: FileName) -> Result<(), Error> {
        self.folder.remove(file)?;
        self.drop_pages(file.number);
        Ok(())
    }

    /// Removes the pages of the runs that a file holds.
    fn drop_pages(&mut self, number: u64) {
        for name in self.contents.pages_of(number) {
            self.drop_pages_of_run(name);
        }
    }

    /// Removes the pages of a run.
    pub(super) fn drop_pages_of_run(&mut self, name: PagesName) {
        self.folder.remove_pages(name);
        self.contents.forget_pages(name);
    }

    /// The same as [`Self::tidy`], where what was asked for is done already: what cannot be removed stays counted, and
    /// the next engine that uses the folder removes it.
    pub(super) fn try_to_tidy(&mut self, number: u64) {
        if let Err(error) = self.tidy(number) {
            tracing::warn!(%error, "a snapshot that nobody needs could not be removed");
            let left = self.contents.get(number);
            if left.is_some_and(|entry| !entry.file.is_retired) {
                self.stale.insert(number);
            }
        }
    }

    /// Removes what could not be removed when the snapshot of a name replaced it. Were it left where that snapshot
    /// goes, the next engine would take it for the snapshot of the name.
    pub(super) fn tidy_replaced(&mut self, key: NameKey) -> Result<(), Error> {
        let is_of_name = |number: &u64| {
            let entry = self.contents.get(*number);
            entry.is_some_and(|entry| entry.file.key == key)
        };
        let replaced: Vec<u64> = self.stale.iter().copied().filter(is_of_name).collect();
        for number in replaced {
            self.tidy(number)?;
            self.stale.remove(&number);
        }
        Ok(())
    }

    /// What was to be written is not: the room that it takes is free again, and it shares nothing.
    pub(super) fn give_up(&mut self, owner: &str, takes: Usage, shares: &[u64]) {
        self.contents.unreserve(owner, takes);
        for number in self.contents.unshare(shares) {
            self.try_to_tidy(number);
        }
    }

    /// Refuses what would be too much, after pages have given way, which are kept for speed alone: those of the oldest
    /// files first. `replaced` is the file that goes for it.
    pub(super) fn make_room(
        &mut self,
        config: &SnapshotConfig,
        owner: &str,
        takes: Usage,
        replaced: Option<u64>,
    ) -> Result<(), Error> {
        loop {
            let replaced = replaced.and_then(|number| self.contents.get(number));
            let freed = replaced
                .filter(|older| !self.contents.is_shared(older.file.number))
                .map_or(0, |older| older.n_bytes);
            let room = self.check_room(config, owner, takes, freed);
            let Err(error) = room.and_then(|()| self.folder.check_disk(takes.n_bytes)) else {
                return Ok(());
            };
            let usage = self.contents.usage(owner);
            let of_user = usage.n_bytes.saturating_sub(freed) + takes.n_bytes;
            let are_many = usage.n_snapshots + takes.n_snapshots > u64::from(config.user_snapshots);
            let whose = (of_user > config.user_bytes).then_some(owner);
            let oldest = self.contents.first_with_pages(whose);
            let Some(number) = oldest.filter(|_| !are_many) else {
                return Err(error);
            };
            self.drop_pages(number);
        }
    }

    /// Refuses what would be too much, of the user or in all. `freed` are the bytes of the file that goes for it.
    pub(super) fn check_room(
        &self,
        config: &SnapshotConfig,
        owner: &str,
        takes: Usage,
        freed: u64,
    ) -> Result<(), Error> {
        let usage = self.contents.usage(owner);
        let of_user = usage.n_bytes.saturating_sub(freed) + takes.n_bytes;
        let of_all = self.contents.n_bytes.saturating_sub(freed) + takes.n_bytes;
        let number = usage.n_snapshots + takes.n_snapshots;
        for (what, wanted, limit, setting) in [
            (
                "snapshots of the user on disk",
                number,
                u64::from(config.user_snapshots),
                "user_snapshots",
            ),
            (
                "bytes of snapshots of the user",
                of_user,
                config.user_bytes,
                "user_bytes",
            ),
            (
                "bytes of snapshots",
                of_all,
                config.total_bytes,
                "total_bytes",
            ),
        ] {
            if wanted > limit {
                return Err(Error::with_values(
                    ErrorCode::LimitSnapshots,
                    format!(
                        "there would be {wanted} {what} and at most {limit} are kept; delete some, or raise snapshots.{setting}"
                    ),
                    &[("wanted", wanted), ("limit", limit)],
                ));
            }
        }
        Ok(())
    }
}
