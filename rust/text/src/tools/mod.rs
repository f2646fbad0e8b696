//! Tools: what a program gives the model, and the calls that the model makes.

pub(crate) mod body;
mod calls;
mod choice;
mod decoder;
mod event;
pub(crate) mod finding;
pub(crate) mod format;
pub(crate) mod frame;
pub(crate) mod list;
pub(crate) mod mask;
mod native;

pub use body::Call;
pub(crate) use calls::Calls;
pub use choice::ToolChoice;
pub use decoder::ToolDecoder;
pub use event::ToolEvent;
