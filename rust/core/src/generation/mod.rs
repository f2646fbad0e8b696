//! The generator: a state machine that turns a context into tokens.

mod options;

pub use options::{FinishReason, GeneratorOptions, Output};
