//! The keys in the data folder: one file, which `pie key` changes and servers read.
//!
//! The file holds hashes and public keys, nothing by which one could come in. Whoever may write it may come in, so
//! others must not. It is replaced as a whole, by a rename, and a lock keeps two that change it apart.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use pie_host::{Error, ErrorCode, effective_user};
use serde::{Deserialize, Serialize};

use super::public_key::PublicKey;
use super::{Role, api_key};
use crate::clock::now;
use crate::names;

/// The file of the keys, and the one whose lock says that it is being changed.
const FILE: &str = "keys.json";
const LOCK: &str = "keys.lock";
const FORMAT: u32 = 1;
/// The most keys, and the bytes of their file.
const MAX_KEYS: usize = 10_000;
const MAX_FILE_BYTES: u64 = 32 << 20;
/// The longest life of a key that ends.
const MAX_EXPIRY_S: u64 = 100 * 366 * 86_400;
/// Keys of one name that a message names.
const MAX_SHOWN: usize = 5;

/// A key, without what one comes in by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRecord {
    /// What it is revoked by; digits.
    pub id: String,
    /// What its owner calls it.
    pub name: String,
    /// Whose it is.
    pub user: String,
    /// What it may be used for.
    pub scope: Role,
    /// Seconds since 1970.
    pub created: u64,
    /// Seconds since 1970; none: never.
    pub expires: Option<u64>,
    /// The digest of a secret.
    pub(super) digest: Option<String>,
    /// A public key, as a line of OpenSSH.
    pub public_key: Option<String>,
}

impl KeyRecord {
    /// True from the second on in which it ends.
    pub(super) fn has_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// What a key is made of.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// What its owner calls it.
    pub name: String,
    /// Whose it is.
    pub user: String,
    /// What it may be used for.
    pub scope: Role,
    /// Seconds from now on; none: for ever.
    pub expires_s: Option<u64>,
    /// A public key, as a line of OpenSSH; none: a secret is made.
    pub public_key: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    format: u32,
    keys: Vec<KeyRecord>,
}

/// Adds a key to a data folder. The text of a secret is answered this once.
///
/// # Errors
/// `invalid-name`, `invalid-argument` for a public key that is none or is there already and for an impossible expiry,
/// `invalid-config` where the file cannot be read or written, `limit-keys`.
pub fn add_key(data_dir: &Path, new: NewKey) -> Result<(KeyRecord, Option<String>), Error> {
    names::check_key(&new.name)?;
    names::check_user(&new.user)?;
    if let Some(expires_s) = new.expires_s
        && !(1..=MAX_EXPIRY_S).contains(&expires_s)
    {
        let message = format!("a key cannot expire in {expires_s} s; give 1 to {MAX_EXPIRY_S}");
        return Err(Error::new(ErrorCode::InvalidArgument, message));
    }
    let public_key = new
        .public_key
        .as_deref()
        .map(|text| PublicKey::parse(text)?.line())
        .transpose()?;
    changed(data_dir, |keys| {
        if keys.len() >= MAX_KEYS {
            let message = format!(
                "there are {MAX_KEYS} keys, the most that a data folder holds; revoke some with `pie key revoke ID`"
            );
            return Err(Error::new(ErrorCode::LimitKeys, message));
        }
        if let Some(line) = &public_key
            && let Some(same) = keys
                .iter()
                .find(|key| key.public_key.as_ref() == Some(line))
        {
            let message = format!(
                "that public key is there already: {}, {:?} of {:?} ({}); `pie key revoke {}` takes it away",
                same.id,
                same.name,
                same.user,
                same.scope.name(),
                same.id
            );
            return Err(Error::new(ErrorCode::InvalidArgument, message));
        }
        let (id, text) = match public_key {
            Some(_) => (api_key::make_id()?, None),
            None => {
                let made = api_key::make()?;
                (made.id, Some(made.text))
            }
        };
        let created = now();
        let key = KeyRecord {
            id,
            name: new.name,
            user: new.user,
            scope: new.scope,
            created,
            expires: new.expires_s.map(|expires_s| created + expires_s),
            digest: text
                .as_ref()
                .map(|text| api_key::hex(&api_key::digest(text))),
            public_key,
        };
        keys.push(key.clone());
        Ok((key, text))
    })
}

/// The keys of a data folder.
///
/// # Errors
/// `invalid-config` where the file cannot be read.
pub fn list_keys(data_dir: &Path) -> Result<Vec<KeyRecord>, Error> {
    read(&path(data_dir))
}

/// Takes a key out of a data folder. A server disconnects whoever came in by it within a moment.
///
/// # Errors
/// `unknown-key`, and `invalid-config` where the file cannot be read or written.
pub fn revoke_key(data_dir: &Path, id: &str) -> Result<KeyRecord, Error> {
    changed(data_dir, |keys| {
        match keys.iter().position(|key| key.id == id) {
            Some(at) => Ok(keys.remove(at)),
            None => Err(unknown(id, keys)),
        }
    })
}

/// The error for a text that is not the ID of a key; it may be the name of one.
fn unknown(given: &str, keys: &[KeyRecord]) -> Error {
    let shown: String = given.chars().take(40).collect();
    let named: Vec<&KeyRecord> = keys.iter().filter(|key| key.name == given).collect();
    let message = match named.as_slice() {
        [] => format!("there is no key {shown:?}; `pie key list` lists them"),
        [key] => format!(
            "{shown:?} is the name of a key and not its ID: {} of {:?}; write `pie key revoke {}`",
            key.id, key.user, key.id
        ),
        _ => {
            let more = match named.len().saturating_sub(MAX_SHOWN) {
                0 => String::new(),
                more => format!(" and {more} more, which `pie key list` lists"),
            };
            let ids: Vec<String> = named
                .iter()
                .take(MAX_SHOWN)
                .map(|key| format!("{} of {:?}", key.id, key.user))
                .collect();
            format!(
                "{shown:?} is the name of {} keys and not their ID: {}{more}; write `pie key revoke ID`",
                named.len(),
                ids.join(", ")
            )
        }
    };
    Error::new(ErrorCode::UnknownKey, message)
}

/// Where the keys of a data folder are.
pub(super) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE)
}

/// Reads a file of keys; one that is not there holds none.
///
/// # Errors
/// `invalid-config` for a file that cannot be read, that others may write or own, or that holds something else.
pub(super) fn read(path: &Path) -> Result<Vec<KeyRecord>, Error> {
    let mut text = String::new();
    // A pipe without a writer is opened at once, too, and refused.
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path);
    match opened {
        Ok(file) => {
            let about = file.metadata().map_err(|error| unusable(path, &error))?;
            check_writers(path, about.uid(), about.mode(), effective_user())?;
            if !about.is_file() || about.len() > MAX_FILE_BYTES {
                let message = format!(
                    "{} is not a file of keys: those are regular files of at most {MAX_FILE_BYTES} bytes; restore it, or remove it and add the keys again",
                    path.display()
                );
                return Err(Error::new(ErrorCode::InvalidConfig, message));
            }
            file.take(MAX_FILE_BYTES)
                .read_to_string(&mut text)
                .map_err(|error| unusable(path, &error))?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unusable(path, &error)),
    }
    // What the parser says of a place would show a part of the text.
    match serde_json::from_str::<Content>(&text) {
        Ok(Content {
            format: FORMAT,
            keys,
        }) => Ok(keys),
        _ => {
            let message = format!(
                "the file {} holds no keys of this version; restore it, or remove it and add the keys again",
                path.display()
            );
            Err(Error::new(ErrorCode::InvalidConfig, message))
        }
    }
}

/// Refuses a file that anybody may write but this user, and root, who may write everything: whoever writes it may come
/// in.
fn check_writers(path: &Path, owner: u32, mode: u32, own: u32) -> Result<(), Error> {
    let path = path.display();
    let (fault, remedy) = if owner != own && owner != 0 {
        let fault = format!("belongs to the user {owner}, and this runs as the user {own}");
        (fault, format!("`chown {own}` it"))
    } else if mode & 0o022 != 0 {
        let fault = format!("may be written by others (mode {:o})", mode & 0o7777);
        (fault, "`chmod 600` it".to_owned())
    } else {
        return Ok(());
    };
    let message = format!(
        "the file {path} of keys {fault}; whoever writes it may come in: look at what it holds, then {remedy}"
    );
    Err(Error::new(ErrorCode::InvalidConfig, message))
}

/// Changes the keys of a data folder, all at once or not at all.
fn changed<T>(
    data_dir: &Path,
    change: impl FnOnce(&mut Vec<KeyRecord>) -> Result<T, Error>,
) -> Result<T, Error> {
    let path = path(data_dir);
    let failed = |error: io::Error| unusable(&path, &error);
    fs::create_dir_all(data_dir).map_err(failed)?;
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(data_dir.join(LOCK))
        .map_err(failed)?;
    lock.lock().map_err(failed)?;
    let mut keys = read(&path)?;
    let result = change(&mut keys)?;
    let text = serde_json::to_string_pretty(&Content {
        format: FORMAT,
        keys,
    })
    .map_err(Error::internal)?;
    // Files of this kind are for their owner alone.
    let mut file = tempfile::NamedTempFile::new_in(data_dir).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(&path).map_err(|error| failed(error.error))?;
    // The rename itself has to last: a key that was revoked stays so.
    File::open(data_dir)
        .and_then(|folder| folder.sync_all())
        .map_err(failed)?;
    Ok(result)
}

fn unusable(path: &Path, error: &io::Error) -> Error {
    let message = format!(
        "the file {} of keys cannot be used ({error}); check its permissions, or give another folder with engine.data_dir",
        path.display()
    );
    Error::new(ErrorCode::InvalidConfig, message)
}

#[cfg(test)]
pub(super) mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    pub(in crate::auth) fn new(user: &str, scope: Role) -> NewKey {
        NewKey {
            name: "laptop".to_owned(),
            user: user.to_owned(),
            scope,
            expires_s: None,
            public_key: None,
        }
    }

    #[test]
    fn keys_are_added_listed_and_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(list_keys(folder).unwrap(), []);
        let (one, text) = add_key(folder, new("alice", Role::User)).unwrap();
        let (two, _) = add_key(folder, new("bob", Role::Operator)).unwrap();
        assert_eq!(list_keys(folder).unwrap(), [one.clone(), two.clone()]);
        let written = fs::read_to_string(path(folder)).unwrap();
        let text = text.unwrap();
        assert!(!written.contains(&text[20..]), "the secret is not kept");
        assert_eq!(fs::metadata(path(folder)).unwrap().mode() & 0o777, 0o600);
        let named = revoke_key(folder, "laptop").unwrap_err();
        assert_eq!(
            (named.code, named.message),
            (
                ErrorCode::UnknownKey,
                format!(
                    "\"laptop\" is the name of 2 keys and not their ID: {} of \"alice\", {} of \"bob\"; write `pie key revoke ID`",
                    one.id, two.id
                )
            )
        );
        assert_eq!(revoke_key(folder, &one.id).unwrap(), one);
        let message = |id: &str| revoke_key(folder, id).unwrap_err().message;
        let told = "is the name of a key and not its ID";
        let id = &two.id;
        assert_eq!(
            message("laptop"),
            format!("\"laptop\" {told}: {id} of \"bob\"; write `pie key revoke {id}`")
        );
        let id = &one.id;
        assert_eq!(
            message(id),
            format!("there is no key {id:?}; `pie key list` lists them")
        );
        assert_eq!(list_keys(folder).unwrap(), [two]);
    }

    #[test]
    fn a_public_key_that_is_there_already_is_told_with_whose_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let line =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH me";
        let public = || NewKey {
            public_key: Some(line.to_owned()),
            ..new("a", Role::User)
        };
        let (there, secret) = add_key(folder, public()).unwrap();
        assert_eq!(secret, None);
        let again = add_key(folder, public()).unwrap_err();
        let id = there.id;
        assert_eq!(
            (again.code, again.message),
            (
                ErrorCode::InvalidArgument,
                format!(
                    "that public key is there already: {id}, \"laptop\" of \"a\" (user); `pie key revoke {id}` takes it away"
                )
            )
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let code = |new: NewKey| add_key(folder, new).unwrap_err().code;
        assert_eq!(code(new("../x", Role::User)), ErrorCode::InvalidName);
        assert_eq!(
            code(NewKey {
                name: "a\nb".to_owned(),
                ..new("a", Role::User)
            }),
            ErrorCode::InvalidName
        );
        assert_eq!(
            code(NewKey {
                expires_s: Some(0),
                ..new("a", Role::User)
            }),
            ErrorCode::InvalidArgument
        );
        assert_eq!(
            code(NewKey {
                public_key: Some("x".to_owned()),
                ..new("a", Role::User)
            }),
            ErrorCode::InvalidArgument
        );
        add_key(folder, new("a", Role::User)).unwrap();
        fs::set_permissions(path(folder), fs::Permissions::from_mode(0o620)).unwrap();
        assert!(list_keys(folder).unwrap_err().message.contains("chmod 600"));
        fs::remove_file(path(folder)).unwrap();
        let mut pipe = std::process::Command::new("mkfifo");
        let made = pipe.args(["-m", "600"]).arg(path(folder)).status();
        assert!(made.unwrap().success());
        let error = list_keys(folder).unwrap_err();
        assert!(error.message.contains("is not a file of keys"), "{error}");
        fs::remove_file(path(folder)).unwrap();
        for content in [
            "",
            "{}",
            "[]",
            "{\"format\":2,\"keys\":[]}",
            "{\"format\":1,\"keys\":[{\"id\":\"secret-part\"}]}",
        ] {
            fs::write(path(folder), content).unwrap();
            fs::set_permissions(path(folder), fs::Permissions::from_mode(0o600)).unwrap();
            let error = list_keys(folder).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidConfig, "{content}");
            assert!(!error.message.contains("secret-part"));
        }
    }

    #[test]
    fn a_file_that_somebody_else_may_write_is_refused_with_the_remedy() {
        let told = |owner, mode, own| {
            let checked = check_writers(Path::new("/data/keys.json"), owner, mode, own);
            checked.map_err(|error| error.message)
        };
        for (owner, mode, own) in [(7, 0o100_600, 7), (0, 0o100_644, 7), (0, 0o100_600, 0)] {
            assert_eq!(told(owner, mode, own), Ok(()));
        }
        for (owner, mode, own, remedy) in [
            (8, 0o100_600, 7, "`chown 7` it"),
            (7, 0o100_600, 0, "`chown 0` it"),
            (7, 0o100_620, 7, "`chmod 600` it"),
            (7, 0o100_602, 7, "`chmod 600` it"),
        ] {
            let told = told(owner, mode, own).unwrap_err();
            assert!(told.ends_with(remedy), "{told}");
        }
        let folder = tempfile::tempdir().unwrap();
        add_key(folder.path(), new("alice", Role::User)).unwrap();
        // Only root can give a file away.
        if std::os::unix::fs::chown(path(folder.path()), Some(54321), None).is_ok() {
            let error = list_keys(folder.path()).unwrap_err();
            assert!(
                error.message.contains("belongs to the user 54321"),
                "{error}"
            );
        }
    }

    #[test]
    fn many_that_add_at_once_lose_none() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for n in 0..8 {
                let folder = folder.path();
                scope.spawn(move || add_key(folder, new(&format!("u{n}"), Role::Read)).unwrap());
            }
        });
        assert_eq!(list_keys(folder.path()).unwrap().len(), 8);
        let error = revoke_key(folder.path(), "laptop").unwrap_err();
        let rest = " and 3 more, which `pie key list` lists; write `pie key revoke ID`";
        assert!(error.message.ends_with(rest), "{error}");
    }
}
