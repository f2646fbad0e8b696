//! A decoder of tokens, by a machine.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::lexer::Lexer;
use super::machine::{Machine, Queue};
use crate::chat::Chat;
use crate::error::{Error, Result};
use crate::limits::{MAX_HELD_BYTES, MAX_QUEUED_EVENTS};
use crate::utf8::REPLACEMENT_BYTES;

/// Decodes tokens with a machine. The events are the same however the tokens are split into feeds.
pub(crate) struct SpeechDecoder<M: Machine> {
    chat: Arc<Chat>,
    /// Tokens that end the turn.
    stop: BTreeSet<u32>,
    lexer: Lexer,
    machine: M,
    queue: Queue<M::Event>,
}

impl<M: Machine> fmt::Debug for SpeechDecoder<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpeechDecoder").finish_non_exhaustive()
    }
}

impl<M: Machine> SpeechDecoder<M> {
    /// A decoder for what the model of `chat` says.
    pub(crate) fn new(chat: Arc<Chat>, machine: M) -> Self {
        let stop = chat.stop_tokens().unwrap_or_default().iter();
        let stop = stop.chain(chat.end_tokens()).copied().collect();
        Self {
            chat,
            stop,
            lexer: Lexer::default(),
            machine,
            queue: Queue::default(),
        }
    }

    /// Takes tokens, and ends the turn behind them where `ends`.
    ///
    /// # Errors
    /// `invalid-token`, `invalid-argument`; the tokens are not taken then.
    pub(crate) fn feed(&mut self, tokens: &[u32], ends: bool) -> Result<Option<M::Event>> {
        self.check(tokens)?;
        let markers = Arc::clone(self.machine.markers());
        for &id in tokens {
            if self.stop.contains(&id) {
                self.end();
                continue;
            }
            let is_control = self.chat.is_control(id);
            let (machine, queue) = (&mut self.machine, &mut self.queue);
            let tokenizer = self.chat.tokenizer();
            self.lexer
                .take(tokenizer, &markers, id, is_control, |item| {
                    machine.take(item, queue)
                });
        }
        if ends {
            self.finish();
        }
        Ok(self.queue.pop())
    }

    /// Takes tokens and ends the turn behind them, also where nothing was said.
    ///
    /// # Errors
    /// As [`SpeechDecoder::feed`].
    pub(crate) fn feed_stopped(&mut self, tokens: &[u32]) -> Result<Option<M::Event>> {
        let first = self.feed(tokens, false)?;
        self.end();
        Ok(first.or_else(|| self.queue.pop()))
    }

    /// Ends a turn that was begun.
    pub(crate) fn finish(&mut self) {
        if self.lexer.has_begun() {
            self.end();
        }
    }

    /// The oldest event that was not given.
    pub(crate) fn next(&mut self) -> Option<M::Event> {
        self.queue.pop()
    }

    /// Forgets everything.
    pub(crate) fn reset(&mut self) {
        self.lexer = Lexer::default();
        self.machine.reset();
        self.queue = Queue::default();
    }

    /// Bytes of memory that it takes, about.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<Self>()
            + 2 * self.machine.n_bytes()
            + self.queue.n_bytes()
            + self.queue.capacity() * size_of::<M::Event>()
            + self.stop.len() * size_of::<u64>()
    }

    /// The most bytes that it takes once it was fed these tokens, about.
    pub(crate) fn most_bytes(&self, tokens: &[u32]) -> usize {
        let n_bytes = self.chat.tokenizer().text_bytes(tokens) + REPLACEMENT_BYTES;
        let n_bytes = n_bytes.min((MAX_HELD_BYTES + 4) * REPLACEMENT_BYTES);
        let n_events = (4 + 3 * tokens.len()).min(MAX_QUEUED_EVENTS + 4);
        // What is said of a turn is kept until its end, and given once more then.
        let texts = 4 * (n_bytes + self.machine.n_bytes());
        self.held_bytes() + texts + 2 * n_events * size_of::<M::Event>()
    }

    fn end(&mut self) {
        let (machine, queue) = (&mut self.machine, &mut self.queue);
        self.lexer.end(|item| machine.take(item, queue));
        machine.end(queue);
    }

    /// Whether there is room for what the tokens mean.
    fn check(&self, tokens: &[u32]) -> Result<()> {
        if tokens.is_empty() {
            return Ok(());
        }
        let tokenizer = self.chat.tokenizer();
        let markers = self.machine.markers();
        let (mut n_said, mut n_markers) = (0, 0);
        for &id in tokens {
            tokenizer.check_token(id)?;
            n_said += tokenizer.token_bytes(id).map_or(0, <[u8]>::len);
            let is_boundary = markers.holds(id) || self.stop.contains(&id);
            n_markers += usize::from(is_boundary || self.chat.is_control(id));
        }
        n_markers += markers.most_in(n_said);
        let n_events = self.queue.len() + 3 + self.machine.most_events(n_said, n_markers);
        let n_bytes = n_said + self.machine.n_bytes() + self.queue.n_bytes();
        if n_bytes > MAX_HELD_BYTES {
            return Err(Error::Argument(format!(
                "{n_bytes} bytes of text are more than the decoder's limit of {MAX_HELD_BYTES} bytes; feed fewer tokens, drain it with feed([]), and call reset() between turns"
            )));
        }
        if n_events > MAX_QUEUED_EVENTS {
            return Err(Error::Argument(format!(
                "{} queued events and {} more tokens exceed the decoder's limit of {MAX_QUEUED_EVENTS} events; feed fewer tokens and drain it with feed([])",
                self.queue.len(),
                tokens.len()
            )));
        }
        Ok(())
    }
}
