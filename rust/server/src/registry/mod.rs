//! The installed programs: an index in memory over folders on disk, and the contents that were used last.

mod absent;
mod disk;
mod loaded;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use pie_host::{Budget, Component, Error, ErrorCode, Manifest, Program};
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;

use self::absent::Alike;
pub(crate) use self::disk::digest_of;
use self::disk::{Installed, ProgramFolder, cost};
use self::loaded::{Content, Loaded};
use crate::config::DiskShares;
use crate::sync::lock;
use crate::version;

/// Programs that may be installed in all.
const MAX_PROGRAMS: usize = 100_000;
/// Programs that one user may have installed.
const MAX_PROGRAMS_OF_USER: usize = 10_000;
/// How often a launch looks again for a program that is replaced while it is read.
const LOAD_ATTEMPTS: usize = 4;

/// The installed programs of all users.
pub(crate) struct Registry {
    folder: PathBuf,
    shares: DiskShares,
    index: Mutex<Index>,
    /// One change at a time: the turn is held while files are written, the index is not.
    changing: Arc<tokio::sync::Mutex<()>>,
    /// Keeps other servers off the folder; none once it is closed.
    claim: Mutex<Option<File>>,
    loaded: Mutex<Loaded>,
}

/// The right to change what is installed, one change at a time.
pub(crate) struct ChangeTurn(#[expect(dead_code, reason = "held for its end")] OwnedMutexGuard<()>);

#[derive(Default)]
struct Index {
    /// By user and name, then in the order of the versions.
    programs: BTreeMap<(String, String), Vec<Installed>>,
    n_programs: usize,
    /// Bytes of contents and manifests.
    n_bytes: u64,
    /// Those who have some.
    of_users: HashMap<String, OfUser>,
    last_serial: u64,
}

/// The installed programs of one user.
#[derive(Clone, Copy, Debug, Default)]
struct OfUser {
    n_programs: usize,
    n_bytes: u64,
}

/// What shall be installed.
pub(crate) struct Install {
    pub(crate) user: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) digest: String,
    pub(crate) component: Component,
    pub(crate) manifest: Option<String>,
    /// Anybody may ask it by HTTP.
    pub(crate) is_public: bool,
}

/// A program as it is listed.
struct Listed {
    owner: Option<String>,
    name: String,
    version: String,
    digest: String,
    n_bytes: u64,
    at_s: f64,
}

impl Listed {
    fn new(owner: Option<&str>, name: &str, installed: &Installed) -> Self {
        Self {
            owner: owner.map(str::to_owned),
            name: name.to_owned(),
            version: installed.version.clone(),
            digest: installed.digest.clone(),
            n_bytes: installed.n_bytes,
            at_s: installed.at_s,
        }
    }

    fn row(self) -> Value {
        let mut row = json!({
            "name": self.name, "version": self.version, "digest": self.digest, "bytes": self.n_bytes,
            "installed": self.at_s,
        });
        if let Some(owner) = self.owner {
            row["user"] = json!(owner);
        }
        row
    }
}

/// A program that can be launched once its content is at hand.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// `name@version`.
    pub(crate) label: String,
    user: String,
    /// What it was found by.
    asked: String,
    digest: String,
    manifest: Option<String>,
    folder: ProgramFolder,
    serial: u64,
}

impl Registry {
    /// Locks `folder`, reads what is installed there, and removes what an interrupted change left; what is held in
    /// memory later is charged to `budget`. Slow: reads the disk.
    ///
    /// # Errors
    /// `invalid-config` for a folder that cannot be made or read, or that another server uses.
    pub(crate) fn open(
        folder: PathBuf,
        shares: DiskShares,
        budget: Arc<Budget>,
    ) -> Result<Self, Error> {
        let claim = disk::claim(&folder)?;
        let mut index = Index::default();
        for (user, name, installed) in disk::scan(&folder)? {
            index.add(user, name, installed);
        }
        Ok(Self {
            folder,
            shares,
            index: Mutex::new(index),
            changing: Arc::default(),
            claim: Mutex::new(Some(claim)),
            loaded: Mutex::new(Loaded::new(budget)),
        })
    }

    /// Lets other servers use the folder; nothing may be installed or launched after that.
    pub(crate) fn close(&self) {
        // Closing the file lifts its lock.
        drop(lock(&self.claim).take());
    }

    /// Waits for the turn of one change, without a thread of its own.
    pub(crate) async fn turn(&self) -> ChangeTurn {
        ChangeTurn(self.changing.clone().lock_owned().await)
    }

    /// Installs a program, on disk when this returns; true when it replaced one. Slow: writes the disk.
    ///
    /// # Errors
    /// `invalid-manifest`, `limit-program` when too much is installed, and those of the disk. What was there before
    /// then stays.
    pub(crate) fn install(&self, _turn: ChangeTurn, install: Install) -> Result<bool, Error> {
        let Install {
            user,
            name,
            version,
            digest,
            component,
            manifest,
            is_public,
        } = install;
        let n_content_bytes = component.n_bytes() as u64;
        let program = described(component.clone(), manifest.as_deref())?;
        let n_bytes = cost(n_content_bytes, manifest.as_deref());
        lock(&self.index).check_room(&user, &name, &version, n_bytes, self.shares)?;
        let folder = ProgramFolder::of(&self.folder, &user, &name, &version);
        let described = (manifest, is_public);
        let installed = disk::write(folder.clone(), version, digest, &component, described)?;
        let mut index = lock(&self.index);
        let (serial, replaced) = index.add(user.clone(), name, installed);
        self.hold(Content {
            user,
            folder,
            serial,
            n_bytes: n_content_bytes,
            program,
        });
        Ok(replaced)
    }

    /// Uninstalls a program. Slow: writes the disk.
    ///
    /// # Errors
    /// `unknown-program`, and those of the disk.
    pub(crate) fn uninstall(
        &self,
        _turn: ChangeTurn,
        user: &str,
        name: &str,
        version: &str,
    ) -> Result<(), Error> {
        let folder = match lock(&self.index).find(user, name, version) {
            Some(installed) => installed.folder.clone(),
            None => {
                let program = format!("{name}@{version}");
                return Err(absent::to_remove(user, &program));
            }
        };
        disk::remove(&folder)?;
        lock(&self.index).remove(user, name, version);
        lock(&self.loaded).forget(&folder);
        Ok(())
    }

    /// The programs of a user, or of all, with whose they are: a row each.
    pub(crate) fn list(&self, user: Option<&str>) -> impl Iterator<Item = Value> + use<> {
        let index = lock(&self.index);
        let all = index.programs.iter().filter(|_| user.is_none());
        let own = user.into_iter().flat_map(|user| index.of(user));
        let listed: Vec<Listed> = all
            .map(|((owner, name), versions)| (Some(owner.as_str()), name.as_str(), versions))
            .chain(own.map(|(name, versions)| (None, name, versions)))
            .flat_map(|(owner, name, versions)| {
                let listed = move |installed| Listed::new(owner, name, installed);
                versions.iter().map(listed)
            })
            .collect();
        // What is written out is nobody else's.
        drop(index);
        listed.into_iter().map(Listed::row)
    }

    /// How many of them there are.
    pub(crate) fn n_listed(&self, user: Option<&str>) -> usize {
        let index = lock(&self.index);
        match user {
            Some(user) => index.of_users.get(user).map_or(0, |of| of.n_programs),
            None => index.n_programs,
        }
    }

    /// Finds what a user means by `name@version`, `name` or `sha256:...`.
    ///
    /// # Errors
    /// `unknown-program`.
    pub(crate) fn find(&self, user: &str, program: &str) -> Result<Found, Error> {
        let index = lock(&self.index);
        let found = if program.starts_with("sha256:") {
            index.of(user).find_map(|(name, versions)| {
                let installed = versions
                    .iter()
                    .find(|installed| installed.digest == program)?;
                Some((name, installed))
            })
        } else {
            match program.split_once('@') {
                Some((name, version)) => index.find(user, name, version).map(|found| (name, found)),
                None => index.newest(user, program).map(|found| (program, found)),
            }
        };
        let (name, installed) =
            found.ok_or_else(|| absent::to_launch(user, program, &index.alike(user, program)))?;
        Ok(Found {
            label: format!("{name}@{}", installed.version),
            user: user.to_owned(),
            asked: program.to_owned(),
            digest: installed.digest.clone(),
            manifest: installed.manifest.clone(),
            folder: installed.folder.clone(),
            serial: installed.serial,
        })
    }

    /// Whether anybody may ask a program by HTTP that a user means by `name@version` or `name`. It reads nothing, and
    /// looks as long for one that is not public, or not there. A digest is a name for one's own programs alone.
    pub(crate) fn is_public(&self, user: &str, program: &str) -> bool {
        let index = lock(&self.index);
        let found = match program.split_once('@') {
            Some((name, version)) => index.find(user, name, version),
            None => index.newest(user, program),
        };
        found.is_some_and(|installed| installed.is_public)
    }

    /// A program, where it is in memory.
    pub(crate) fn held(&self, found: &Found) -> Option<Program> {
        lock(&self.loaded).get(found.serial, Instant::now())
    }

    /// Lets go what nobody has launched for a while.
    pub(crate) fn forget_unused(&self) {
        lock(&self.loaded).forget_unused(Instant::now());
    }

    /// A program, with its label. Slow: reads the disk and verifies the digest. One that is replaced meanwhile is
    /// looked for again.
    ///
    /// # Errors
    /// `unknown-program` when it has been uninstalled meanwhile, `invalid-program` when the file is not what was
    /// installed, and those of the disk.
    pub(crate) fn load(&self, mut found: Found) -> Result<(String, Program), Error> {
        let mut attempts = 1;
        let component = loop {
            match disk::read(&found.folder, &found.digest, &found.label) {
                Ok(component) => break component,
                Err(error) => {
                    let again = self.find(&found.user, &found.asked)?;
                    if again.serial == found.serial || attempts == LOAD_ATTEMPTS {
                        return Err(error);
                    }
                    found = again;
                    attempts += 1;
                }
            }
        };
        let n_bytes = component.n_bytes() as u64;
        let program = described(component, found.manifest.as_deref())?;
        // A program that was replaced meanwhile is launched as it was when it was asked for, and not kept.
        let index = lock(&self.index);
        if index.holds(&found) {
            self.hold(Content {
                user: found.user,
                folder: found.folder,
                serial: found.serial,
                n_bytes,
                program: program.clone(),
            });
        }
        drop(index);
        Ok((found.label, program))
    }

    /// Keeps a program in memory. The caller holds the index, in which the program stands.
    fn hold(&self, content: Content) {
        lock(&self.loaded).hold(content, Instant::now());
    }
}

/// The program of a component and the text of its manifest.
fn described(component: Component, manifest: Option<&str>) -> Result<Program, Error> {
    let program = Program::from(component);
    match manifest {
        Some(text) => Ok(program.with_manifest(Manifest::parse(text, "Pie.toml")?)),
        None => Ok(program),
    }
}

impl Index {
    /// Checks that a program of so many bytes may be installed in its place.
    fn check_room(
        &self,
        user: &str,
        name: &str,
        version: &str,
        n_bytes: u64,
        shares: DiskShares,
    ) -> Result<(), Error> {
        let replaced = self.find(user, name, version).map(Installed::cost);
        let DiskShares { all, of_user } = shares;
        let more = |held: u64| held - replaced.unwrap_or(0) + n_bytes;
        let own = self.of_users.get(user).copied().unwrap_or_default();
        let fault = if more(self.n_bytes) > all {
            format!("{n_bytes} bytes more would pass server.max_installed_bytes = {all}")
        } else if more(own.n_bytes) > of_user {
            format!(
                "{user:?} has programs of {} bytes, and {n_bytes} more would pass server.max_user_installed_bytes = {of_user}",
                own.n_bytes
            )
        } else if replaced.is_some() {
            return Ok(());
        } else if own.n_programs >= MAX_PROGRAMS_OF_USER {
            format!("{user:?} has {MAX_PROGRAMS_OF_USER} programs, the most that one user may have")
        } else if self.n_programs >= MAX_PROGRAMS {
            format!("{MAX_PROGRAMS} programs are installed, the most that a server holds")
        } else {
            return Ok(());
        };
        Err(Error::new(
            ErrorCode::LimitProgram,
            format!("{fault}; uninstall some"),
        ))
    }

    /// Adds a program; returns its serial number, and true when it replaced one.
    fn add(&mut self, user: String, name: String, mut installed: Installed) -> (u64, bool) {
        self.last_serial += 1;
        installed.serial = self.last_serial;
        let replaced = self.remove(&user, &name, &installed.version);
        self.n_bytes += installed.cost();
        self.n_programs += 1;
        let own = self.of_users.entry(user.clone()).or_default();
        own.n_programs += 1;
        own.n_bytes += installed.cost();
        let versions = self.programs.entry((user, name)).or_default();
        let at = versions
            .partition_point(|other| version::compare(&other.version, &installed.version).is_lt());
        versions.insert(at, installed);
        (self.last_serial, replaced)
    }

    fn remove(&mut self, user: &str, name: &str, version: &str) -> bool {
        let key = (user.to_owned(), name.to_owned());
        let Some(versions) = self.programs.get_mut(&key) else {
            return false;
        };
        let Some(at) = versions
            .iter()
            .position(|installed| installed.version == version)
        else {
            return false;
        };
        let n_bytes = versions.remove(at).cost();
        self.n_bytes -= n_bytes;
        self.n_programs -= 1;
        if versions.is_empty() {
            self.programs.remove(&key);
        }
        if let Some(own) = self.of_users.get_mut(user) {
            own.n_programs -= 1;
            own.n_bytes -= n_bytes;
            if own.n_programs == 0 {
                self.of_users.remove(user);
            }
        }
        true
    }

    /// True when what was found is still what stands in its place.
    fn holds(&self, found: &Found) -> bool {
        let (name, version) = found.label.split_once('@').unwrap_or_default();
        self.find(&found.user, name, version)
            .is_some_and(|installed| installed.serial == found.serial)
    }

    fn of(&self, user: &str) -> impl Iterator<Item = (&str, &Vec<Installed>)> {
        self.programs
            .range((user.to_owned(), String::new())..)
            .take_while(move |((owner, _), _)| owner == user)
            .map(|((_, name), versions)| (name.as_str(), versions))
    }

    fn find(&self, user: &str, name: &str, version: &str) -> Option<&Installed> {
        let versions = self.programs.get(&(user.to_owned(), name.to_owned()))?;
        versions
            .iter()
            .find(|installed| installed.version == version)
    }

    /// What the user has that may be meant by a program that is not there.
    fn alike(&self, user: &str, program: &str) -> Alike<'_> {
        let name = program.split_once('@').map_or(program, |(name, _)| name);
        let versions = self.programs.get(&(user.to_owned(), name.to_owned()));
        let versions = versions.into_iter().flatten().rev();
        Alike {
            versions: versions
                .take(absent::MAX_SHOWN_VERSIONS)
                .map(|installed| installed.version.as_str())
                .collect(),
            names: self
                .of(user)
                .take(absent::MAX_COMPARED)
                .filter_map(|(name, versions)| {
                    let highest = versions.last()?;
                    Some((name, highest.version.as_str()))
                })
                .collect(),
        }
    }

    fn newest(&self, user: &str, name: &str) -> Option<&Installed> {
        self.programs
            .get(&(user.to_owned(), name.to_owned()))?
            .last()
    }
}

#[cfg(test)]
mod tests;
