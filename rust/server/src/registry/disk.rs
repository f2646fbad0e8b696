//! Installed programs on disk: `<folder>/<user>/<name>@<version>/` with one content file and `program.json`.
//!
//! The rename of `program.json` is the moment in which a program becomes visible: the content that it names was written
//! and synced before, under its digest. So whatever ends the server in between, the old program or the new one stands
//! there whole.

use std::borrow::Cow;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use pie_host::{Component, Error, ErrorCode, runtime_name};
use serde::{Deserialize, Serialize};

use crate::clock::now_s;
use crate::faults::disk_error;
use crate::names;

const RECORD: &str = "program.json";
/// How the names of contents end: before it stands the digest.
const CONTENT_SUFFIX: &str = ".wasm";
/// How the names of files begin that are being written.
const UNFINISHED: &str = ".tmp";
/// The file whose lock says that a server uses the folder; it holds nothing.
const LOCK: &str = ".lock";
/// A record is no larger than the manifest that a frame can carry.
const MAX_RECORD_BYTES: u64 = 64 << 20;

/// The folder of one installed program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProgramFolder(PathBuf);

impl ProgramFolder {
    /// The parts have passed the checks of [`names`].
    pub(super) fn of(folder: &Path, user: &str, name: &str, version: &str) -> Self {
        Self(folder.join(user).join(format!("{name}@{version}")))
    }

    /// `name@version`.
    fn label(&self) -> Cow<'_, str> {
        self.0.file_name().unwrap_or_default().to_string_lossy()
    }

    fn content(&self, digest: &str) -> PathBuf {
        self.0.join(content_name(digest))
    }
}

/// One installed program.
#[derive(Clone, Debug)]
pub(crate) struct Installed {
    pub(super) version: String,
    pub(super) digest: String,
    pub(super) n_bytes: u64,
    /// Seconds since 1970.
    pub(super) at_s: f64,
    pub(super) manifest: Option<String>,
    /// Anybody may ask it by HTTP.
    pub(super) is_public: bool,
    pub(super) folder: ProgramFolder,
    /// Another one for each install since the start; the index gives it.
    pub(super) serial: u64,
}

impl Installed {
    /// Bytes of the content and the manifest.
    pub(super) fn cost(&self) -> u64 {
        cost(self.n_bytes, self.manifest.as_deref())
    }
}

/// What a program counts for: its content and its manifest.
pub(super) fn cost(n_bytes: u64, manifest: Option<&str>) -> u64 {
    n_bytes + manifest.map_or(0, |manifest| manifest.len() as u64)
}

/// What `program.json` holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct InstalledRecord {
    format: u32,
    digest: String,
    bytes: u64,
    installed: f64,
    manifest: Option<String>,
    /// It may stand in the content alone, which is not read to know who may ask. Older records do not have it: their
    /// programs served no HTTP.
    #[serde(default)]
    public: bool,
}

/// Makes the folder and locks it for as long as the file is open, so that no two servers change what is in it.
///
/// # Errors
/// `invalid-config` for a folder that cannot be made, and for one that is locked.
pub(super) fn claim(folder: &Path) -> Result<File, Error> {
    let opened = fs::create_dir_all(folder).and_then(|()| File::create(folder.join(LOCK)));
    let file = opened.map_err(|error| unusable(folder, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::new(
            ErrorCode::InvalidConfig,
            format!(
                "another server uses the folder {} for installed programs; end that one, or give this one another folder, with --data-dir DIR, engine.data_dir or PIE_ENGINE__DATA_DIR",
                folder.display()
            ),
        )),
        Err(TryLockError::Error(error)) => Err(unusable(folder, &error)),
    }
}

fn unusable(folder: &Path, error: &io::Error) -> Error {
    let message = format!(
        "the folder {} for installed programs cannot be used ({error}); give another one with engine.data_dir",
        folder.display()
    );
    Error::new(ErrorCode::InvalidConfig, message)
}

/// Everything installed under `folder`, with users and names. What is not whole is removed, what is not ours is left
/// alone.
pub(super) fn scan(folder: &Path) -> Result<Vec<(String, String, Installed)>, Error> {
    let unusable = |error: io::Error| unusable(folder, &error);
    let mut found = Vec::new();
    for (user, user_folder) in folders(folder).map_err(unusable)? {
        if names::check_user(&user).is_err() {
            continue;
        }
        for (program, program_folder) in folders(&user_folder).map_err(unusable)? {
            let Some((name, version)) = program.split_once('@') else {
                continue;
            };
            if names::check_program(name).is_err() || names::check_version(version).is_err() {
                continue;
            }
            match open(ProgramFolder(program_folder), version) {
                Ok(Some(installed)) => found.push((user.clone(), name.to_owned(), installed)),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(user, program, %error, "an installed program cannot be read and is left out")
                }
            }
        }
    }
    Ok(found)
}

/// Writes a program; it replaces the one that is in its place.
///
/// # Errors
/// Those of the disk; what was there before then stays.
pub(super) fn write(
    folder: ProgramFolder,
    version: String,
    digest: String,
    component: &Component,
    (manifest, is_public): (Option<String>, bool),
) -> Result<Installed, Error> {
    let record = InstalledRecord {
        format: 1,
        digest,
        bytes: component.n_bytes() as u64,
        installed: now_s(),
        manifest,
        public: is_public,
    };
    commit(&folder, &record, component).map_err(|error| {
        disk_error(
            &format!("the program {} cannot be written", folder.label()),
            &error,
        )
    })?;
    remove_leftovers(&folder, Some(&record.digest));
    Ok(Installed {
        version,
        digest: record.digest,
        n_bytes: record.bytes,
        at_s: record.installed,
        manifest: record.manifest,
        is_public: record.public,
        folder,
        serial: 0,
    })
}

/// Removes a program. Once its record has gone it is not installed, whatever else cannot be removed.
///
/// # Errors
/// Those of the disk; the program is then still there.
pub(super) fn remove(folder: &ProgramFolder) -> Result<(), Error> {
    match fs::remove_file(folder.0.join(RECORD)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let what = format!("the program {} cannot be removed", folder.label());
            return Err(disk_error(&what, &error));
        }
        _ => {}
    }
    remove_rest(folder);
    Ok(())
}

/// Reads the content of a program and verifies it.
///
/// # Errors
/// `unknown-program` where it is not there, `invalid-program` where it is not what was installed, and those of the
/// disk.
pub(super) fn read(folder: &ProgramFolder, digest: &str, label: &str) -> Result<Component, Error> {
    let bytes = fs::read(folder.content(digest)).map_err(|error| {
        let what = format!("the program {label} cannot be read");
        if error.kind() == io::ErrorKind::NotFound {
            let message = format!("{what}, its file is not there; install it again");
            return Error::new(ErrorCode::UnknownProgram, message);
        }
        disk_error(&what, &error)
    })?;
    let component = Component::new(bytes);
    if digest_of(&component) != digest {
        let message = format!("the file of the program {label} is damaged; install it again");
        return Err(Error::new(ErrorCode::InvalidProgram, message));
    }
    Ok(component)
}

/// The digest of a component as it travels and stands in names.
pub(crate) fn digest_of(component: &Component) -> String {
    runtime_name(&component.digest())
}

fn content_name(digest: &str) -> String {
    format!("{}{CONTENT_SUFFIX}", digest.trim_start_matches("sha256:"))
}

/// The program in a folder; none, and no folder, where an install or an uninstall was interrupted.
fn open(folder: ProgramFolder, version: &str) -> io::Result<Option<Installed>> {
    let path = folder.0.join(RECORD);
    match fs::metadata(&path) {
        Ok(metadata) if metadata.len() > MAX_RECORD_BYTES => {
            return Err(io::Error::other(format!("{RECORD} is too large")));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            remove_rest(&folder);
            return Ok(None);
        }
        Err(error) => return Err(error),
    }
    let record: InstalledRecord = serde_json::from_slice(&fs::read(&path)?)?;
    if names::check_digest(&record.digest).is_err() || record.format != 1 {
        return Err(io::Error::other(format!("{RECORD} is of another format")));
    }
    if fs::metadata(folder.content(&record.digest))?.len() != record.bytes {
        return Err(io::Error::other("the content has another length"));
    }
    remove_leftovers(&folder, Some(&record.digest));
    Ok(Some(Installed {
        version: version.to_owned(),
        digest: record.digest,
        n_bytes: record.bytes,
        at_s: record.installed,
        manifest: record.manifest,
        is_public: record.public,
        folder,
        serial: 0,
    }))
}

fn commit(
    folder: &ProgramFolder,
    record: &InstalledRecord,
    component: &Component,
) -> io::Result<()> {
    fs::create_dir_all(&folder.0)?;
    replace(&folder.0, &content_name(&record.digest), component.bytes())?;
    sync_folder(&folder.0)?;
    replace(&folder.0, RECORD, &serde_json::to_vec(record)?)?;
    sync_folder(&folder.0)?;
    // The folders above may be new.
    for above in folder.0.ancestors().skip(1).take(2) {
        sync_folder(above)?;
    }
    Ok(())
}

/// Writes a file beside its place, and renames it there when it is on the disk.
fn replace(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(folder.join(name))
        .map_err(|error| error.error)?;
    Ok(())
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes the folder of a program that has no record. What is not ours is left alone, and then the folder too.
fn remove_rest(folder: &ProgramFolder) {
    remove_leftovers(folder, None);
    if let Err(error) = fs::remove_dir(&folder.0)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, folder = %folder.0.display(), "the folder of a removed program stays");
    }
}

/// Removes contents but the one of `digest`, and what an interrupted install was writing. It only takes up room, so
/// that failing to is told in the log alone; a program is there all the same.
fn remove_leftovers(folder: &ProgramFolder, digest: Option<&str>) {
    let kept = digest.map(content_name);
    let removed = fs::read_dir(&folder.0).and_then(|entries| {
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                continue;
            };
            if is_ours(name) && kept.as_deref() != Some(name) && !entry.file_type()?.is_dir() {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    });
    if let Err(error) = removed {
        tracing::warn!(%error, folder = %folder.0.display(), "what an earlier program left cannot be removed");
    }
}

/// True for the names of contents, and of files that are being written.
fn is_ours(name: &str) -> bool {
    let digits = name.strip_suffix(CONTENT_SUFFIX);
    let is_content = digits.is_some_and(|digits| {
        digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    });
    is_content || name.starts_with(UNFINISHED)
}

/// The folders in a folder that have names in UTF-8.
fn folders(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string()
            && entry.file_type()?.is_dir()
        {
            folders.push((name, entry.path()));
        }
    }
    folders.sort();
    Ok(folders)
}
