//! Which engine changes the files of programs that are kept in a folder: one at a time, since each counts for itself
//! what they take, and would let them grow beyond their limits together with another.

use std::fs::File;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use pie_core::ErrorCode;

use crate::Error;
use crate::sync::lock;

/// The file whose lock says that an engine uses the folder; it holds nothing.
const LOCK: &str = ".lock";

/// The claim of one engine to the files in a folder.
#[derive(Debug)]
pub(super) struct FolderClaim {
    folder: PathBuf,
    /// Its lock is that of the engine; none: it does not use the files so far.
    held: Mutex<Option<File>>,
}

impl FolderClaim {
    /// To the files in `folder`, which is not taken yet.
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            held: Mutex::default(),
        }
    }

    /// Takes it, unless it is taken already, until it is given up or dropped. It reads the disk.
    ///
    /// # Errors
    /// `invalid-config` where another engine has it, and where the folder cannot be made or locked.
    pub(super) fn take(&self) -> Result<(), Error> {
        let mut held = lock(&self.held);
        if held.is_none() {
            *held = Some(self.locked()?);
        }
        Ok(())
    }

    /// Gives it up, unless somebody takes it at this moment: that may last as long as the disk does not answer.
    pub(super) fn give_up(&self) {
        if let Ok(mut held) = self.held.try_lock() {
            held.take();
        }
    }

    fn locked(&self) -> Result<File, Error> {
        let mut making = std::fs::DirBuilder::new();
        let made = making.recursive(true).mode(0o700).create(&self.folder);
        let opened = made.and_then(|()| File::create(self.folder.join(LOCK)));
        let file = opened.map_err(|error| self.unusable(&error))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(std::fs::TryLockError::WouldBlock) => Err(self.refused(
                "is used by another engine, and one at a time keeps files of programs there; run programs in that one, if \
                 it is a server (pie run --server HOST:PORT), end it, give this one another folder with engine.data_dir \
                 (PIE_ENGINE__DATA_DIR=DIR; pie serve: --data-dir DIR), or keep no files with runtime.fs_scope = \"process\"",
            )),
            Err(std::fs::TryLockError::Error(error)) => Err(self.unusable(&error)),
        }
    }

    fn unusable(&self, error: &io::Error) -> Error {
        self.refused(&format!(
            "cannot be used for files of programs ({error}); give another one with engine.data_dir"
        ))
    }

    fn refused(&self, reason: &str) -> Error {
        let message = format!("the folder {} {reason}", self.folder.display());
        Error::new(ErrorCode::InvalidConfig, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_engine_at_a_time_has_the_files_in_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = [(); 2].map(|()| FolderClaim::new(&folder.path().join("data")));
        first.take().unwrap();
        first.take().unwrap();
        let refused = second.take().unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidConfig);
        for part in [
            folder.path().to_str().unwrap(),
            "engine.data_dir",
            "--server HOST:PORT",
            "fs_scope",
        ] {
            assert!(refused.message.contains(part), "{}", refused.message);
        }
        first.give_up();
        second.take().unwrap();
        assert!(first.take().is_err());
        drop(second);
        first.take().unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let refused = FolderClaim::new(Path::new("/dev/null/data"))
            .take()
            .unwrap_err();
        assert!(
            refused.message.contains("/dev/null/data cannot be used"),
            "{}",
            refused.message
        );
    }
}
