//! The WIT interfaces that programs import: one file each, of one anatomy: what stands behind the handles, the view of
//! a process, the calls, and how they are added to a linker.

#![expect(
    unreachable_pub,
    reason = "the generated bindings re-export the types behind handles, which must be public for that"
)]

mod adapter;
mod advancing;
pub(crate) mod bindings;
mod chat;
mod clocks;
mod context;
mod decoding;
mod errors;
mod files;
mod filesystem;
mod forward;
mod futures;
mod generation;
mod grammar;
mod http;
mod http_server;
pub(crate) mod linkers;
mod masks;
mod mcp;
pub(crate) mod messaging;
mod model;
mod poll;
mod reasoning;
pub(crate) mod runtime;
mod sampling;
mod scheduling;
mod session;
mod source;
mod tokenizer;
mod tools;
mod types;
mod view;
pub(crate) mod wasi_http;
