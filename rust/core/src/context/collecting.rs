//! A collection begins and changes a context, and may be given up.

use super::{Before, Context};
use crate::generation::{FinishReason, Mark};
use crate::ids::GeneratorId;

impl Context {
    /// A collection begins, of a generator that stands there.
    pub(crate) fn begin_collection(
        &mut self,
        generator: GeneratorId,
        mark: Mark,
        finish: Option<FinishReason>,
    ) {
        self.before = Some(Box::new(Before {
            generator,
            mark,
            finish,
            origin: None,
            n_charged: 0,
            is_whole: false,
            n_tokens: self.n_tokens,
            tail: self.tail.clone(),
            pending: self.pending.clone(),
            buffer: self.buffer.clone(),
            n_cached: self.n_cached,
            n_committed: self.n_committed,
            n_final: self.n_final,
        }));
    }

    /// Tokens entered and were charged: where they are collected they may be given back.
    pub(crate) fn note_charged(&mut self, n_tokens: usize) {
        if let Some(before) = &mut self.before {
            before.n_charged += n_tokens;
        }
    }

    /// Of what was charged for the last step, `n_tokens` were cut from it: they may be charged again. Returns how many
    /// of them had been charged beside those that stand.
    pub(crate) fn uncharge_cut(&mut self, n_tokens: usize) -> usize {
        let Some(provisional) = &mut self.provisional else {
            return 0;
        };
        let n_beside = provisional.n_charged.saturating_sub(provisional.n_tokens);
        let n_cut = n_beside.min(u32::try_from(n_tokens).unwrap_or(u32::MAX));
        provisional.n_charged -= n_cut;
        let n_cut = n_cut as usize;
        if let Some(before) = &mut self.before {
            before.n_charged = before.n_charged.saturating_sub(n_cut);
        }
        n_cut
    }

    /// The collection was given up: the tokens are those before it. Returns where its generator stood. What the lane
    /// has beyond them is for whoever trims it.
    pub(crate) fn return_to(&mut self, before: Before) -> Mark {
        self.n_tokens = before.n_tokens;
        self.tail = before.tail;
        self.pending = before.pending;
        self.buffer = before.buffer;
        self.n_cached = before.n_cached;
        self.n_committed = before.n_committed;
        self.n_final = before.n_final;
        self.provisional = None;
        before.mark
    }
}
