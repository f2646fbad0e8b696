//! A pass under way: the tokens it took, and those it drew.

use std::ops::Range;

use crate::batch::Adapter;
use crate::budget::TokenBudget;
use crate::errors::Error;
use crate::generation::FinishReason;
use crate::ids::{GeneratorId, PassId, RequestId};
use crate::kv::Content;
use crate::sampling::Params;

use super::reads::Reads;

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

/// How a pass draws its tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    pub(crate) params: Params,
    pub(crate) seed: u64,
    /// The key under which the generators of a process are counted.
    pub(crate) origin: u64,
}

/// A pass that was submitted and not yet taken, or that runs ahead of the program. How far it is tells the lane of its context.
///
/// A step that was answered runs ahead: the token that it drew is computed and the next one drawn before the program asks. Nothing that a program
/// can see depends on it. When the answer is taken, what ran ahead stays as a pass of its own ([`Pass::split`]), and the next step
/// takes it over if it asks for the same ([`Pass::promote`]).
#[derive(Debug)]
pub(crate) struct Pass {
    /// None: it runs ahead, and nobody asked for it yet.
    pub(crate) request: Option<RequestId>,
    pub(crate) kind: PassKind,
    /// How the token behind its last one is drawn; none in a flush and in a forward pass.
    pub(crate) draws: Option<Draws>,
    /// The rows that a forward pass wants.
    pub(crate) reads: Option<Box<Reads>>,
    /// What its tokens are computed with, those that it draws included.
    adapter: Adapter,
    /// What its tokens are charged to, when they are taken.
    pub(crate) budget: Option<TokenBudget>,
    pub(crate) id: PassId,
    /// Of its tokens, those that belong to the answer that is ready; the others ran ahead.
    n_answered: Option<u32>,
    /// Whether it goes on after its answer.
    goes_ahead: bool,
    /// The slot of its first token.
    slot: u32,
    /// Where the sequence stands: the tokens taken from the context, then those drawn.
    content: Content,
    n_taken: u32,
    n_buffered: usize,
    /// Tokens that were given with the pass itself.
    n_given: u32,
    /// Since when it waits for its first batch at the wish of a program, in nanoseconds; none where it does not.
    pub(crate) asked_ns: Option<u64>,
    /// Of its tokens, those that were found computed.
    pub(crate) n_found: u32,
    /// What its masks and the rows that it keeps take, in bytes.
    pub(crate) n_bytes: usize,
    /// Whether a batch runs it.
    in_flight: bool,
    /// Whether batches ran a part of it, and none its end yet: what it holds is not taken away before one did.
    pub(crate) is_partway: bool,
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
        Self::of(request, kind, slot, Content::plain(tokens), buffer.len(), 0)
    }

    /// A pass that takes these tokens behind `slot` others: what is pending, `n_buffered` of the buffer, and `n_given` that came with it.
    pub(crate) fn of(
        request: RequestId,
        kind: PassKind,
        slot: u32,
        content: Content,
        n_buffered: usize,
        n_given: u32,
    ) -> Self {
        Self {
            request: Some(request),
            kind,
            draws: None,
            reads: None,
            adapter: Adapter::default(),
            budget: None,
            id: PassId(0),
            n_answered: None,
            goes_ahead: false,
            slot,
            n_taken: content.len(),
            content,
            n_buffered,
            n_given,
            asked_ns: None,
            n_found: 0,
            n_bytes: 0,
            in_flight: false,
            is_partway: false,
            finish: None,
            outcome: None,
        }
    }

    /// The same, computed with an adapter.
    pub(crate) fn with_adapter(mut self, adapter: Adapter) -> Self {
        self.adapter = adapter;
        self.content = self.content.with_adapter(adapter, self.slot);
        self
    }

    /// What its tokens are computed with.
    pub(crate) const fn adapter(&self) -> Adapter {
        self.adapter
    }

    /// Tokens of the buffer that it took.
    pub(crate) const fn n_buffered(&self) -> usize {
        self.n_buffered
    }

    /// Its tokens with what they depend on.
    pub(crate) const fn content(&self) -> &Content {
        &self.content
    }

    /// Tokens that it drew, without those that ran ahead.
    pub(crate) fn drawn(&self) -> &[u32] {
        &self.content.tokens()[self.n_taken as usize..self.n_asked() as usize]
    }

    /// Its tokens, without those that ran ahead.
    fn n_asked(&self) -> u32 {
        self.n_answered.unwrap_or(self.content.len())
    }

    /// Its tokens: those taken and those drawn.
    pub(crate) fn n_tokens(&self) -> u32 {
        self.content.len()
    }

    /// Tokens that are computed when it is done: all but the last one drawn.
    pub(crate) fn n_computed(&self) -> u32 {
        self.n_asked() - u32::from(!self.drawn().is_empty())
    }

    /// The last token drawn.
    pub(crate) fn uncomputed(&self) -> Option<u32> {
        self.drawn().last().copied()
    }

    /// Tokens that the context will hold beyond those that it shows: given to the pass, or the first that it draws.
    pub(crate) const fn n_to_come(&self) -> u32 {
        match self.kind {
            PassKind::Flush => 0,
            PassKind::Step(_) | PassKind::Run(_) => 1,
            PassKind::Forward { .. } => self.n_given,
        }
    }

    /// Tokens that enter the context with its result, beside those that were there.
    pub(crate) fn n_entering(&self) -> usize {
        self.n_given as usize + self.drawn().len()
    }

    /// Whether the full pages that it leaves are committed when the program goes on.
    pub(crate) const fn commits(&self) -> bool {
        !matches!(self.kind, PassKind::Forward { commits: false })
    }

    /// Whether batches have to compute it though all of its tokens are ready: rows are wanted.
    pub(crate) fn wants_rows(&self) -> bool {
        self.draws.is_some() || self.reads.as_ref().is_some_and(|reads| !reads.is_done())
    }

    /// Tokens from this slot on have to be computed, though somebody else has done so: rows of theirs are wanted.
    pub(crate) fn first_read(&self) -> u32 {
        let reads = self.reads.as_ref();
        reads
            .and_then(|reads| reads.next_slot())
            .unwrap_or(u32::MAX)
    }

    /// Whether what it computed counts: it has not failed.
    pub(crate) const fn counts(&self) -> bool {
        !matches!(self.outcome, Some(Err(_)))
    }

    /// Its tokens in these slots, where all of them are its own and plain.
    pub(crate) fn tokens_at(&self, slots: Range<u32>) -> Option<&[u32]> {
        let start = slots.start.checked_sub(self.slot)?;
        let tokens = self.content.tokens();
        tokens
            .get(start as usize..(slots.end - self.slot) as usize)
            .filter(|_| self.content.is_plain())
    }

    /// Whether it waits for a batch.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.in_flight && (self.outcome.is_none() || self.goes_ahead) && !self.has_run_ahead()
    }

    /// Whether a batch runs it.
    pub(crate) const fn is_in_flight(&self) -> bool {
        self.in_flight
    }

    /// Tokens of an answer that is ready that are computed: they are the context's to keep.
    pub(crate) fn n_kept(&self) -> u32 {
        match self.outcome {
            Some(Ok(())) => self.n_computed(),
            _ => 0,
        }
    }

    /// Whether what it waits for was not asked for yet.
    pub(crate) fn is_ahead(&self) -> bool {
        self.request.is_none() || self.outcome.is_some()
    }

    /// Whether it drew a token ahead.
    fn has_run_ahead(&self) -> bool {
        let n_asked = self.n_answered.unwrap_or(self.n_taken);
        (self.request.is_none() || self.n_answered.is_some()) && self.content.len() > n_asked
    }

    /// The answer is ready. `goes_ahead` tells whether the pass goes on.
    pub(crate) fn answer(&mut self, finish: Option<FinishReason>, goes_ahead: bool) {
        (self.finish, self.outcome) = (finish, Some(Ok(())));
        self.n_answered = Some(self.content.len());
        self.goes_ahead = goes_ahead;
    }

    /// Forgets what ran ahead of the answer, and goes no further.
    pub(crate) fn stop_ahead(&mut self) {
        (self.in_flight, self.goes_ahead) = (false, false);
        self.content.truncate(self.n_asked(), self.slot);
    }

    /// What runs ahead of an answer that is taken, as a pass of its own; none where nothing does.
    pub(crate) fn split(&self) -> Option<Self> {
        let n_answered = self.n_answered.filter(|_| self.goes_ahead)?;
        let n_computed = self.n_computed();
        Some(Self {
            request: None,
            kind: self.kind,
            draws: self.draws,
            reads: None,
            adapter: self.adapter,
            budget: self.budget.clone(),
            id: self.id,
            n_answered: None,
            goes_ahead: true,
            slot: self.slot + n_computed,
            content: self.content.part(n_computed..self.content.len(), self.slot),
            n_taken: n_answered - n_computed,
            n_buffered: 0,
            n_given: 0,
            asked_ns: None,
            n_found: 0,
            n_bytes: 0,
            in_flight: self.in_flight,
            is_partway: self.is_partway,
            finish: None,
            outcome: None,
        })
    }

    /// Somebody asks for what ran ahead. Answers the token that was drawn already.
    pub(crate) fn promote(&mut self, request: RequestId) -> Option<u32> {
        self.request = Some(request);
        self.goes_ahead = false;
        self.drawn().last().copied()
    }

    /// Whether it runs ahead of a step of `generator` that draws by `params` and `seed` behind `pending`.
    pub(crate) fn fits(
        &self,
        generator: GeneratorId,
        params: &Params,
        seed: Option<u64>,
        pending: Option<u32>,
    ) -> bool {
        let draws_alike = |draws: &Draws| draws.params == *params && Some(draws.seed) == seed;
        self.request.is_none()
            && self.kind == PassKind::Step(generator)
            && self.draws.as_ref().is_some_and(draws_alike)
            && self.content.tokens().first().copied() == pending
    }

    /// A batch runs it.
    pub(crate) const fn start(&mut self) {
        self.in_flight = true;
    }

    /// The batch is done. Answers whether it was running.
    pub(crate) const fn stop(&mut self) -> bool {
        std::mem::replace(&mut self.in_flight, false)
    }

    /// Ends the pass with an error: what it computed counts no more.
    pub(crate) fn fail(&mut self, error: Error) {
        (self.in_flight, self.goes_ahead) = (false, false);
        self.outcome = Some(Err(error));
    }

    /// Adds a token that was drawn.
    pub(crate) fn push(&mut self, token: u32) {
        let slot = self.slot + self.content.len();
        self.content.push(token, self.adapter, slot);
    }
}
