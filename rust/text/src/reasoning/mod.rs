//! What the model thinks before it answers.

mod decoder;
mod event;
mod format;
mod thoughts;

pub use decoder::ReasoningDecoder;
pub use event::ReasoningEvent;
pub(crate) use format::ReasoningFormat;
pub(crate) use thoughts::Thoughts;
