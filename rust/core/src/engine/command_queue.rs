//! The commands that wait for the driver, and the one that it carries out.

use std::collections::VecDeque;

use super::adapters::Adapters;
use crate::command::{Command, PageMove};
use crate::ids::{CommandId, PageId, RequestId};
use crate::kv::Arrival;

/// The commands of a device.
#[derive(Debug, Default)]
pub(super) struct Commands {
    /// Those that were entered and not given, in order.
    pub(super) waiting: VecDeque<(RequestId, QueuedCommand)>,
    pub(super) running: Option<RunningCommand>,
    pub(super) adapters: Adapters,
    /// A command was given since the last batch.
    pub(super) yields: bool,
    pub(super) n_given: u64,
}

/// A command that waits, as it was asked for.
#[derive(Debug)]
pub(super) enum QueuedCommand {
    Command(Command),
    /// Which pages those are is known when it is given.
    Pages(PageMove),
}

/// What a command does with pages.
#[derive(Debug, Default)]
pub(super) enum Transfer {
    #[default]
    Nothing,
    /// It reads these, which are lent to it.
    Out(Vec<PageId>),
    /// It fills these. So many others that were asked for are there already.
    In(Vec<Arrival>, u32),
}

/// A command that a driver carries out.
#[derive(Debug)]
pub(super) struct RunningCommand {
    pub(super) id: CommandId,
    /// None: an adapter is loaded again, and nobody waits for that.
    pub(super) request: Option<RequestId>,
    pub(super) command: Command,
    pub(super) transfer: Transfer,
    pub(super) since_ns: u64,
    /// Its request has failed, and the driver has not answered yet.
    pub(super) abandoned: bool,
}

impl Commands {
    /// When the one that runs is overdue after `limit_ns`; none where none can be.
    pub(super) fn due_ns(&self, limit_ns: u64) -> Option<u64> {
        let waited_for = self.running.as_ref();
        let waited_for = waited_for.filter(|running| !running.abandoned);
        waited_for.map(|running| running.since_ns.saturating_add(limit_ns))
    }

    /// Whether one was abandoned that the driver has not answered.
    pub(super) fn is_stuck(&self) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|running| running.abandoned)
    }

    /// A batch is given.
    pub(super) const fn note_batch(&mut self) {
        self.yields = false;
    }
}
