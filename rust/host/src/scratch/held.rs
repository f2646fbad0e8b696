//! What one process has open, and why it was last refused something.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pie_core::ErrorCode;
use wasmtime_wasi::FsPerms;
use wasmtime_wasi::filesystem::Dir;

use super::config::SCRATCH;
use super::folder::{Folder, OpenFile};
use super::folders::{Folders, Owner, lent};
use crate::Error;
use crate::budget::{Account, Charge, Purpose};
use crate::sync::lock;

/// The files of one process. What it has open is closed when this is dropped.
pub(crate) struct HeldFiles {
    folders: Arc<Folders>,
    owner: Owner,
    account: Account,
    /// None until the program asks for it.
    scratch: Option<Arc<Folder>>,
    /// By the place in the table of the handle that it is of.
    held: HashMap<u32, Held>,
    n_open: Arc<AtomicUsize>,
    refusals: Refusals,
}

/// What is held for a handle, until it is dropped.
pub(crate) struct Held {
    _place: Place,
    /// Where it is a file of `/scratch`.
    pub(crate) file: Option<Arc<OpenFile>>,
    _charge: Option<Charge>,
}

impl HeldFiles {
    /// Those of a process that begins.
    pub(crate) fn new(folders: Arc<Folders>, owner: Owner, account: Account) -> Self {
        Self {
            folders,
            owner,
            account,
            scratch: None,
            held: HashMap::new(),
            n_open: Arc::default(),
            refusals: Refusals::default(),
        }
    }

    /// How to find the folders of the process, off the threads that run programs.
    pub(crate) fn finding(&self) -> impl FnOnce() -> Found + Send + 'static + use<> {
        let (folders, owner) = (self.folders.clone(), self.owner.clone());
        move || Found::new(&folders, &owner)
    }

    /// Keeps what was found; gives each folder with the path at which the program finds it.
    pub(crate) fn keep(&mut self, found: Found) -> io::Result<Vec<(Dir, String)>> {
        let mut folders = found.mounts?;
        match found.scratch {
            Ok(folder) => {
                folders.push((lent(&folder.dir, FsPerms::ReadWrite)?, SCRATCH.to_owned()));
                self.scratch = Some(folder);
            }
            Err(error) => self.refusals.note(error),
        }
        Ok(folders)
    }

    /// The folder that the process may change.
    pub(crate) fn scratch(&self) -> Option<Arc<Folder>> {
        self.scratch.clone()
    }

    /// A place for something that the process opens.
    ///
    /// # Errors
    /// `limit-resources` where it has as much open as it may, or all processes together.
    pub(crate) fn place(&self) -> Result<Place, Error> {
        Ok(Place {
            _own: Counted::take(
                &self.n_open,
                self.folders.config.open_files,
                "runtime.fs_open_files",
            )?,
            _of_all: Counted::take(
                &self.folders.n_open,
                self.folders.max_open,
                "a quarter of what the system lets the engine open (ulimit -n), for all programs,",
            )?,
        })
    }

    /// Charges the user of the process with `n_bytes` that the engine holds for a stream.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(crate) fn charge(&self, n_bytes: u64) -> Result<Charge, Error> {
        self.account.charge(Purpose::Queue, n_bytes)
    }

    /// Holds these for the handle at a place of the table.
    pub(crate) fn hold(
        &mut self,
        rep: u32,
        place: Place,
        file: Option<Arc<OpenFile>>,
        charge: Option<Charge>,
    ) {
        let held = Held {
            _place: place,
            file,
            _charge: charge,
        };
        self.held.insert(rep, held);
    }

    /// What is held for a handle.
    pub(crate) fn get(&self, rep: u32) -> Option<&Held> {
        self.held.get(&rep)
    }

    /// The program has dropped the handle.
    pub(crate) fn release(&mut self, rep: u32) {
        self.held.remove(&rep);
    }

    /// Why the process was refused things.
    pub(crate) const fn refusals(&self) -> &Refusals {
        &self.refusals
    }
}

/// The folders of a process, as far as there are any.
pub(crate) struct Found {
    scratch: Result<Arc<Folder>, Error>,
    mounts: io::Result<Vec<(Dir, String)>>,
}

impl Found {
    fn new(folders: &Folders, owner: &Owner) -> Self {
        let mounts = folders.mounts().iter();
        Self {
            scratch: folders.scratch(owner),
            mounts: mounts
                .map(|mount| Ok((lent(&mount.dir, FsPerms::ReadOnly)?, mount.path.clone())))
                .collect(),
        }
    }
}

/// A place among those that may be open, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _own: Counted,
    _of_all: Counted,
}

/// One of those that are counted.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn take(counted: &Arc<AtomicUsize>, most: usize, limit: &str) -> Result<Self, Error> {
        let before = counted.fetch_add(1, Ordering::Relaxed);
        let taken = Self(counted.clone());
        if before < most {
            return Ok(taken);
        }
        let message = format!(
            "{before} files are open, of at most {limit} = {most}; close those that are done"
        );
        Err(Error::new(ErrorCode::LimitResources, message))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why the engine last refused a process something: the system interface has a number for it, and no words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(Arc<Mutex<Option<Error>>>);

impl Refusals {
    /// The process is refused something.
    pub(crate) fn note(&self, error: Error) {
        *lock(&self.0) = Some(error);
    }

    /// Something failed, and not by the engine.
    pub(crate) fn forget(&self) {
        *lock(&self.0) = None;
    }

    /// The last one.
    pub(crate) fn last(&self) -> Option<Error> {
        lock(&self.0).clone()
    }
}
