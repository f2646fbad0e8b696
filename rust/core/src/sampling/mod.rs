//! Sampling: a pure function of logits, parameters, mask and key, the same to the bit on every machine.

mod method;

pub use method::{Method, Params, Sampler};
