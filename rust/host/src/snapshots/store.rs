//! The snapshots of a model on disk.
//!
//! Every call reads or writes the disk and blocks. Calls on one name come one after the other; those on others at once.
//! The lock of the index is held while files are renamed and removed, never while one is written or read, the first
//! reading of the folder included.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use pie_core::{ContextImage, ErrorCode};

pub(crate) use super::binding::ModelIdentity;
use super::binding::{Binding, hex};
use super::config::SnapshotConfig;
use super::content::{Encoded, encode, places};
use super::folder::{FileName, Folder, NameKey, name_key};
use super::format::{HEADER_BYTES, Index, RunPlace, assemble};
use super::index::{About, Contents, Entry, Place, Usage};
use super::loading::{GONE, Kept, Loading, entry_of, unsound};
use super::unusable;
use crate::Error;
use crate::errors::stopped;
use crate::naming::folder_name;
use crate::sync::lock;

/// Names share so many locks.
const N_LOCKS: usize = 64;
/// Files whose runs one snapshot shares; one that would share those of more keeps them all itself.
const MAX_SHARES: usize = 32;

/// The snapshots of a model on disk.
#[derive(Debug)]
pub(crate) struct SnapshotStore {
    folder: PathBuf,
    config: SnapshotConfig,
    model: ModelIdentity,
    state: Mutex<State>,
    /// Held by whoever reads the index from the folder.
    opening: Mutex<()>,
    is_closed: AtomicBool,
    names: [Mutex<()>; N_LOCKS],
}

#[derive(Debug)]
enum State {
    /// Nobody has asked for one so far.
    Unopened,
    Open(Box<Opened>),
    /// The engine stops.
    Closed,
}

#[derive(Debug)]
struct Opened {
    folder: Arc<Folder>,
    binding: Binding,
    contents: Contents,
    /// Files that were replaced and could not be removed.
    stale: BTreeSet<u64>,
}

/// One name of a user, on which nobody else works meanwhile.
pub(crate) struct Named<'a> {
    store: &'a SnapshotStore,
    owner: &'a str,
    name: &'a str,
    key: NameKey,
    _lock: MutexGuard<'a, ()>,
}

/// A snapshot in a list.
pub(crate) struct Listed {
    pub(crate) owner: Arc<str>,
    pub(crate) name: String,
    pub(crate) n_tokens: u32,
}

/// What is to be written, for which there is room.
struct Draft {
    file: FileName,
    index: Index,
    index_bytes: Vec<u8>,
    /// The files whose runs it shares, and their numbers.
    sources: Vec<FileName>,
    shares: Vec<u64>,
    /// What it takes of the user's room, which is reserved.
    takes: Usage,
    folder: Arc<Folder>,
}

impl SnapshotStore {
    /// Those of a model, in a folder of its own within `above`. No snapshot is read before somebody asks.
    pub(crate) fn new(above: &Path, config: SnapshotConfig, model: ModelIdentity) -> Self {
        Self {
            folder: above.join(folder_name(&model.name)),
            config,
            model,
            state: Mutex::new(State::Unopened),
            opening: Mutex::default(),
            is_closed: AtomicBool::new(false),
            names: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// Removes what an engine was writing when it ended. Where the folder cannot be used, or another engine uses it,
    /// nothing is done: whoever asks for a snapshot is told.
    pub(crate) fn clean_up(&self) {
        if self.folder.is_dir()
            && let Ok(folder) = Folder::open(&self.folder, self.config.free_bytes)
        {
            drop(folder.files());
        }
    }

    /// Another engine may use the folder from now on, once what runs is done.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        *lock(&self.state) = State::Closed;
    }

    /// A name of a user's, once nobody else works on it.
    pub(crate) fn named<'a>(&'a self, owner: &'a str, name: &'a str) -> Named<'a> {
        let key = name_key(owner, name);
        let place = (key % N_LOCKS as NameKey) as usize;
        Named {
            store: self,
            owner,
            name,
            key,
            _lock: lock(&self.names[place]),
        }
    }

    /// The snapshots of a user, or of all, by user and name.
    ///
    /// # Errors
    /// `disk-error` and its like, `engine-stopped`.
    pub(crate) fn list(&self, owner: Option<&str>) -> Result<Vec<Listed>, Error> {
        let mut listed: Vec<Listed> = self.opened(|opened| {
            let all = opened.contents.snapshots();
            let wanted = all.filter(|about| owner.is_none_or(|owner| *owner == *about.owner));
            let listed = wanted.map(|about| Listed {
                owner: about.owner.clone(),
                name: about.name.clone(),
                n_tokens: about.n_tokens,
            });
            Ok(listed.collect())
        })?;
        listed.sort_by(|one, other| (&one.owner, &one.name).cmp(&(&other.owner, &other.name)));
        Ok(listed)
    }

    /// How many a user has, or all have, as far as is known without waiting for the disk.
    pub(crate) fn n_known(&self, owner: Option<&str>) -> u64 {
        let Ok(state) = self.state.try_lock() else {
            return 0;
        };
        match (&*state, owner) {
            (State::Open(opened), Some(owner)) => opened.contents.usage(owner).n_snapshots,
            (State::Open(opened), None) => opened.contents.n_snapshots() as u64,
            _ => 0,
        }
    }

    /// Works on the index, which is read from the folder when somebody asks for the first time.
    fn opened<T>(&self, work: impl FnOnce(&mut Opened) -> Result<T, Error>) -> Result<T, Error> {
        self.open_once()?;
        let mut state = lock(&self.state);
        match &mut *state {
            State::Open(opened) => work(opened.as_mut()),
            State::Unopened | State::Closed => Err(stopped()),
        }
    }

    /// Reads the index where nobody has asked before. That may take as long as reading all weights does: whoever asks
    /// meanwhile waits, and whoever closes the store does not.
    fn open_once(&self) -> Result<(), Error> {
        if !self.is_unopened() {
            return Ok(());
        }
        let _opening = lock(&self.opening);
        if !self.is_unopened() {
            return Ok(());
        }
        let opened = Box::new(self.open()?);
        let mut state = lock(&self.state);
        if matches!(*state, State::Unopened) {
            *state = State::Open(opened);
        }
        Ok(())
    }

    fn is_unopened(&self) -> bool {
        matches!(*lock(&self.state), State::Unopened)
    }

    fn open(&self) -> Result<Opened, Error> {
        let folder = Folder::open(&self.folder, self.config.free_bytes)?;
        let binding = Binding::of(&self.model, |name| folder.beside(name), &self.is_closed)?;
        let entries: Result<Vec<Entry>, Error> = folder
            .files()?
            .into_iter()
            .map(|file| entry_of(&folder, file, &binding))
            .collect();
        let (contents, unnamed) = Contents::of(entries?);
        let mut opened = Opened {
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
}

impl Opened {
    /// Removes a file that is no snapshot of a name where nobody needs it, and all that only it needed. One whose runs
    /// others share is kept for them.
    fn tidy(&mut self, number: u64) -> Result<(), Error> {
        let mut numbers = vec![number];
        while let Some(number) = numbers.pop() {
            let Some(file) = self.contents.get(number).map(|entry| entry.file) else {
                continue;
            };
            if self.contents.is_unneeded(number) {
                self.folder.remove(file)?;
                numbers.extend(self.contents.forget(number));
            } else if !file.is_retired {
                let retired = self.folder.retire(file)?;
                numbers.extend(self.contents.note_retired(number, retired));
            }
        }
        Ok(())
    }

    /// The same, where what was asked for is done already: what cannot be removed stays counted, and the next engine
    /// that uses the folder removes it.
    fn try_to_tidy(&mut self, number: u64) {
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
    fn tidy_replaced(&mut self, key: NameKey) -> Result<(), Error> {
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

    /// What was to be written is not: its room is free again, and it shares nothing.
    fn give_up(&mut self, owner: &str, draft: &Draft) {
        self.contents.unreserve(owner, draft.takes);
        for number in self.contents.unshare(&draft.shares) {
            self.try_to_tidy(number);
        }
    }

    /// The runs of a context that are there already and may be shared, from the first on.
    fn shared(&self, encoded: &Encoded) -> (Vec<RunPlace>, Vec<u64>) {
        let runs = encoded.runs.iter();
        let known = runs.map_while(|run| {
            let Place {
                file,
                offset,
                n_bytes,
            } = self.contents.run(&run.key)?;
            let key = hex(&run.key);
            Some(RunPlace {
                file,
                offset,
                n_bytes,
                key,
            })
        });
        let known: Vec<RunPlace> = known.collect();
        let numbers: BTreeSet<u64> = known.iter().map(|place| place.file).collect();
        if numbers.len() > MAX_SHARES {
            return (Vec::new(), Vec::new());
        }
        (known, numbers.into_iter().collect())
    }

    /// Refuses what would be too much, of the user or in all. `freed` are the bytes of the file that goes for it.
    fn check_room(
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

impl Named<'_> {
    /// Keeps a context, in place of what had the name. It is on the disk for good when this returns.
    ///
    /// # Errors
    /// `limit-snapshots`, `disk-error` and its like, `engine-stopped`; what had the name is as it was then.
    pub(crate) fn save(&self, image: &ContextImage, turns: &[u8]) -> Result<(), Error> {
        let first = |opened: &mut Opened| Ok(opened.binding.first_key(self.owner));
        let encoded = encode(image, &self.store.opened(first)?).map_err(Error::internal)?;
        let draft = self.sound_draft(&encoded, turns.len())?;
        let own = encoded.runs[draft.n_shared()..].iter();
        let own = own.map(|run| &run.bytes[..]).collect::<Vec<_>>().concat();
        let bytes = assemble(&[&draft.index_bytes, &encoded.state, turns, &encoded.tail, &own]);
        debug_assert_eq!(bytes.len() as u64, draft.takes.n_bytes);
        let written = draft.folder.write(draft.file, &bytes);
        self.store.opened(|opened| {
            if let Err(error) = written {
                opened.give_up(self.owner, &draft);
                return Err(error);
            }
            opened.contents.unreserve(self.owner, draft.takes);
            let entry = self.entry(&draft, &encoded);
            if let Some(older) = opened.contents.add(entry) {
                opened.try_to_tidy(older);
            }
            Ok(())
        })
    }

    /// Says what is to be written. The runs that it shares were read and are as they were: what was damaged since
    /// would be lost to this snapshot too.
    fn sound_draft(&self, encoded: &Encoded, n_turns_bytes: usize) -> Result<Draft, Error> {
        let store = self.store;
        let draft = store.opened(|opened| self.draft(opened, encoded, n_turns_bytes))?;
        let runs = encoded.runs.iter().map(|run| &run.bytes[..]);
        let shared = draft.shared_runs().iter().zip(runs);
        let unsound = unsound(&draft.folder, &draft.sources, shared);
        if unsound.is_empty() {
            return Ok(draft);
        }
        tracing::error!(files = ?unsound, "snapshots have damaged tokens: they are written anew, and not shared");
        store.opened(|opened| {
            opened.give_up(self.owner, &draft);
            for number in unsound {
                opened.contents.share_no_more(number);
            }
            self.draft(opened, encoded, n_turns_bytes)
        })
    }

    /// Says what is to be written, and has what it shares stay.
    fn draft(
        &self,
        opened: &mut Opened,
        encoded: &Encoded,
        n_turns_bytes: usize,
    ) -> Result<Draft, Error> {
        let (mut runs, shares) = opened.shared(encoded);
        let number = opened.contents.next_number();
        let own = places(&encoded.runs[runs.len()..], number);
        let own_bytes: u64 = own.iter().map(|place| place.n_bytes).sum();
        runs.extend(own);
        let index = self.index(&opened.binding, encoded.n_tokens, runs);
        let index_bytes = serde_json::to_vec(&index).map_err(Error::internal)?;
        let others = index_bytes.len() + encoded.state.len() + n_turns_bytes + encoded.tail.len();
        let n_bytes = (HEADER_BYTES + others) as u64 + own_bytes;
        opened.contents.share(&shares);
        let older = opened.contents.named(self.key);
        let freed = older
            .filter(|older| !opened.contents.is_shared(older.file.number))
            .map_or(0, |older| older.n_bytes);
        let takes = Usage {
            n_snapshots: u64::from(older.is_none()),
            n_bytes,
        };
        if let Err(error) = opened.check_room(&self.store.config, self.owner, takes, freed) {
            // They were needed before, so they are still.
            opened.contents.unshare(&shares);
            return Err(error);
        }
        opened.contents.reserve(self.owner, takes);
        let contents = &opened.contents;
        let sources = shares.iter().filter_map(|number| contents.get(*number));
        Ok(Draft {
            file: FileName {
                number,
                key: self.key,
                is_retired: false,
            },
            index,
            index_bytes,
            sources: sources.map(|entry| entry.file).collect(),
            shares,
            takes,
            folder: opened.folder.clone(),
        })
    }

    /// What is said of the snapshot.
    fn index(&self, binding: &Binding, n_tokens: u32, runs: Vec<RunPlace>) -> Index {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Index {
            owner: self.owner.to_owned(),
            name: self.name.to_owned(),
            model: self.store.model.name.clone(),
            model_digest: binding.model.clone(),
            tokenizer_digest: binding.tokenizer.clone(),
            engine: env!("CARGO_PKG_VERSION").to_owned(),
            saved_unix_s: now.map_or(0, |now| now.as_secs()),
            n_tokens,
            runs,
        }
    }

    /// The entry of what was written.
    fn entry(&self, draft: &Draft, encoded: &Encoded) -> Entry {
        let own = draft.own_runs();
        let keys = encoded.runs[draft.n_shared()..].iter();
        Entry {
            file: draft.file,
            n_bytes: draft.takes.n_bytes,
            about: Some(About {
                owner: self.owner.into(),
                name: self.name.to_owned(),
                n_tokens: encoded.n_tokens,
            }),
            refusal: None,
            own: keys.map(|run| run.key).zip(own.iter().map(Place::of)).collect(),
            shares: draft.shares.clone(),
            n_sharers: 0,
        }
    }

    /// Reads the snapshot; none where there is none of that name. `charge` is asked for its bytes before they are read.
    ///
    /// # Errors
    /// `snapshot-unusable` where its file is damaged, or of another model or version; `disk-error` and its like,
    /// `engine-stopped`, and those of `charge`.
    pub(crate) fn load<C>(
        &self,
        charge: impl FnOnce(u64) -> Result<C, Error>,
    ) -> Result<Option<(Kept, C)>, Error> {
        let found = self.store.opened(|opened| {
            let Some(entry) = opened.contents.named(self.key) else {
                return Ok(None);
            };
            let name = entry.file.text();
            if let Some(refusal) = &entry.refusal {
                return Err(unusable(&name, refusal));
            }
            let mut files = vec![entry.file];
            let shared = entry.shares.iter();
            let shared = shared.map(|number| opened.contents.get(*number).map(|it| it.file));
            for file in shared {
                files.push(file.ok_or_else(|| unusable(&name, GONE))?);
            }
            let first = opened.binding.first_key(self.owner);
            Ok(Some((opened.folder.clone(), files, first)))
        })?;
        let Some((folder, files, first)) = found else {
            return Ok(None);
        };
        let loading = Loading::of(&folder, &files)?;
        loading.load(&first, charge).map(Some)
    }

    /// Removes the snapshot, for good when this returns. False: there is none of that name.
    ///
    /// # Errors
    /// `disk-error` and its like, `engine-stopped`.
    pub(crate) fn delete(&self) -> Result<bool, Error> {
        match self.remove()? {
            Some(folder) => folder.sync().map(|()| true),
            None => Ok(false),
        }
    }

    /// Removes the snapshot, which the caller has read. Where the disk does not say that it stays so, which the log
    /// tells, the caller has it all the same. False: there is none of that name.
    ///
    /// # Errors
    /// `disk-error` and its like, `engine-stopped`; the snapshot is there still.
    pub(crate) fn delete_taken(&self) -> Result<bool, Error> {
        let folder = self.remove()?;
        Ok(folder.is_some_and(|folder| {
            drop(folder.sync());
            true
        }))
    }

    /// Removes the snapshot, and returns the folder in which that has to be made durable; none where there is none.
    fn remove(&self) -> Result<Option<Arc<Folder>>, Error> {
        self.store.opened(|opened| {
            let Some(entry) = opened.contents.named(self.key) else {
                return Ok(None);
            };
            let file = entry.file;
            opened.tidy_replaced(self.key)?;
            let unneeded = if opened.contents.is_shared(file.number) {
                let retired = opened.folder.retire(file)?;
                opened.contents.unname(self.key);
                opened.contents.note_retired(file.number, retired)
            } else {
                opened.folder.remove(file)?;
                opened.contents.unname(self.key);
                opened.contents.forget(file.number)
            };
            for number in unneeded {
                opened.try_to_tidy(number);
            }
            Ok(Some(opened.folder.clone()))
        })
    }
}

impl Draft {
    /// Runs that it shares; they come before its own.
    fn n_shared(&self) -> usize {
        let number = self.file.number;
        let runs = &self.index.runs;
        runs.partition_point(|place| place.file != number)
    }

    /// Where the runs lie that it shares.
    fn shared_runs(&self) -> &[RunPlace] {
        &self.index.runs[..self.n_shared()]
    }

    /// Where the runs lie that it holds itself.
    fn own_runs(&self) -> &[RunPlace] {
        &self.index.runs[self.n_shared()..]
    }
}
