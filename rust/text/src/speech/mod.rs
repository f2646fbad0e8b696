//! What the model says, taken apart: texts, the markers of a family, and control tokens.

mod channels;
mod decoder;
mod lexer;
mod machine;

pub(crate) use channels::{Channels, Part};
pub(crate) use decoder::SpeechDecoder;
pub(crate) use lexer::{Item, Lexer, Markers};
pub(crate) use machine::{Machine, Queue, Weigh};
