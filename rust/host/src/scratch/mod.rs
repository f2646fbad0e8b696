//! The files of programs: a folder of their user's that they find as `/scratch`, and folders that they read.
//!
//! Paths are resolved within an open folder (`cap-primitives`), so that no name leads out of it. What a program changes
//! in `/scratch` is counted before it is done ([`change`]); a folder is counted once, at its first change, and then
//! kept in step. All that works on files does so off the threads that run programs, in turn with the work of other
//! users, and on the processor time of its process ([`turns`]); what never comes back holds up nobody for ever
//! ([`watch`]). One change of a folder is done at a time, and each is
//! done to its end whatever becomes of the program.

pub(crate) mod change;
mod claim;
pub(crate) mod config;
pub(crate) mod descriptor;
pub(crate) mod folder;
pub(crate) mod folders;
pub(crate) mod listing;
pub(crate) mod opening;
pub(crate) mod permits;
pub(crate) mod process_files;
#[cfg(test)]
mod process_tests;
pub(crate) mod reader;
pub(crate) mod refusals;
#[cfg(test)]
mod tests;
pub(crate) mod turns;
mod watch;
pub(crate) mod writer;
