//! The files of adapters, between the folders of a process and those of a model.
//!
//! What is loaded is copied first, so that a driver reads what no program can change meanwhile. What is saved is put
//! in the place of files of the same names, each at once. Everything here blocks.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_primitives::fs;
use pie_core::ErrorCode;
use sha2::{Digest as _, Sha256};

use crate::Error;
use crate::model::adapters::Recipe;
use crate::scratch::change::{At, Change, Opened};
use crate::scratch::config::SCRATCH;
use crate::scratch::descriptor::OpenDescriptor;
use crate::scratch::folder::{Fault, Outcome};
use crate::scratch::opening::{self, Wanted};

/// The files of an adapter.
const CONFIG: &str = "adapter_config.json";
const WEIGHTS: &str = "adapter_model.safetensors";
/// What older versions of PEFT wrote in its place.
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
        let found = given.iter().filter_map(|(dir, mount)| Some((dir, mount.len(), within(mount)?)));
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
    /// `invalid-adapter` where they are not there; `limit-adapters` where they have more than `most_bytes`; those of
    /// the system.
    pub(crate) fn copy_to(&self, folder: &Path, most_bytes: u64) -> Outcome<Recipe> {
        let from = fs::open_dir(self.dir.file(), &self.path);
        let from = from.map_err(|error| self.unreadable("the folder", &error))?;
        self.check_pickled(&from)?;
        std::fs::create_dir(folder)?;
        let copied = self.copy_files(&from, folder, most_bytes);
        if copied.is_err() {
            // What is left goes with the folder of all.
            drop(std::fs::remove_dir_all(folder));
        }
        copied
    }

    fn copy_files(&self, from: &File, folder: &Path, most_bytes: u64) -> Outcome<Recipe> {
        let config = self.copy_file(from, folder, CONFIG, CONFIG_BYTES)?;
        let weights = self.copy_file(from, folder, WEIGHTS, most_bytes)?;
        Ok(Recipe::new("files", &[&config, &weights]))
    }

    /// Copies a file, and returns the digest of its bytes.
    fn copy_file(&self, from: &File, folder: &Path, name: &str, most: u64) -> Outcome<[u8; 32]> {
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
        let mut copy = File::create_new(folder.join(name))?;
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
            copy.write_all(bytes)?;
        }
        Ok(digest.finalize().into())
    }

    /// A pickle runs code of whoever made it.
    fn check_pickled(&self, from: &File) -> Result<(), Error> {
        let is_there = |name: &str| fs::stat(from, Path::new(name), fs::FollowSymlinks::Yes).is_ok();
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
        for name in [WEIGHTS, CONFIG] {
            let (part, whole) = (path.join(format!(".{name}.part")), path.join(name));
            let mut written = Self::write_file(change, dir, &part, &folder.join(name));
            if written.is_ok() {
                written = change.rename((dir, part.as_path()), (dir, whole.as_path()));
            }
            if written.is_err() {
                // It is not there where it could not be made.
                drop(change.remove_file(dir, &part));
            }
            written?;
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
            format!("the folder {path:?} holds no adapter: {why}; give one that PEFT or `save` wrote"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_in_a_folder_of_the_program() {
        let dir = || {
            let folder = tempfile::tempdir().unwrap();
            Arc::new(OpenDescriptor::read_only(File::open(folder.path()).unwrap()))
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
            "", "/", "/etc/passwd", "/scratch", "/scratch/", "..", "a/../../b", "/scratch/../etc",
            "/scratchy/a", "a\0b", &long,
        ] {
            let Err(error) = AdapterFiles::find(&given, path) else {
                panic!("{path:?} was found");
            };
            assert_eq!(error.code, ErrorCode::InvalidArgument, "{path:?}");
            assert!(error.message.contains("/scratch"), "{}", error.message);
        }
    }
}
