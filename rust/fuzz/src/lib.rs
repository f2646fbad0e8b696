//! What fuzzers do with the bytes that they make up. Each function takes any bytes, turns them into what a user could
//! supply, and panics where the engine is not what it promises to be: it never panics, every program ends in an answer
//! or in an error of its own, and nothing is left behind. `make fuzz` runs them under libFuzzer; `tests/` runs them on
//! seeds and on the kept inputs of `corpus/`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a fuzzer that cannot go on has found something"
)]

mod brle;
mod components;
mod engine;
mod grammars;
#[allow(
    dead_code,
    reason = "the programs of the host's tests; this needs some of them"
)]
#[path = "../../host/tests/host/guest.rs"]
mod guest;
mod host_calls;
mod mcp;
mod packed;
#[cfg(feature = "libfuzzer")]
mod panics;
#[cfg(feature = "operations")]
mod programs;
mod protocol;
mod routes;
mod scripts;
mod snapshots;
mod talking;
mod templates;
mod tokenizers;
mod world;
mod written;

pub use brle::brle;
pub use components::components;
pub use grammars::grammars;
pub use host_calls::{Wild, functions, host_calls, wild_call};
pub use mcp::mcp;
pub use packed::packed;
#[cfg(feature = "libfuzzer")]
pub use panics::spare_libraries;
#[cfg(feature = "operations")]
pub use pie_core::fuzzing::{bus, pages, prefix_tree, scheduler};
#[cfg(feature = "operations")]
pub use programs::programs;
pub use protocol::protocol;
pub use routes::routes;
pub use scripts::scripts;
pub use snapshots::snapshots;
pub use templates::templates;
pub use tokenizers::tokenizers;
