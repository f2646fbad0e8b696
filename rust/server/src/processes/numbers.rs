//! The numbers of processes, which are not given twice in a data folder: one of before the server started again names
//! no other process.
//!
//! The server counts, and gives each count permuted by a key (`pie_host::Numbering`): a number says nothing of how many
//! processes others launch. A file holds the first count that is not used, the key, and the number below which numbers
//! were given before there was a key. It is written ahead, so that a server that was killed leaves counts out and
//! repeats none.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pie_host::{Error, ErrorCode, KEY_BYTES, Numbering};

use crate::auth::{hex, random, unhex};
use crate::sync::lock;

/// Counts that are written ahead at once.
const RESERVED: u64 = 1000;
/// Bytes of the file: it holds two numbers and a key.
const MAX_FILE_BYTES: usize = 256;

/// The file of the numbers.
#[derive(Debug)]
pub(crate) struct Numbers {
    path: PathBuf,
    state: State,
    /// The first count that the file does not call given.
    end: AtomicU64,
    /// Held while the file is written.
    writing: Mutex<()>,
}

/// What the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    first: u64,
    key: [u8; KEY_BYTES],
    plain_below: u64,
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
        let state = match fs::read(&path) {
            Ok(content) => parse(&content)?.ok_or_else(|| {
                let message = format!(
                    "the file {} holds no process number; remove it to number from the beginning again",
                    path.display()
                );
                Error::new(ErrorCode::InvalidConfig, message)
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => State {
                first: 1,
                key: random()?,
                plain_below: 1,
            },
            Err(error) => return Err(unusable(error)),
        };
        let numbers = Self {
            path: path.clone(),
            state,
            end: AtomicU64::new(state.first),
            writing: Mutex::new(()),
        };
        numbers.reserve(state.first).map_err(unusable)?;
        Ok(numbers)
    }

    /// How numbers are given.
    pub(crate) fn numbering(&self) -> Numbering {
        Numbering {
            first: self.state.first,
            key: Some(self.state.key),
            plain_below: self.state.plain_below,
        }
    }

    /// True when it is time to reserve more, which may take a moment: `next` is the count that is used next.
    pub(crate) fn are_low(&self, next: u64) -> bool {
        self.end.load(Ordering::Relaxed).saturating_sub(next) < RESERVED / 2
    }

    /// Writes ahead for counts from `next` on.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn reserve(&self, next: u64) -> io::Result<()> {
        let _one_at_a_time = lock(&self.writing);
        if !self.are_low(next) {
            return Ok(());
        }
        let end = next.saturating_add(RESERVED);
        self.write(end)?;
        self.end.store(end, Ordering::Relaxed);
        Ok(())
    }

    /// Gives back what was reserved and not given: `next` and what follows.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn close(&self, next: u64) -> io::Result<()> {
        let _one_at_a_time = lock(&self.writing);
        self.write(next)
    }

    /// Writes the file anew, at once or not at all. It is for its owner alone, as the key is.
    fn write(&self, first: u64) -> io::Result<()> {
        let State {
            key, plain_below, ..
        } = &self.state;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        writeln!(file, "{first} {} {plain_below}", hex(key))?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        // The rename itself has to last: no number is given twice.
        File::open(folder)?.sync_all()
    }
}

/// What a file holds; none for something else. One without a key is of a server that gave its counts as they were.
///
/// # Errors
/// `internal` where the system gives no random bytes.
fn parse(content: &[u8]) -> Result<Option<State>, Error> {
    let Ok(text) = std::str::from_utf8(content.get(..MAX_FILE_BYTES).unwrap_or(content)) else {
        return Ok(None);
    };
    let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
    let fields: Vec<&str> = text.split_whitespace().collect();
    Ok(match fields[..] {
        [first] => match number(first) {
            Some(first) => Some(State {
                first,
                key: random()?,
                plain_below: first,
            }),
            None => None,
        },
        [first, key, plain_below] => number(first).zip(unhex(key)).zip(number(plain_below)).map(
            |((first, key), plain_below)| State {
                first,
                key,
                plain_below,
            },
        ),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ended_goes_on_and_one_that_was_killed_leaves_numbers_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers");
        let numbers = Numbers::open(path.clone()).unwrap();
        let before = numbers.numbering();
        assert_eq!((before.first, before.plain_below), (1, 1));
        numbers.close(4).unwrap();
        let numbers = Numbers::open(path.clone()).unwrap();
        assert_eq!(numbers.numbering(), Numbering { first: 4, ..before });
        drop(numbers);
        let after = Numbers::open(path).unwrap().numbering();
        assert_eq!(
            after,
            Numbering {
                first: 4 + RESERVED,
                ..before
            }
        );
    }

    #[test]
    fn numbers_of_before_there_was_a_key_are_not_given_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers");
        fs::write(&path, "43\n").unwrap();
        let numbering = Numbers::open(path.clone()).unwrap().numbering();
        assert_eq!((numbering.first, numbering.plain_below), (43, 43));
        assert_eq!(Numbers::open(path).unwrap().numbering().plain_below, 43);
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
            let written = parse(&fs::read(&path).unwrap()).unwrap();
            assert!(written.unwrap().first > next);
        }
    }

    #[test]
    fn a_file_of_something_else_is_named() {
        let folder = tempfile::tempdir().unwrap();
        for content in [
            "",
            "x",
            "0",
            "-1",
            "1 2",
            "1 x 2",
            "99999999999999999999999",
        ] {
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
