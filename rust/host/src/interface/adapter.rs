//! `pie:core/adapter`: adapters by name.

use std::io;
use std::sync::Arc;

use pie_core::{AdapterName, Command, ErrorCode, ProcessId, UserId};
use wasmtime::component::{Linker, Resource};

use super::bindings::pie::core::adapter::{self, Change, HostAdapter};
use super::errors::CallResult;
use super::model::ModelHandle;
use super::view::view;
use crate::Error;
use crate::model::Model;
use crate::model::adapter_folders::AdapterFolder;
use crate::model::adapters::{Recipe, Version};
use crate::process::adapter_files::AdapterFiles;
use crate::process::handles::HandleTable;
use crate::process::joined::Joined;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;
use crate::scratch::folder::{Fault, Outcome};
use crate::scratch::process_files::ProcessFiles;

/// The most of a rank; drivers may take less.
const MAX_RANK: u32 = 512;
/// The most of an alpha, and of the size of a factor.
const MAX_FACTOR: f32 = 1e9;
/// By how much a new adapter is perturbed.
const SIGMA: f32 = 0.02;
/// The most changes of one call.
const MAX_CHANGES: usize = 1 << 16;
/// Bytes of noise that one command adds: a driver makes them in a small part of a second.
const WORK_BYTES: u64 = 64 << 20;

/// What stands behind an `adapter` handle: a name of the user. The adapter may be destroyed meanwhile.
#[derive(Clone, Debug)]
pub struct AdapterHandle {
    model: Arc<Model>,
    name: Arc<str>,
}

impl AdapterHandle {
    /// What the adapter of a model is now, for the programs of a user.
    ///
    /// # Errors
    /// `adapter-missing`; `invalid-argument` where it belongs to another model.
    pub(super) fn version(&self, model: &Arc<Model>, user: &str) -> Result<Arc<Version>, Error> {
        if !Arc::ptr_eq(&self.model, model) {
            return Err(refused(format!(
                "the adapter {:?} belongs to the model {:?}, not to {:?}; make one of that model",
                self.name,
                self.model.name(),
                model.name()
            )));
        }
        self.model.adapters.find(self.model.user(user), &self.name)
    }
}

view! {
    /// Adapters, the models that know the process, and its files.
    Adapters { table: HandleTable, joined: Joined, files: ProcessFiles, record: Arc<ProcessRecord> }
}

impl Adapters<'_> {
    /// The model behind a handle, which serves adapters and knows the process.
    ///
    /// # Errors
    /// `unsupported`.
    fn model(&mut self, handle: &Resource<ModelHandle>) -> CallResult<Arc<Model>> {
        let model = self.table.get(handle)?.0.clone();
        if !model.serves_adapters() {
            let message = format!(
                "there are no adapters on this driver, that of {}; run the model on another one",
                model.name()
            );
            return Err(Error::new(ErrorCode::Unsupported, message).into());
        }
        self.joined.join(&model)?;
        Ok(model)
    }

    /// Who asks the model.
    fn asker(&self, model: &Model) -> (UserId, ProcessId) {
        (model.user(&self.record.username), self.joined.process_id())
    }

    fn push(&mut self, model: Arc<Model>, name: &str) -> CallResult<Resource<AdapterHandle>> {
        let name = name.into();
        Ok(self.table.push(AdapterHandle { model, name })?)
    }

    /// The adapter behind a handle, and what it is now.
    fn found(
        &mut self,
        this: &Resource<AdapterHandle>,
    ) -> CallResult<(AdapterHandle, Arc<Version>)> {
        let handle = self.table.get(this)?.clone();
        self.joined.join(&handle.model)?;
        let version = handle.version(&handle.model, &self.record.username)?;
        Ok((handle, version))
    }

    /// Work on files, off this thread.
    async fn run<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> Outcome<T> + Send + 'static,
    ) -> Result<T, Error> {
        let done = self.files.turns().run(work).await;
        done.flatten().map_err(failed)
    }

    /// A folder for a version that comes, where its user may have more.
    async fn folder(
        &mut self,
        model: &Arc<Model>,
        user: UserId,
    ) -> Result<Arc<AdapterFolder>, Error> {
        model.adapters.bytes_left(user)?;
        let model = model.clone();
        self.run(move || Ok(model.adapters.folders.give()?)).await
    }

    /// A version with these changes. Where there are many, they are made in parts: batches of others go between.
    async fn changed(
        &mut self,
        model: &Arc<Model>,
        former: &Arc<Version>,
        changes: &[Change],
        sigma: Option<f32>,
    ) -> Result<Arc<Version>, Error> {
        let asker = self.asker(model);
        let n_at_once = WORK_BYTES / former.n_bytes().max(1);
        let n_at_once = usize::try_from(n_at_once).unwrap_or(MAX_CHANGES);
        let changes = changes
            .iter()
            .map(|it| (it.seed.cast_unsigned(), it.factor));
        let changes: Vec<(u64, f32)> = changes.collect();
        let (mut version, mut start) = (former.clone(), 0);
        loop {
            let end = changes.len().min(start + n_at_once.clamp(1, MAX_CHANGES));
            let is_last = end == changes.len();
            let sigma = sigma.filter(|_| is_last);
            let recipe = recipe_of(former, &changes[..end], sigma);
            let folder = self.folder(model, asker.0).await?;
            let (from, part) = (version.name, Arc::from(&changes[start..end]));
            let command = move |to: AdapterName, path| Command::ChangeAdapter {
                from,
                to,
                path,
                sigma,
                changes: part,
            };
            version = model.make_draft(asker, recipe, folder, command).await?;
            if is_last {
                return model.finish(asker, version).await;
            }
            start = end;
        }
    }

    /// The place of a path among the folders of the program.
    async fn place(&mut self, path: &str) -> Result<AdapterFiles, Error> {
        self.files
            .find()
            .await
            .map_err(|error| failed(error.into()))?;
        let found = AdapterFiles::find(self.files.given(), path);
        // Where the program has no folder of its own, it is told why.
        found.map_err(|error| self.files.refusals().off().unwrap_or(error))
    }
}

impl adapter::Host for Adapters<'_> {}

impl HostAdapter for Adapters<'_> {
    async fn create(
        &mut self,
        model: Resource<ModelHandle>,
        name: String,
        rank: u32,
        alpha: f32,
    ) -> CallResult<Resource<AdapterHandle>> {
        let model = self.model(&model)?;
        if !(1..=MAX_RANK).contains(&rank) {
            return Err(refused(format!("the rank is {rank}; it must be 1 to {MAX_RANK}")).into());
        }
        if alpha.is_nan() || alpha.abs() > MAX_FACTOR {
            let message = format!("alpha is {alpha}; it must be a number up to {MAX_FACTOR:e}");
            return Err(refused(message).into());
        }
        let (user, process) = self.asker(&model);
        model.adapters.check_new(user, &name)?;
        // The handle of an adapter that was made must not be lost because the table is full.
        self.table.make_room()?;
        let folder = self.folder(&model, user).await?;
        let recipe = Recipe::new("create", &[&rank.to_le_bytes(), &alpha.to_le_bytes()]);
        let command = |adapter, path| Command::CreateAdapter {
            adapter,
            path,
            rank,
            alpha,
            sigma: SIGMA,
        };
        let made = model.make_version((user, process), recipe, folder, command);
        let made = made.await?;
        let called = self.record.username.as_str();
        model.adapters.name((user, called), &name, made)?;
        self.push(model, &name)
    }

    fn open(
        &mut self,
        model: Resource<ModelHandle>,
        name: String,
    ) -> CallResult<Resource<AdapterHandle>> {
        let model = self.model(&model)?;
        model.adapters.find(self.asker(&model).0, &name)?;
        self.push(model, &name)
    }

    fn names(&mut self, model: Resource<ModelHandle>) -> CallResult<Vec<String>> {
        let model = self.model(&model)?;
        Ok(model.adapters.names(self.asker(&model).0))
    }

    fn fork(
        &mut self,
        this: Resource<AdapterHandle>,
        name: String,
    ) -> CallResult<Resource<AdapterHandle>> {
        let (AdapterHandle { model, .. }, version) = self.found(&this)?;
        self.table.make_room()?;
        let asker = (self.asker(&model).0, self.record.username.as_str());
        model.adapters.name(asker, &name, version)?;
        self.push(model, &name)
    }

    async fn save(&mut self, this: Resource<AdapterHandle>, path: String) -> CallResult<()> {
        let (_, version) = self.found(&this)?;
        let AdapterFiles { dir, path } = self.place(&path).await?;
        let target = dir.changeable_dir().map_err(|_| {
            let message =
                format!("the folder {path:?} can only be read; save adapters in /scratch");
            refused(message)
        })?;
        let saving = target.change(self.files.turns(), move |change, dir| {
            // The version is held until it is written.
            AdapterFiles::save_from(change, dir, &path, version.folder.path())
        });
        Ok(saving.await.map_err(failed)?)
    }

    async fn load(&mut self, this: Resource<AdapterHandle>, path: String) -> CallResult<()> {
        let (AdapterHandle { model, name }, _) = self.found(&this)?;
        let place = self.place(&path).await?;
        let (user, process) = self.asker(&model);
        let most_bytes = model.adapters.bytes_left(user)?;
        let folder = self.folder(&model, user).await?;
        let to = folder.clone();
        let files = self
            .run(move || place.copy_to(to.path(), most_bytes))
            .await?;
        let made = model.read_version((user, process), files, folder).await?;
        Ok(model.adapters.replace(user, &name, None, made)?)
    }

    async fn change(
        &mut self,
        this: Resource<AdapterHandle>,
        changes: Vec<Change>,
        sigma: Option<f32>,
    ) -> CallResult<()> {
        let (AdapterHandle { model, name }, former) = self.found(&this)?;
        check_changes(&changes, sigma)?;
        let user = self.asker(&model).0;
        let changed = self.changed(&model, &former, &changes, sigma).await?;
        Ok(model
            .adapters
            .replace(user, &name, Some(&former), changed)?)
    }

    fn destroy(&mut self, this: Resource<AdapterHandle>) -> CallResult<()> {
        let (AdapterHandle { model, name }, _) = self.found(&this)?;
        Ok(model.destroy_adapter(self.asker(&model).0, &name)?)
    }

    fn drop(&mut self, this: Resource<AdapterHandle>) -> wasmtime::Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

/// That changes can be made.
fn check_changes(changes: &[Change], sigma: Option<f32>) -> Result<(), Error> {
    if changes.len() > MAX_CHANGES {
        return Err(refused(format!(
            "there are {} changes; give at most {MAX_CHANGES} at once",
            changes.len()
        )));
    }
    let is_factor = |factor: f32| factor.abs() <= MAX_FACTOR;
    if let Some(change) = changes.iter().find(|change| !is_factor(change.factor)) {
        return Err(refused(format!(
            "the factor of the seed {} is {}; it must be a number from -{MAX_FACTOR:e} to {MAX_FACTOR:e}",
            change.seed, change.factor
        )));
    }
    match sigma {
        Some(sigma) if !(0.0..=MAX_FACTOR).contains(&sigma) => Err(refused(format!(
            "sigma is {sigma}; it must be a number from 0 to {MAX_FACTOR:e}"
        ))),
        _ => Ok(()),
    }
}

fn recipe_of(former: &Version, changes: &[(u64, f32)], sigma: Option<f32>) -> Recipe {
    let sigma = sigma.map_or_else(Vec::new, |sigma| sigma.to_le_bytes().to_vec());
    let changes = changes.iter().flat_map(|(seed, factor)| {
        let (seed, factor) = (seed.to_le_bytes(), factor.to_le_bytes());
        seed.into_iter().chain(factor)
    });
    let changes: Vec<u8> = changes.collect();
    Recipe::new("change", &[former.recipe.as_bytes(), &sigma, &changes])
}

fn refused(message: String) -> Error {
    Error::new(ErrorCode::InvalidArgument, message)
}

/// The error of work on files. A program learns no path of the machine.
fn failed(fault: Fault) -> Error {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let error = match fault {
        Fault::Refused(error) => return error,
        Fault::Io(error) => error,
    };
    // No other path is on another disk.
    let (code, remedy) = match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => (
            ErrorCode::DiskFull,
            "delete files, or have whoever runs the engine make room",
        ),
        ReadOnlyFilesystem => (
            ErrorCode::DiskReadOnly,
            "have whoever runs the engine make its disk writable",
        ),
        _ => (ErrorCode::InvalidArgument, "give another path"),
    };
    let message = format!("the files of the adapter cannot be read or written: {error}; {remedy}");
    Error::new(code, message)
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    adapter::add_to_linker::<_, Adapters<'static>>(linker, Adapters::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_the_disk_is_not_the_fault_of_the_path() {
        for (kind, code, remedy) in [
            (io::ErrorKind::StorageFull, ErrorCode::DiskFull, "make room"),
            (
                io::ErrorKind::QuotaExceeded,
                ErrorCode::DiskFull,
                "make room",
            ),
            (
                io::ErrorKind::FileTooLarge,
                ErrorCode::DiskFull,
                "make room",
            ),
            (
                io::ErrorKind::ReadOnlyFilesystem,
                ErrorCode::DiskReadOnly,
                "make its disk writable",
            ),
            (
                io::ErrorKind::IsADirectory,
                ErrorCode::InvalidArgument,
                "give another path",
            ),
        ] {
            let error = failed(Fault::Io(kind.into()));
            assert_eq!(error.code, code, "{error}");
            assert!(error.message.ends_with(remedy), "{error}");
        }
        let refused = failed(Fault::Refused(Error::new(ErrorCode::LimitFiles, "no")));
        assert_eq!(refused.code, ErrorCode::LimitFiles);
    }
}
