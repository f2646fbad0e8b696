//! A pass under way: the tokens it took, and those it drew.

use crate::budget::TokenBudget;
use crate::errors::Error;
use crate::generation::FinishReason;
use crate::ids::{GeneratorId, RequestId};
use crate::kv::Content;
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

/// A pass that was submitted and not yet taken. How far it is tells the lane of its context.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) request: RequestId,
    pub(crate) kind: PassKind,
    /// None in a flush.
    pub(crate) draws: Option<Draws>,
    /// What its tokens are charged to, when they are taken.
    pub(crate) budget: Option<TokenBudget>,
    /// In the order of submission.
    pub(crate) arrival: u64,
    /// The slot of its first token.
    slot: u32,
    /// Where the sequence stands: the tokens taken from the context, then those drawn.
    content: Content,
    n_taken: u32,
    n_buffered: usize,
    /// Whether a batch runs it.
    in_flight: bool,
    /// Whether a batch ran a part of it, so that what it holds is not taken away before it is done.
    pub(crate) started: bool,
    /// Why the generation ended, when it did.
    pub(crate) finish: Option<FinishReason>,
    /// Set when there is nothing left to run.
    pub(crate) outcome: Option<Result<(), Error>>,
}

impl Pass {
    /// A pass that takes a pending token and what is buffered, behind `slot` tokens.
    pub(crate) fn new(
        request: RequestId,
        kind: PassKind,
        slot: u32,
        pending: Option<u32>,
        buffer: &[u32],
    ) -> Self {
        let tokens: Vec<u32> = pending.iter().chain(buffer).copied().collect();
        Self {
            request,
            kind,
            draws: None,
            budget: None,
            arrival: 0,
            slot,
            n_taken: tokens.len() as u32,
            content: Content::plain(tokens),
            n_buffered: buffer.len(),
            in_flight: false,
            started: false,
            finish: None,
            outcome: None,
        }
    }

    /// Tokens of the buffer that it took.
    pub(crate) const fn n_buffered(&self) -> usize {
        self.n_buffered
    }

    /// Its tokens with what they depend on.
    pub(crate) const fn content(&self) -> &Content {
        &self.content
    }

    /// Tokens that it drew.
    pub(crate) fn drawn(&self) -> &[u32] {
        &self.content.tokens()[self.n_taken as usize..]
    }

    /// Its tokens: those taken and those drawn.
    pub(crate) fn n_tokens(&self) -> u32 {
        self.content.len()
    }

    /// Tokens that are computed when it is done: all but the last one drawn.
    pub(crate) fn n_computed(&self) -> u32 {
        self.content.len() - u32::from(!self.drawn().is_empty())
    }

    /// The last token drawn.
    pub(crate) fn uncomputed(&self) -> Option<u32> {
        self.drawn().last().copied()
    }

    /// Whether the context will hold more tokens than it shows.
    pub(crate) const fn may_draw(&self) -> bool {
        !matches!(self.kind, PassKind::Flush)
    }

    /// Whether what it computed counts: it has not failed.
    pub(crate) const fn counts(&self) -> bool {
        !matches!(self.outcome, Some(Err(_)))
    }

    /// Its tokens in the slots `[start, end)`, where all of them are its own and plain.
    pub(crate) fn tokens_from(&self, start: u32, end: u32) -> Option<&[u32]> {
        let start = start.checked_sub(self.slot)?;
        let tokens = self.content.tokens();
        tokens
            .get(start as usize..(end - self.slot) as usize)
            .filter(|_| self.content.is_plain())
    }

    /// Whether it waits for a batch.
    pub(crate) const fn is_waiting(&self) -> bool {
        !self.in_flight && self.outcome.is_none()
    }

    /// A batch runs it.
    pub(crate) const fn start(&mut self) {
        (self.in_flight, self.started) = (true, true);
    }

    /// The batch is done. Answers whether it was running.
    pub(crate) const fn stop(&mut self) -> bool {
        std::mem::replace(&mut self.in_flight, false)
    }

    /// Ends the pass with an error: what it computed counts no more.
    pub(crate) fn fail(&mut self, error: Error) {
        self.in_flight = false;
        self.outcome = Some(Err(error));
    }

    /// Adds a token that was drawn.
    pub(crate) fn push(&mut self, token: u32) {
        let slot = self.slot + self.content.len();
        self.content.push(token, slot);
    }
}
