//! What the files of a folder hold, in memory: which of them is the snapshot of a name, who shares the runs of which,
//! and what each user has.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::folder::{FileName, NameKey, PagesName};
use super::format::{Digest, RunPlace};

/// A file.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) file: FileName,
    /// Bytes of the file, and of those with pages of its runs.
    pub(super) n_bytes: u64,
    /// The bytes of each file with pages of its runs.
    pub(super) pages: BTreeMap<u128, u64>,
    /// Whose it is, what it is called, and so on; none where it could not be read.
    pub(super) about: Option<About>,
    /// Why it cannot be opened.
    pub(super) refusal: Option<String>,
    /// The runs that it holds itself.
    pub(super) own: Vec<(Digest, RunExtent)>,
    /// The numbers of the files whose runs it shares, each once; none where it is retired, since nobody opens it.
    pub(super) shares: Vec<u64>,
    /// Files that share its runs, and those that are being written.
    pub(super) n_sharers: u32,
}

/// A [`RunPlace`] without its key: there may be millions of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunExtent {
    pub(super) file: u64,
    pub(super) offset: u64,
    pub(super) n_bytes: u64,
}

impl RunExtent {
    pub(super) const fn of(run: &RunPlace) -> Self {
        Self {
            file: run.file,
            offset: run.offset,
            n_bytes: run.n_bytes,
        }
    }
}

impl Entry {
    const fn is_unread(&self) -> bool {
        self.about.is_none() && !self.file.is_retired
    }
}

/// What a file says of its snapshot.
#[derive(Clone, Debug)]
pub(super) struct About {
    pub(super) owner: Arc<str>,
    pub(super) name: String,
    /// All its tokens.
    pub(super) n_tokens: u32,
}

/// What the files of a user are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) n_snapshots: u64,
    pub(super) n_bytes: u64,
}

/// All files of a folder.
#[derive(Debug, Default)]
pub(super) struct Contents {
    entries: BTreeMap<u64, Entry>,
    /// The snapshot of each name.
    named: HashMap<NameKey, u64>,
    /// Where runs lie that others may share.
    runs: HashMap<Digest, RunExtent>,
    users: HashMap<Arc<str>, Usage>,
    pub(super) n_bytes: u64,
    last_number: u64,
    /// Files that could not be read and are not retired: nobody knows whose runs they share.
    n_unread: u64,
}

impl Contents {
    /// Those of files, in any order, with how many share the runs of each. Returns also the files that are no snapshot
    /// of a name: what was replaced by another, and what was retired.
    pub(super) fn of(files: Vec<Entry>) -> (Self, Vec<u64>) {
        let mut contents = Self::default();
        for entry in files {
            contents.last_number = contents.last_number.max(entry.file.number);
            contents.put(entry);
        }
        contents.name_newest();
        let shares: Vec<u64> = contents
            .entries
            .values()
            .flat_map(|entry| entry.shares.iter().copied())
            .collect();
        for number in shares {
            if let Some(entry) = contents.entries.get_mut(&number) {
                entry.n_sharers += 1;
            }
        }
        let entries = contents.entries.iter();
        let unnamed: Vec<u64> = entries
            .filter(|(number, entry)| contents.named.get(&entry.file.key) != Some(*number))
            .map(|(number, _)| *number)
            .collect();
        (contents, unnamed)
    }

    /// Of the files of a name the newest is its snapshot.
    fn name_newest(&mut self) {
        for (number, entry) in &self.entries {
            if !entry.file.is_retired {
                self.named.insert(entry.file.key, *number);
            }
        }
        for number in self.named.values() {
            let about = self.entries.get(number).and_then(|it| it.about.as_ref());
            if let Some(about) = about {
                self.users
                    .entry(about.owner.clone())
                    .or_default()
                    .n_snapshots += 1;
            }
        }
    }

    /// Adds a file, apart from its name.
    fn put(&mut self, entry: Entry) {
        self.n_bytes += entry.n_bytes;
        self.n_unread += u64::from(entry.is_unread());
        if let Some(about) = &entry.about {
            let usage = self.users.entry(about.owner.clone()).or_default();
            usage.n_bytes += entry.n_bytes;
        }
        if entry.refusal.is_none() {
            // Those of the newest file: older ones may go for it.
            self.runs.extend(entry.own.iter().copied());
        }
        self.entries.insert(entry.file.number, entry);
    }

    /// Adds the snapshot of a name. Returns the one that it replaces.
    pub(super) fn add(&mut self, entry: Entry) -> Option<u64> {
        let (number, key) = (entry.file.number, entry.file.key);
        let owner = entry.about.as_ref().map(|about| about.owner.clone());
        self.put(entry);
        let older = self.unname(key);
        self.named.insert(key, number);
        if let Some(owner) = owner {
            self.users.entry(owner).or_default().n_snapshots += 1;
        }
        older
    }

    /// Has no file be the snapshot of that name any more. Returns which was.
    pub(super) fn unname(&mut self, key: NameKey) -> Option<u64> {
        let number = self.named.remove(&key)?;
        let about = self.entries.get(&number)?.about.as_ref();
        if let Some(about) = about
            && let Some(usage) = self.users.get_mut(&about.owner)
        {
            usage.n_snapshots = usage.n_snapshots.saturating_sub(1);
        }
        Some(number)
    }

    /// The number of the next file.
    pub(super) const fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(super) fn get(&self, number: u64) -> Option<&Entry> {
        self.entries.get(&number)
    }

    /// The snapshot of a name.
    pub(super) fn named(&self, key: NameKey) -> Option<&Entry> {
        self.entries.get(self.named.get(&key)?)
    }

    /// Where a run lies, if a file that can be read holds it.
    pub(super) fn run(&self, key: &Digest) -> Option<RunExtent> {
        self.runs.get(key).copied()
    }

    /// Counts what is being written for a user, so that what is written beside it finds less room.
    pub(super) fn reserve(&mut self, owner: &str, usage: Usage) {
        self.n_bytes += usage.n_bytes;
        let of_user = self.users.entry(owner.into()).or_default();
        of_user.n_bytes += usage.n_bytes;
        of_user.n_snapshots += usage.n_snapshots;
    }

    /// The same undone: it is there, and counted by itself, or will not be.
    pub(super) fn unreserve(&mut self, owner: &str, usage: Usage) {
        self.n_bytes = self.n_bytes.saturating_sub(usage.n_bytes);
        if let Some(of_user) = self.users.get_mut(owner) {
            of_user.n_bytes = of_user.n_bytes.saturating_sub(usage.n_bytes);
            of_user.n_snapshots = of_user.n_snapshots.saturating_sub(usage.n_snapshots);
            if *of_user == Usage::default() {
                self.users.remove(owner);
            }
        }
    }

    pub(super) fn usage(&self, owner: &str) -> Usage {
        self.users.get(owner).copied().unwrap_or_default()
    }

    /// A file with pages of a run was written. False: the file that holds the run is not there.
    pub(super) fn add_pages(&mut self, name: PagesName, n_bytes: u64) -> bool {
        self.forget_pages(name);
        let Some(entry) = self.entries.get_mut(&name.number) else {
            return false;
        };
        entry.pages.insert(name.run, n_bytes);
        entry.n_bytes += n_bytes;
        self.n_bytes += n_bytes;
        if let Some(about) = &entry.about {
            self.users.entry(about.owner.clone()).or_default().n_bytes += n_bytes;
        }
        true
    }

    /// A file with pages of a run is not there any more.
    pub(super) fn forget_pages(&mut self, name: PagesName) {
        let Some(entry) = self.entries.get_mut(&name.number) else {
            return;
        };
        let n_bytes = entry.pages.remove(&name.run).unwrap_or(0);
        entry.n_bytes = entry.n_bytes.saturating_sub(n_bytes);
        self.n_bytes = self.n_bytes.saturating_sub(n_bytes);
        if let Some(about) = &entry.about
            && let Some(usage) = self.users.get_mut(&about.owner)
        {
            usage.n_bytes = usage.n_bytes.saturating_sub(n_bytes);
        }
    }

    pub(super) fn has_pages(&self, name: PagesName) -> bool {
        let entry = self.entries.get(&name.number);
        entry.is_some_and(|entry| entry.pages.contains_key(&name.run))
    }

    /// The files with pages of the runs that a file holds.
    pub(super) fn pages_of(&self, number: u64) -> Vec<PagesName> {
        let entry = self.entries.get(&number);
        let runs = entry.into_iter().flat_map(|entry| entry.pages.keys());
        runs.map(|&run| PagesName { number, run }).collect()
    }

    /// The oldest file, of a user or of all, of whose runs there are pages.
    pub(super) fn first_with_pages(&self, owner: Option<&str>) -> Option<u64> {
        let is_owners = |entry: &Entry| {
            owner.is_none_or(|owner| entry.about.as_ref().is_some_and(|it| *it.owner == *owner))
        };
        let mut entries = self.entries.iter();
        let found = entries.find(|(_, entry)| !entry.pages.is_empty() && is_owners(entry));
        found.map(|(number, _)| *number)
    }

    /// Every snapshot that says whose it is.
    pub(super) fn snapshots(&self) -> impl Iterator<Item = &About> {
        let named = self.named.values();
        named.filter_map(|number| self.entries.get(number)?.about.as_ref())
    }

    pub(super) fn n_snapshots(&self) -> usize {
        self.named.len()
    }

    /// Others come to share the runs of these files.
    pub(super) fn share(&mut self, numbers: &[u64]) {
        for number in numbers {
            if let Some(entry) = self.entries.get_mut(number) {
                entry.n_sharers += 1;
            }
        }
    }

    /// The same undone. Returns those of them that nobody needs any more.
    pub(super) fn unshare(&mut self, numbers: &[u64]) -> Vec<u64> {
        let mut unneeded = Vec::new();
        for number in numbers {
            if let Some(entry) = self.entries.get_mut(number) {
                entry.n_sharers = entry.n_sharers.saturating_sub(1);
                if self.is_unneeded(*number) {
                    unneeded.push(*number);
                }
            }
        }
        unneeded
    }

    /// Whether a file is no snapshot of a name, and no other shares its runs.
    pub(super) fn is_unneeded(&self, number: u64) -> bool {
        let entry = self.entries.get(&number);
        let is_named = |it: &Entry| self.named.get(&it.file.key) == Some(&number);
        entry.is_some_and(|it| !is_named(it)) && !self.is_shared(number)
    }

    /// Whether others share the runs of a file, or may do so.
    pub(super) fn is_shared(&self, number: u64) -> bool {
        let Some(entry) = self.entries.get(&number) else {
            return false;
        };
        entry.n_sharers > 0 || self.n_unread > u64::from(entry.is_unread())
    }

    /// A file was renamed: it is nobody's snapshot any more. Returns those that nobody needs any more, now that it does
    /// not share their runs.
    pub(super) fn note_retired(&mut self, number: u64, file: FileName) -> Vec<u64> {
        let Some(entry) = self.entries.get_mut(&number) else {
            return Vec::new();
        };
        self.n_unread -= u64::from(entry.is_unread());
        entry.file = file;
        let shares = std::mem::take(&mut entry.shares);
        self.unshare(&shares)
    }

    /// What is saved from now on shares no run of a file.
    pub(super) fn share_no_more(&mut self, number: u64) {
        let Some(entry) = self.entries.get(&number) else {
            return;
        };
        for (key, _) in &entry.own {
            if self.runs.get(key).is_some_and(|place| place.file == number) {
                self.runs.remove(key);
            }
        }
    }

    /// A file was removed. Returns those that nobody needs any more, now that it does not share their runs.
    pub(super) fn forget(&mut self, number: u64) -> Vec<u64> {
        self.share_no_more(number);
        let Some(entry) = self.entries.remove(&number) else {
            return Vec::new();
        };
        self.n_bytes = self.n_bytes.saturating_sub(entry.n_bytes);
        self.n_unread -= u64::from(entry.is_unread());
        if let Some(about) = &entry.about
            && let Some(usage) = self.users.get_mut(&about.owner)
        {
            usage.n_bytes = usage.n_bytes.saturating_sub(entry.n_bytes);
            if *usage == Usage::default() {
                self.users.remove(&about.owner);
            }
        }
        self.unshare(&entry.shares)
    }
}
