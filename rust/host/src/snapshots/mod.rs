//! Snapshots on disk: contexts that outlive the engine.
//!
//! A snapshot is one file ([`format`]): what its context says ([`content`]), where its conversation stands, and whose
//! and of which model it is ([`binding`]). What two contexts of a user have in common at their beginning is kept once:
//! a file holds the runs of tokens that no other file had, and names the files of those that it shares ([`store`]).
//! What no snapshot needs any more is removed, and what is new has room within its limits ([`cleanup`]).
//!
//! The keys and values of runs lie in files of their own ([`pages`]), for who would else compute them again.
//!
//! A file is written beside its name, made durable, renamed and never changed afterwards ([`folder`]). So whatever ends
//! the engine, and whenever: a snapshot is the old one, the new one or absent. docs/reference/snapshots.md describes
//! the files for readers in other languages.

mod binding;
mod cleanup;
pub(crate) mod config;
pub(crate) mod content;
mod folder;
mod format;
mod index;
pub(crate) mod loading;
pub(crate) mod loose;
pub(crate) mod pages;
pub(crate) mod store;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;

use pie_core::ErrorCode;

use crate::Error;

/// The error of the file of a snapshot that cannot be used, by its name in its folder, and why.
fn unusable(file: &str, why: &str) -> Error {
    Error::new(
        ErrorCode::SnapshotUnusable,
        format!("the snapshot cannot be opened (its file is {file}): {why}"),
    )
}

/// The error of a disk that does not do what a snapshot wants of it (`what`, as in "a snapshot cannot be written").
/// Programs and clients learn no path; the log has it.
fn disk_error(what: &str, path: &Path, error: &io::Error) -> Error {
    use io::ErrorKind::{
        FileTooLarge, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
    };
    tracing::error!(%error, path = %path.display(), "{what}");
    let (code, reason, remedy) = match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => (
            ErrorCode::DiskFull,
            "the disk has no room for it",
            "delete snapshots, or have whoever runs the engine make room or give it another folder with snapshots.folder",
        ),
        ReadOnlyFilesystem | PermissionDenied => (
            ErrorCode::DiskReadOnly,
            "the engine has no access to the folder of snapshots",
            "have whoever runs the engine give it access, or another folder with snapshots.folder",
        ),
        _ => (
            ErrorCode::DiskError,
            "the disk failed",
            "try again, and have whoever runs the engine look into its log",
        ),
    };
    Error::new(
        code,
        format!("{what}: {reason}; nothing else that is kept has changed: {remedy}"),
    )
}
