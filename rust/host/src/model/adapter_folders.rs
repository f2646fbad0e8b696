//! Where the files of adapters lie while the engine runs: copies that no program can change, of which a driver that
//! comes in the place of another one reads them again.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pie_core::ErrorCode;
use tempfile::TempDir;

use crate::Error;
use crate::sync::lock;
use crate::temporary::{make_temporary, sweep};

/// The files of an adapter.
pub(crate) const CONFIG: &str = "adapter_config.json";
pub(crate) const WEIGHTS: &str = "adapter_model.safetensors";

/// The folder of the adapters of a model, which ends with it.
#[derive(Debug)]
pub(crate) struct AdapterFolders {
    /// What it lies in; none: the engine keeps no data.
    above: Option<PathBuf>,
    made: Mutex<Made>,
    left: Left,
}

/// Folders that nobody needs any more.
type Left = Arc<Mutex<Vec<PathBuf>>>;

/// The folder of one adapter. It is removed when nobody holds it any more: later, off the thread that drops it.
#[derive(Debug)]
pub(crate) struct AdapterFolder {
    path: PathBuf,
    left: Left,
}

#[derive(Debug, Default)]
struct Made {
    /// None: nobody has asked for it so far. It is locked as long as it is open.
    folder: Option<(TempDir, File)>,
    n_given: u64,
}

impl AdapterFolders {
    /// One within `above`, made when somebody asks for it.
    pub(super) fn new(above: Option<PathBuf>) -> Self {
        Self {
            above,
            made: Mutex::default(),
            left: Left::default(),
        }
    }

    /// A folder that is not there yet. It blocks, and removes what nobody needs any more.
    ///
    /// # Errors
    /// `files-off` where the engine keeps no data, and where the folder cannot be made.
    pub(crate) fn give(&self) -> Result<Arc<AdapterFolder>, Error> {
        let Some(above) = &self.above else {
            return Err(Error::new(
                ErrorCode::FilesOff,
                "the engine keeps no data, and adapters lie in files; set engine.data_dir",
            ));
        };
        // Whoever leaves folders must not wait until others are removed.
        let left = std::mem::take(&mut *lock(&self.left));
        for path in left {
            // What cannot be removed goes with the folder of all.
            drop(std::fs::remove_dir_all(path));
        }
        let mut made = lock(&self.made);
        made.n_given += 1;
        let name = made.n_given.to_string();
        if let Some((folder, _)) = &made.folder {
            return Ok(self.at(folder.path().join(name)));
        }
        sweep(above);
        let folder = make_temporary(above).map_err(|error| {
            Error::new(
                ErrorCode::FilesOff,
                format!("no folder for adapters can be made in engine.data_dir ({error}); see to the disk"),
            )
        })?;
        let path = folder.0.path().join(name);
        made.folder = Some(folder);
        Ok(self.at(path))
    }

    pub(super) fn at(&self, path: PathBuf) -> Arc<AdapterFolder> {
        let left = self.left.clone();
        Arc::new(AdapterFolder { path, left })
    }
}

impl AdapterFolder {
    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of its files.
    pub(super) fn n_bytes(&self) -> u64 {
        let entries = std::fs::read_dir(&self.path);
        let entries = entries.into_iter().flatten().flatten();
        let sizes = entries.filter_map(|entry| Some(entry.metadata().ok()?.len()));
        sizes.fold(0, u64::saturating_add)
    }
}

impl Drop for AdapterFolder {
    fn drop(&mut self) {
        lock(&self.left).push(std::mem::take(&mut self.path));
    }
}
