//! The server of Pie: many clients over one WebSocket port, installed programs, and processes that outlive their clients.
//!
//! `docs/reference/protocol.md` is the contract; [`Server`] is the way in. A connection comes in by `listener`, is upgraded in `http`, says
//! hello in `handshake`, and lives in `connection` (its frames are read and written in `wire`): its requests reach the `processes`, the
//! `uploads` and the `registry` of installed programs.
//! Everything that a client can make grow is bounded, and one client that is slow, silent or hostile holds up no other.

mod audit;
mod auth;
mod blocking;
mod clock;
mod config;
mod connection;
mod directory;
mod faults;
mod handshake;
mod http;
mod listener;
mod names;
mod pacing;
mod places;
mod plain;
mod processes;
mod protocol;
mod registry;
mod requests;
mod server;
mod shared;
mod sync;
mod threads;
mod trimming;
mod uploads;
mod version;
mod wire;

pub use auth::{
    AuthConfig, AuthMode, HeaderName, HostName, KeyRecord, Network, NewKey, Role, UserName,
    add_key, list_keys, revoke_key,
};
pub use config::{Origin, ServerConfig};
pub use server::{Server, check_access, check_address};
