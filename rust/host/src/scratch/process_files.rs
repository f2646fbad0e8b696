//! The files of one process: which folders it is given, what it may open, and why it was last refused something.

use std::io;
use std::sync::Arc;

use wasmtime_wasi::p2::FsError;

use super::config::SCRATCH;
use super::descriptor::OpenDescriptor;
use super::folder::{Fault, Folder};
use super::folders::{Folders, Owner, off};
use super::permits::{OpenPermit, ProcessPermits};
use super::refusals::Refusals;
use super::turns::FileTurns;
use crate::Error;
use crate::budget::{Account, Charge, Purpose};

/// The files of one process.
pub(crate) struct ProcessFiles {
    folders: Arc<Folders>,
    owner: Owner,
    account: Account,
    permits: ProcessPermits,
    turns: FileTurns,
    /// None until the program asks for them.
    given: Option<Vec<(Arc<OpenDescriptor>, String)>>,
    refusals: Refusals,
}

/// What the engine holds for a stream or a listing of a process, until this is dropped.
#[derive(Debug)]
pub(crate) struct Holding {
    _permit: OpenPermit,
    pub(super) charge: Charge,
}

impl ProcessFiles {
    /// Those of a process that begins.
    pub(crate) fn new(
        folders: Arc<Folders>,
        owner: Owner,
        account: Account,
        turns: FileTurns,
    ) -> Self {
        let (user, most) = (owner.user.as_str().into(), folders.config.open_files);
        Self {
            permits: ProcessPermits::new(folders.permits.clone(), user, most),
            turns,
            folders,
            owner,
            account,
            given: None,
            refusals: Refusals::default(),
        }
    }

    /// Finds the folder that the process may change, unless it is known. Most programs have no use for any.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) async fn find(&mut self) -> io::Result<()> {
        if let Some(finding) = self.finding() {
            let found = match self.turns.run(finding).await {
                Ok(found) => found,
                // Its paths are not there, as where files are off.
                Err(Fault::Refused(stalled)) => Err(off(&stalled.message)),
                Err(Fault::Io(error)) => return Err(error),
            };
            self.keep(found);
        }
        Ok(())
    }

    /// How to find the folder that the process may change, on a thread that may block. None: it is known.
    pub(super) fn finding(
        &self,
    ) -> Option<impl FnOnce() -> Result<Arc<Folder>, Error> + Send + 'static + use<>> {
        let (folders, owner) = (self.folders.clone(), self.owner.clone());
        self.given
            .is_none()
            .then_some(move || folders.scratch(&owner))
    }

    /// Keeps the folder that was found, as long as the process lives.
    pub(super) fn keep(&mut self, scratch: Result<Arc<Folder>, Error>) {
        let mounts = self.folders.mounts().iter();
        let mut given: Vec<_> = mounts
            .map(|mount| (mount.dir.clone(), mount.path.clone()))
            .collect();
        match scratch {
            Ok(folder) => given.push((
                Arc::new(OpenDescriptor::scratch(folder)),
                SCRATCH.to_owned(),
            )),
            Err(error) => self.refusals.note_off(error),
        }
        self.given = Some(given);
    }

    /// The folders of the process, each with the path at which it finds it: the same ones each time, so that asking
    /// again opens nothing and begins no new quota.
    pub(crate) fn given(&self) -> &[(Arc<OpenDescriptor>, String)] {
        self.given.as_deref().unwrap_or_default()
    }

    /// A permit for something that the process opens.
    ///
    /// # Errors
    /// `limit-resources` where it has as much open as it may, or its user, or all users.
    pub(crate) fn permit(&self) -> Result<OpenPermit, Error> {
        self.permits.take()
    }

    /// A permit for a stream or a listing, for which the engine holds `n_bytes`.
    ///
    /// # Errors
    /// As [`Self::permit`], and `limit-engine-memory`.
    pub(crate) fn holding(&self, n_bytes: usize) -> Result<Holding, Error> {
        Ok(Holding {
            _permit: self.permit()?,
            charge: self.account.charge(Purpose::Queue, n_bytes as u64)?,
        })
    }

    /// How the work of the process on files is done.
    pub(crate) const fn turns(&self) -> &FileTurns {
        &self.turns
    }

    /// Why the process was refused things.
    pub(crate) const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// The number of what failed. Why the engine refused something is kept for the program to ask.
    pub(crate) fn failed(&self, fault: impl Into<Fault>) -> FsError {
        self.refusals.failed(fault.into())
    }
}
