//! Servers that clients run and register for the programs that they launch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use pie_core::ErrorCode;

use super::config::{MAX_SERVERS, is_server_name};
use super::relay::McpRelay;
use super::server::{How, McpServer, Starting};
use crate::Error;
use crate::sync::lock;

/// The servers of one client. Programs that it launches find them, and the children of those.
#[derive(Debug)]
pub struct McpClientServers {
    starting: Starting,
    servers: Mutex<BTreeMap<String, Arc<McpServer>>>,
    relay: Weak<dyn McpRelay>,
}

impl McpClientServers {
    /// None yet; `relay` carries their lines as long as it is there.
    pub(crate) fn new(starting: Starting, relay: Weak<dyn McpRelay>) -> Arc<Self> {
        Arc::new(Self {
            starting,
            servers: Mutex::default(),
            relay,
        })
    }

    /// The client has a server of that name from now on. One that had the name before ends.
    ///
    /// # Errors
    /// `invalid-name`, `limit-mcp-calls` where there are too many.
    pub fn register(&self, name: &str) -> Result<(), Error> {
        if !is_server_name(name) {
            let message = format!(
                "{:?} cannot be the name of an MCP server; give 1 to 64 letters, digits, '.', '_' and '-'",
                name.chars().take(80).collect::<String>()
            );
            return Err(Error::new(ErrorCode::InvalidName, message));
        }
        let mut servers = lock(&self.servers);
        if servers.len() >= MAX_SERVERS && !servers.contains_key(name) {
            let message = format!(
                "the client has {MAX_SERVERS} MCP servers, the most that there may be; take some back that are not used"
            );
            return Err(Error::new(ErrorCode::LimitMcpCalls, message));
        }
        let how = How::Client(self.relay.clone());
        let server = McpServer::new(name, how, self.starting.clone());
        servers.insert(name.to_owned(), server);
        Ok(())
    }

    /// The client has no server of that name any more; whether it had.
    pub fn unregister(&self, name: &str) -> bool {
        lock(&self.servers).remove(name).is_some()
    }

    /// Their names, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        lock(&self.servers).keys().cloned().collect()
    }

    /// The server of that name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<McpServer>> {
        lock(&self.servers).get(name).cloned()
    }
}
