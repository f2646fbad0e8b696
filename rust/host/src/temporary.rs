//! Folders that end with this process, and those that ended without being removed.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

/// A folder that is younger may be about to be locked by the engine that made it.
const SETTLED: Duration = Duration::from_secs(60);

/// Makes a folder, with those above it, that other users of the machine cannot read.
pub(crate) fn make_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens a folder to be read, which a lock of it wants: with no more than its path, the system refuses locks.
pub(crate) fn open_dir(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = rustix::fs::OFlags::DIRECTORY.bits();
    options
        .read(true)
        .custom_flags(flags.cast_signed())
        .open(path)
}

/// Makes a folder in `above` that is removed when it is dropped, and opens it. Other engines see by its lock that it is
/// in use, as long as it is open.
pub(crate) fn make_temporary(above: &Path) -> io::Result<(TempDir, File)> {
    make_dir(above)?;
    let temporary = tempfile::Builder::new().prefix("").tempdir_in(above)?;
    let dir = open_dir(temporary.path())?;
    dir.try_lock().map_err(io::Error::from)?;
    Ok((temporary, dir))
}

/// Removes the folders in `above` whose engine has gone without doing so. What cannot be removed stays for the next.
pub(crate) fn sweep(above: &Path) {
    let Ok(entries) = std::fs::read_dir(above) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let Ok(dir) = open_dir(&path) else {
            continue;
        };
        let made = dir.metadata().and_then(|metadata| metadata.created());
        let age = made.ok().and_then(|made| made.elapsed().ok());
        if age.is_some_and(|age| age > SETTLED) && dir.try_lock().is_ok() {
            drop(std::fs::remove_dir_all(&path));
        }
    }
}
