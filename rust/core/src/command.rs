//! What a driver does beside running batches, in order with them.

use std::sync::Arc;

use crate::errors::ErrorCode;
use crate::ids::{CommandId, ContentId, PageId};

/// Pages that one command moves at most.
pub const MAX_MOVED_PAGES: usize = 64;

/// The name of an adapter: what sequences are computed with ([`crate::Adapter`]), without its perturbation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AdapterName {
    /// Its identity; 0 stands for none.
    pub id: u64,
    /// Its version.
    pub version: u32,
}

/// Pages that are to be moved between the pool and a file. Which pages those are is known when the driver is given
/// the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageMove {
    /// Where to.
    pub direction: MoveDirection,
    /// Full pages, one behind the other: the keys and values of the n-th are the n-th page of the file.
    pub contents: Vec<ContentId>,
    /// The file, as the driver's process sees it. It is as long as it has to be.
    pub path: String,
}

/// Where pages are moved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveDirection {
    /// From the pool to the file: all of them, or none where one is not on the device.
    Export,
    /// From the file to the pool, from the first on, as far as nobody else has to give up a page that is wanted.
    Import,
}

/// A command to a driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Writes pages of the pool to a file that is there: the n-th page of the file lies at n times the bytes of a page.
    ExportPages {
        /// Which page of the file each becomes.
        pages: Arc<[(u32, PageId)]>,
        /// The file, as the driver's process sees it.
        path: String,
    },
    /// Reads pages of such a file into the pool.
    ImportPages {
        /// Which page of the file goes into which page.
        pages: Arc<[(u32, PageId)]>,
        /// The file, as the driver's process sees it.
        path: String,
    },
    /// Reads an adapter from a file or a folder; one that has the name already is replaced.
    LoadAdapter {
        /// Its name from now on.
        adapter: AdapterName,
        /// Where it lies, as the driver's process sees it.
        path: String,
    },
    /// Makes an adapter that changes nothing yet, writes it to a folder, and loads it from there.
    CreateAdapter {
        /// Its name from now on.
        adapter: AdapterName,
        /// The folder, as the driver's process sees it; it is not there yet.
        path: String,
        /// Rows of its smaller matrices.
        rank: u32,
        /// What it changes is multiplied by this, and divided by the rank.
        alpha: f32,
        /// By how much it is perturbed where a pass asks for that.
        sigma: f32,
    },
    /// Adds noise to the weights of an adapter that is loaded, writes the sum to a folder, and loads it from there.
    ChangeAdapter {
        /// The one that is there, and stays as it is.
        from: AdapterName,
        /// The name of the changed one.
        to: AdapterName,
        /// The folder, as the driver's process sees it; it is not there yet.
        path: String,
        /// By how much it is perturbed where a pass asks for that; as before if not given.
        sigma: Option<f32>,
        /// The seeds of the noise, each with its factor, in order.
        changes: Arc<[(u64, f32)]>,
    },
    /// Copies an adapter that is loaded.
    CopyAdapter {
        /// The one that is there.
        from: AdapterName,
        /// The name of the copy; one that has it already is replaced.
        to: AdapterName,
    },
    /// Forgets an adapter.
    DropAdapter {
        /// The one that is there.
        adapter: AdapterName,
    },
}

/// A command for a driver to carry out.
#[derive(Clone, Debug, PartialEq)]
pub struct DriverCommand {
    /// Its name, by which it is completed.
    pub id: CommandId,
    /// What to do.
    pub command: Command,
    /// Nobody asked for it: the driver that was lost had the adapter, or nobody computes with it any more.
    pub again: bool,
}

/// Why a driver did not carry out a command; it changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandFailure {
    /// It serves no such commands, for the reason that is given.
    NotServed(String),
    /// It tried.
    Failed(String),
    /// The adapter cannot be taken: `invalid-adapter` or `limit-adapters`.
    Refused(ErrorCode, String),
}

impl Command {
    /// The adapters that it names.
    pub(crate) fn adapters(&self) -> impl Iterator<Item = AdapterName> {
        let (first, second) = match self {
            Self::LoadAdapter { adapter, .. }
            | Self::CreateAdapter { adapter, .. }
            | Self::DropAdapter { adapter } => (Some(*adapter), None),
            Self::CopyAdapter { from, to } | Self::ChangeAdapter { from, to, .. } => {
                (Some(*from), Some(*to))
            }
            Self::ExportPages { .. } | Self::ImportPages { .. } => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The path that it names.
    pub(crate) fn path(&self) -> Option<&str> {
        match self {
            Self::LoadAdapter { path, .. }
            | Self::CreateAdapter { path, .. }
            | Self::ChangeAdapter { path, .. }
            | Self::ExportPages { path, .. }
            | Self::ImportPages { path, .. } => Some(path),
            Self::CopyAdapter { .. } | Self::DropAdapter { .. } => None,
        }
    }
}
