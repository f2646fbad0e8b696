//! Where the files of adapters lie while the engine runs: copies that no program can change, of which a driver that
//! comes in the place of another one reads them again.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use pie_core::ErrorCode;
use tempfile::TempDir;

use crate::Error;
use crate::sync::lock;
use crate::temporary::{make_temporary, sweep};

/// The folder of the adapters of a model, which ends with it.
#[derive(Debug)]
pub(crate) struct AdapterFolders {
    /// What it lies in; none: the engine keeps no data.
    above: Option<PathBuf>,
    made: Mutex<Made>,
    /// Folders that nobody needs any more.
    left: Mutex<Vec<PathBuf>>,
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
            left: Mutex::default(),
        }
    }

    /// The path of a folder that is not there yet. It blocks, and removes what nobody needs any more.
    ///
    /// # Errors
    /// `files-off` where the engine keeps no data, and where the folder cannot be made.
    pub(crate) fn give(&self) -> Result<PathBuf, Error> {
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
            return Ok(folder.path().join(name));
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
        Ok(path)
    }

    /// Nobody needs these any more. They are removed later, off this thread.
    pub(super) fn leave(&self, folders: Vec<PathBuf>) {
        lock(&self.left).extend(folders);
    }

    /// Bytes of the files of an adapter.
    pub(super) fn n_bytes(folder: &Path) -> u64 {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let sizes = entries.filter_map(|entry| Some(entry.metadata().ok()?.len()));
        sizes.fold(0, u64::saturating_add)
    }
}
