//! A pass under way: the tokens it took, and those it drew.
//!
//! What it is, and how it begins and ends, stands here; what it is `wanting` of batches, its `drafting`, the rows whose
//! masks come `late`, and what runs `ahead` of its program have files of their own.

mod ahead;
mod drafting;
mod late;
mod rows;
mod wanting;

use std::ops::Range;

use super::held_bytes::HeldBytes;
use super::phase::Phase;
use super::tokens::Tokens;
use crate::batch::Adapter;
use crate::budget::TokenBudget;
use crate::errors::Error;
use crate::generation::{FinishReason, Speculation};
use crate::ids::{GeneratorId, PassId, RequestId};
use crate::kv::Content;
use rows::Rows;

/// What a pass is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassKind {
    Flush,
    /// One token.
    Step(GeneratorId),
    /// Tokens until the end.
    Run(GeneratorId),
    /// What a program puts together by itself. `commits` tells whether its full pages are committed.
    Forward {
        commits: bool,
    },
}

impl PassKind {
    /// The generator whose tokens it draws.
    pub(crate) const fn generator(self) -> Option<GeneratorId> {
        match self {
            Self::Step(generator) | Self::Run(generator) => Some(generator),
            Self::Flush | Self::Forward { .. } => None,
        }
    }
}

/// A pass that was submitted and not yet taken, or that runs ahead of the program. How far it is computed tells the
/// lane of its context, and where it stands its [`Phase`].
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) id: PassId,
    pub(crate) kind: PassKind,
    rows: Rows,
    /// The key under which it counts for the seeds of later ones; none where it draws nothing, or its generator counts
    /// already.
    pub(crate) origin: Option<u64>,
    /// What its tokens are computed with, those that it draws included.
    adapter: Adapter,
    /// What its tokens are charged to, when they are taken.
    pub(crate) budget: Option<TokenBudget>,
    tokens: Tokens,
    speculation: Speculation,
    /// Tokens that it may draw at most, where it is a step.
    n_drawn_most: u32,
    phase: Phase,
    /// It draws no token, though it is a step: the program says which ones follow.
    is_cleared: bool,
    /// Batches ran a part of it and none its end: what it holds is not taken away before one did.
    is_partway: bool,
    /// Since when it waits for its first batch at the wish of a program, in nanoseconds; none where it does not.
    pub(crate) asked_ns: Option<u64>,
    /// Of its tokens, those that were found computed.
    pub(crate) n_found: u32,
    /// What its masks and the rows that it keeps, or may have to, take; none where that is nothing.
    pub(crate) held: Option<HeldBytes>,
}

impl Pass {
    /// A pass that a program asks for, and that wants no row.
    pub(crate) fn new(id: PassId, request: RequestId, kind: PassKind, tokens: Tokens) -> Self {
        Self::in_phase(id, Phase::Waiting(request), kind, tokens)
    }

    fn in_phase(id: PassId, phase: Phase, kind: PassKind, tokens: Tokens) -> Self {
        Self {
            id,
            kind,
            rows: Rows::default(),
            origin: None,
            adapter: Adapter::default(),
            budget: None,
            tokens,
            speculation: Speculation::default(),
            n_drawn_most: 1,
            phase,
            is_cleared: false,
            is_partway: false,
            asked_ns: None,
            n_found: 0,
            held: None,
        }
    }

    /// The same, of a step that draws nothing.
    pub(crate) fn cleared(self) -> Self {
        Self {
            is_cleared: true,
            ..self
        }
    }

    /// The same, computed with an adapter.
    pub(crate) fn with_adapter(self, adapter: Adapter) -> Self {
        Self {
            adapter,
            tokens: self.tokens.with_adapter(adapter),
            ..self
        }
    }

    /// What its tokens are computed with.
    pub(crate) const fn adapter(&self) -> Adapter {
        self.adapter
    }

    /// The request that it serves; none where it runs ahead as a pass of its own.
    pub(crate) const fn request(&self) -> Option<RequestId> {
        self.phase.request()
    }

    /// Tokens of the buffer that it took.
    pub(crate) const fn n_buffered(&self) -> usize {
        self.tokens.n_buffered()
    }

    /// Its tokens with what they depend on.
    pub(crate) const fn content(&self) -> &Content {
        self.tokens.content()
    }

    /// Whether it drew no token so far.
    pub(crate) fn has_drawn_none(&self) -> bool {
        self.drawn().is_empty()
    }

    /// Tokens that it drew, without those that ran ahead of its answer.
    pub(crate) fn drawn(&self) -> &[u32] {
        self.tokens.drawn(self.n_asked())
    }

    /// Its tokens, without those that ran ahead of its answer.
    fn n_asked(&self) -> u32 {
        match self.phase {
            Phase::Answered { n_tokens, .. } => n_tokens,
            _ => self.tokens.len() - self.tokens.drafts().len() as u32,
        }
    }

    /// Its tokens: those taken, those drawn, and drafts.
    pub(crate) fn n_tokens(&self) -> u32 {
        self.tokens.len()
    }

    /// Tokens that are computed when it is done: all but the last one drawn.
    pub(crate) fn n_computed(&self) -> u32 {
        self.n_asked() - u32::from(!self.drawn().is_empty())
    }

    /// The last token drawn.
    pub(crate) fn uncomputed(&self) -> Option<u32> {
        self.drawn().last().copied()
    }

    /// Tokens that the context will hold beyond those that it shows: given to the pass, or as many as a step may draw.
    pub(crate) const fn n_to_come(&self) -> u32 {
        match self.kind {
            PassKind::Flush => 0,
            PassKind::Step(_) | PassKind::Run(_) => self.n_drawn_most,
            PassKind::Forward { .. } => self.tokens.n_given(),
        }
    }

    /// Tokens that enter the context with its result, beside those that were there.
    pub(crate) fn n_entering(&self) -> usize {
        self.tokens.n_given() as usize + self.drawn().len()
    }

    /// Whether the full pages that it leaves are committed when the program goes on.
    pub(crate) const fn commits(&self) -> bool {
        !matches!(self.kind, PassKind::Forward { commits: false })
    }

    /// Whether it is a generation that draws its next token.
    pub(crate) const fn draws(&self) -> bool {
        self.kind.generator().is_some() && !self.is_cleared
    }

    /// Its tokens in these slots, where all of them are its own and plain.
    pub(crate) fn tokens_at(&self, slots: Range<u32>) -> Option<&[u32]> {
        self.tokens.at(slots)
    }

    /// Whether it waits for a batch.
    pub(crate) const fn is_waiting(&self) -> bool {
        self.phase.is_waiting()
    }

    /// Whether a batch runs it.
    pub(crate) const fn is_running(&self) -> bool {
        self.phase.is_running()
    }

    /// Whether batches ran a part of it, and none its end yet.
    pub(crate) const fn is_partway(&self) -> bool {
        self.is_partway
    }

    /// Whether its answer or its error can be taken.
    pub(crate) const fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Answered { .. } | Phase::Failed(..))
    }

    /// Why it failed, if it did: what it computed does not count then.
    pub(crate) fn error(&self) -> Option<&Error> {
        match &self.phase {
            Phase::Failed(_, error) => Some(error),
            _ => None,
        }
    }

    /// Why the generation ended, where the answer is ready and it did.
    pub(crate) const fn finish(&self) -> Option<FinishReason> {
        match self.phase {
            Phase::Answered { finish, .. } => finish,
            _ => None,
        }
    }

    /// Tokens of an answer that is ready that are computed: they are the context's to keep.
    pub(crate) fn n_kept(&self) -> u32 {
        match self.phase {
            Phase::Answered { .. } => self.n_computed(),
            _ => 0,
        }
    }
}

/// The transitions of its phase, but for those of what is late, drafted or ahead: see there. Each returns false, and
/// changes nothing, where the phase does not have it.
impl Pass {
    /// A batch runs it. `ends` tells whether to its end.
    pub(crate) fn start(&mut self, ends: bool) -> bool {
        let starts = self.phase.start();
        if starts {
            self.is_partway = !ends;
        }
        starts
    }

    /// The batch is done. The first `n_accepted` of the tokens that were drawn from its rows are its own.
    pub(crate) fn stop(&mut self, n_accepted: u32) -> bool {
        if n_accepted == 0 || self.rows.reads.drawn().len() < n_accepted as usize {
            return self.phase.stop();
        }
        let draws = self.phase.draw();
        if draws {
            self.push_drawn(n_accepted);
        }
        draws
    }

    /// Whether a batch runs it that draws the next token of a run to the end, which nothing is drafted for.
    pub(crate) const fn runs_on(&self) -> bool {
        self.phase.is_asked_and_running()
            && matches!(self.kind, PassKind::Run(_))
            && self.rows.reads.only().is_some()
            && self.tokens.n_drafts() == 0
    }

    /// The batch is done, and drew this token: the run goes on behind it. It is what `read`, `stop` and
    /// `want_following` come to. False: it does not run on.
    pub(crate) fn run_on(&mut self, token: u32) -> bool {
        if !self.runs_on() || !self.phase.draw() {
            return false;
        }
        let slot = self.tokens.end();
        self.tokens.push(token, self.adapter);
        self.rows.reads.follow(slot)
    }

    /// The answer is ready. `goes_ahead` tells whether the pass goes on.
    pub(crate) fn answer(&mut self, finish: Option<FinishReason>, goes_ahead: bool) -> bool {
        let answers = self.phase.answer(self.tokens.len(), finish, goes_ahead);
        if answers {
            self.rows.read_probes();
        }
        answers
    }

    /// Ends the pass with an error: what it computed does not count.
    pub(crate) fn fail(&mut self, error: Error) -> bool {
        self.phase.fail(error)
    }
}
