//! Children: processes that programs start.

#![expect(
    unreachable_pub,
    reason = "the generated bindings re-export the types behind handles, which must be public for that"
)]

use std::sync::Arc;

use pie_core::ErrorCode;

use super::ending::{Ended, ProcessEnding};
use super::family::Start;
use super::kin::Inherited;
use super::programs::{Named, Programs};
use super::record::ProcessRecord;
use crate::Error;
use crate::futures::Future;

/// What a program wants to be started.
pub(crate) struct Spawn {
    /// A JSON text.
    pub(crate) input: String,
    pub(crate) args: Vec<String>,
    pub(crate) seed: Option<u64>,
    pub(crate) token_budget: Option<u64>,
    /// Of the credits of its parent; none: at most half of them.
    pub(crate) credits: Option<f64>,
    /// Its output becomes that of its parent.
    pub(crate) with_output: bool,
    pub(crate) is_detached: bool,
}

/// A child that is about to be started, counted wherever it counts. Dropping it takes that back.
pub(crate) struct Admitted {
    pub(crate) inherited: Inherited,
    pub(crate) start: Start,
    /// Who launches it and keeps it, where it is detached.
    pub(crate) keeper: Option<Arc<dyn Programs>>,
}

/// Who starts processes for programs.
pub(crate) trait Spawner: Send + Sync {
    /// Counts a child of `parent`, before anything is found or held for it.
    ///
    /// # Errors
    /// `limit-child-depth`, `limit-children`, `limit-spawns`, `limit-processes`; `unsupported` for a detached one where
    /// nobody keeps processes.
    fn admit(&self, parent: &ProcessRecord, is_detached: bool) -> Result<Admitted, Error>;

    /// Starts a child of `parent` that was admitted, and found.
    ///
    /// # Errors
    /// Those of a launch.
    fn spawn(
        self: Arc<Self>,
        parent: &Arc<ProcessRecord>,
        admitted: Admitted,
        named: Named,
        spawn: Spawn,
    ) -> Result<Child, Error>;
}

/// What a program holds of a process that it has started. Dropping it changes nothing.
#[derive(Debug)]
pub struct Child {
    record: Arc<ProcessRecord>,
    ending: Arc<ProcessEnding>,
}

impl Child {
    pub(crate) fn new(record: Arc<ProcessRecord>, ending: Arc<ProcessEnding>) -> Self {
        Self { record, ending }
    }

    /// Its number.
    pub(crate) fn pid(&self) -> u64 {
        self.record.pid
    }

    /// The future of its value.
    pub(crate) fn wait(&self) -> Future<Ended> {
        self.record.heed();
        self.ending.wait(self.record.pid)
    }

    /// Ends it, unless it has ended.
    pub(crate) fn cancel(&self) {
        self.record.heed();
        let message = "the program that started the process has cancelled it";
        self.record.stop(Error::new(ErrorCode::Cancelled, message));
    }
}
