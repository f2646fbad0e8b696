//! Requests about the MCP servers that a client runs.

use super::*;
use crate::protocol::incoming::{McpSaid, OfServer};

impl Session {
    /// Registers a server for the programs that this connection launches.
    pub(super) fn register_mcp_server(&self, request: &mut Request) -> Answer {
        let OfServer { name } = request.fields()?;
        let note = self.note("register_mcp_server", name.clone());
        note.of(self.mcp.register(&name).map(|()| json!({})))
    }

    /// Takes a server back: programs find it no more. Sessions that are open keep it.
    pub(super) fn unregister_mcp_server(&self, request: &mut Request) -> Answer {
        let OfServer { name } = request.fields()?;
        let note = self.note("unregister_mcp_server", name.clone());
        note.of(if self.mcp.unregister(&name) {
            Ok(json!({}))
        } else {
            let message = format!(
                "this connection has registered no MCP server {:?}; give the name of one that it has",
                name.chars().take(80).collect::<String>()
            );
            Err(Error::new(ErrorCode::UnknownMcpServer, message))
        })
    }

    /// Takes what a server of the client has written, or that it has ended.
    pub(crate) async fn mcp_said(&self, said: McpSaid) {
        let (link, text) = (said.of.link, said.of.text);
        if said.is_end {
            self.links.end(link, text).await;
        } else {
            self.links.line(link, text).await;
        }
    }
}
