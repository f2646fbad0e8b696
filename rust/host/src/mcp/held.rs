//! What one process has of MCP.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pie_core::ErrorCode;
use tokio::runtime::Handle;

use super::clients::McpClientServers;
use super::failure::{call_too_long, too_many};
use super::server::McpServer;
use super::servers::McpServers;
use crate::Error;
use crate::budget::{Account, Charge, Purpose};
use crate::counted::{Bounded, Counted};
use crate::limits::Limits;
use crate::shared_places::SharedPlace;

/// What a session, or a call, holds beside its texts.
const HELD_BYTES: u64 = 4 << 10;

/// What one process has of MCP. Its calls end with it.
pub(crate) struct HeldMcp {
    servers: Arc<McpServers>,
    /// Those of the client that launched it, or the one that started it.
    of_client: Option<Arc<McpClientServers>>,
    /// Where calls wait for their answers.
    pub(crate) runtime: Handle,
    account: Account,
    sessions: Bounded,
    calls: Bounded,
    pub(crate) limits: McpLimits,
}

/// What one call may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct McpLimits {
    pub(crate) sent_bytes: u64,
    pub(crate) answer_bytes: u64,
    pub(crate) call: Duration,
}

/// The leave for one session, or one call, until it is dropped.
#[derive(Debug)]
pub(crate) struct Leave {
    _own: Counted,
    _of_user: SharedPlace,
    /// What is held for it.
    pub(crate) charge: Charge,
}

impl HeldMcp {
    /// That of a process that begins.
    pub(crate) fn new(
        servers: Arc<McpServers>,
        of_client: Option<Arc<McpClientServers>>,
        limits: &Limits,
        (runtime, account): (Handle, Account),
    ) -> Self {
        Self {
            servers,
            of_client,
            runtime,
            account,
            sessions: Bounded::new(limits.mcp_sessions),
            calls: Bounded::new(limits.mcp_calls),
            limits: McpLimits {
                sent_bytes: limits.mcp_sent_bytes,
                answer_bytes: limits.mcp_answer_bytes,
                call: limits.mcp_call,
            },
        }
    }

    /// The servers that it can connect to, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = BTreeSet::from_iter(self.servers.names(self.account.user()));
        if let Some(of_client) = &self.of_client {
            names.extend(of_client.names());
        }
        names.into_iter().collect()
    }

    /// The server of that name: that of the client before that of the operator.
    ///
    /// # Errors
    /// `unknown-mcp-server`.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<McpServer>, Error> {
        let of_client = self.of_client.as_ref().and_then(|them| them.find(name));
        let found = of_client.or_else(|| self.servers.find(self.account.user(), name));
        found.ok_or_else(|| {
            let names = self.names();
            let known = match names.as_slice() {
                [] => "there are none".to_owned(),
                names => format!("there are {}", names.join(", ")),
            };
            let name: String = name.chars().take(80).collect();
            let message = format!(
                "there is no MCP server {name:?}; {known}: use one of them, configure it as [mcp.NAME], or let the client register it"
            );
            Error::new(ErrorCode::UnknownMcpServer, message)
        })
    }

    /// The leave for one more session.
    ///
    /// # Errors
    /// `limit-mcp-calls`, `limit-engine-memory`.
    pub(crate) fn admit_session(&self) -> Result<Leave, Error> {
        let places = &self.servers.sessions;
        let own = self.sessions.take().ok_or_else(|| {
            let most = self.sessions.most();
            let bound = format!("limits.mcp_sessions = {most}");
            too_many(most, "sessions with MCP servers", "of this program", &bound)
        })?;
        let of_user = places.take(self.account.user()).map_err(|full| {
            let limit = "runtime.mcp_user_sessions";
            let bound = full.bound(limit, limit);
            too_many(
                full.n(),
                "sessions with MCP servers",
                "of this user",
                &bound,
            )
        })?;
        self.leave(own, of_user, 0)
    }

    /// The leave for one more call, which says `n_bytes`.
    ///
    /// # Errors
    /// `limit-mcp-calls`, `limit-mcp-bytes`, `limit-engine-memory`.
    pub(crate) fn admit_call(&self, n_bytes: usize) -> Result<Leave, Error> {
        if n_bytes as u64 > self.limits.sent_bytes {
            return Err(call_too_long(n_bytes, self.limits.sent_bytes));
        }
        let places = &self.servers.calls;
        let own = self.calls.take().ok_or_else(|| {
            let most = self.calls.most();
            let bound = format!("limits.mcp_calls = {most}");
            too_many(most, "calls of MCP servers", "of this program", &bound)
        })?;
        let of_user = places.take(self.account.user()).map_err(|full| {
            let limit = "runtime.mcp_user_calls";
            let bound = full.bound(limit, limit);
            too_many(full.n(), "calls of MCP servers", "of this user", &bound)
        })?;
        self.leave(own, of_user, n_bytes as u64)
    }

    fn leave(&self, own: Counted, of_user: SharedPlace, n_bytes: u64) -> Result<Leave, Error> {
        let charge = self.account.charge(Purpose::Queue, HELD_BYTES + n_bytes)?;
        Ok(Leave {
            _own: own,
            _of_user: of_user,
            charge,
        })
    }
}
