//! The servers that the operator has configured, and the places that users have at all servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::clients::McpClientServers;
use super::config::{McpConfig, McpServerConfig};
use super::relay::McpRelay;
use super::server::{How, McpServer, Starting};
use super::starter::Starter;
use crate::limits::Limits;
use crate::shared_places::SharedPlaces;

/// The servers of an engine.
#[derive(Debug)]
pub(crate) struct McpServers {
    configured: BTreeMap<String, (McpServerConfig, Arc<McpServer>)>,
    /// For the servers of clients.
    starting: Starting,
    /// Sessions that are open.
    pub(crate) sessions: Arc<SharedPlaces>,
    /// Calls that are under way.
    pub(crate) calls: Arc<SharedPlaces>,
}

impl McpServers {
    /// Those of an engine; what speaks to them runs in `runtime`, the certificates for those that are spoken to by HTTP
    /// are of `ca_file`, and those that are processes do not get the variables that are `withheld`.
    pub(crate) fn new(
        config: &McpConfig,
        servers: &BTreeMap<String, McpServerConfig>,
        limits: &Limits,
        (runtime, ca_file, withheld): (tokio::runtime::Handle, &str, &[String]),
    ) -> Arc<Self> {
        let starting = Starting {
            starter: Arc::new(Starter::new(runtime.clone(), withheld)),
            runtime,
            answer_bytes: limits.mcp_answer_bytes,
            starts_per_minute: config.starts_per_minute,
            limit: (limits.mcp_call, "limits.mcp_call_s".to_owned()),
        };
        let server = |(name, server): (&String, &McpServerConfig)| {
            let how = if server.command.is_empty() {
                How::Web(server.clone(), ca_file.to_owned())
            } else {
                How::Process(server.clone())
            };
            let starting = Starting {
                limit: (server.start, format!("mcp.{name}.start_s")),
                ..starting.clone()
            };
            let running = McpServer::new(name, how, starting);
            (name.clone(), (server.clone(), running))
        };
        Arc::new(Self {
            configured: servers.iter().map(server).collect(),
            starting: starting.clone(),
            sessions: SharedPlaces::of_each(config.user_sessions),
            calls: SharedPlaces::of_each(config.user_calls),
        })
    }

    /// The servers that programs of a user may use, by name.
    pub(crate) fn names(&self, user: &str) -> Vec<String> {
        let servers = self.configured.iter();
        servers
            .filter(|(_, (config, _))| config.allows(user))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// The server of that name, where programs of the user may use it.
    pub(crate) fn find(&self, user: &str, name: &str) -> Option<Arc<McpServer>> {
        let (config, server) = self.configured.get(name)?;
        config.allows(user).then(|| server.clone())
    }

    /// The engine ends, and its servers with it.
    pub(crate) fn end(&self) {
        for (_, server) in self.configured.values() {
            server.end();
        }
    }

    /// What a client registers its servers with.
    pub(crate) fn of_client(&self, relay: std::sync::Weak<dyn McpRelay>) -> Arc<McpClientServers> {
        McpClientServers::new(self.starting.clone(), relay)
    }
}
