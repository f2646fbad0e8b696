//! The decoder of thoughts.

use std::sync::Arc;

use super::event::ReasoningEvent;
use super::thoughts::Thoughts;
use crate::chat::Chat;
use crate::error::Result;
use crate::speech::SpeechDecoder;

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
