//! The tickets by which the scheduler knows requests, and what it offers them.

use super::kind::{Kind, Wants};
use crate::ids::{ContextId, PassId, ProcessId, UserId};

/// Batches for which a request may lack pages before it comes first.
pub(crate) const MAX_REFUSED: u32 = 32;

/// A request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) context: ContextId,
    pub(crate) process: ProcessId,
    pub(crate) user: UserId,
    pub(crate) wants: Wants,
    /// Tokens that have to be computed.
    pub(crate) n_tokens: u32,
    /// Tokens of its context that are computed.
    pub(crate) n_before: u32,
    /// In the order of submission.
    pub(crate) pass: PassId,
    /// The number of the batch that served it last.
    pub(crate) served: u64,
    /// Batches for which it lacked pages, or room for its rows, since it was served.
    pub(crate) n_refused: u32,
    /// The number of the plan that refused it last.
    pub(crate) refused_in: u64,
    /// Nobody has asked for it yet. It comes after all steps, and nothing is displaced for it.
    pub(crate) is_ahead: bool,
    /// The row of the batch that runs from which its token is drawn: it is there for one plan.
    pub(crate) follows: Option<u32>,
}

impl Ticket {
    /// What it needs of the next batch.
    pub(crate) const fn kind(&self) -> Kind {
        self.wants.kind(self.n_tokens)
    }

    /// Whether it is a step of a generation, or as little as that.
    pub(crate) const fn is_step(&self) -> bool {
        self.kind().is_step()
    }

    /// The most of its tokens that a batch of these limits computes. Steps are not cut into chunks: where there is less
    /// room, there are fewer drafts.
    pub(super) fn chunk(&self, limits: BatchRoom) -> u32 {
        let chunk = if self.is_step() {
            u32::MAX
        } else {
            limits.prefill_chunk
        };
        self.n_tokens.min(chunk).min(limits.n_tokens)
    }

    /// It was refused in this plan.
    pub(super) const fn refuse(&mut self, plan: u64) {
        self.n_refused += 1;
        self.refused_in = plan;
    }

    /// Whether it was passed over too often.
    pub(crate) const fn is_starved(&self) -> bool {
        self.n_refused >= MAX_REFUSED && !self.is_ahead
    }
}

/// What fits into a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchRoom {
    pub(crate) n_tokens: u32,
    pub(crate) n_sequences: u32,
    pub(crate) prefill_chunk: u32,
}

/// What became of an offer to run some tokens of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// So many of its tokens are in the batch; it leaves the queue.
    Planned(u32),
    /// It lacks pages, or room for its rows, and stays in the queue.
    Refused,
    /// Something else of it still runs; it stays in the queue.
    NotYet,
}

/// Who gives requests their places in a batch.
pub(crate) trait Admit {
    /// Gives the next `n` tokens of a request a place. `others` are all that wait, itself and those that have a place
    /// included.
    fn admit(&mut self, ticket: &Ticket, n: u32, others: &[Ticket]) -> Admission;

    /// The tokens that a request needs which stays in the queue.
    fn n_tokens(&self, ticket: &Ticket) -> u32;
}
