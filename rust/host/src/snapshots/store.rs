//! The snapshots of a model on disk.
//!
//! Every call reads or writes the disk and blocks. Calls on one name come one after the other; those on others at once.
//! The lock of the index is held while files are renamed and removed, never while one is written or read, the first
//! reading of the folder included.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use pie_core::ContextImage;

pub(crate) use super::binding::ModelIdentity;
use super::binding::{Binding, hex};
use super::cleanup::{OpenFolder, remove_leftovers};
use super::config::{PageKeeping, SnapshotConfig};
use super::content::{Encoded, encode, places};
use super::folder::{FileName, Folder, NameKey, PagesName, name_key};
use super::format::{HEADER_BYTES, Index, RunPlace, assemble};
use super::index::{About, Contents, Entry, RunExtent, Usage};
use super::loading::{GONE, Loading, SavedContext, unsound};
use super::pages::{KeptRun, PageFile, PageForm, PageWriter};
use super::{disk_error, unusable};
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
    Open(Box<OpenFolder>),
    /// The engine stops.
    Closed,
}

/// One name of a user, on which nobody else works meanwhile.
pub(crate) struct Named<'a> {
    store: &'a SnapshotStore,
    owner: &'a str,
    name: &'a str,
    key: NameKey,
    /// Of the context that is to be saved: see [`Named::with_adapters`].
    adapters: BTreeMap<String, String>,
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

    /// Whether keys and values are kept beside tokens.
    pub(crate) const fn page_keeping(&self) -> PageKeeping {
        self.config.pages
    }

    /// Removes what is of no use by the names of the files that an engine left. What else is of no use is known once
    /// the index is read, for the first who asks. Where the folder cannot be used, whoever asks for a snapshot is told.
    pub(crate) fn clean_up(&self) {
        remove_leftovers(&self.folder, self.config.free_bytes);
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
            adapters: BTreeMap::new(),
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
    fn opened<T>(
        &self,
        work: impl FnOnce(&mut OpenFolder) -> Result<T, Error>,
    ) -> Result<T, Error> {
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
        let opened = OpenFolder::open(
            &self.folder,
            self.config.free_bytes,
            &self.model,
            &self.is_closed,
        )?;
        let mut state = lock(&self.state);
        if matches!(*state, State::Unopened) {
            *state = State::Open(Box::new(opened));
        }
        Ok(())
    }

    fn is_unopened(&self) -> bool {
        matches!(*lock(&self.state), State::Unopened)
    }
}

impl Named<'_> {
    /// Says under which names the user has the adapters of the context that is to be saved: `adapters` has the names by
    /// what is told of the tokens. They are for people alone.
    pub(crate) fn with_adapters(mut self, adapters: BTreeMap<String, String>) -> Self {
        self.adapters = adapters;
        self
    }

    /// Keeps a context, in place of what had the name. It is on the disk for good when this returns. Returns its runs.
    ///
    /// # Errors
    /// `limit-snapshots`, `disk-error` and its like, `engine-stopped`; what had the name is as it was then.
    pub(crate) fn save(&self, image: &ContextImage, turns: &[u8]) -> Result<Vec<KeptRun>, Error> {
        let first = |opened: &mut OpenFolder| Ok(opened.binding.first_key(self.owner));
        let encoded = encode(image, &self.store.opened(first)?).map_err(Error::internal)?;
        let draft = self.sound_draft(&encoded, turns.len())?;
        let own = encoded.runs[draft.n_shared()..].iter();
        let own = own.map(|run| &run.bytes[..]).collect::<Vec<_>>().concat();
        let bytes = assemble(&[
            &draft.index_bytes,
            &encoded.state,
            turns,
            &encoded.tail,
            &own,
        ]);
        debug_assert_eq!(bytes.len() as u64, draft.takes.n_bytes);
        let written = draft.folder.write(draft.file, &bytes);
        self.store.opened(|opened| {
            if let Err(error) = written {
                opened.give_up(self.owner, draft.takes, &draft.shares);
                return Err(error);
            }
            opened.contents.unreserve(self.owner, draft.takes);
            let entry = self.entry(&draft, &encoded);
            if let Some(older) = opened.contents.add(entry) {
                opened.try_to_tidy(older);
            }
            Ok(())
        })?;
        let runs = encoded.runs.iter().zip(&draft.index.runs);
        Ok(runs
            .map(|(run, place)| KeptRun {
                file: place.file,
                key: run.key,
            })
            .collect())
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
            opened.give_up(self.owner, draft.takes, &draft.shares);
            for number in unsound {
                opened.contents.share_no_more(number);
            }
            self.draft(opened, encoded, n_turns_bytes)
        })
    }

    /// Says what is to be written, and has what it shares stay.
    fn draft(
        &self,
        opened: &mut OpenFolder,
        encoded: &Encoded,
        n_turns_bytes: usize,
    ) -> Result<Draft, Error> {
        let (mut runs, shares) = sharable(&opened.contents, encoded);
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
        let older = older.map(|older| older.file.number);
        let takes = Usage {
            n_snapshots: u64::from(older.is_none()),
            n_bytes,
        };
        if let Err(error) = opened.make_room(&self.store.config, self.owner, takes, older) {
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
            adapters: self.adapters.clone(),
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
            pages: BTreeMap::new(),
            about: Some(About {
                owner: self.owner.into(),
                name: self.name.to_owned(),
                n_tokens: encoded.n_tokens,
            }),
            refusal: None,
            own: keys
                .map(|run| run.key)
                .zip(own.iter().map(RunExtent::of))
                .collect(),
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
    ) -> Result<Option<(SavedContext, C)>, Error> {
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
                opened.remove(file)?;
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

impl SnapshotStore {
    /// The first of these runs of which there are pages, as they are: they stay until [`Self::release`] is told the
    /// numbers that this returns. None where there is none.
    pub(crate) fn hold(&self, runs: &[KeptRun]) -> Option<(usize, Vec<u64>)> {
        let held = self.opened(|opened| {
            let contents = &mut opened.contents;
            let kept = runs.iter();
            let kept = kept.take_while(|run| contents.has_pages(PagesName::of(run.file, &run.key)));
            let (mut n_runs, mut numbers) = (0, BTreeSet::new());
            for run in kept {
                n_runs += 1;
                numbers.insert(run.file);
            }
            let numbers: Vec<u64> = numbers.into_iter().collect();
            contents.share(&numbers);
            Ok((n_runs, numbers))
        });
        held.ok().filter(|(n_runs, _)| *n_runs > 0)
    }

    /// The pages of runs in these files are wanted no more by somebody who held them.
    pub(crate) fn release(&self, numbers: &[u64]) {
        let released = self.opened(|opened| {
            for number in opened.contents.unshare(numbers) {
                opened.try_to_tidy(number);
            }
            Ok(())
        });
        // Where the engine stops, the next one removes what is of no use.
        drop(released);
    }

    /// The pages of a run, where there are some of that form.
    pub(crate) fn pages_of(&self, run: &KeptRun, form: &PageForm) -> Option<PageFile> {
        let name = PagesName::of(run.file, &run.key);
        let folder = self.opened(|opened| {
            let is_there = opened.contents.has_pages(name);
            Ok(is_there.then(|| opened.folder.clone()))
        });
        let file = folder.ok().flatten()?.read_pages(name);
        let opened = file.and_then(|file| PageFile::open(file, form, &run.key));
        match opened {
            Ok(pages) => pages,
            Err(error) => {
                tracing::warn!(%error, file = %name.text(), "the pages of a snapshot cannot be read: they are computed");
                None
            }
        }
    }

    /// Keeps the pages of a run of a user, which `fill` writes unless it says that it cannot. False: they are not kept,
    /// since there is no room for what is kept for speed alone, or there are none.
    ///
    /// # Errors
    /// `disk-error` and its like, `engine-stopped`, and those of `fill`; the snapshot is as it was.
    pub(crate) fn write_pages(
        &self,
        owner: &str,
        run: &KeptRun,
        form: &PageForm,
        fill: impl FnOnce(&mut PageWriter<'_>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let (name, n_bytes) = (PagesName::of(run.file, &run.key), form.file_bytes());
        let takes = Usage {
            n_snapshots: 0,
            n_bytes,
        };
        let begun = self.opened(|opened| {
            let has_room = opened.check_room(&self.config, owner, takes, 0).is_ok();
            if !has_room || opened.contents.get(run.file).is_none() {
                return Ok(None);
            }
            opened.contents.reserve(owner, takes);
            opened.contents.share(&[run.file]);
            let draft = opened.contents.next_number();
            Ok(Some((opened.folder.clone(), draft)))
        })?;
        let Some((folder, draft)) = begun else {
            return Ok(false);
        };
        let written = folder.write_pages(name, draft, n_bytes, |file| {
            let mut writer = PageWriter::new(file, form);
            if !fill(&mut writer)? {
                return Ok(false);
            }
            let ended = writer.end(&run.key);
            ended.map_err(|error| disk_error("pages cannot be written", &self.folder, &error))
        });
        self.opened(|opened| {
            opened.contents.unreserve(owner, takes);
            if matches!(written, Ok(true)) {
                opened.contents.add_pages(name, n_bytes);
            }
            for number in opened.contents.unshare(&[run.file]) {
                opened.try_to_tidy(number);
            }
            Ok(())
        })?;
        written
    }

    /// The pages of a run are of no use: the next who saves it writes them anew.
    pub(crate) fn drop_pages_of(&self, run: &KeptRun) {
        let name = PagesName::of(run.file, &run.key);
        let dropped = self.opened(|opened| {
            opened.drop_pages_of_run(name);
            Ok(())
        });
        // Where the engine stops, whoever opens them next finds out again.
        drop(dropped);
    }

    /// The pages that were written are there for good.
    ///
    /// # Errors
    /// `disk-error` and its like, `engine-stopped`.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.opened(|opened| Ok(opened.folder.clone()))?.sync()
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

/// The runs of a context that are there already and may be shared, from the first on, and the numbers of their files.
fn sharable(contents: &Contents, encoded: &Encoded) -> (Vec<RunPlace>, Vec<u64>) {
    let runs = encoded.runs.iter();
    let known = runs.map_while(|run| {
        let RunExtent {
            file,
            offset,
            n_bytes,
        } = contents.run(&run.key)?;
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
