//! Sampling: a pure function of logits, parameters, mask and key, the same to the bit on every machine.

mod candidate;
mod crowd;
mod method;
mod philox;
mod probe;
mod reading;
#[cfg(test)]
mod reading_tests;
mod sampler;
#[cfg(test)]
mod sampler_tests;
mod weight;
mod wide;

pub use method::{Method, Params, Sampler};
pub use philox::{Key, philox};
pub use probe::{MAX_PROBED_TOKENS, Probe, Reading};
pub use reading::read_row;
pub use sampler::{RowFault, Scratch, sample, sample_many};
pub use weight::{ONE, weight};
