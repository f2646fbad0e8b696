//! Children: processes that programs start.

#![expect(
    unreachable_pub,
    reason = "the generated bindings re-export the types behind handles, which must be public for that"
)]

use std::sync::Arc;

use pie_core::ErrorCode;

use super::ending::{Ended, Ending};
use super::programs::Named;
use super::record::ProcessRecord;
use crate::Error;
use crate::futures::Future;

/// What a program wants to be started.
pub(crate) struct Spawn {
    pub(crate) named: Named,
    /// A JSON text.
    pub(crate) input: String,
    pub(crate) args: Vec<String>,
    pub(crate) seed: Option<u64>,
    pub(crate) token_budget: Option<u64>,
    /// Its output becomes that of its parent.
    pub(crate) with_output: bool,
    pub(crate) is_detached: bool,
}

/// Who starts processes for programs.
pub(crate) trait Spawner: Send + Sync {
    /// Starts a child of `parent`.
    ///
    /// # Errors
    /// `limit-child-depth`, `limit-children`, `limit-spawns`; `unsupported` for a detached one where nobody keeps
    /// processes; and those of a launch.
    fn spawn(self: Arc<Self>, parent: &Arc<ProcessRecord>, spawn: Spawn) -> Result<Child, Error>;
}

/// What a program holds of a process that it has started. Dropping it changes nothing.
#[derive(Debug)]
pub struct Child {
    record: Arc<ProcessRecord>,
    ending: Arc<Ending>,
}

impl Child {
    pub(crate) fn new(record: Arc<ProcessRecord>, ending: Arc<Ending>) -> Self {
        Self { record, ending }
    }

    /// Its number.
    pub(crate) fn pid(&self) -> u64 {
        self.record.pid
    }

    /// The future of its value.
    pub(crate) fn wait(&self) -> Future<Ended> {
        self.ending.wait(self.record.pid)
    }

    /// Ends it, unless it has ended.
    pub(crate) fn cancel(&self) {
        let message = "the program that started the process has cancelled it";
        self.record.stop(Error::new(ErrorCode::Cancelled, message));
    }
}
