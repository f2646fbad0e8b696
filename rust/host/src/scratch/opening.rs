//! Opening what is there, in a folder that is open.

use std::fs::File;
use std::io;
use std::path::Path;

use cap_primitives::fs::{FollowSymlinks, Metadata, OpenOptions};
use wasmtime_wasi::filesystem::{self, Dir};
use wasmtime_wasi::{FsPerms, OpenMode};

/// How something is opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// Made where it is not there.
    pub(crate) create: bool,
    /// An error where it is there.
    pub(crate) exclusive: bool,
    /// Emptied.
    pub(crate) truncate: bool,
    /// An error where it is not a folder.
    pub(crate) directory: bool,
    /// A link at the end of the path is followed.
    pub(crate) follow: bool,
}

impl Wanted {
    /// Whether it could change anything.
    pub(crate) const fn changes(&self) -> bool {
        self.write || self.create || self.truncate
    }

    /// What the opened file is for.
    pub(super) fn mode(&self) -> OpenMode {
        let mut mode = OpenMode::empty();
        mode.set(OpenMode::READ, self.read || !self.changes());
        mode.set(OpenMode::WRITE, self.changes());
        mode
    }

    /// The options of the system, which neither make nor empty anything.
    pub(super) fn options(&self) -> OpenOptions {
        let mut options = OpenOptions::new();
        options
            .read(self.read || !self.changes())
            .write(self.changes())
            // A pipe that somebody laid into the folder would hold the thread until its other end is opened.
            ._cap_fs_ext_nonblock(true)
            ._cap_fs_ext_follow(if self.follow {
                FollowSymlinks::Yes
            } else {
                FollowSymlinks::No
            });
        options
    }
}

/// Opens what is there. Nothing but files and folders is opened.
///
/// # Errors
/// Those of the system.
pub(crate) fn open(folder: &File, path: &Path, wanted: &Wanted) -> io::Result<(File, Metadata)> {
    let file = cap_primitives::fs::open(folder, path, &wanted.options())?;
    let found = Metadata::from_file(&file)?;
    if wanted.directory && !found.is_dir() {
        // By its number: of the kind alone a program would be told `io`.
        return Err(rustix::io::Errno::NOTDIR.into());
    }
    if !found.is_dir() && !found.is_file() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok((file, found))
}

/// An open folder as wasmtime knows it. Its calls work on the thread that makes them, which is one that may block.
pub(super) fn new_dir(dir: File, perms: FsPerms) -> Dir {
    let mode = match perms {
        FsPerms::ReadOnly => OpenMode::READ,
        FsPerms::ReadWrite => OpenMode::READ | OpenMode::WRITE,
    };
    Dir::new(dir, perms, mode, true)
}

/// An open file, in the same way.
pub(super) fn new_file(file: File, perms: FsPerms, mode: OpenMode) -> filesystem::File {
    filesystem::File::new(file, perms, mode, true)
}
