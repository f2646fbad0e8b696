//! What the model thinks before it answers.

mod format;
mod thoughts;

use std::sync::Arc;

pub(crate) use format::ReasoningFormat;
pub(crate) use thoughts::Thoughts;

use crate::chat::Chat;
use crate::error::Result;
use crate::speech::{SpeechDecoder, Weigh};

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

/// Tells what the model thinks, between the markers of its template, from what it says.
///
/// A thought that the cue of the template opens begins with the turn. A thought ends with its turn at the latest. Of a
/// model whose template has no thoughts every event is [`ReasoningEvent::Idle`].
#[derive(Debug)]
pub struct ReasoningDecoder {
    decoder: SpeechDecoder<Thoughts>,
}

impl ReasoningDecoder {
    /// A decoder for what the model of `chat` says.
    pub fn new(chat: Arc<Chat>) -> Self {
        let thoughts = Thoughts::new(chat.tokenizer(), chat.reasoning_format());
        Self {
            decoder: SpeechDecoder::new(chat, thoughts),
        }
    }

    /// Takes tokens and gives one event. What they mean beyond it is queued; an empty list takes from the queue.
    ///
    /// # Errors
    /// `invalid-token` for an id outside the vocabulary, `invalid-argument` when more is queued or thought than a
    /// decoder may hold; the tokens are not taken then.
    pub fn feed(&mut self, tokens: &[u32]) -> Result<ReasoningEvent> {
        Ok(self
            .decoder
            .feed(tokens, false)?
            .unwrap_or(ReasoningEvent::Idle))
    }

    /// The same with the last tokens of a turn, which ends with them, whether one of them says so or not.
    ///
    /// # Errors
    /// As [`feed`](ReasoningDecoder::feed).
    pub fn feed_last(&mut self, tokens: &[u32]) -> Result<ReasoningEvent> {
        Ok(self
            .decoder
            .feed(tokens, true)?
            .unwrap_or(ReasoningEvent::Idle))
    }

    /// Ends a turn that was begun, and a thought that is open. Gives one event, and queues the rest.
    pub fn finish(&mut self) -> ReasoningEvent {
        self.decoder.finish();
        self.decoder.next().unwrap_or(ReasoningEvent::Idle)
    }

    /// Forgets what was fed: for the next turn.
    pub fn reset(&mut self) {
        self.decoder.reset();
    }

    /// Bytes of memory that it takes, about: to charge its holder with.
    pub fn held_bytes(&self) -> usize {
        self.decoder.held_bytes()
    }

    /// The most bytes that it takes once it was fed these tokens, about: to charge its holder with before.
    pub fn most_bytes(&self, tokens: &[u32]) -> usize {
        self.decoder.most_bytes(tokens)
    }
}
