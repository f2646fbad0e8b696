//! A session of a program with a server.

#![expect(
    unreachable_pub,
    reason = "the generated bindings re-export the types behind handles, which must be public for that"
)]

use std::sync::Arc;

use pie_core::ErrorCode;
use tokio::sync::watch;

use super::call::{Asked, Wanted, begin};
use super::failure::closed;
use super::held::{HeldMcp, Leave};
use super::rpc::{arguments, quoted};
use super::server::McpServer;
use crate::Error;
use crate::futures::Future;

/// A session with a server. Dropping it gives up its calls.
#[derive(Debug)]
pub struct McpSession {
    name: Arc<str>,
    closing: watch::Sender<bool>,
    /// None once it is closed: a server that nobody else knows ends then.
    open: Option<(Arc<McpServer>, Leave)>,
}

impl McpSession {
    /// Opens a session with the server of that name.
    ///
    /// # Errors
    /// `unknown-mcp-server`, `limit-mcp-calls`, `limit-engine-memory`.
    pub(crate) fn open(held: &HeldMcp, name: &str) -> Result<Self, Error> {
        let server = held.find(name)?;
        let leave = held.admit_session()?;
        Ok(Self {
            name: server.name.clone(),
            closing: watch::Sender::new(false),
            open: Some((server, leave)),
        })
    }

    /// What the server said when it was connected to.
    pub(crate) fn hello(&self, held: &HeldMcp) -> Future<Asked> {
        self.begin(held, Ok(Wanted::Hello))
    }

    /// All that a method lists under `key`.
    pub(crate) fn list(
        &self,
        held: &HeldMcp,
        method: &'static str,
        key: &'static str,
    ) -> Future<Asked> {
        self.begin(held, Ok(Wanted::List(method, key)))
    }

    /// The result of a method that is given a name, and arguments as the program wrote them.
    pub(crate) fn named(
        &self,
        held: &HeldMcp,
        method: &'static str,
        (name, written): (&str, &str),
    ) -> Future<Asked> {
        let params = arguments(written)
            .map(|arguments| format!(r#"{{"name":{},"arguments":{arguments}}}"#, quoted(name)));
        let wanted = params.map(|params| Wanted::Result(method, params));
        self.begin(
            held,
            wanted.map_err(|why| {
                let message = format!(
                    "the arguments for {:?} of the MCP server {:?} cannot be: {why}; give an object of JSON, or nothing",
                    name.chars().take(80).collect::<String>(),
                    self.name
                );
                Error::new(ErrorCode::InvalidArgument, message)
            }),
        )
    }

    /// A resource.
    pub(crate) fn read(&self, held: &HeldMcp, uri: &str) -> Future<Asked> {
        let params = format!(r#"{{"uri":{}}}"#, quoted(uri));
        self.begin(held, Ok(Wanted::Result("resources/read", params)))
    }

    /// Ends it, and gives up its calls. Again it does nothing.
    pub(crate) fn close(&mut self) {
        self.closing.send_replace(true);
        self.open = None;
    }

    fn begin(&self, held: &HeldMcp, wanted: Result<Wanted, Error>) -> Future<Asked> {
        match &self.open {
            Some((server, _)) => begin(held, server, self.closing.subscribe(), wanted),
            None => Asked::refused(closed(&self.name)),
        }
    }
}
