//! What decoders of calls give.

use super::body::Call;
use crate::speech::Weigh;

/// What the tokens of one [`feed`](ToolDecoder::feed) meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolEvent {
    /// Nothing of a call.
    Idle,
    /// A call begins.
    Start,
    /// A whole call.
    Call(Call),
    /// What began as a call and is none: its text, with its markers.
    Malformed(String),
}

impl Weigh for ToolEvent {
    fn n_bytes(&self) -> usize {
        match self {
            Self::Call(call) => call.n_bytes(),
            Self::Malformed(text) => text.len(),
            Self::Idle | Self::Start => 0,
        }
    }

    fn joined(&mut self, next: Self) -> Option<Self> {
        Some(next)
    }
}
