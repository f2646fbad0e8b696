//! What a program has open: what stands behind a handle to a descriptor.

use std::fs::File;
use std::io;
use std::sync::Arc;

use cap_primitives::fs::Metadata;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi::{FsPerms, OpenMode};

use super::change::{Change, Opened};
use super::folder::{FileId, Folder, OpenFile, Outcome};
use super::opening::{new_dir, new_file};
use super::permits::OpenPermit;
use super::turns::FileTurns;

/// A file or a folder that a program has open. All that works on it holds it, so that it is closed when that is done.
pub(crate) struct OpenDescriptor {
    object: Descriptor,
    /// The folder that is charged for what is changed by it; none where it is only read.
    folder: Option<Arc<Folder>>,
    /// Where it is a file of that folder.
    _file: Option<OpenFile>,
    /// None for the folders that programs are given, which all of them share.
    _permit: Option<OpenPermit>,
}

impl OpenDescriptor {
    /// A folder that programs are given to read.
    pub(crate) fn read_only(dir: File) -> Self {
        Self {
            object: Descriptor::Dir(new_dir(dir, FsPerms::ReadOnly)),
            folder: None,
            _file: None,
            _permit: None,
        }
    }

    /// A folder as programs find it as `/scratch`.
    pub(super) fn scratch(folder: Arc<Folder>) -> Self {
        Self {
            object: Descriptor::Dir(folder.dir.clone()),
            folder: Some(folder),
            _file: None,
            _permit: None,
        }
    }

    /// What was opened in `folder`, to be changed.
    pub(crate) fn opened(folder: Arc<Folder>, opened: Opened, permit: OpenPermit) -> Self {
        let (object, file) = match opened {
            Opened::Folder(dir) => (Descriptor::Dir(new_dir(dir, FsPerms::ReadWrite)), None),
            Opened::File(file, open) => (Descriptor::File(file), Some(open)),
        };
        Self {
            object,
            folder: Some(folder),
            _file: file,
            _permit: Some(permit),
        }
    }

    /// What was opened to be read.
    pub(crate) fn opened_to_read(file: File, found: &Metadata, permit: OpenPermit) -> Self {
        Self {
            object: match found.is_dir() {
                true => Descriptor::Dir(new_dir(file, FsPerms::ReadOnly)),
                false => Descriptor::File(new_file(file, FsPerms::ReadOnly, OpenMode::READ)),
            },
            folder: None,
            _file: None,
            _permit: Some(permit),
        }
    }

    /// As wasmtime knows it. Its calls work on the thread that makes them.
    pub(crate) fn object(&self) -> Descriptor {
        self.object.clone()
    }

    /// As the system knows it.
    pub(crate) fn file(&self) -> &Arc<File> {
        match &self.object {
            Descriptor::File(file) => &file.file,
            Descriptor::Dir(dir) => &dir.dir,
        }
    }

    /// True where it is, or lies in, a folder that the program may change.
    pub(crate) const fn is_in_scratch(&self) -> bool {
        self.folder.is_some()
    }

    /// Whether it can be read as a file.
    ///
    /// # Errors
    /// `is-directory`.
    pub(crate) fn check_file(&self) -> Result<(), ErrorCode> {
        match &self.object {
            Descriptor::File(_) => Ok(()),
            Descriptor::Dir(_) => Err(ErrorCode::IsDirectory),
        }
    }

    /// Whether it is a folder.
    ///
    /// # Errors
    /// `not-directory`.
    pub(crate) fn check_dir(&self) -> Result<(), ErrorCode> {
        match &self.object {
            Descriptor::Dir(_) => Ok(()),
            Descriptor::File(_) => Err(ErrorCode::NotDirectory),
        }
    }

    /// A folder, to change what is in it.
    ///
    /// # Errors
    /// `not-directory`, and `read-only` where it is not in `/scratch`.
    pub(crate) fn changeable_dir(self: Arc<Self>) -> Result<InScratch, ErrorCode> {
        self.check_dir()?;
        self.in_scratch()
    }

    /// A file, to be changed.
    ///
    /// # Errors
    /// `bad-descriptor` where it is not a file that was opened to be written, and `read-only` where it is not in
    /// `/scratch`.
    pub(crate) fn changeable_file(self: Arc<Self>) -> Result<InScratch, ErrorCode> {
        match &self.object {
            Descriptor::File(file) if file.open_mode.contains(OpenMode::WRITE) => self.in_scratch(),
            _ => Err(ErrorCode::BadDescriptor),
        }
    }

    fn in_scratch(self: Arc<Self>) -> Result<InScratch, ErrorCode> {
        let folder = self.folder.clone().ok_or(ErrorCode::ReadOnly)?;
        Ok(InScratch { folder, open: self })
    }

    /// Whether both are the same file or folder of the machine. It may block.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn is_same_object(&self, other: &Self) -> io::Result<bool> {
        let id = |open: &Self| Metadata::from_file(open.file()).map(|found| FileId::of(&found));
        Ok(Arc::ptr_eq(self.file(), other.file()) || id(self)? == id(other)?)
    }
}

/// Something open that lies in `/scratch`, with the folder that is charged.
#[derive(Clone)]
pub(crate) struct InScratch {
    folder: Arc<Folder>,
    open: Arc<OpenDescriptor>,
}

impl InScratch {
    /// The folder that is charged.
    pub(crate) const fn folder(&self) -> &Arc<Folder> {
        &self.folder
    }

    /// What is open.
    pub(crate) const fn open(&self) -> &Arc<OpenDescriptor> {
        &self.open
    }

    /// Changes the folder by `work`, which gets what is open.
    ///
    /// # Errors
    /// As [`Folder::change`].
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        turns: &FileTurns,
        work: impl FnOnce(&mut Change<'_>, &File) -> Outcome<T> + Send + 'static,
    ) -> Outcome<T> {
        let open = self.open.clone();
        let changing = self
            .folder
            .change(turns, open, move |change, open| work(change, open.file()));
        changing.await
    }
}
