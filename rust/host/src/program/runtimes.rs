//! Language runtimes that outlive the engine which brought them: programs name the one that they were built for by its
//! digest.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::component::Component;
use super::packed::hex;

/// Runtimes that are kept; beyond, the one that was used longest ago is removed.
const MAX_RUNTIMES: usize = 8;
/// The longest runtime that is read.
const MAX_RUNTIME_BYTES: u64 = 256 << 20;
/// How the names of runtimes end.
const SUFFIX: &str = ".wasm";

/// The folder of the runtimes that an engine has run with.
#[derive(Debug)]
pub(crate) struct KeptRuntimes {
    dir: PathBuf,
}

impl KeptRuntimes {
    /// The folder below the engine's data; it is made when something is kept.
    pub(crate) fn new(data_dir: &Path) -> Self {
        Self {
            dir: data_dir.join("runtimes"),
        }
    }

    /// The runtime of a digest; none when it is not there, or is not what its name says.
    pub(crate) fn load(&self, digest: &[u8; 32]) -> Option<Component> {
        let mut file = File::open(self.path(digest)).ok()?;
        let status = file.metadata().ok()?;
        if !status.is_file() || status.len() > MAX_RUNTIME_BYTES {
            return None;
        }
        let mut bytes = Vec::new();
        Read::by_ref(&mut file)
            .take(MAX_RUNTIME_BYTES)
            .read_to_end(&mut bytes)
            .ok()?;
        // Marks the time of use; a folder that cannot be written only loses the order of removal.
        drop(file.set_modified(SystemTime::now()));
        let component = Component::new(bytes);
        (component.digest == *digest).then_some(component)
    }

    /// True when the runtime of a digest is there.
    pub(crate) fn has(&self, digest: &[u8; 32]) -> bool {
        self.path(digest).is_file()
    }

    /// Keeps a runtime. A failure is not an error: programs that name it run as long as this engine brings it.
    pub(crate) fn keep(&self, component: &Component) {
        drop(self.write(component));
    }

    fn path(&self, digest: &[u8; 32]) -> PathBuf {
        self.dir.join(format!("{}{SUFFIX}", hex(digest)))
    }

    /// Writes beside the final name and renames, so that a reader finds a whole file or none.
    fn write(&self, component: &Component) -> io::Result<()> {
        let path = self.path(&component.digest);
        let n_bytes = component.bytes.len() as u64;
        if path
            .metadata()
            .is_ok_and(|status| status.is_file() && status.len() == n_bytes)
        {
            return File::open(path)?.set_modified(SystemTime::now());
        }
        fs::create_dir_all(&self.dir)?;
        let mut file = tempfile::Builder::new()
            .prefix(".new-")
            .tempfile_in(&self.dir)?;
        file.write_all(&component.bytes)?;
        // Nothing makes the runtime again once an engine with another one is installed.
        file.as_file().sync_all()?;
        file.persist(path)?;
        self.prune()
    }

    fn prune(&self) -> io::Result<()> {
        let mut runtimes = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let status = entry.metadata()?;
            if status.is_file() && entry.file_name().to_string_lossy().ends_with(SUFFIX) {
                runtimes.push((status.modified()?, entry.path()));
            }
        }
        runtimes.sort();
        let n_surplus = runtimes.len().saturating_sub(MAX_RUNTIMES);
        for (_, path) in runtimes.into_iter().take(n_surplus) {
            fs::remove_file(path)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_found_by_its_digest_as_long_as_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let kept = KeptRuntimes::new(dir.path());
        let runtime = Component::new(*b"a runtime");
        assert!(kept.load(&runtime.digest).is_none());
        kept.keep(&runtime);
        assert_eq!(kept.load(&runtime.digest).unwrap().bytes[..], *b"a runtime");
        fs::write(kept.path(&runtime.digest), b"cut").unwrap();
        assert!(kept.load(&runtime.digest).is_none());
        kept.keep(&runtime);
        assert_eq!(kept.load(&runtime.digest).unwrap().bytes[..], *b"a runtime");
    }

    #[test]
    fn the_one_used_longest_ago_goes() {
        let dir = tempfile::tempdir().unwrap();
        let kept = KeptRuntimes::new(dir.path());
        let runtimes: Vec<Component> = (0..MAX_RUNTIMES as u8 + 1)
            .map(|number| Component::new([number]))
            .collect();
        for (age, runtime) in runtimes.iter().enumerate().take(MAX_RUNTIMES) {
            kept.keep(runtime);
            let used = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(age as u64);
            File::open(kept.path(&runtime.digest))
                .unwrap()
                .set_modified(used)
                .unwrap();
        }
        assert!(kept.load(&runtimes[0].digest).is_some());
        kept.keep(&runtimes[MAX_RUNTIMES]);
        let left: Vec<bool> = runtimes
            .iter()
            .map(|runtime| kept.path(&runtime.digest).exists())
            .collect();
        let mut expected = vec![true; MAX_RUNTIMES + 1];
        expected[1] = false;
        assert_eq!(left, expected);
    }
}
