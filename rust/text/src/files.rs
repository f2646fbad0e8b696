//! Reading a checkpoint's files: bounded, and with errors that name the file and the remedy.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::limits::MAX_CONFIG_FILE_BYTES;

/// What to do about a file that is missing or damaged.
pub(crate) const REMEDY: &str =
    "download the model again, or point to a complete Hugging Face model directory";

/// The bytes of a file of at most `limit` bytes; `None` when there is no such file.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
    // Before it is opened: a pipe would wait for whoever writes.
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() && metadata.len() > limit => {
            return Err(too_large(path, limit));
        }
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => {
            return Err(Error::Model(format!(
                "{} is not a file; {REMEDY}",
                path.display()
            )));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, &error)),
    }
    let file = fs::File::open(path).map_err(|error| unreadable(path, &error))?;
    let mut bytes = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > limit {
        return Err(too_large(path, limit));
    }
    Ok(Some(bytes))
}

/// A small text file; `None` when there is no such file.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>> {
    let Some(bytes) = read(path, MAX_CONFIG_FILE_BYTES)? else {
        return Ok(None);
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => Err(damaged(path, &format!("it is not UTF-8: {error}"))),
    }
}

/// A small JSON file that holds an object; `None` when there is no such file.
pub(crate) fn read_json(path: &Path) -> Result<Option<Value>> {
    let Some(text) = read_text(path)? else {
        return Ok(None);
    };
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| damaged(path, &format!("it is not JSON: {error}")))?;
    if !value.is_object() {
        return Err(damaged(path, "it does not hold a JSON object"));
    }
    Ok(Some(value))
}

/// The error of a file whose content cannot be used.
pub(crate) fn damaged(path: &Path, why: &str) -> Error {
    Error::Model(format!("{} is damaged: {why}; {REMEDY}", path.display()))
}

fn too_large(path: &Path, limit: u64) -> Error {
    Error::Model(format!(
        "{} is larger than the limit of {limit} bytes; {REMEDY}",
        path.display()
    ))
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::Model(format!(
        "{} cannot be read: {error}; {REMEDY}",
        path.display()
    ))
}
