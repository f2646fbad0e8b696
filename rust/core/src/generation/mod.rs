//! The generator: a state machine that turns a context into tokens.

mod generator;
#[cfg(test)]
mod generator_tests;
mod options;
mod seeds;
mod stop;

pub(crate) use generator::{Generator, StepState};
pub use options::{FinishReason, GeneratorOptions, Output};
pub(crate) use seeds::Seeds;
pub(crate) use stop::StopSet;
