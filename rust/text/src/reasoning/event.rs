//! What decoders of thoughts give.

use crate::speech::Weigh;

/// What the tokens of one [`feed`](ReasoningDecoder::feed) meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReasoningEvent {
    /// Nothing of a thought.
    Idle,
    /// A thought begins.
    Start,
    /// Text of a thought.
    Delta(String),
    /// The end of a thought, with its whole text.
    End(String),
}

impl Weigh for ReasoningEvent {
    fn n_bytes(&self) -> usize {
        match self {
            Self::Delta(text) | Self::End(text) => text.len(),
            Self::Idle | Self::Start => 0,
        }
    }

    fn joined(&mut self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::Delta(text), Self::Delta(more)) => {
                text.push_str(&more);
                None
            }
            (_, next) => Some(next),
        }
    }
}
