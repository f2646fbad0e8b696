//! What tokens are judged by, and the verdict on them.

use super::FinishReason;

/// Where a generation stands, and what may stop it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing<'a> {
    /// Tokens that the generator accepted and that are judged anew.
    pub(crate) n_replaced: u32,
    /// Tokens that the pass drew before.
    pub(crate) n_drawn: u32,
    /// Tokens of the context with those.
    pub(crate) length: u32,
    pub(crate) max_context: u32,
    pub(crate) end_tokens: &'a [u32],
    /// Tokens that the pass may draw; none: any number.
    pub(crate) budget: Option<u64>,
}

/// What comes of the rows of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// So many of the tokens that were drawn count, from the first.
    pub(crate) n_accepted: u32,
    /// So many of the drafts do not count, from the last: what was computed of them is dropped.
    pub(crate) n_rejected: u32,
    pub(crate) next: Next,
}

/// What a generation does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It wants the row behind its last token.
    Go,
    /// It ended.
    Done(FinishReason),
    /// It would go on, and no more tokens may be drawn.
    OverBudget,
}
