//! Requests of programs to servers that the operator allows, by HTTP/1.1.
//!
//! Two doors lead here: `pie:core/http`, on which the SDKs stand ([`exchange`]), and `wasi:http` ([`wasi`]). Behind
//! both a request goes one way ([`hop`]): its name is checked against the list of the operator, resolved once, each
//! address is checked again, and a checked address is what is connected to. Each hop of a redirect goes that way.
//!
//! | what is bounded | by |
//! |---|---|
//! | requests at once, of a process, a user and all | [`places`] |
//! | bytes of bodies, of heads | [`sent`], [`received`], hyper |
//! | time to connect, to the head, between bytes, in all | [`pace`] |
//! | memory | a charge of the user for each request, and for each part of a body that waits |
//!
//! No connection is kept for a second request, so that none is shared by two users.

pub(crate) mod address;
pub(crate) mod allowed;
pub(crate) mod config;
pub(crate) mod connection;
pub(crate) mod exchange;
pub(crate) mod failure;
pub(crate) mod held;
pub(crate) mod hop;
mod pace;
pub(crate) mod parts;
pub(crate) mod places;
pub(crate) mod received;
pub(crate) mod redirect;
pub(crate) mod request;
mod roots;
pub(crate) mod running;
pub(crate) mod sent;
pub(crate) mod target;
#[cfg(test)]
mod tests;
pub(crate) mod upload;
pub(crate) mod wasi;
