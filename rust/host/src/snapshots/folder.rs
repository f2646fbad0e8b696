//! The folder of the snapshots of a model: files that are written whole, under names of their own.
//!
//! | name | what it is |
//! |---|---|
//! | `NUMBER-KEY.snap` | a snapshot; KEY stands for its user and name, and of two of a KEY the higher NUMBER holds |
//! | `NUMBER-KEY.runs` | one that was replaced or deleted, whose runs others share; it goes with the last of them |
//! | `NUMBER-RUN.kv` | the pages of a run that the file of that NUMBER holds; it goes with that file |
//! | `.new-NUMBER` | one that is being written; left over where the engine ended meanwhile |
//! | `.lock` | locked by the engine that uses the folder |
//! | `.binding` | the digests of the model's files, so that they need not be computed again |

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use pie_core::ErrorCode;
use sha2::{Digest as _, Sha256};

use super::disk_error;
use super::format::Digest;
use crate::Error;

const LOCK: &str = ".lock";
const UNFINISHED: &str = ".new-";
const SNAPSHOT: &str = ".snap";
const RUNS: &str = ".runs";
const PAGES: &str = ".kv";
const WRITE: &str = "a snapshot cannot be written";
const REMOVE: &str = "a snapshot cannot be removed";
const REMOVED: &str = "a snapshot was removed, and may come back where the machine fails";
/// Digits of a number and of a key in a name.
const NUMBER_DIGITS: usize = 16;
const KEY_DIGITS: usize = 32;

/// Stands for a user and a name of theirs.
pub(super) type NameKey = u128;

/// The key of a name of a user's.
pub(super) fn name_key(owner: &str, name: &str) -> NameKey {
    let mut hasher = Sha256::new();
    hasher.update((owner.len() as u64).to_le_bytes());
    hasher.update(owner);
    hasher.update(name);
    let digest = hasher.finalize();
    let first = digest.iter().take(size_of::<NameKey>());
    first.fold(0, |key, &byte| (key << 8) | NameKey::from(byte))
}

/// The name of a file of the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileName {
    pub(super) number: u64,
    pub(super) key: NameKey,
    /// It is nobody's snapshot any more.
    pub(super) is_retired: bool,
}

impl FileName {
    pub(super) fn text(self) -> String {
        let suffix = if self.is_retired { RUNS } else { SNAPSHOT };
        format!("{:016x}-{:032x}{suffix}", self.number, self.key)
    }

    fn parse(text: &str) -> Option<Self> {
        let (stem, is_retired) = match text.strip_suffix(SNAPSHOT) {
            Some(stem) => (stem, false),
            None => (text.strip_suffix(RUNS)?, true),
        };
        let (number, key) = numbers(stem)?;
        Some(Self {
            number,
            key,
            is_retired,
        })
    }
}

/// The name of a file with the pages of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PagesName {
    /// Of the file that holds the run.
    pub(super) number: u64,
    /// The beginning of the key of the run.
    pub(super) run: u128,
}

impl PagesName {
    /// That of the pages of a run, by its key.
    pub(super) fn of(number: u64, key: &Digest) -> Self {
        let first = key.iter().take(size_of::<u128>());
        Self {
            number,
            run: first.fold(0, |key, &byte| (key << 8) | u128::from(byte)),
        }
    }

    pub(super) fn text(self) -> String {
        format!("{:016x}-{:032x}{PAGES}", self.number, self.run)
    }

    fn parse(text: &str) -> Option<Self> {
        let (number, run) = numbers(text.strip_suffix(PAGES)?)?;
        Some(Self { number, run })
    }
}

/// The two numbers of the name of a file.
fn numbers(stem: &str) -> Option<(u64, u128)> {
    let (number, key) = stem.split_once('-')?;
    let is_written = |digits: &str, n: usize| {
        let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        digits.len() == n && digits.bytes().all(lower)
    };
    if !is_written(number, NUMBER_DIGITS) || !is_written(key, KEY_DIGITS) {
        return None;
    }
    Some((
        u64::from_str_radix(number, 16).ok()?,
        u128::from_str_radix(key, 16).ok()?,
    ))
}

/// The folder, which this engine uses and no other.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    dir: File,
    /// Its lock is that of the engine.
    _lock: File,
    free_bytes: u64,
}

impl Folder {
    /// Opens the folder, and makes it where it is missing, for this user alone. `free_bytes` of its disk stay free.
    ///
    /// # Errors
    /// `invalid-config` where another engine uses it; `disk-error` and its like where it cannot be made, opened or
    /// locked.
    pub(super) fn open(path: &Path, free_bytes: u64) -> Result<Self, Error> {
        let failed =
            |error: &io::Error| disk_error("the folder of snapshots cannot be used", path, error);
        make(path).map_err(|error| failed(&error))?;
        let lock = private(&path.join(LOCK), true).map_err(|error| failed(&error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(Error::new(
                    ErrorCode::InvalidConfig,
                    "the folder of snapshots is used by another engine, and one at a time uses it; run programs in that one, \
                     if it is a server (pie run --server HOST:PORT), end it, or give this one another folder with \
                     snapshots.folder or engine.data_dir",
                ));
            }
            Err(fs::TryLockError::Error(error)) => return Err(failed(&error)),
        }
        let dir = File::open(path).map_err(|error| failed(&error))?;
        Ok(Self {
            path: path.to_owned(),
            dir,
            _lock: lock,
            free_bytes,
        })
    }

    /// The files of snapshots, after what an engine left unfinished was removed. Files of other names are not touched.
    ///
    /// # Errors
    /// `disk-error` and its like.
    pub(super) fn files(&self) -> Result<Vec<FileName>, Error> {
        let failed = |error: &io::Error| {
            disk_error("the folder of snapshots cannot be read", &self.path, error)
        };
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(|error| failed(&error))? {
            let entry = entry.map_err(|error| failed(&error))?;
            let (name, kind) = (entry.file_name(), entry.file_type());
            let Some(name) = name.to_str() else { continue };
            if !kind.is_ok_and(|kind| kind.is_file()) {
                continue;
            }
            if let Some(file) = FileName::parse(name) {
                files.push(file);
            } else if name.starts_with(UNFINISHED) {
                let path = self.path.join(name);
                fs::remove_file(&path).map_err(|error| disk_error(REMOVE, &path, &error))?;
            }
        }
        Ok(files)
    }

    pub(super) fn path(&self, file: FileName) -> PathBuf {
        self.path.join(file.text())
    }

    /// Where a file lies beside the others that is no snapshot.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens a file to be read, also where it was retired a moment ago.
    pub(super) fn read(&self, file: FileName) -> io::Result<File> {
        match open(&self.path(file)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !file.is_retired => {
                let retired = FileName {
                    is_retired: true,
                    ..file
                };
                open(&self.path(retired))
            }
            opened => opened,
        }
    }

    /// Writes a file whole, so that it is there for good or not at all.
    ///
    /// # Errors
    /// `disk-error` and its like; the file is not there then.
    pub(super) fn write(&self, file: FileName, bytes: &[u8]) -> Result<(), Error> {
        let path = self.path(file);
        self.check_disk(bytes.len() as u64)?;
        let unfinished = self.path.join(format!("{UNFINISHED}{:016x}", file.number));
        let written = write_durably(&unfinished, bytes)
            .and_then(|()| fs::rename(&unfinished, &path))
            .and_then(|()| self.dir.sync_all());
        written.map_err(|error| {
            // What is left is garbage, or a file of which nobody was told: the next engine would find it.
            for path in [&unfinished, &path] {
                drop(fs::remove_file(path));
            }
            disk_error(WRITE, &path, &error)
        })
    }

    /// The files with pages of runs, and the bytes of each.
    ///
    /// # Errors
    /// `disk-error` and its like.
    pub(super) fn pages(&self) -> Result<Vec<(PagesName, u64)>, Error> {
        let failed = |error: &io::Error| {
            disk_error("the folder of snapshots cannot be read", &self.path, error)
        };
        let mut pages = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(|error| failed(&error))? {
            let entry = entry.map_err(|error| failed(&error))?;
            let name = entry.file_name().to_str().and_then(PagesName::parse);
            if let (Some(name), Ok(status)) = (name, entry.metadata())
                && status.is_file()
            {
                pages.push((name, status.len()));
            }
        }
        Ok(pages)
    }

    /// Opens a file with pages to be read.
    pub(super) fn read_pages(&self, name: PagesName) -> io::Result<File> {
        open(&self.beside(&name.text()))
    }

    /// Writes a file with pages by `fill`, which makes it durable, or says that there are none. It is there for good
    /// once the folder was made durable.
    ///
    /// # Errors
    /// `disk-error` and its like, and those of `fill`; the file is as it was then.
    pub(super) fn write_pages(
        &self,
        name: PagesName,
        draft: u64,
        n_bytes: u64,
        fill: impl FnOnce(&File) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        self.check_disk(n_bytes)?;
        let unfinished = self.beside(&format!("{UNFINISHED}{draft:016x}"));
        let path = self.beside(&name.text());
        let failed = |error: io::Error| disk_error(WRITE, &path, &error);
        let file = private(&unfinished, false).map_err(failed)?;
        let renamed = match fill(&file) {
            Ok(true) => fs::rename(&unfinished, &path)
                .map_err(failed)
                .map(|()| true),
            other => other,
        };
        if !matches!(renamed, Ok(true)) {
            drop(fs::remove_file(&unfinished));
        }
        renamed
    }

    /// Removes a file with pages; one that is gone already is no error. What cannot be removed is only told to the log:
    /// the next engine does it.
    pub(super) fn remove_pages(&self, name: PagesName) {
        let path = self.beside(&name.text());
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                drop(disk_error(REMOVE, &path, &error));
            }
            _ => {}
        }
    }

    /// Has a file be nobody's snapshot any more; others share its runs.
    ///
    /// # Errors
    /// `disk-error` and its like, and nothing has changed.
    pub(super) fn retire(&self, file: FileName) -> Result<FileName, Error> {
        let retired = FileName {
            is_retired: true,
            ..file
        };
        let path = self.path(file);
        fs::rename(&path, self.path(retired)).map_err(|error| disk_error(REMOVE, &path, &error))?;
        Ok(retired)
    }

    /// Removes a file; one that is gone already is no error.
    ///
    /// # Errors
    /// `disk-error` and its like, and nothing has changed.
    pub(super) fn remove(&self, file: FileName) -> Result<(), Error> {
        let path = self.path(file);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(disk_error(REMOVE, &path, &error))
            }
            _ => Ok(()),
        }
    }

    /// What was renamed and removed stays so.
    ///
    /// # Errors
    /// `disk-error` and its like.
    pub(super) fn sync(&self) -> Result<(), Error> {
        let synced = self.dir.sync_all();
        synced.map_err(|error| disk_error(REMOVED, &self.path, &error))
    }

    /// Refuses what would fill the disk.
    pub(super) fn check_disk(&self, n_bytes: u64) -> Result<(), Error> {
        // A system that does not tell what is free tells when nothing is.
        let Ok(disk) = rustix::fs::fstatvfs(&self.dir) else {
            return Ok(());
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let least = self.free_bytes;
        if free.saturating_sub(n_bytes) >= least {
            return Ok(());
        }
        Err(Error::with_values(
            ErrorCode::DiskFull,
            format!(
                "the disk has {free} bytes free, a snapshot of {n_bytes} is to be written, and snapshots leave \
                 snapshots.free_bytes = {least}; delete some, free others, or lower the limit"
            ),
            &[("free", free), ("bytes", n_bytes), ("limit", least)],
        ))
    }
}

/// Makes a folder, and those above it that are missing, for this user alone, and returns when the disk has them: a file
/// is there for good where the way to it is.
fn make(path: &Path) -> io::Result<()> {
    let above = path.ancestors().skip(1);
    let above: Vec<&Path> = above
        .map(|it| {
            if it.as_os_str().is_empty() {
                Path::new(".")
            } else {
                it
            }
        })
        .collect();
    let n_missing = above.iter().take_while(|it| !it.exists()).count();
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    // One that was there may still be new: its engine may have been killed before this.
    for (place, folder) in above.into_iter().take(n_missing + 1).enumerate() {
        match File::open(folder) {
            Ok(folder) => folder.sync_all()?,
            // What was there before this engine may be closed to it.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && place == n_missing => {
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Opens a file to be read. No link leads elsewhere, and a pipe keeps nobody waiting.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    options.read(true).custom_flags(flags).open(path)
}

/// Opens a file that this user alone may read, to be written; makes it where it is missing. No link leads elsewhere.
fn private(path: &Path, is_kept: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(!is_kept);
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    options.mode(0o600).custom_flags(flags).open(path)
}

/// Writes a file, and returns when the disk has it.
pub(super) fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = private(path, false)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_is_read_as_it_is_written() {
        for (number, key, is_retired) in
            [(0, 0, false), (u64::MAX, NameKey::MAX, true), (17, 3, true)]
        {
            let file = FileName {
                number,
                key,
                is_retired,
            };
            assert_eq!(FileName::parse(&file.text()), Some(file));
        }
        for name in [
            "",
            ".lock",
            "1-2.snap",
            "readme.snap",
            "+000000000000001-00000000000000000000000000000003.snap",
        ] {
            assert_eq!(FileName::parse(name), None, "{name}");
        }
    }

    #[test]
    fn names_of_users_are_kept_apart() {
        let keys = [("ada", "b"), ("ad", "ab"), ("", "adab"), ("adab", "")];
        let keys = keys.map(|(owner, name)| name_key(owner, name));
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key));
        }
    }

    #[test]
    fn one_engine_at_a_time_uses_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let first = Folder::open(dir.path(), 0).unwrap();
        let refused = Folder::open(dir.path(), 0).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidConfig);
        assert!(
            refused.message.contains("another engine"),
            "{}",
            refused.message
        );
        drop(first);
        Folder::open(dir.path(), 0).unwrap();
    }

    #[test]
    fn a_folder_is_made_with_those_above_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data/snapshots/tiny");
        for _ in 0..2 {
            drop(Folder::open(&path, 0).unwrap());
        }
        assert!(path.join(LOCK).is_file());
    }

    #[test]
    fn a_link_in_place_of_a_file_leads_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::write(&outside, b"theirs").unwrap();
        let folder = Folder::open(&dir.path().join("tiny"), 0).unwrap();
        let file = FileName {
            number: 1,
            key: 2,
            is_retired: false,
        };
        let unfinished = folder.beside(&format!("{UNFINISHED}{:016x}", file.number));
        std::os::unix::fs::symlink(&outside, unfinished).unwrap();
        let refused = folder.write(file, b"any").unwrap_err();
        assert_eq!(refused.code, ErrorCode::DiskError);
        assert_eq!(fs::read(&outside).unwrap(), b"theirs");
        folder.write(file, b"any").unwrap();
        assert_eq!(folder.files().unwrap(), [file]);
    }

    #[test]
    fn a_disk_that_would_be_full_is_refused_with_its_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path(), 1 << 60).unwrap();
        let file = FileName {
            number: 1,
            key: 2,
            is_retired: false,
        };
        let refused = folder.write(file, b"any").unwrap_err();
        assert_eq!(refused.code, ErrorCode::DiskFull);
        assert!(
            refused.message.contains("snapshots.free_bytes"),
            "{}",
            refused.message
        );
        assert!(folder.files().unwrap().is_empty());
    }

    #[test]
    fn what_an_engine_left_unfinished_is_removed_and_other_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        for name in [".new-0000000000000001", "notes.txt"] {
            fs::write(dir.path().join(name), b"half").unwrap();
        }
        let key = "0".repeat(KEY_DIGITS);
        fs::create_dir(dir.path().join(format!("{:016x}-{key}.snap", 7))).unwrap();
        let folder = Folder::open(dir.path(), 0).unwrap();
        assert!(folder.files().unwrap().is_empty());
        assert!(!dir.path().join(".new-0000000000000001").exists());
        assert!(dir.path().join("notes.txt").exists());
    }
}
