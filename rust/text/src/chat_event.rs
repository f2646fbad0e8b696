//! What decoders of chats give.

use crate::speech::Weigh;

/// What the tokens of one [`feed`](crate::ChatDecoder::feed) meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatEvent {
    /// No boundary and no text to show.
    Idle,
    /// Visible text.
    Delta(String),
    /// The end of the turn, with its whole text.
    Done(String),
    /// A control token that has no text.
    Interrupt(u32),
}

impl Weigh for ChatEvent {
    fn joined(&mut self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::Delta(text), Self::Delta(more)) => {
                text.push_str(&more);
                None
            }
            (_, next) => Some(next),
        }
    }

    fn n_bytes(&self) -> usize {
        match self {
            Self::Delta(text) | Self::Done(text) => text.len(),
            Self::Idle | Self::Interrupt(_) => 0,
        }
    }
}
