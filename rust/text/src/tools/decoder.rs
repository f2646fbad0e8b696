//! The decoder of calls.

use std::sync::Arc;

use super::body::Call;
use super::calls::{self, Calls};
use super::event::ToolEvent;
use crate::chat::Chat;
use crate::error::Result;
use crate::speech::SpeechDecoder;

/// Finds the calls of tools in what the model says, as the template of its checkpoint writes them, inside thoughts too.
///
/// Of a model whose template writes no calls every event is [`ToolEvent::Idle`].
#[derive(Debug)]
pub struct ToolDecoder {
    decoder: SpeechDecoder<Calls>,
}

impl ToolDecoder {
    /// A decoder for what the model of `chat` says.
    pub fn new(chat: Arc<Chat>) -> Self {
        let calls = Calls::new(chat.tokenizer(), chat.call_format());
        Self {
            decoder: SpeechDecoder::new(chat, calls),
        }
    }

    /// Takes tokens and gives one event. What they mean beyond it is queued; an empty list takes from the queue.
    ///
    /// # Errors
    /// `invalid-token` for an id outside the vocabulary, `invalid-argument` when more is queued or said than a decoder
    /// may hold; the tokens are not taken then.
    pub fn feed(&mut self, tokens: &[u32]) -> Result<ToolEvent> {
        Ok(self.decoder.feed(tokens, false)?.unwrap_or(ToolEvent::Idle))
    }

    /// The same with the last tokens of a turn, which ends with them, whether one of them says so or not.
    ///
    /// # Errors
    /// As [`feed`](ToolDecoder::feed).
    pub fn feed_last(&mut self, tokens: &[u32]) -> Result<ToolEvent> {
        Ok(self.decoder.feed(tokens, true)?.unwrap_or(ToolEvent::Idle))
    }

    /// Ends a turn that was begun, and a call that is open. Gives one event, and queues the rest.
    pub fn finish(&mut self) -> ToolEvent {
        self.decoder.finish();
        self.decoder.next().unwrap_or(ToolEvent::Idle)
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

impl Chat {
    /// The first call of a finished text, in the format of the model; none where it has none.
    ///
    /// # Errors
    /// `invalid-argument` for a text that is too long.
    pub fn parse_call(&self, text: &str) -> Result<Option<Call>> {
        let tokens = self.tokenizer().encode(text)?;
        Ok(
            calls::all(self.tokenizer(), self.call_format(), &tokens, &self.ends())
                .into_iter()
                .next(),
        )
    }
}
