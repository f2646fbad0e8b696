//! Reads the files of snapshots: what stands in the index of each, and all of one that is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::Path;

use pie_core::ContextImage;

use super::binding::{Binding, hex};
use super::content::{Decoding, run_key};
use super::folder::{FileName, Folder, name_key};
use super::format::{Digest, Header, Index, Part, RunPlace, damaged, read_at};
use super::index::{About, Entry, RunExtent};
use super::pages::KeptRun;
use super::{disk_error, unusable};
use crate::Error;

/// A context as it was saved, with what is kept beside it.
pub(crate) struct SavedContext {
    pub(crate) image: ContextImage,
    /// Where its conversation stands.
    pub(crate) turns: Vec<u8>,
    /// The names that its adapters had when it was saved, as [`super::store::Named::with_adapters`] has them.
    pub(crate) adapters: BTreeMap<String, String>,
    /// Its runs, in their order.
    pub(crate) runs: Vec<KeptRun>,
}

const READ: &str = "a snapshot cannot be read";
pub(super) const GONE: &str = "a file with tokens that it shares is not there any more; delete the snapshot, and save it again";
const UNREADABLE: &str = "the disk does not read it; have whoever runs the engine look into its log, or delete the \
    snapshot and save it again";

/// A snapshot that is being read.
pub(super) struct Loading {
    /// Of its file.
    name: String,
    /// The files that hold runs of it, its own first.
    sources: Vec<Source>,
}

struct Source {
    number: u64,
    file: File,
    header: Header,
}

impl Loading {
    /// Of the snapshot in the first of these files, which shares the runs of the others.
    ///
    /// # Errors
    /// `snapshot-unusable`, `disk-error` and its like.
    pub(super) fn of(folder: &Folder, files: &[FileName]) -> Result<Self, Error> {
        let mut loading = Self {
            name: files.first().map_or_else(String::new, |file| file.text()),
            sources: Vec::with_capacity(files.len()),
        };
        for file in files {
            loading.open(folder, *file)?;
        }
        Ok(loading)
    }

    /// Reads it, behind the key `first`. `charge` is asked for its bytes before.
    ///
    /// # Errors
    /// `snapshot-unusable`, `disk-error` and its like, and those of `charge`.
    pub(super) fn load<C>(
        &self,
        first: &Digest,
        charge: impl FnOnce(u64) -> Result<C, Error>,
    ) -> Result<(SavedContext, C), Error> {
        let index = self.part(Part::Index)?;
        let index: Index = serde_json::from_slice(&index)
            .map_err(|_| self.unusable(&damaged("its part \"index\"")))?;
        let own = [Part::State, Part::Turns, Part::Tail];
        let own = own
            .iter()
            .map(|part| self.sources[0].header.of(*part).n_bytes);
        let of_runs = index.runs.iter().map(|run| run.n_bytes);
        let n_bytes = own.chain(of_runs).fold(0, u64::saturating_add);
        let charge = charge(n_bytes)?;
        let (mut decoding, mut key) = (Decoding::default(), *first);
        let mut runs = Vec::with_capacity(index.runs.len());
        for run in &index.runs {
            let bytes = self.run(run)?;
            key = run_key(&key, &bytes);
            if hex(&key) != run.key {
                return Err(self.unusable(&damaged("a run of its tokens")));
            }
            decoding.run(&bytes).map_err(|why| self.unusable(&why))?;
            runs.push(KeptRun {
                file: run.file,
                key,
            });
        }
        let (tail, state) = (self.part(Part::Tail)?, self.part(Part::State)?);
        let image = decoding.end(&tail, &state);
        let image = image.map_err(|why| self.unusable(&why))?;
        let turns = self.part(Part::Turns)?;
        let kept = SavedContext {
            image,
            turns,
            adapters: index.adapters,
            runs,
        };
        Ok((kept, charge))
    }

    fn open(&mut self, folder: &Folder, file: FileName) -> Result<(), Error> {
        let opened = folder.read(file).map_err(|error| self.unread(&error))?;
        let header = Header::read(&opened).map_err(|error| self.unread(&error))?;
        let header = header.map_err(|why| self.unusable(&why))?;
        self.sources.push(Source {
            number: file.number,
            file: opened,
            header,
        });
        Ok(())
    }

    /// A part of the file of the snapshot itself.
    fn part(&self, part: Part) -> Result<Vec<u8>, Error> {
        let own = &self.sources[0];
        let read = own.header.read_part(&own.file, part);
        let read = read.map_err(|error| self.unread(&error))?;
        read.map_err(|why| self.unusable(&why))
    }

    fn run(&self, run: &RunPlace) -> Result<Vec<u8>, Error> {
        let source = self.sources.iter().find(|it| it.number == run.file);
        let source = source.ok_or_else(|| self.unusable(GONE))?;
        let extent = source.header.of(Part::Runs);
        let end = run.offset.checked_add(run.n_bytes);
        if end.is_none_or(|end| end > extent.n_bytes) {
            return Err(self.unusable(&damaged("the place of a run")));
        }
        let read = read_at(&source.file, extent.offset + run.offset, run.n_bytes);
        read.map_err(|error| self.unread(&error))
    }

    fn unusable(&self, why: &str) -> Error {
        unusable(&self.name, why)
    }

    fn unread(&self, error: &io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::NotFound => self.unusable(GONE),
            // It became shorter while it was read.
            io::ErrorKind::UnexpectedEof => self.unusable(&damaged("its length")),
            _ => disk_error(READ, Path::new(&self.name), error),
        }
    }
}

/// The numbers of those of these files that do not hold runs as they are, each with its place: they are damaged, or
/// cannot be read.
pub(super) fn unsound<'a>(
    folder: &Folder,
    files: &[FileName],
    runs: impl Iterator<Item = (&'a RunPlace, &'a [u8])>,
) -> BTreeSet<u64> {
    let mut loading = Loading {
        name: String::new(),
        sources: Vec::with_capacity(files.len()),
    };
    let mut unsound = BTreeSet::new();
    for file in files {
        if loading.open(folder, *file).is_err() {
            unsound.insert(file.number);
        }
    }
    for (place, bytes) in runs {
        let is_as_long = place.n_bytes == bytes.len() as u64;
        let is_sound = is_as_long && loading.run(place).is_ok_and(|run| run == bytes);
        if !is_sound {
            unsound.insert(place.file);
        }
    }
    unsound
}

/// The entry of a file of the folder, whatever it holds. One that the disk does not read keeps nobody from the others.
///
/// # Errors
/// `disk-error` and its like where files cannot be read.
pub(super) fn entry_of(folder: &Folder, file: FileName, binding: &Binding) -> Result<Entry, Error> {
    let path = folder.path(file);
    let failed = |error: &io::Error| disk_error(READ, &path, error);
    let unread = |n_bytes: u64, refusal: String| Entry {
        file,
        n_bytes,
        pages: BTreeMap::new(),
        about: None,
        refusal: Some(refusal),
        own: Vec::new(),
        shares: Vec::new(),
        n_sharers: 0,
    };
    let (n_bytes, index) = match folder.read(file).and_then(|opened| read_index(&opened)) {
        Ok((n_bytes, Ok(index))) => (n_bytes, index),
        Ok((n_bytes, Err(why))) => return Ok(unread(n_bytes, why)),
        Err(error) if is_of_file(&error) => {
            // Whoever runs the engine finds the path in its log.
            drop(failed(&error));
            return Ok(unread(0, UNREADABLE.to_owned()));
        }
        Err(error) => return Err(failed(&error)),
    };
    if name_key(&index.owner, &index.name) != file.key {
        let why = "its name is that of another user's snapshot, or of another one; rename it back, or delete it";
        return Ok(unread(n_bytes, why.to_owned()));
    }
    let Some(own) = own_runs(&index, file.number) else {
        return Ok(unread(n_bytes, damaged("its part \"index\"")));
    };
    let shares: BTreeSet<u64> = index.runs.iter().map(|run| run.file).collect();
    let shares = shares.into_iter().filter(|&number| number != file.number);
    Ok(Entry {
        file,
        n_bytes,
        pages: BTreeMap::new(),
        refusal: binding.refusal(&index.model_digest, &index.tokenizer_digest),
        own,
        shares: if file.is_retired {
            Vec::new()
        } else {
            shares.collect()
        },
        about: Some(About {
            owner: index.owner.into(),
            name: index.name,
            n_tokens: index.n_tokens,
        }),
        n_sharers: 0,
    })
}

/// Whether an error is that of one file, and not of the disk or of the process.
fn is_of_file(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    code.is_some_and(|code| [libc::EACCES, libc::EIO, libc::ELOOP, libc::EPERM].contains(&code))
        || error.kind() == io::ErrorKind::UnexpectedEof
}

/// The length of a file, and its index.
fn read_index(file: &File) -> io::Result<(u64, Result<Index, String>)> {
    let n_bytes = file.metadata()?.len();
    let header = match Header::read(file)? {
        Ok(header) => header,
        Err(why) => return Ok((n_bytes, Err(why))),
    };
    let bytes = header.read_part(file, Part::Index)?;
    let index = bytes.and_then(|bytes| {
        serde_json::from_slice(&bytes).map_err(|_| damaged("its part \"index\""))
    });
    Ok((n_bytes, index))
}

/// The runs that a file holds itself, by their keys; none where a key is none.
fn own_runs(index: &Index, number: u64) -> Option<Vec<(Digest, RunExtent)>> {
    let own = index.runs.iter().filter(|run| run.file == number);
    own.map(|run| Some((digest_of(&run.key)?, RunExtent::of(run))))
        .collect()
}

/// The digest of 64 digits.
fn digest_of(digits: &str) -> Option<Digest> {
    let mut digest = Digest::default();
    if digits.len() != 2 * digest.len() || !digits.is_ascii() {
        return None;
    }
    for (byte, place) in digest.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&digits[place..place + 2], 16).ok()?;
    }
    Some(digest)
}
