//! The client of `pie serve`.
//!
//! ```no_run
//! use pie_client::{Client, ConnectOptions, Event, LaunchOptions};
//! use serde_json::json;
//!
//! # async fn talk() -> Result<(), pie_client::Error> {
//! let client = Client::connect("ws://127.0.0.1:8080", ConnectOptions::default()).await?;
//! let options = LaunchOptions {
//!     input: json!({ "prompt": "Hello!" }),
//!     ..LaunchOptions::default()
//! };
//! let process = client.launch("chat@1.0", options).await?;
//! let mut events = process.events();
//! while let Some(event) = events.next().await? {
//!     if let Event::Stdout { text, .. } = event {
//!         print!("{text}");
//!     }
//! }
//! let value: String = process.result().await?.value()?;
//! client.close().await;
//! # Ok(())
//! # }
//! ```

mod client;
mod connection;
mod error;
mod error_codes;
mod event;
mod frame_gate;
mod info;
mod mcp;
mod opening;
#[cfg(feature = "keys")]
mod private_key;
mod process;
mod shared;
mod signing;
mod stream;
mod sync;
mod wire;

/// The snippet of the guide compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/clients.md")]
pub struct Guide;

pub use client::{Client, ConnectOptions, DaemonOptions, LaunchOptions};
pub use error::Error;
pub use error_codes::ErrorCode;
pub use event::{Event, Failure, Form, Outcome, Returned};
pub use info::{
    AdapterInfo, ConnectionInfo, Logs, ProcessInfo, ProgramInfo, SnapshotInfo, TopicInfo,
};
pub use mcp::McpCommand;
#[cfg(feature = "keys")]
pub use private_key::PrivateKey;
pub use process::{Events, Process};
