//! What the model says, as text.
use crate::{Chat, error::Result};
use std::sync::Arc;

/// What the tokens of one `feed` meant.
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

/// Turns tokens into text without tearing characters apart.
pub struct ChatDecoder {}

impl ChatDecoder {
    /// A decoder for the replies of one model.
    pub fn new(_chat: Arc<Chat>) -> Self {
        todo!()
    }
    /// Takes tokens; gives one event. What they complete beyond the first is queued; an empty list drains.
    pub fn feed(&mut self, _tokens: &[u32]) -> Result<ChatEvent> {
        todo!()
    }
    /// Forgets everything.
    pub fn reset(&mut self) {
        todo!()
    }
    /// The whole text so far, a torn character as U+FFFD: for a generation that ended without a stop token.
    pub fn finish(&mut self) -> String {
        todo!()
    }
}
