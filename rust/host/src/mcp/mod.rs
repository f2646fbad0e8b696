//! Servers of the Model Context Protocol: tools, resources and prompts that programs ask for.
//!
//! A server is known by a name. The operator configures some ([`config`]), and a client registers its own for the
//! programs that it launches ([`clients`]). Whoever knows it, a server is started, or connected to, when it is first
//! asked, and again after it was lost, so often a minute ([`server`]). Sessions of programs ([`session`]) share it.
//!
//! | what it is spoken to by | file |
//! |---|---|
//! | a process of its own, by its standard input and output | [`stdio`] |
//! | HTTP, each message a request | [`web`] |
//! | the connection of the client that runs it | [`relay`] |
//!
//! The first and the last are lines of JSON-RPC ([`rpc`]) both ways, whose calls wait in [`waiting`]. A line that is
//! not a message of the protocol, and an answer that nobody waits for, are dropped: a server that prints logs among its
//! answers harms nobody, and one that never answers meets the limit of time.
//!
//! | what is bounded | by |
//! |---|---|
//! | sessions and calls at once, of a process and a user | [`held`], [`crate::shared_places`] |
//! | bytes of a call and of its answer | the limits of the process; a line that no process may have is never kept |
//! | time to start, and of a call | `mcp.NAME.start_s`, `limits.mcp_call_s` |
//! | memory | a charge of the user for each call, and for its answer until it is taken; what waits for a server, by [`outgoing`] |
//!
//! # Why this is not `rmcp`
//!
//! The SDK of the protocol for Rust has transports for processes, HTTP and any stream of bytes, and takes a client for
//! HTTP and a transport of one's own. What is bounded above lies in just these: pipes whose lines have a most length
//! and keep the id of one that is longer ([`line`]), a process that ends with its engine and all that it has started
//! ([`starter`], [`group`]), HTTP by [`crate::network`] with the limits of a call, which follows no redirect
//! ([`web`]), and the connection of a client ([`relay`]). Each would be ours beside it. What would be left to it is
//! [`rpc`] and [`waiting`], and there a transport of `rmcp` gives messages as values of its types. Programs get results
//! as the server wrote them, charged by their bytes, and lists are put together as text ([`listing`]). The page
//! `docs/internals/processes.md` has more.

pub(crate) mod call;
pub(crate) mod clients;
pub(crate) mod config;
mod failure;
mod group;
pub(crate) mod heard;
pub(crate) mod held;
mod line;
mod listing;
pub(crate) mod outgoing;
mod peer;
pub(crate) mod relay;
mod rpc;
pub(crate) mod server;
pub(crate) mod servers;
pub(crate) mod session;
mod sse;
mod starter;
mod stdio;
#[cfg(test)]
mod tests;
mod waiting;
mod web;
