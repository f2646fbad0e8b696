//! What the model says, taken apart: texts, the markers of a family, and control tokens.

mod channels;
mod decoder;
mod lexer;

pub(crate) use channels::{Channels, Part};
pub(crate) use decoder::{Machine, Queue, SpeechDecoder, Weigh};
pub(crate) use lexer::{Item, Lexer, Markers};
