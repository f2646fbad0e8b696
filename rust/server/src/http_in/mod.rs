//! Programs that serve HTTP: requests to `/http/NAME/...` of the own port, or to the one program of a server that
//! serves nothing else (`pie run --port`).
//!
//! A connection whose first bytes ask for such a path is handed over by `http` before its head is read. From there on
//! hyper reads it ([`connection`], over [`stream`]), once its lines, lengths and codings leave no doubt where it ends
//! ([`framing`], [`input`]). A request finds its program by its path ([`route`]) and its place
//! among all others ([`places`]), and is answered by an instance ([`instances`]), through which both bodies pass part
//! by part ([`bodies`]). What goes wrong is a status with the code of the error as JSON ([`refusal`]). In a browser all
//! programs of a server are neighbours, and are kept apart ([`apart`]).
//!
//! | what is bounded | by |
//! |---|---|
//! | connections, of an address and of all | [`places`] |
//! | requests at once, of a program, a user and all | [`places`], [`instances`] |
//! | bytes of a head, of a body | [`connection`], [`bodies`] |
//! | time for a head, for an answer, between parts, in all | [`connection`], [`bodies`], [`stream`], [`due`] |
//! | memory | a charge of the user of the program for each request and for each part that waits |

mod apart;
mod bodies;
mod connection;
mod due;
pub(crate) mod framing;
mod input;
pub(crate) mod instances;
pub(crate) mod places;
mod refusal;
pub(crate) mod route;
mod stream;

pub(crate) use self::connection::{refuse, serve};
pub(crate) use self::places::Connected;
