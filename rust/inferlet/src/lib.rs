//! The Rust SDK: programs that run beside the model.
//!
//! A program is a `cdylib` with one entry. It is built for `wasm32-wasip2` and runs in a sandbox inside the engine:
//!
//! ```no_run
//! # mod program {
//! use inferlet::prelude::*;
//!
//! #[inferlet::main]
//! async fn main(question: String) -> Result<String> {
//!     let model = Model::load("default")?;
//!     let mut ctx = Context::new(&model)?;
//!     ctx.user(&question);
//!     ctx.generate(Sampler::top_p(0.6, 0.95)).max_tokens(64).collect_text().await
//! }
//! # }
//! # fn main() {}
//! ```
//!
//! The logic stands in the engine; this crate gives it Rust types and an executor. It compiles natively too, for
//! editors and tests, but there a call into the engine panics, since no engine answers it.
//!
//! Calls that return no `Result` keep their first error: the next fallible call on the same value, or on what derives
//! from it, returns it once, and an error that no call returned fails the program at its end.

// `inferlet::…` names this crate inside itself, so that what the macros write compiles here too.
extern crate self as inferlet;

mod absent;
pub mod adapter;
pub mod args;
#[doc(hidden)]
#[allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    clippy::all,
    reason = "written by wit-bindgen, which lifts and lowers by raw pointers"
)]
pub mod bindings;
mod bridge;
pub mod brle;
pub mod chat;
mod constrain;
pub mod context;
mod decoding;
mod entry;
mod error_codes;
mod errors;
pub mod files;
mod finite;
mod forward;
pub mod generation;
mod grammar;
mod handle;
pub mod http;
pub mod http_server;
pub mod inference;
mod kept;
mod matcher;
pub mod mcp;
pub mod messaging;
pub mod model;
mod output;
mod pages;
pub mod prelude;
mod probe;
pub mod reasoning;
pub mod runtime;
pub mod sample;
pub mod scheduling;
pub mod session;
mod shared;
pub mod spec;
mod stdout;
pub mod task;
pub mod tokenizer;
pub mod tools;
mod typed;

/// The raw bindings, for what the typed API does not cover.
pub mod pie {
    pub use crate::bindings::pie::instruct;
    pub use crate::bindings::pie::mcp;

    /// The interfaces of the engine. For the session and messages it is the typed API, which keeps the order of what is
    /// printed and sent.
    pub mod core {
        pub use crate::bindings::pie::core::*;
        pub use crate::messaging;
        pub use crate::session;
    }
}
/// Streams, as of [`Generator::texts`], and their methods.
pub use futures_util::stream::{Stream, StreamExt};
pub use inferlet_macros::{main, tool};
/// JSON Schemas of Rust types, for [`Generator::collect_json`]. Where `schemars` is not a dependency of the program,
/// bring it into scope beside its derive: `use inferlet::schemars::{self, JsonSchema};`.
pub use schemars;

pub use adapter::Adapter;
pub use args::{Arguments, args, parse_args};
pub use constrain::{Constrain, GrammarConstraint, Schema};
pub use context::{Context, Idle};
pub use error_codes::ErrorCode;
pub use errors::{Result, error_code};
pub use forward::Forward;
pub use generation::{FinishReason, GenStep, Generator, Output, RawOutput, TextStream};
pub use grammar::{AnyJson, Ebnf, JsonSchema, Regex};
pub use handle::{ProbeHandle, SampleHandle};
pub use inference::ForwardPassExt;
pub use messaging::SubscriptionExt;
pub use model::Model;
pub use pages::RawContext;
pub use runtime::{Child, call, spawn as launch};
pub use sample::Sampler;
pub use session::{FutureBlobExt, FutureStringExt};
pub use tokenizer::Tokenizer;

/// What `#[inferlet::main]` expands to; no API.
#[doc(hidden)]
pub mod __private {
    pub use crate::bindings::export_program;
    pub use crate::bindings::exports::pie::inferlet::run::{Failure, Guest};
    pub use crate::entry::run;
    pub use crate::tools::tool_schema;
    pub use serde::de::IgnoredAny as Anything;
}
