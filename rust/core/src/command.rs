//! What a driver does beside running batches, in order with them.

use crate::ids::CommandId;

/// The name of an adapter: what sequences are computed with ([`crate::Adapter`]), without its perturbation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AdapterName {
    /// Its identity; 0 stands for none.
    pub id: u64,
    /// Its version.
    pub version: u32,
}

/// A command to a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Reads an adapter from a file or a folder; one that has the name already is replaced.
    LoadAdapter {
        /// Its name from now on.
        adapter: AdapterName,
        /// Where it lies, as the driver's process sees it.
        path: String,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverCommand {
    /// Its name, by which it is completed.
    pub id: CommandId,
    /// What to do.
    pub command: Command,
    /// Nobody asked for it: the driver that was lost had the adapter.
    pub again: bool,
}

/// Why a driver did not carry out a command; it changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandFailure {
    /// It serves no such commands, for the reason that is given.
    NotServed(String),
    /// It tried.
    Failed(String),
}

impl Command {
    /// The adapters that it names.
    pub(crate) fn adapters(&self) -> impl Iterator<Item = AdapterName> {
        let (first, second) = match self {
            Self::LoadAdapter { adapter, .. } | Self::DropAdapter { adapter } => (*adapter, None),
            Self::CopyAdapter { from, to } => (*from, Some(*to)),
        };
        std::iter::once(first).chain(second)
    }
}
