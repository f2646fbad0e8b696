//! Tools: what a program gives the model, and the calls that the model makes.

pub(crate) mod body;
mod calls;
mod decoder;
mod event;
pub(crate) mod finding;
pub(crate) mod format;
pub(crate) mod list;
pub(crate) mod mask;

pub use body::Call;
pub(crate) use calls::Calls;
pub use decoder::ToolDecoder;
pub use event::ToolEvent;
