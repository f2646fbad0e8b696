//! What is on the device, and what it does: its pages, the batch in the making, and the batches that run.

use std::ops::Range;

use super::command_queue::Commands;
use crate::batch::{ArenaBuilder, LateRow, RowReads};
use crate::ids::{BatchId, ContextId, PageId, PassId};
use crate::kv::{Lane, Moves, PageCopy, PageStore};
use crate::sched::Work;

/// The engine's side of a device.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) store: PageStore,
    pub(super) builder: ArenaBuilder,
    pub(super) in_flight: Vec<InFlight>,
    pub(super) commands: Commands,
}

/// A batch that a driver runs.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) id: BatchId,
    pub(super) sequences: Vec<Running>,
    /// Contexts whose pages it moves without computing anything of theirs.
    pub(super) restores: Vec<PageRestore>,
    pub(super) moves: Moves,
    /// Its rows whose token masks have not come, until it is launched.
    pub(super) late: Vec<LateRow>,
    /// What comes of its rows besides draws.
    pub(super) reads: Vec<RowReads>,
    pub(super) work: Work,
    pub(super) n_tokens: u32,
    /// The batch that some of its sequences follow.
    pub(super) before: Option<BatchId>,
    /// Pages that it has in its arena, whoever else has done with them.
    pub(super) lent: Vec<PageId>,
    /// When it was planned, or where its driver runs one batch after the other, when it was its turn.
    pub(super) since_ns: u64,
    /// Its requests have failed, and the driver has not answered yet.
    pub(super) abandoned: bool,
}

/// A context whose pages a batch brings back for a pass, without computing anything of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageRestore {
    pub(super) context: ContextId,
    pub(super) pass: PassId,
}

/// A sequence of a batch that a driver runs.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) context: ContextId,
    pub(super) pass: PassId,
    pub(super) copy: Option<PageCopy>,
    /// Tokens that are ready when it is done.
    pub(super) length: u32,
    /// The rows that it wants, among those of the batch.
    pub(super) rows: Range<u32>,
    /// It follows a sequence of the batch before.
    pub(super) follows: bool,
}

impl InFlight {
    /// One that computes nothing yet.
    pub(super) fn new(id: BatchId, since_ns: u64) -> Self {
        Self {
            id,
            sequences: Vec::new(),
            restores: Vec::new(),
            moves: Moves::default(),
            late: Vec::new(),
            reads: Vec::new(),
            work: Work::default(),
            n_tokens: 0,
            before: None,
            lent: Vec::new(),
            since_ns,
            abandoned: false,
        }
    }

    /// Whether it computes nothing and moves nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.sequences.is_empty() && self.moves.is_empty()
    }
}

impl Device {
    /// An empty one.
    pub(super) fn new(store: PageStore) -> Self {
        Self {
            builder: ArenaBuilder::new(store.page_size()),
            store,
            in_flight: Vec::new(),
            commands: Commands::default(),
        }
    }

    /// Where a batch is among those that run.
    pub(super) fn position(&self, batch: BatchId) -> Option<usize> {
        self.in_flight
            .iter()
            .position(|running| running.id == batch)
    }

    /// Whether a driver has a batch that it has not answered.
    pub(super) fn runs(&self, batch: BatchId) -> bool {
        self.position(batch).is_some()
    }

    /// The batch `next` has the pages of a lane in its arena: it keeps those that may turn out to be a second copy of
    /// what somebody else has.
    pub(super) fn lend(&mut self, next: BatchId, lane: &Lane) {
        let next = self.in_flight.iter_mut().find(|batch| batch.id == next);
        if let Some(next) = next {
            for page in lane.own_pages() {
                self.store.lend(page);
                next.lent.push(page);
            }
        }
    }

    /// Batches and commands that were abandoned and that the driver has not answered.
    pub(super) fn n_stuck(&self) -> usize {
        let stuck = self.in_flight.iter().filter(|batch| batch.abandoned);
        stuck.count() + usize::from(self.commands.is_stuck())
    }
}
