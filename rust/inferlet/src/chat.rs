//! Chat turns by the template of the checkpoint, and the decoder of what the model says.

use crate::bindings::pie::core::generation;
use crate::bindings::pie::instruct::chat as raw;
pub use crate::bindings::pie::instruct::chat::Event;
use crate::decoding::decoder;
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

/// The ids of the tokens that end a turn.
///
/// # Errors
/// As [`cue`].
pub fn stop_tokens(model: &Model) -> Result<Vec<u32>> {
    Ok(raw::stop_tokens(model.raw())?)
}

fn message(model: &Model, role: raw::Role, text: &str) -> Result<Vec<u32>> {
    Ok(raw::message_tokens(model.raw(), role, text)?)
}

decoder! {
    /// Turns tokens into text without tearing characters apart. What is torn at the end of a turn is shown as U+FFFD.
    raw::Decoder, std::convert::identity
}

impl Decoder {
    /// A decoder that leaves out thoughts, calls of tools, or both: what the decoders of
    /// [`reasoning`](crate::reasoning) and [`tools`](crate::tools) tell. What began as a call and is none is shown.
    pub fn hiding(model: &Model, thoughts: bool, calls: bool) -> Self {
        Self {
            raw: raw::Decoder::create_hiding(model.raw(), thoughts, calls),
        }
    }

    /// A decoder of what a generator accepts from now on, which shows none of its stop texts.
    pub(crate) fn of_generator(
        generator: &generation::Generator,
        thoughts: bool,
        calls: bool,
    ) -> Self {
        Self {
            raw: raw::Decoder::create_for(generator, thoughts, calls),
        }
    }

    /// The texts that it shows of what a step accepted; none: of the end.
    pub(crate) fn texts(&mut self, output: Option<&Output>) -> Result<Vec<String>> {
        let first = match output {
            Some(output) => self.feed_output(output),
            None => Ok(self.finish()),
        };
        let mut texts = Vec::new();
        for event in self.after(first) {
            if let Event::Delta(text) = event? {
                texts.push(text);
            }
        }
        Ok(texts)
    }
}

/// What a decoder shows of tokens that a generator accepted.
pub(crate) fn visible_text(
    decoder: &mut Decoder,
    tokens: &[u32],
    finish: Option<FinishReason>,
) -> Result<String> {
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
