//! One folder that programs write to: what is in it, and who changes it.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::Arc;

use cap_primitives::fs::{Metadata, MetadataExt, read_base_dir};
use tempfile::TempDir;
use tokio::sync::{Mutex, OwnedMutexGuard};
use wasmtime_wasi::FsPerms;
use wasmtime_wasi::filesystem::Dir;

use super::config::FilesConfig;
use super::opening::new_dir;
use super::permits::UserPermit;
use crate::Error;

/// Folders within each other. Whoever counts or removes them holds one open for each.
pub(super) const MAX_DEPTH: usize = 64;

/// Why something was not done.
#[derive(Debug)]
pub(crate) enum Fault {
    /// By the system.
    Io(io::Error),
    /// By the engine.
    Refused(Error),
}

/// The result of a call on files.
pub(crate) type Outcome<T> = Result<T, Fault>;

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// Which file of the machine one is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

/// A folder that programs write to.
pub(crate) struct Folder {
    /// As programs find it. It is open once for all of them.
    pub(super) dir: Dir,
    pub(super) id: FileId,
    pub(super) quota: Quota,
    /// Whoever holds it changes the folder; all others wait, and hold no thread.
    pub(super) state: Arc<Mutex<State>>,
    /// Removed with the folder, where that ends with its process.
    temporary: Option<TempDir>,
    _permit: Option<UserPermit>,
}

/// What is kept as long as a folder is known.
#[derive(Debug, Default)]
pub(super) struct FolderGuards {
    /// Removed with the folder, where that ends with its process.
    pub(super) temporary: Option<TempDir>,
    /// To have the folder open.
    pub(super) permit: Option<UserPermit>,
}

/// What a folder may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quota {
    pub(super) bytes: u64,
    pub(super) files: u64,
    pub(super) free_bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// None: not counted yet.
    pub(super) usage: Option<Usage>,
    /// The files that somebody has open.
    pub(super) open: HashMap<FileId, Opens>,
}

impl State {
    /// Gives back what was charged. That may be more than was counted: what somebody else put into the folder is not
    /// charged, and a program may remove it.
    pub(super) fn release(&mut self, n_bytes: u64, n_files: u64) {
        if let Some(usage) = &mut self.usage {
            usage.n_bytes = usage.n_bytes.saturating_sub(n_bytes);
            usage.n_files = usage.n_files.saturating_sub(n_files);
        }
    }
}

/// What is in a folder. A file that was removed while somebody had it open counts with its bytes until it is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) n_bytes: u64,
    pub(crate) n_files: u64,
}

/// Who has a file open.
#[derive(Debug, Default)]
pub(super) struct Opens {
    pub(super) n: usize,
    /// Its last name is gone.
    pub(super) is_removed: bool,
}

impl Folder {
    /// The folder behind `dir`.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn new(dir: File, config: &FilesConfig, guards: FolderGuards) -> io::Result<Self> {
        Ok(Self {
            id: FileId::of(&Metadata::from_file(&dir)?),
            dir: new_dir(dir, FsPerms::ReadWrite),
            quota: Quota {
                bytes: config.bytes,
                files: config.files,
                free_bytes: config.free_bytes,
            },
            state: Arc::default(),
            temporary: guards.temporary,
            _permit: guards.permit,
        })
    }

    /// True where nobody but the list of folders holds it.
    pub(super) fn is_idle(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1
    }

    /// Nobody has the file open any more by one of those who had.
    fn closed(mut state: OwnedMutexGuard<State>, id: FileId, file: &File) {
        let Some(opens) = state.open.get_mut(&id) else {
            debug_assert!(false, "a file that is closed was open");
            tracing::error!(inode = id.inode, "a file was closed that nobody had open");
            return;
        };
        opens.n -= 1;
        if opens.n > 0 {
            return;
        }
        let is_removed = opens.is_removed;
        state.open.remove(&id);
        if is_removed && let Ok(metadata) = file.metadata() {
            state.release(metadata.len(), 0);
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Removing takes its time, and this may be a thread that runs programs.
        if let Some(temporary) = self.temporary.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn_blocking(move || drop(temporary));
        }
    }
}

/// A file that somebody has open, until this is dropped.
pub(crate) struct OpenFile {
    folder: Arc<Folder>,
    file: Arc<File>,
    id: FileId,
}

impl OpenFile {
    /// Of a file that was just opened, and is among those of the folder.
    pub(super) fn new(folder: Arc<Folder>, file: Arc<File>, id: FileId) -> Self {
        Self { folder, file, id }
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let (folder, file, id) = (self.folder.clone(), self.file.clone(), self.id);
        if let Ok(state) = folder.state.clone().try_lock_owned() {
            Folder::closed(state, id, &file);
        } else if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // The folder is being changed: this thread does not wait for that.
            runtime.spawn(async move {
                let state = folder.state.clone().lock_owned().await;
                Folder::closed(state, id, &file);
            });
        }
    }
}

/// Counts what is in a folder.
pub(super) fn count(dir: &File) -> io::Result<Usage> {
    let mut usage = Usage::default();
    let mut within = vec![read_base_dir(dir)?];
    while let Some(entries) = within.last_mut() {
        let Some(entry) = entries.next() else {
            within.pop();
            continue;
        };
        let entry = entry?;
        let found = match entry.metadata() {
            Ok(found) => found,
            // Somebody else has removed it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        usage.n_files += 1;
        if found.is_dir() && within.len() <= MAX_DEPTH {
            within.push(entry.read_dir()?);
        } else if found.is_file() {
            usage.n_bytes = usage.n_bytes.saturating_add(found.len());
        }
    }
    Ok(usage)
}
