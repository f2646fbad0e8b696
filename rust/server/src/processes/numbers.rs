//! The numbers of processes, which are not given twice in a data folder: one of before the server started again names no other process.
//!
//! A file says which numbers are given already. It is written ahead, so that a server that was killed leaves numbers out and repeats none.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pie_host::{Error, ErrorCode};

use crate::shared::lock;

/// Numbers that are written ahead at once.
const RESERVED: u64 = 1000;
/// Bytes of a file of numbers: it holds one.
const MAX_FILE_BYTES: usize = 32;

/// The file of the numbers.
#[derive(Debug)]
pub(crate) struct Numbers {
    path: PathBuf,
    first: u64,
    /// The first number that the file does not call given.
    end: AtomicU64,
    /// Held while the file is written.
    writing: Mutex<()>,
}

impl Numbers {
    /// Reads the file at `path`, which is made where it is missing. Nobody else may use it meanwhile.
    ///
    /// # Errors
    /// `invalid-config` for a file that cannot be read or written, and for one that holds something else.
    pub(crate) fn open(path: PathBuf) -> Result<Self, Error> {
        let unusable = |error: io::Error| {
            let message = format!(
                "the file {} of process numbers cannot be used ({error}); give another folder with engine.data_dir",
                path.display()
            );
            Error::new(ErrorCode::InvalidConfig, message)
        };
        let first = match fs::read(&path) {
            Ok(content) => parse(&content).ok_or_else(|| {
                let message = format!(
                    "the file {} holds no process number; remove it to count from 1 again",
                    path.display()
                );
                Error::new(ErrorCode::InvalidConfig, message)
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 1,
            Err(error) => return Err(unusable(error)),
        };
        let numbers = Self {
            path: path.clone(),
            first,
            end: AtomicU64::new(first),
            writing: Mutex::new(()),
        };
        numbers.reserve(first).map_err(unusable)?;
        Ok(numbers)
    }

    /// The first number to give.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// True when it is time to reserve more, which may take a moment: `next` is the number to be given next.
    pub(crate) fn are_low(&self, next: u64) -> bool {
        self.end.load(Ordering::Relaxed).saturating_sub(next) < RESERVED / 2
    }

    /// Writes ahead for numbers from `next` on.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn reserve(&self, next: u64) -> io::Result<()> {
        let _one_at_a_time = lock(&self.writing);
        if !self.are_low(next) {
            return Ok(());
        }
        let end = next.saturating_add(RESERVED);
        write(&self.path, end)?;
        self.end.store(end, Ordering::Relaxed);
        Ok(())
    }

    /// Gives back what was reserved and not given: `next` and what follows.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn close(&self, next: u64) -> io::Result<()> {
        let _one_at_a_time = lock(&self.writing);
        write(&self.path, next)
    }
}

fn parse(content: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(content.get(..MAX_FILE_BYTES).unwrap_or(content)).ok()?;
    text.trim_end().parse().ok().filter(|first| *first > 0)
}

/// Writes the number in the place of the one before, at once or not at all.
fn write(path: &Path, first: u64) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(file, "{first}")?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ended_goes_on_and_one_that_was_killed_leaves_numbers_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers");
        let numbers = Numbers::open(path.clone()).unwrap();
        assert_eq!(numbers.first(), 1);
        numbers.close(4).unwrap();
        let numbers = Numbers::open(path.clone()).unwrap();
        assert_eq!(numbers.first(), 4);
        drop(numbers);
        assert_eq!(Numbers::open(path).unwrap().first(), 4 + RESERVED);
    }

    #[test]
    fn what_is_given_is_always_below_what_the_file_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers");
        let numbers = Numbers::open(path.clone()).unwrap();
        for next in 1..=5 * RESERVED {
            if numbers.are_low(next) {
                numbers.reserve(next).unwrap();
            }
            assert!(parse(&fs::read(&path).unwrap()).unwrap() > next);
        }
    }

    #[test]
    fn a_file_of_something_else_is_named() {
        let folder = tempfile::tempdir().unwrap();
        for content in ["", "x", "0", "-1", "1 2", "99999999999999999999999"] {
            let path = folder.path().join("numbers");
            fs::write(&path, content).unwrap();
            let error = Numbers::open(path).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidConfig, "{content:?}");
            assert!(error.message.contains("numbers holds no process number"));
        }
        let error = Numbers::open(folder.path().to_path_buf()).unwrap_err();
        assert!(error.message.contains("cannot be used"));
    }
}
