//! The installed programs: an index in memory over folders on disk, and the contents that were used last.

mod disk;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Mutex;

use pie_host::{Component, Error, ErrorCode, Manifest, Program};
use serde_json::{Value, json};

pub(crate) use self::disk::digest_of;
use self::disk::{Installed, Place};
use crate::shared::lock;
use crate::version;

/// Programs that may be installed in all.
const MAX_PROGRAMS: usize = 100_000;
/// Bytes of contents that are held in memory, and their number.
const LOADED_BYTES: usize = 256 << 20;
const MAX_LOADED: usize = 1024;

/// The installed programs of all users.
pub(crate) struct Registry {
    folder: PathBuf,
    max_bytes: u64,
    index: Mutex<Index>,
    /// One change at a time; held while files are written, the index is not.
    changing: Mutex<()>,
    /// The programs that were used last, the newest at the end.
    loaded: Mutex<VecDeque<Loaded>>,
}

/// A program that is held in memory.
struct Loaded {
    place: Place,
    digest: String,
    n_bytes: usize,
    program: Program,
}

#[derive(Default)]
struct Index {
    /// By user and name, then in the order of the versions.
    programs: BTreeMap<(String, String), Vec<Installed>>,
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
}

/// A program that can be launched once its content is at hand.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// `name@version`.
    pub(crate) label: String,
    pub(crate) digest: String,
    pub(crate) manifest: Option<String>,
    place: Place,
}

impl Registry {
    /// Reads what is installed under `folder`, and removes what an interrupted change left there. Slow: reads the disk.
    ///
    /// # Errors
    /// `invalid-config` for a folder that cannot be made or read.
    pub(crate) fn open(folder: PathBuf, max_bytes: u64) -> Result<Self, Error> {
        let mut index = Index::default();
        for (user, name, installed) in disk::scan(&folder)? {
            index.add(user, name, installed);
        }
        Ok(Self {
            folder,
            max_bytes,
            index: Mutex::new(index),
            changing: Mutex::default(),
            loaded: Mutex::default(),
        })
    }

    /// Installs a program, on disk when this returns; true when it replaced one. Slow: writes the disk.
    ///
    /// # Errors
    /// `invalid-manifest`, `limit-program` when too much is installed, `internal` when the disk fails. What was there before then stays.
    pub(crate) fn install(&self, install: Install) -> Result<bool, Error> {
        let _changing = lock(&self.changing);
        let Install {
            user,
            name,
            version,
            digest,
            component,
            manifest,
        } = install;
        let n_bytes = component.n_bytes() as u64;
        let index = lock(&self.index);
        let replaced = index.find(&user, &name, &version).map(|old| old.n_bytes);
        let full = index.n_bytes - replaced.unwrap_or(0) + n_bytes > self.max_bytes
            || (replaced.is_none() && index.n_programs >= MAX_PROGRAMS);
        drop(index);
        if full {
            let message = format!(
                "{n_bytes} bytes more would pass server.max_installed_bytes = {} or the {MAX_PROGRAMS} programs that can be installed; uninstall some",
                self.max_bytes
            );
            return Err(Error::new(ErrorCode::LimitProgram, message));
        }
        let n_loaded_bytes = component.n_bytes();
        let program = described(component.clone(), manifest.as_deref())?;
        let place = Place::of(&self.folder, &user, &name, &version);
        let installed = disk::write(place.clone(), version, digest.clone(), &component, manifest)?;
        let replaced = lock(&self.index).add(user, name, installed);
        self.hold(Loaded {
            place,
            digest,
            n_bytes: n_loaded_bytes,
            program,
        });
        Ok(replaced)
    }

    /// Uninstalls a program. Slow: writes the disk.
    ///
    /// # Errors
    /// `unknown-program`, `internal` when the disk fails.
    pub(crate) fn uninstall(&self, user: &str, name: &str, version: &str) -> Result<(), Error> {
        let _changing = lock(&self.changing);
        let place = match lock(&self.index).find(user, name, version) {
            Some(installed) => installed.place.clone(),
            None => return Err(unknown(user, &format!("{name}@{version}"))),
        };
        disk::remove(&place)?;
        lock(&self.index).remove(user, name, version);
        Ok(())
    }

    /// The programs of a user.
    pub(crate) fn list(&self, user: &str) -> Value {
        let index = lock(&self.index);
        let programs: Vec<Value> = index
            .of(user)
            .flat_map(|(name, versions)| {
                versions.iter().map(move |installed| {
                    json!({
                        "name": name, "version": installed.version, "digest": installed.digest, "bytes": installed.n_bytes,
                        "installed": installed.at_s,
                    })
                })
            })
            .collect();
        json!({ "programs": programs })
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
        let (name, installed) = found.ok_or_else(|| unknown(user, program))?;
        Ok(Found {
            label: format!("{name}@{}", installed.version),
            digest: installed.digest.clone(),
            manifest: installed.manifest.clone(),
            place: installed.place.clone(),
        })
    }

    /// A program, where it is in memory.
    pub(crate) fn held(&self, found: &Found) -> Option<Program> {
        let mut loaded = lock(&self.loaded);
        let at = loaded
            .iter()
            .position(|other| other.place == found.place && other.digest == found.digest)?;
        let used = loaded.remove(at)?;
        let program = used.program.clone();
        loaded.push_back(used);
        Some(program)
    }

    /// A program. Slow: reads the disk and verifies the digest.
    ///
    /// # Errors
    /// `unknown-program` when it has been uninstalled meanwhile, `invalid-program` when the file is not what was installed.
    pub(crate) fn load(&self, found: &Found) -> Result<Program, Error> {
        let component = disk::read(&found.place, &found.digest, &found.label)?;
        let n_bytes = component.n_bytes();
        let program = described(component, found.manifest.as_deref())?;
        self.hold(Loaded {
            place: found.place.clone(),
            digest: found.digest.clone(),
            n_bytes,
            program: program.clone(),
        });
        Ok(program)
    }

    /// Keeps a program in memory; the oldest go when too much is held.
    fn hold(&self, program: Loaded) {
        let mut loaded = lock(&self.loaded);
        loaded.retain(|other| other.place != program.place);
        loaded.push_back(program);
        let mut n_bytes: usize = loaded.iter().map(|loaded| loaded.n_bytes).sum();
        while n_bytes > LOADED_BYTES || loaded.len() > MAX_LOADED {
            let Some(oldest) = loaded.pop_front() else {
                break;
            };
            n_bytes -= oldest.n_bytes;
        }
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
    /// Adds a program; true when it replaced one.
    fn add(&mut self, user: String, name: String, installed: Installed) -> bool {
        self.n_bytes += installed.n_bytes;
        self.n_programs += 1;
        let replaced = self.remove(&user, &name, &installed.version.clone());
        let versions = self.programs.entry((user, name)).or_default();
        let at = versions
            .partition_point(|other| version::compare(&other.version, &installed.version).is_lt());
        versions.insert(at, installed);
        replaced
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
        self.n_bytes -= versions.remove(at).n_bytes;
        self.n_programs -= 1;
        if versions.is_empty() {
            self.programs.remove(&key);
        }
        true
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

    fn newest(&self, user: &str, name: &str) -> Option<&Installed> {
        self.programs
            .get(&(user.to_owned(), name.to_owned()))?
            .last()
    }
}

fn unknown(user: &str, program: &str) -> Error {
    let shown: String = program.chars().take(120).collect();
    let message = format!("{user:?} has no program {shown:?}; install it first");
    Error::new(ErrorCode::UnknownProgram, message)
}

#[cfg(test)]
mod tests;
