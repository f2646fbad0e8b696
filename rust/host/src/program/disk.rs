//! Compiled components on disk: a folder of this user's, where a file is used only when nobody else can have written it
//! and it is whole.

#![expect(
    unsafe_code,
    reason = "machine code from the cache is mapped; it is what this engine wrote, checked by owner, mode and checksum"
)]

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pie_core::ErrorCode;
use wasmtime::Engine;
use wasmtime::component::Component;

use super::packed::hex;
use crate::Error;

/// Bytes that the folder may hold; beyond, what was used longest ago is removed.
const MAX_BYTES: u64 = 2 << 30;
/// How the names of compiled components end.
const SUFFIX: &str = ".cwasm";

/// How the names of files begin that are being written.
const UNFINISHED: &str = ".new-";

/// Bytes of the checksum that stands behind the machine code in each file. It finds damage; owner and mode keep others
/// out.
const CHECKSUM_BYTES: usize = size_of::<u32>();

/// The folder.
#[derive(Debug)]
pub(crate) struct DiskCache {
    dir: PathBuf,
    owner: u32,
}

impl DiskCache {
    /// Opens the folder, and makes it where it is missing, for this user alone.
    ///
    /// # Errors
    /// `invalid-config` when it cannot be made, or when others own it or may write to it.
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        let refused = |reason: String| {
            Error::new(
                ErrorCode::InvalidConfig,
                format!(
                    "the cache folder {} cannot be used: {reason}",
                    dir.display()
                ),
            )
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(|error| refused(error.to_string()))?;
        let status = fs::metadata(dir).map_err(|error| refused(error.to_string()))?;
        // SAFETY: the call takes and gives plain numbers.
        let owner = unsafe { libc::geteuid() };
        if status.uid() != owner || status.mode() & 0o022 != 0 {
            return Err(refused(
                "others own it or may write to it; give a folder of your own with mode 0700"
                    .to_owned(),
            ));
        }
        Ok(Self {
            dir: dir.to_owned(),
            owner,
        })
    }

    /// The component that was stored under `digest` by an engine like `engine`; none when there is none that can be
    /// trusted.
    pub(crate) fn load(&self, engine: &Engine, digest: &[u8; 32]) -> Option<Component> {
        let path = self.path(engine, digest);
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)
            .ok()?;
        if !self.is_ours(&file) || !is_whole(&mut file).unwrap_or(false) {
            return None;
        }
        // Marks the time of use; a folder that cannot be written only loses the order of removal.
        drop(file.set_modified(SystemTime::now()));
        // SAFETY: this engine wrote the file, as the same user, in a form that wasmtime checks against its version and
        // configuration. Owner, mode and checksum were checked, and nobody else can put another file in its place: the
        // folder is closed to them.
        unsafe { Component::deserialize_file(engine, path) }.ok()
    }

    /// True when there is a file under `digest`; it may turn out that it cannot be trusted.
    pub(crate) fn has(&self, engine: &Engine, digest: &[u8; 32]) -> bool {
        self.path(engine, digest).is_file()
    }

    /// Stores the machine code of a component. A failure is not an error for the program: it is compiled again the next
    /// time.
    pub(crate) fn store(&self, engine: &Engine, digest: &[u8; 32], code: &[u8]) {
        drop(self.write(&self.path(engine, digest), code));
        drop(self.prune());
    }

    fn path(&self, engine: &Engine, digest: &[u8; 32]) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        self.dir
            .join(format!("{}-{:016x}{SUFFIX}", hex(digest), hasher.finish()))
    }

    fn is_ours(&self, file: &File) -> bool {
        file.metadata().is_ok_and(|status| {
            status.is_file() && status.uid() == self.owner && status.mode() & 0o022 == 0
        })
    }

    /// Writes beside the final name and renames, so that a reader finds a whole file or none.
    fn write(&self, path: &Path, code: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(&self.dir)?;
        file.write_all(code)?;
        file.write_all(&crc32fast::hash(code).to_le_bytes())?;
        file.persist(path)?;
        Ok(())
    }

    fn prune(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let ours = name.ends_with(SUFFIX) || name.starts_with(UNFINISHED);
            let status = entry.metadata()?;
            if ours && status.is_file() {
                files.push((status.modified()?, status.len(), entry.path()));
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, n_bytes, _)| n_bytes).sum();
        for (_, n_bytes, path) in files {
            if total <= MAX_BYTES {
                break;
            }
            fs::remove_file(path)?;
            total -= n_bytes;
        }
        Ok(())
    }
}

/// The component of machine code that a worker of ours has just made.
///
/// # Errors
/// Those of wasmtime, where the worker was another version.
pub(crate) fn load_code(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the code comes through a pipe from the process that this engine started to compile it.
    unsafe { Component::deserialize(engine, code) }
}

/// True when the checksum at the end of the file is that of what stands before it.
fn is_whole(file: &mut File) -> io::Result<bool> {
    let Some(mut n_left) = file.metadata()?.len().checked_sub(CHECKSUM_BYTES as u64) else {
        return Ok(false);
    };
    let mut hasher = crc32fast::Hasher::new();
    let mut chunk = vec![0; 1 << 20];
    while n_left > 0 {
        let n_bytes = usize::try_from(n_left)
            .unwrap_or(usize::MAX)
            .min(chunk.len());
        file.read_exact(&mut chunk[..n_bytes])?;
        hasher.update(&chunk[..n_bytes]);
        n_left -= n_bytes as u64;
    }
    let mut checksum = [0; CHECKSUM_BYTES];
    file.read_exact(&mut checksum)?;
    Ok(hasher.finalize() == u32::from_le_bytes(checksum))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn stored() -> (tempfile::TempDir, DiskCache, Engine, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let cache = DiskCache::open(&dir.path().join("cache")).unwrap();
        let engine = Engine::default();
        let code = engine.precompile_component(b"(component)").unwrap();
        cache.store(&engine, &KEY, &code);
        let path = cache.path(&engine, &KEY);
        (dir, cache, engine, path)
    }

    #[test]
    fn what_was_stored_is_loaded() {
        let (_dir, cache, engine, _) = stored();
        assert!(cache.load(&engine, &KEY).is_some());
        assert!(cache.load(&engine, &[8; 32]).is_none());
        assert_eq!(
            fs::metadata(&cache.dir).unwrap().permissions().mode() & 0o777,
            0o700
        );
    }

    #[test]
    fn a_file_that_was_changed_or_cut_is_not_loaded() {
        let (_dir, cache, engine, path) = stored();
        let whole = fs::read(&path).unwrap();
        let mut changed = whole.clone();
        changed[whole.len() / 2] ^= 1;
        for content in [&changed[..], &whole[..whole.len() - 1], &whole[..10], &[]] {
            fs::write(&path, content).unwrap();
            assert!(cache.load(&engine, &KEY).is_none());
        }
        fs::write(&path, &whole).unwrap();
        assert!(cache.load(&engine, &KEY).is_some());
    }

    #[test]
    fn a_file_that_others_may_write_is_not_loaded() {
        let (_dir, cache, engine, path) = stored();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(cache.load(&engine, &KEY).is_none());
    }

    #[test]
    fn a_link_is_not_followed() {
        let (dir, cache, engine, path) = stored();
        let elsewhere = dir.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert!(cache.load(&engine, &KEY).is_none());
    }

    #[test]
    fn a_folder_that_others_may_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = DiskCache::open(dir.path()).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidConfig);
        assert!(error.message.contains("0700"), "{}", error.message);
    }
}
