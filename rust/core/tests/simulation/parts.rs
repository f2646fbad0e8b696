//! All of the simulation but its runs: what its test and the fuzzer of programs share.

mod carrying;
mod commands;
pub mod driving;
mod forwards;
mod generating;
mod masks;
mod model;
pub mod ops;
mod snapshots;
#[path = "../support/mod.rs"]
pub mod support;
mod taking;
