//! The server of Pie: many clients over one WebSocket port, installed programs, and processes that outlive their
//! clients.
//!
//! `docs/reference/protocol.md` is the contract, and [`Server`] the entry. `listener` accepts a connection, `http`
//! upgrades it, `handshake` reads its hello, and `connection` serves it (`wire` reads and writes its frames). Its
//! requests reach the `processes`, the `uploads` and the `registry` of installed programs. Everything that a client can
//! make grow is bounded, and one client that is slow, silent or hostile holds up no other.

mod address_share;
mod audit;
mod auth;
mod blocking;
mod client_places;
mod clock;
mod config;
mod connection;
mod directory;
mod faults;
mod handshake;
mod http;
mod http_in;
mod listener;
mod log_writer;
mod names;
mod pacing;
mod plain;
mod processes;
mod protocol;
mod registry;
mod requests;
mod server;
mod state;
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
pub use config::{MountedProgram, Origin, ServerConfig};
pub use log_writer::{LogWriter, PROCESS_LOG, PROGRAM_LOG};
pub use server::{Server, check_access, check_address};
