//! The generator: a state machine that turns a context into tokens.

mod ahead_habit;
mod drafting;
mod fold;
mod generator;
#[cfg(test)]
mod generator_tests;
mod ngrams;
mod options;
mod own_seed;
mod seeds;
mod step;
mod stop;
mod template;
mod verdict;
mod wanted;

pub(crate) use drafting::{Drafter, Drafts};
pub(crate) use fold::{Drawn, fold};
pub(crate) use generator::{Generator, Mark, Retirement, StepState, probe_bytes};
pub use options::{Drafting, FinishReason, GeneratorOptions, Output, Speculation};
pub(crate) use own_seed::OwnSeed;
pub(crate) use seeds::{Seeds, forked, saved};
pub(crate) use step::StepOptions;
pub(crate) use stop::StopSet;
pub(crate) use template::{RowProbe, Template};
pub(crate) use verdict::{Next, Standing, Verdict};
pub use wanted::{DraftEvent, DraftsWanted};
