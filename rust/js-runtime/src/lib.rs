//! The JavaScript runtime component: QuickJS with the SDK inside. It runs one program that was launched from source.
//!
//! `program` runs it from start to answer, `sources` are its files, `modules` finds what it imports, `event_loop` waits
//! for it, `bridge` lends it the engine as the module `pie:host`, `globals` gives it clock, timers, randomness and
//! output, `addresses`, `base64` and `digests` what the Web computes, and `files` the files that it reads and writes.
//! Whatever is JavaScript (the SDK and the rest of the globals) is compiled to bytecode when the component is built,
//! and has run by then: an instance begins with what it left in memory.
//!
//! An instance runs once and is thrown away by the engine, so nothing here is torn down.

mod addresses;
mod base64;
mod bindings;
mod bridge;
mod builtins;
mod clock;
mod digests;
mod errors;
mod event_loop;
mod failure;
mod files;
mod globals;
mod modules;
mod program;
mod sources;

use bindings::exports::pie::inferlet::{check, run};

struct Component;

impl run::Guest for Component {
    fn run(input: String) -> Result<String, run::Failure> {
        program::run(&input)
    }
}

impl check::Guest for Component {
    fn check() -> Result<(), String> {
        program::check()
    }
}

bindings::export!(Component with_types_in bindings);
