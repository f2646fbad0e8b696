//! The generator: a state machine that turns a context into tokens.

mod fold;
mod generator;
#[cfg(test)]
mod generator_tests;
mod options;
mod seeds;
mod step;
mod stop;
mod template;
mod verdict;

pub(crate) use fold::{Drawn, fold};
pub(crate) use generator::{Generator, StepState};
pub use options::{FinishReason, GeneratorOptions, Output};
pub(crate) use seeds::{Seeds, forked, saved};
pub(crate) use step::StepOptions;
pub(crate) use stop::StopSet;
pub(crate) use template::Template;
pub(crate) use verdict::{Next, Standing, Verdict};
