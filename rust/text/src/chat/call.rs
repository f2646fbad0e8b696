//! What a chat call is told, and what it returns.

use super::state::ChatState;

/// Where a context stands when a chat call is made.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// Tokens in the context: kept, pending and buffered.
    pub length: u32,
    /// Its last tokens, pending and buffered ones included: [`Chat::TAIL_LEN`](super::Chat::TAIL_LEN) of them, or all
    /// when there are fewer.
    pub tail: &'a [u32],
}

impl At<'_> {
    /// Of the tokens at `start` and later, the last ones.
    pub(super) fn since(&self, start: u32) -> &[u32] {
        let n_tokens = self.length.saturating_sub(start) as usize;
        self.last(n_tokens)
    }

    /// The last `n_tokens` tokens, as far as they are known.
    pub(super) fn last(&self, n_tokens: usize) -> &[u32] {
        &self.tail[self.tail.len().saturating_sub(n_tokens)..]
    }
}

/// What a chat call appends to a context, and the context's turn state once it is appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addition {
    /// The tokens to append; none when there is nothing to do.
    pub tokens: Vec<u32>,
    /// The state to keep when they have been appended.
    pub state: ChatState,
}

/// The length of the context once `tokens` are appended.
pub(super) fn end(at: At<'_>, tokens: &[u32]) -> u32 {
    at.length
        .saturating_add(u32::try_from(tokens.len()).unwrap_or(u32::MAX))
}
