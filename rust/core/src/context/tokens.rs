//! The tokens of a pass.

use std::ops::Range;

use crate::batch::Adapter;
use crate::kv::Content;

/// The longest text that was accepted with a step, behind its first token, of which the next step still is one: what is
/// longer takes its turn among prompts. As many tokens as may be drafted at once.
const MAX_FORCED: u32 = 8;

/// What a pass took from its context, what came with it, and what it drew, in this order.
#[derive(Debug)]
pub(crate) struct Tokens {
    /// That of the first.
    slot: u32,
    content: Content,
    /// Those that were not drawn.
    n_taken: u32,
    /// Those of the buffer of the context.
    n_buffered: usize,
    /// Those that were given with the pass itself.
    n_given: u32,
    /// Those that come last, and of which nobody knows yet whether they will be drawn.
    n_drafts: u32,
}

impl Tokens {
    /// Behind `slot` others: what is pending, and what is buffered.
    pub(crate) fn taken(slot: u32, pending: &[u32], buffer: &[u32]) -> Self {
        let tokens = [pending, buffer].concat();
        Self::given(slot, Content::plain(tokens), buffer.len(), 0)
    }

    /// Behind `slot` others: what is pending, `n_buffered` of the buffer, and `n_given` that came with the pass.
    pub(crate) fn given(slot: u32, content: Content, n_buffered: usize, n_given: u32) -> Self {
        Self {
            slot,
            n_taken: content.len(),
            content,
            n_buffered,
            n_given,
            n_drafts: 0,
        }
    }

    /// The same, computed with an adapter.
    pub(super) fn with_adapter(self, adapter: Adapter) -> Self {
        Self {
            content: self.content.with_adapter(adapter, self.slot),
            ..self
        }
    }

    /// Those from the one at an index on, of which `n_taken` were not drawn ahead.
    pub(super) fn split(&self, index: u32, n_taken: u32) -> Self {
        Self {
            slot: self.slot + index,
            content: self.content.part(index..self.content.len(), self.slot),
            n_taken,
            n_buffered: 0,
            n_given: 0,
            n_drafts: 0,
        }
    }

    pub(super) const fn content(&self) -> &Content {
        &self.content
    }

    pub(super) fn len(&self) -> u32 {
        self.content.len()
    }

    /// The slot behind the last.
    pub(super) fn end(&self) -> u32 {
        self.slot + self.content.len()
    }

    pub(super) const fn n_buffered(&self) -> usize {
        self.n_buffered
    }

    pub(super) const fn n_given(&self) -> u32 {
        self.n_given
    }

    /// Those that were not drawn.
    pub(super) fn not_drawn(&self) -> &[u32] {
        &self.content.tokens()[..self.n_taken as usize]
    }

    /// Those that were drawn, up to the one at index `end`.
    pub(super) fn drawn(&self, end: u32) -> &[u32] {
        &self.content.tokens()[self.n_taken as usize..end as usize]
    }

    /// Those in these slots, where all of them are plain and its own.
    pub(super) fn at(&self, slots: Range<u32>) -> Option<&[u32]> {
        let start = slots.start.checked_sub(self.slot)?;
        let tokens = self.content.tokens();
        tokens
            .get(start as usize..(slots.end - self.slot) as usize)
            .filter(|_| self.content.is_plain())
    }

    /// The one in this slot, where all are plain.
    pub(super) fn plain_at(&self, slot: u32) -> Option<u32> {
        let index = slot.checked_sub(self.slot)?;
        let plain = Some(&self.content).filter(|content| content.is_plain())?;
        plain.tokens().get(index as usize).copied()
    }

    /// Those that may turn out not to be drawn.
    pub(super) fn drafts(&self) -> &[u32] {
        let tokens = self.content.tokens();
        &tokens[tokens.len() - self.n_drafts as usize..]
    }

    pub(super) const fn n_drafts(&self) -> u32 {
        self.n_drafts
    }

    /// Those of a text that was accepted behind the first pending one, a few at most: they are computed with the step
    /// that comes, as drafts are.
    pub(super) fn n_forced(&self) -> u32 {
        let n_pending = self
            .n_taken
            .saturating_sub(self.n_buffered as u32 + self.n_given);
        n_pending.saturating_sub(1).min(MAX_FORCED)
    }

    /// Adds some that may turn out not to be drawn.
    pub(super) fn add_drafts(&mut self, drafts: &[u32], adapter: Adapter) {
        for &token in drafts {
            self.push(token, adapter);
        }
        self.n_drafts += drafts.len() as u32;
    }

    /// Drops those that may turn out not to be drawn.
    pub(super) fn drop_drafts(&mut self) {
        let n_drafts = std::mem::take(&mut self.n_drafts);
        if n_drafts > 0 {
            self.truncate(self.len() - n_drafts);
        }
    }

    /// Adds one that was drawn.
    pub(super) fn push(&mut self, token: u32, adapter: Adapter) {
        let slot = self.end();
        self.content.push(token, adapter, slot);
    }

    /// Keeps the first `n`.
    pub(super) fn truncate(&mut self, n: u32) {
        self.content.truncate(n, self.slot);
    }
}
