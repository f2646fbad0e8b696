//! The host against small hand-made programs, hostile ones among them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod guest;
mod hosts;
mod leftovers;
mod limits;
mod memory;
mod programs;
mod session;
mod storm;
