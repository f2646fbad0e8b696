//! Chat turns by the template of the checkpoint, and the decoder of what the model says.

use std::iter::FusedIterator;

use crate::bindings::pie::instruct::chat as raw;
pub use crate::bindings::pie::instruct::chat::Event;
use crate::output::{FinishReason, Output};
use crate::{Model, Result};

/// The tokens of a system message that follows others.
///
/// # Errors
/// `template-error`: the template refuses the message.
pub fn system(model: &Model, text: &str) -> Result<Vec<u32>> {
    message(model, raw::Role::System, text)
}

/// The tokens of a user message that follows others.
///
/// # Errors
/// As [`system`].
pub fn user(model: &Model, text: &str) -> Result<Vec<u32>> {
    message(model, raw::Role::User, text)
}

/// The tokens of an assistant message that follows others.
///
/// # Errors
/// As [`system`].
pub fn assistant(model: &Model, text: &str) -> Result<Vec<u32>> {
    message(model, raw::Role::Assistant, text)
}

/// The tokens that open the assistant's turn.
///
/// # Errors
/// `template-error`: the template has no such place.
pub fn cue(model: &Model) -> Result<Vec<u32>> {
    Ok(raw::cue_tokens(model.raw())?)
}

/// The tokens that close the assistant's turn.
///
/// # Errors
/// As [`cue`].
pub fn seal(model: &Model) -> Result<Vec<u32>> {
    Ok(raw::seal_tokens(model.raw())?)
}

/// The tokens that end a turn.
///
/// # Errors
/// As [`cue`].
pub fn stop_tokens(model: &Model) -> Result<Vec<u32>> {
    Ok(raw::stop_tokens(model.raw())?)
}

fn message(model: &Model, role: raw::Role, text: &str) -> Result<Vec<u32>> {
    Ok(raw::message_tokens(model.raw(), role, text)?)
}

/// Turns tokens into text without tearing characters apart.
#[derive(Debug)]
pub struct Decoder {
    raw: raw::Decoder,
}

impl Decoder {
    /// A decoder for what `model` says.
    pub fn new(model: &Model) -> Self {
        Self {
            raw: raw::Decoder::create(model.raw()),
        }
    }

    /// A decoder that leaves out thoughts, calls of tools, or both: what the decoders of
    /// [`reasoning`](crate::reasoning) and [`tools`](crate::tools) tell. What began as a call and is none is shown.
    pub fn hiding(model: &Model, thoughts: bool, calls: bool) -> Self {
        Self {
            raw: raw::Decoder::create_hiding(model.raw(), thoughts, calls),
        }
    }

    /// Takes tokens and gives one event. What they complete beyond the first is queued: an empty `tokens` drains it.
    ///
    /// # Errors
    /// `invalid-token`: an id outside the vocabulary.
    pub fn feed(&mut self, tokens: &[u32]) -> Result<Event> {
        Ok(self.raw.feed(tokens)?)
    }

    /// Takes what a step accepted. Its stop token is not shown, and where the step was the last of the generation, its
    /// turn ends with it. Else as [`Decoder::feed`].
    ///
    /// # Errors
    /// As [`Decoder::feed`].
    pub fn feed_output(&mut self, output: &Output) -> Result<Event> {
        Ok(self
            .raw
            .feed_output(&output.tokens, output.finish.map(Into::into))?)
    }

    /// Ends a turn that was begun: a character that was torn is shown as U+FFFD. One event, as of [`Decoder::feed`].
    pub fn finish(&mut self) -> Event {
        self.raw.finish()
    }

    /// Takes tokens and gives every event that they complete, [`Event::Idle`] never.
    pub fn events(&mut self, tokens: &[u32]) -> Events<'_> {
        let first = self.feed(tokens);
        self.after(first)
    }

    /// Takes what a step accepted and gives every event that it completes, [`Event::Idle`] never.
    pub fn output_events(&mut self, output: &Output) -> Events<'_> {
        let first = self.feed_output(output);
        self.after(first)
    }

    /// An event and all that are queued behind it.
    fn after(&mut self, first: Result<Event>) -> Events<'_> {
        Events {
            decoder: self,
            next: Some(first),
        }
    }

    /// Forgets what it holds back, for the next turn.
    pub fn reset(&mut self) {
        self.raw.reset();
    }
}

/// The events of one batch of tokens, from [`Decoder::events`]. An error is the last item.
#[derive(Debug)]
pub struct Events<'decoder> {
    decoder: &'decoder mut Decoder,
    next: Option<Result<Event>>,
}

impl Iterator for Events<'_> {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        let event = self.next.take()?;
        match &event {
            Ok(Event::Idle) => return None,
            Ok(_) => self.next = Some(self.decoder.feed(&[])),
            Err(_) => {}
        }
        Some(event)
    }
}

impl FusedIterator for Events<'_> {}

/// What a decoder shows of tokens that a generator accepted.
pub(crate) fn visible_text(
    model: &Model,
    tokens: &[u32],
    finish: Option<FinishReason>,
) -> Result<String> {
    let mut decoder = Decoder::new(model);
    let first = decoder
        .raw
        .feed_output(tokens, finish.map(Into::into))
        .map_err(String::from);
    let mut text = String::new();
    for event in decoder.after(first) {
        if let Event::Delta(part) = event? {
            text.push_str(&part);
        }
    }
    Ok(text)
}
