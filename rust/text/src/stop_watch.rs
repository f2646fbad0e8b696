//! What a generation accepts, read for its stop texts.

use std::fmt;
use std::sync::Arc;

use crate::chat::Chat;
use crate::stop_texts::{StopSearch, StopTexts};
use crate::utf8::Utf8;

/// Reads the tokens that a generation accepts, as a decoder shows them that hides nothing, until a stop text is
/// complete.
///
/// A stop text may begin and end within a token. It does not reach across a control token, nor across the end of a
/// turn.
#[derive(Clone)]
pub struct StopWatch {
    chat: Arc<Chat>,
    utf8: Utf8,
    /// Whether a token of the turn was read.
    has_begun: bool,
    search: StopSearch,
}

impl fmt::Debug for StopWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopWatch")
            .field("search", &self.search)
            .finish_non_exhaustive()
    }
}

impl StopWatch {
    /// A watch over what the model of `chat` says from now on.
    pub fn new(chat: Arc<Chat>, texts: StopTexts) -> Self {
        Self {
            chat,
            utf8: Utf8::default(),
            has_begun: false,
            search: StopSearch::new(texts),
        }
    }

    /// The same for other texts from here on. Those that both have are looked for in what was said before, too.
    #[must_use]
    pub fn with_texts(&self, texts: StopTexts) -> Self {
        Self {
            search: self.search.with_texts(texts),
            ..self.clone()
        }
    }

    /// Reads a token; whether a stop text is complete.
    pub fn take(&mut self, token: u32) -> bool {
        let ends = self.chat.stop_tokens().unwrap_or_default();
        let ends_turn = ends.contains(&token) || self.chat.end_tokens().contains(&token);
        if ends_turn || self.chat.is_control(token) {
            let torn = self.utf8.flush();
            self.search.push(torn);
            self.search.interrupt();
            self.has_begun &= !ends_turn;
            return self.search.is_complete();
        }
        let tokenizer = self.chat.tokenizer();
        let mut bytes = tokenizer.token_bytes(token).unwrap_or_default();
        if !self.has_begun {
            bytes = tokenizer.strip_lead(bytes);
            self.has_begun = true;
        }
        let text = self.utf8.push(bytes);
        self.search.push(&text);
        self.search.is_complete()
    }

    /// How many of these tokens are read until a stop text is complete, the one that completes it among them; none
    /// where none of them does.
    pub fn take_until(&mut self, tokens: &[u32]) -> Option<usize> {
        let index = tokens.iter().position(|&token| self.take(token))?;
        Some(index + 1)
    }

    /// Forgets what was said.
    pub(crate) fn restart(&mut self) {
        self.utf8 = Utf8::default();
        self.has_begun = false;
        self.search.restart();
    }

    /// The model whose tokens it reads.
    pub(crate) fn chat(&self) -> &Arc<Chat> {
        &self.chat
    }

    /// What is to be shown of what is said from now on.
    pub(crate) fn search(&self) -> StopSearch {
        self.search.for_the_rest()
    }

    /// Bytes of memory that it takes, with its texts.
    pub fn n_bytes(&self) -> usize {
        size_of::<Self>() + self.search.n_bytes()
    }
}
