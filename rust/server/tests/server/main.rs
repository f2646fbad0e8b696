//! The server against clients that speak the raw protocol, well-behaved and hostile ones.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod client;
#[allow(
    dead_code,
    reason = "the programs of the host's tests; these need some of them"
)]
#[path = "../../../host/tests/host/guest.rs"]
mod guest;
mod hostile;
mod lifetimes;
mod programs;
mod sessions;
mod world;
