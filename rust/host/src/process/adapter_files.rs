//! The files of adapters, between the folders of a process and those of a model.
//!
//! What is loaded is copied first, so that a driver reads what no program can change meanwhile. The files of an adapter
//! are a pair. Both are written beside what is there before anything changes. Then the old config is removed, and the
//! new one comes last: whoever stops in between leaves a folder without a config, which is not loaded, and never one
//! with the config of another file of weights. Everything here blocks.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_primitives::fs;
use pie_core::ErrorCode;
use sha2::{Digest as _, Sha256};

use crate::Error;
use crate::model::adapter_folders::{CONFIG, WEIGHTS};
use crate::model::adapters::Recipe;
use crate::scratch::change::{At, Change, Opened};
use crate::scratch::config::SCRATCH;
use crate::scratch::descriptor::OpenDescriptor;
use crate::scratch::folder::{Fault, Outcome};
use crate::scratch::opening::{self, Wanted};

/// What older versions of PEFT wrote in the place of the file of weights.
const PICKLED: &str = "adapter_model.bin";
const PIECE_BYTES: usize = 1 << 20;
const MAX_PATH_BYTES: usize = 4096;
/// The most bytes of a config.
const CONFIG_BYTES: u64 = 1 << 20;

/// Where a folder of an adapter lies: an open folder of the process, and the path within it.
pub(crate) struct AdapterFiles {
    pub(crate) dir: Arc<OpenDescriptor>,
    pub(crate) path: PathBuf,
}

impl AdapterFiles {
    /// The place of a path among the folders that a process is given. One that does not begin with `/` lies in
    /// `/scratch`.
    ///
    /// # Errors
    /// `invalid-argument` where it lies in none of them, or leads upwards.
    pub(crate) fn find(given: &[(Arc<OpenDescriptor>, String)], path: &str) -> Result<Self, Error> {
        let refused = |why: &str| {
            let message = format!(
                "the path of an adapter is {path:?}, which {why}; give one in {SCRATCH}, as {SCRATCH}/my-adapter"
            );
            Error::new(ErrorCode::InvalidArgument, message)
        };
        if path.is_empty() || path.len() > MAX_PATH_BYTES || path.contains('\0') {
            return Err(refused("is empty, too long or holds a NUL"));
        }
        let whole = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("{SCRATCH}/{path}"),
        };
        let within = |mount: &str| {
            let rest = whole.strip_prefix(mount)?;
            (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
        };
        let found = given
            .iter()
            .filter_map(|(dir, mount)| Some((dir, mount.len(), within(mount)?)));
        let Some((dir, _, rest)) = found.max_by_key(|(_, length, _)| *length) else {
            return Err(refused("lies in no folder of the program"));
        };
        let mut path = PathBuf::new();
        for component in Path::new(rest.trim_start_matches('/')).components() {
            match component {
                Component::Normal(name) => path.push(name),
                Component::CurDir => {}
                _ => return Err(refused("leads upwards")),
            }
        }
        if path.as_os_str().is_empty() {
            return Err(refused("names no folder within it"));
        }
        let dir = dir.clone();
        Ok(Self { dir, path })
    }

    /// Copies the files of an adapter to a folder that is made, and says what is in them.
    ///
    /// # Errors
    /// `invalid-adapter` where they are not there, or change meanwhile; `limit-adapters` where they have more than
    /// `most_bytes`; those of the system.
    pub(crate) fn copy_to(&self, folder: &Path, most_bytes: u64) -> Outcome<Recipe> {
        let from = fs::open_dir(self.dir.file(), &self.path);
        let from = from.map_err(|error| self.unreadable("the folder", &error))?;
        self.check_pickled(&from)?;
        std::fs::create_dir(folder)?;
        let config = self.copy_file(&from, folder, CONFIG, CONFIG_BYTES)?;
        let weights = self.copy_file(&from, folder, WEIGHTS, most_bytes)?;
        let config_behind = self.read_file(&from, CONFIG, CONFIG_BYTES, |_| Ok(()))?;
        if config_behind != config {
            return Err(self
                .invalid("its files were changed while they were read")
                .into());
        }
        Ok(Recipe::of_files(&config, &weights))
    }

    /// Copies a file, and returns the digest of its bytes.
    fn copy_file(&self, from: &File, folder: &Path, name: &str, most: u64) -> Outcome<[u8; 32]> {
        let mut copy = File::create_new(folder.join(name))?;
        self.read_file(from, name, most, |bytes| copy.write_all(bytes))
    }

    /// Reads a file piece by piece, and returns the digest of its bytes.
    fn read_file(
        &self,
        from: &File,
        name: &str,
        most: u64,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Outcome<[u8; 32]> {
        let wanted = Wanted {
            read: true,
            follow: true,
            ..Wanted::default()
        };
        let opened = opening::open(from, Path::new(name), &wanted);
        let (file, found) = opened.map_err(|error| self.unreadable(name, &error))?;
        if found.is_dir() {
            return Err(self.invalid(&format!("{name} is a folder")).into());
        }
        let mut digest = Sha256::new();
        // One byte more, by which it is noticed.
        let mut reading = file.take(most.saturating_add(1));
        let mut piece = vec![0; PIECE_BYTES];
        let mut n_bytes = 0u64;
        loop {
            let n = match reading.read(&mut piece) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            n_bytes += n as u64;
            if n_bytes > most {
                let message = format!(
                    "{name} in {:?} has more than the {most} bytes that are left for it; destroy adapters that nobody \
                     needs, or raise max_user_adapter_bytes",
                    self.path
                );
                return Err(Error::new(ErrorCode::LimitAdapters, message).into());
            }
            let bytes = piece.get(..n).unwrap_or_default();
            digest.update(bytes);
            take(bytes)?;
        }
        Ok(digest.finalize().into())
    }

    /// A pickle runs code of whoever made it.
    fn check_pickled(&self, from: &File) -> Result<(), Error> {
        let is_there =
            |name: &str| fs::stat(from, Path::new(name), fs::FollowSymlinks::Yes).is_ok();
        if is_there(PICKLED) && !is_there(WEIGHTS) {
            return Err(self.invalid(&format!(
                "{PICKLED} is pickled, and pickles run code of whoever made them; save it as {WEIGHTS}"
            )));
        }
        Ok(())
    }

    /// Writes the files of an adapter from its folder, in the place of those that there are.
    ///
    /// # Errors
    /// `limit-files`, and those of the system.
    pub(crate) fn save_from(
        change: &mut Change<'_>,
        dir: &File,
        path: &Path,
        folder: &Path,
    ) -> Outcome<()> {
        let mut above = PathBuf::new();
        for name in path.components() {
            above.push(name);
            match change.create_dir(dir, &above) {
                Ok(()) => {}
                Err(Fault::Io(error)) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(fault) => return Err(fault),
            }
        }
        let saved = Self::save_pair(change, dir, path, folder);
        if saved.is_err() {
            for name in [WEIGHTS, CONFIG] {
                // It is not there where it could not be made, or has got its name.
                drop(change.remove_file(dir, &part_of(path, name)));
            }
        }
        saved
    }

    fn save_pair(change: &mut Change<'_>, dir: &File, path: &Path, folder: &Path) -> Outcome<()> {
        for name in [WEIGHTS, CONFIG] {
            Self::write_file(change, dir, &part_of(path, name), &folder.join(name))?;
        }
        match change.remove_file(dir, &path.join(CONFIG)) {
            Ok(()) => {}
            Err(Fault::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Err(fault) => return Err(fault),
        }
        for name in [WEIGHTS, CONFIG] {
            let (part, whole) = (part_of(path, name), path.join(name));
            change.rename((dir, part.as_path()), (dir, whole.as_path()))?;
        }
        Ok(())
    }

    fn write_file(change: &mut Change<'_>, dir: &File, path: &Path, from: &Path) -> Outcome<()> {
        let wanted = Wanted {
            write: true,
            create: true,
            truncate: true,
            ..Wanted::default()
        };
        let Opened::File(file, _open) = change.open(dir, path, &wanted)? else {
            return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
        };
        let mut from = File::open(from)?;
        let mut piece = vec![0; PIECE_BYTES];
        let mut end = 0u64;
        loop {
            let n = from.read(&mut piece)?;
            if n == 0 {
                return Ok(());
            }
            let bytes = piece.get(..n).unwrap_or_default();
            change.write(&file.file, bytes, At::Position(end))?;
            end += n as u64;
        }
    }

    fn unreadable(&self, what: &str, error: &io::Error) -> Error {
        self.invalid(&format!("{what} cannot be read ({error})"))
    }

    fn invalid(&self, why: &str) -> Error {
        let path = &self.path;
        Error::new(
            ErrorCode::InvalidAdapter,
            format!(
                "the folder {path:?} holds no adapter: {why}; give one that PEFT or `save` wrote"
            ),
        )
    }
}

/// What a file is called until both are written.
fn part_of(path: &Path, name: &str) -> PathBuf {
    path.join(format!(".{name}.part"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_in_a_folder_of_the_program() {
        let dir = || {
            let folder = tempfile::tempdir().unwrap();
            Arc::new(OpenDescriptor::read_only(
                File::open(folder.path()).unwrap(),
            ))
        };
        let given = [
            (dir(), "/data".to_owned()),
            (dir(), SCRATCH.to_owned()),
            (dir(), "/data/more".to_owned()),
        ];
        for (path, mount, within) in [
            ("mine", 1, "mine"),
            ("a/./b/", 1, "a/b"),
            ("/scratch/a", 1, "a"),
            ("/data/x/y", 0, "x/y"),
            ("/data/more/x", 2, "x"),
            ("/data/moreover", 0, "moreover"),
        ] {
            let place = AdapterFiles::find(&given, path).unwrap();
            assert!(Arc::ptr_eq(&place.dir, &given[mount].0), "{path}");
            assert_eq!(place.path, Path::new(within), "{path}");
        }
        let long = "x".repeat(MAX_PATH_BYTES + 1);
        for path in [
            "",
            "/",
            "/etc/passwd",
            "/scratch",
            "/scratch/",
            "..",
            "a/../../b",
            "/scratch/../etc",
            "/scratchy/a",
            "a\0b",
            &long,
        ] {
            let Err(error) = AdapterFiles::find(&given, path) else {
                panic!("{path:?} was found");
            };
            assert_eq!(error.code, ErrorCode::InvalidArgument, "{path:?}");
            assert!(error.message.contains("/scratch"), "{}", error.message);
        }
    }
}
