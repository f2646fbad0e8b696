//! The folders of all programs of a host.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pie_core::ErrorCode;
use tokio::runtime::Handle;

use super::claim::FolderClaim;
use super::config::{FileScope, FilesConfig};
use super::descriptor::OpenDescriptor;
use super::folder::{Fault, Folder, FolderGuards, Outcome};
use super::permits::{Permits, UserPermit};
use super::turns::{FileTurns, HostTurns};
use crate::Error;
use crate::naming::folder_name;
use crate::sandbox::cpu::CpuMeter;
use crate::sync::lock;
use crate::temporary::{make_dir, make_temporary, open_dir, sweep};

/// The folder below `engine.data_dir` that holds all others.
const ROOT: &str = "scratch";
/// The folder within it of those that end with their process.
const PROCESSES: &str = "process";
/// Folders whose content stays counted while nobody uses them.
const MAX_IDLE: usize = 64;
/// One part in this many of the files that the system lets this process have open is for programs.
const OPEN_PART: u64 = 4;
/// Files that programs may have open where the system does not tell.
const DEFAULT_OPEN: u64 = 256;

/// Whose files are wanted.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) user: String,
    pub(crate) program: String,
}

/// The folders of a host.
pub(crate) struct Folders {
    pub(super) config: FilesConfig,
    /// None where nothing is kept.
    root: Option<PathBuf>,
    /// To what is kept longer than a process; none where nothing is.
    claim: Option<FolderClaim>,
    known: Mutex<HashMap<PathBuf, Arc<Folder>>>,
    mounts: Vec<OpenMount>,
    /// What programs may have open.
    pub(super) permits: Arc<Permits>,
    /// Who works on files.
    turns: HostTurns,
}

/// A folder that programs read. It is open once for all of them.
pub(super) struct OpenMount {
    pub(super) dir: Arc<OpenDescriptor>,
    pub(super) path: String,
}

impl Folders {
    /// Those of a host that keeps its data in `data_dir`.
    ///
    /// # Errors
    /// `invalid-config` for a folder of `runtime.fs_mounts` that cannot be opened, and for two at one path.
    pub(crate) fn new(config: FilesConfig, data_dir: Option<&Path>) -> Result<Self, Error> {
        let mut mounts: Vec<OpenMount> = Vec::new();
        for mount in &config.mounts {
            let invalid = |reason: String| {
                let (folder, path) = (mount.folder.display(), &mount.path);
                Error::new(
                    ErrorCode::InvalidConfig,
                    format!("the folder {folder} for {path} (runtime.fs_mounts) {reason}"),
                )
            };
            if mounts.iter().any(|other| other.path == mount.path) {
                return Err(invalid(
                    "comes second at that path; give it another".to_owned(),
                ));
            }
            let dir = open_dir(&mount.folder).map_err(|error| {
                invalid(format!(
                    "cannot be opened ({error}); name one that is there"
                ))
            })?;
            mounts.push(OpenMount {
                dir: Arc::new(OpenDescriptor::read_only(dir)),
                path: mount.path.clone(),
            });
        }
        let root = data_dir.map(|dir| dir.join(ROOT));
        if let Some(root) = root.as_ref().filter(|_| config.scope == FileScope::Process) {
            sweep(&root.join(PROCESSES));
        }
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        Ok(Self {
            claim: data_dir
                .filter(|_| config.scope.keeps())
                .map(FolderClaim::new),
            turns: HostTurns::of_machine(config.stall),
            config,
            root,
            known: Mutex::default(),
            mounts,
            permits: Permits::new(
                usize::try_from(most.map_or(DEFAULT_OPEN, |most| most / OPEN_PART))
                    .unwrap_or(usize::MAX),
            ),
        })
    }

    /// How the work on files is done of a process of `user`, whose processor time `cpu` counts, on `threads`.
    pub(crate) fn turns_of(&self, user: &str, cpu: Arc<CpuMeter>, threads: Handle) -> FileTurns {
        FileTurns::new(self.turns.clone(), user.into(), cpu, threads)
    }

    /// From now on this engine alone keeps files of programs where it does, until [`Folders::give_up`]. Otherwise that
    /// begins when the first program asks for its own. It reads the disk.
    ///
    /// # Errors
    /// `invalid-config` where another engine does, and where the folder cannot be used.
    pub(crate) fn claim(&self) -> Result<(), Error> {
        self.claim.as_ref().map_or(Ok(()), FolderClaim::take)
    }

    /// No program changes files any more: another engine may keep them.
    pub(crate) fn give_up(&self) {
        if let Some(claim) = &self.claim {
            claim.give_up();
        }
    }

    /// Those that programs read.
    pub(super) fn mounts(&self) -> &[OpenMount] {
        &self.mounts
    }

    /// The folder that a process finds as `/scratch`.
    ///
    /// # Errors
    /// `files-off` where there is none, and where another engine keeps files in the same place; those of the system.
    pub(super) fn scratch(&self, owner: &Owner) -> Result<Arc<Folder>, Error> {
        if self.config.scope == FileScope::Off {
            return Err(off(
                "runtime.fs_scope = \"off\"; set it to \"user\" in the configuration of the engine",
            ));
        }
        let Some(root) = &self.root else {
            return Err(off("the engine keeps no data; set engine.data_dir"));
        };
        self.claim().map_err(|error| off(&error.message))?;
        self.opened(root, owner).map_err(|fault| match fault {
            Fault::Refused(error) => off(&error.message),
            Fault::Io(error) => off(&format!(
                "its folder cannot be opened ({error}); ask whoever runs the engine"
            )),
        })
    }

    fn opened(&self, root: &Path, owner: &Owner) -> Outcome<Arc<Folder>> {
        let user = folder_name(&owner.user);
        let path = match self.config.scope {
            FileScope::User => root.join("user").join(user),
            FileScope::Program => root
                .join("program")
                .join(user)
                .join(folder_name(&owner.program)),
            FileScope::Shared => root.join("shared"),
            FileScope::Process | FileScope::Off => {
                return self.temporary(&root.join(PROCESSES), owner);
            }
        };
        let mut known = lock(&self.known);
        if let Some(folder) = known.get(&path) {
            return Ok(folder.clone());
        }
        make_dir(&path)?;
        if known.len() >= MAX_IDLE {
            known.retain(|_, folder| !folder.is_idle());
        }
        let permit = self.permit(owner).or_else(|_| {
            // One that nobody uses may be closed.
            known.retain(|_, folder| !folder.is_idle());
            self.permit(owner)
        })?;
        let guards = FolderGuards {
            permit: Some(permit),
            temporary: None,
        };
        let folder = Arc::new(Folder::new(open_dir(&path)?, &self.config, guards)?);
        known.insert(path, folder.clone());
        Ok(folder)
    }

    fn permit(&self, owner: &Owner) -> Result<UserPermit, Error> {
        self.permits.take(&owner.user.as_str().into())
    }

    /// A folder that is removed when nobody holds it any more.
    fn temporary(&self, above: &Path, owner: &Owner) -> Outcome<Arc<Folder>> {
        let permit = self.permit(owner)?;
        let (temporary, dir) = make_temporary(above)?;
        let guards = FolderGuards {
            permit: Some(permit),
            temporary: Some(temporary),
        };
        Ok(Arc::new(Folder::new(dir, &self.config, guards)?))
    }
}

/// The error of a process that has no folder of its own.
pub(crate) fn off(reason: &str) -> Error {
    Error::new(
        ErrorCode::FilesOff,
        format!("programs have no /scratch here: {reason}"),
    )
}
