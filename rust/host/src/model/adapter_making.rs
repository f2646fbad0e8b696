//! Versions of adapters that the driver makes or reads.

use std::path::PathBuf;
use std::sync::Arc;

use pie_core::{AdapterName, Command, ErrorCode, ProcessId, Submission, UserId};
use tokio::task::spawn_blocking;

use super::Model;
use super::adapter_folders::AdapterFolders;
use super::adapters::{Recipe, Version};
use crate::Error;
use crate::errors::stopped;

impl Model {
    /// A version of a user, whose weights the driver makes or reads in `folder` by the command that is made of its name
    /// and that path. It has so many bytes in the end.
    ///
    /// # Errors
    /// Those of the command; `limit-adapters`; `invalid-config` for a path that is not text.
    pub(crate) async fn make_version(
        &self,
        (user, process): (UserId, ProcessId),
        recipe: Recipe,
        folder: PathBuf,
        command: impl FnOnce(AdapterName, String) -> Command,
    ) -> Result<Arc<Version>, Error> {
        let version = self.adapters.new_version(user, recipe, folder);
        let Some(path) = version.folder.to_str().map(str::to_owned) else {
            return Err(Error::new(
                ErrorCode::InvalidConfig,
                "the path of engine.data_dir is not UTF-8, and drivers are told of adapters by text; name another",
            ));
        };
        let submission = Submission::Command(Some(process), command(version.name, path));
        self.commanded(submission).await?;
        let folder = version.folder.clone();
        let counting = spawn_blocking(move || AdapterFolders::n_bytes(&folder));
        version.charge(counting.await.map_err(|_| stopped())?)?;
        Ok(version)
    }
}
