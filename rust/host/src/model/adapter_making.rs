//! Versions of adapters that the driver makes or reads.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use pie_core::{AdapterName, Command, ErrorCode, ProcessId, Submission, UserId};
use sha2::{Digest as _, Sha256};
use tokio::task::spawn_blocking;

use super::Model;
use super::adapter_folders::{AdapterFolder, CONFIG, WEIGHTS};
use super::adapters::{Recipe, Version};
use crate::Error;
use crate::errors::stopped;

const PIECE_BYTES: usize = 1 << 20;

/// A version while the driver makes or reads it. Where nobody waits for that to its end, the version is kept as long as
/// the driver may be at it, so that its folder is removed behind that.
struct Coming<'a> {
    model: &'a Model,
    version: Arc<Version>,
    is_there: bool,
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        if !self.is_there {
            self.model.adapters.abandon(self.version.clone());
            // Where no command runs, it is dropped at once.
            self.model.with_engine(|_| ());
        }
    }
}

impl Model {
    /// A version of a user, whose weights the driver makes in `folder` by the command that is made of a name and that
    /// path.
    ///
    /// # Errors
    /// As [`Model::make_draft`] and [`Model::finish`].
    pub(crate) async fn make_version(
        &self,
        asker: (UserId, ProcessId),
        recipe: Recipe,
        folder: Arc<AdapterFolder>,
        command: impl FnOnce(AdapterName, String) -> Command,
    ) -> Result<Arc<Version>, Error> {
        let draft = self.make_draft(asker, recipe, folder, command).await?;
        self.finish(asker, draft).await
    }

    /// The same, which the driver knows by `recipe` so far. Nobody but this call of a program may have it.
    ///
    /// # Errors
    /// Those of the command; `limit-adapters`; `invalid-config` for a path that is not text.
    pub(crate) async fn make_draft(
        &self,
        (user, process): (UserId, ProcessId),
        recipe: Recipe,
        folder: Arc<AdapterFolder>,
        command: impl FnOnce(AdapterName, String) -> Command,
    ) -> Result<Arc<Version>, Error> {
        let coming = self.adapters.new_version(user, recipe, folder);
        self.come(process, coming, command).await
    }

    /// A draft under the identity of its files.
    ///
    /// # Errors
    /// As [`Model::read_version`]; `driver-failed` where the driver has written no files that can be read.
    pub(crate) async fn finish(
        &self,
        asker: (UserId, ProcessId),
        draft: Arc<Version>,
    ) -> Result<Arc<Version>, Error> {
        let folder = draft.folder.clone();
        let written = folder.clone();
        let reading = spawn_blocking(move || recipe_of(written.path()));
        let files = reading.await.map_err(|_| stopped())?.map_err(|error| {
            let message =
                format!("the driver wrote no adapter that can be read ({error}); see to the disk");
            Error::new(ErrorCode::DriverFailed, message)
        })?;
        // The driver forgets the draft before it reads the files: it needs no room for both.
        drop(draft);
        self.read_version(asker, files, folder).await
    }

    /// A version of a user, whose files are in `folder` and have that recipe. The driver reads them.
    ///
    /// # Errors
    /// As [`Model::make_draft`].
    pub(crate) async fn read_version(
        &self,
        (user, process): (UserId, ProcessId),
        files: Recipe,
        folder: Arc<AdapterFolder>,
    ) -> Result<Arc<Version>, Error> {
        let coming = self.adapters.new_version(user, files, folder);
        let command = |adapter, path| Command::LoadAdapter { adapter, path };
        self.come(process, coming, command).await
    }

    /// Has the driver make or read a version, and charges its user with the files.
    async fn come(
        &self,
        process: ProcessId,
        version: Arc<Version>,
        command: impl FnOnce(AdapterName, String) -> Command,
    ) -> Result<Arc<Version>, Error> {
        let Some(path) = version.folder.path().to_str().map(str::to_owned) else {
            return Err(Error::new(
                ErrorCode::InvalidConfig,
                "the path of engine.data_dir is not UTF-8, and drivers are told of adapters by text; name another",
            ));
        };
        let submission = Submission::Command(Some(process), command(version.name, path));
        let mut coming = Coming {
            model: self,
            version: version.clone(),
            is_there: false,
        };
        self.commanded(submission).await?;
        coming.is_there = true;
        self.with_engine(|engine| version.note_read(engine));
        let folder = version.folder.clone();
        let counting = spawn_blocking(move || folder.n_bytes());
        version.charge(counting.await.map_err(|_| stopped())?)?;
        Ok(version)
    }
}

/// The recipe of the files that a folder holds.
fn recipe_of(folder: &Path) -> io::Result<Recipe> {
    let digest = |name: &str| -> io::Result<[u8; 32]> {
        let mut file = File::open(folder.join(name))?;
        let mut digest = Sha256::new();
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match file.read(&mut piece) {
                Ok(0) => return Ok(digest.finalize().into()),
                Ok(n) => digest.update(piece.get(..n).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    };
    Ok(Recipe::of_files(&digest(CONFIG)?, &digest(WEIGHTS)?))
}
