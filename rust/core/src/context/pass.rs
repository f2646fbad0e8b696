//! A pass under way: the tokens it took, those it drew, and how far it is.

use crate::errors::Error;
use crate::generation::FinishReason;
use crate::ids::{GeneratorId, RequestId};
use crate::sampling::Params;

/// What a pass is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassKind {
    Flush,
    /// One token.
    Step(GeneratorId),
    /// Tokens until the end.
    Run(GeneratorId),
}

/// How a pass draws its tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    pub(crate) params: Params,
    pub(crate) seed: u64,
    /// The key under which the generators of a process are counted.
    pub(crate) origin: u64,
}

/// A pass that was submitted and not yet taken.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) request: RequestId,
    pub(crate) kind: PassKind,
    /// None in a flush.
    pub(crate) draws: Option<Draws>,
    /// In the order of submission.
    pub(crate) arrival: u64,
    /// Where the sequence stands: the tokens taken from the context, then those drawn.
    sequence: Vec<u32>,
    n_taken: usize,
    n_buffered: usize,
    n_computed: usize,
    /// Tokens of the sequence in the batch that runs; none when the pass waits.
    in_flight: Option<u32>,
    /// Why the generation ended, when it did.
    pub(crate) finish: Option<FinishReason>,
    /// Set when there is nothing left to run.
    pub(crate) outcome: Option<Result<(), Error>>,
}

impl Pass {
    /// A pass that takes a pending token and what is buffered.
    pub(crate) fn new(
        request: RequestId,
        kind: PassKind,
        arrival: u64,
        pending: Option<u32>,
        buffer: &[u32],
    ) -> Self {
        let sequence: Vec<u32> = pending.iter().chain(buffer).copied().collect();
        Self {
            request,
            kind,
            draws: None,
            arrival,
            n_taken: sequence.len(),
            sequence,
            n_buffered: buffer.len(),
            n_computed: 0,
            in_flight: None,
            finish: None,
            outcome: None,
        }
    }

    /// Tokens of the buffer that it took.
    pub(crate) const fn n_buffered(&self) -> usize {
        self.n_buffered
    }

    /// Tokens of its sequence whose keys and values are in the pages.
    pub(crate) const fn n_computed(&self) -> u32 {
        self.n_computed as u32
    }

    /// Tokens that it drew.
    pub(crate) fn drawn(&self) -> &[u32] {
        &self.sequence[self.n_taken..]
    }

    /// Tokens of its sequence.
    pub(crate) const fn n_tokens(&self) -> u32 {
        self.sequence.len() as u32
    }

    /// Whether the context will hold more tokens than it shows.
    pub(crate) const fn may_draw(&self) -> bool {
        !matches!(self.kind, PassKind::Flush)
    }

    /// Whether it has nothing to compute and so reads the last token of the context again.
    pub(crate) const fn rereads(&self) -> bool {
        self.sequence.is_empty()
    }

    /// Tokens that a batch has to compute before there is anything to draw; a token that is read again counts.
    pub(crate) const fn n_remaining(&self) -> u32 {
        if self.rereads() {
            1
        } else {
            (self.sequence.len() - self.n_computed) as u32
        }
    }

    /// The next `n` tokens to compute.
    pub(crate) fn chunk(&self, n: u32) -> &[u32] {
        let end = (self.n_computed + n as usize).min(self.sequence.len());
        &self.sequence[self.n_computed..end]
    }

    /// Whether it waits for a batch.
    pub(crate) const fn is_waiting(&self) -> bool {
        self.in_flight.is_none() && self.outcome.is_none()
    }

    /// A batch computes the next `n` tokens.
    pub(crate) const fn start(&mut self, n: u32) {
        self.in_flight = Some(n);
    }

    /// The batch is done. Answers whether it was running.
    pub(crate) fn advance(&mut self) -> bool {
        let Some(n) = self.in_flight.take() else {
            return false;
        };
        self.n_computed = (self.n_computed + n as usize).min(self.sequence.len());
        true
    }

    /// Ends the pass with an error: what it computed counts no more.
    pub(crate) fn fail(&mut self, error: Error) {
        self.n_computed = 0;
        self.in_flight = None;
        self.outcome = Some(Err(error));
    }

    /// Adds a token that was drawn.
    pub(crate) fn push(&mut self, token: u32) {
        self.sequence.push(token);
    }

    /// The tokens computed, and the one that is not.
    pub(crate) fn into_tokens(mut self) -> (Vec<u32>, Option<u32>) {
        let pending = self.sequence.get(self.n_computed).copied();
        self.sequence.truncate(self.n_computed);
        (self.sequence, pending)
    }
}
