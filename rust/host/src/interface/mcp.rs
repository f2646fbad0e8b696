//! `pie:mcp/client`: servers of tools, resources and prompts by MCP.

use wasmtime::component::{Linker, Resource};

use super::bindings::pie::mcp::client::{self, HostMcpSession};
use super::errors::CallResult;
use super::futures::FutureString;
use super::view::view;
use crate::futures::Future;
use crate::mcp::call::Asked;
use crate::mcp::held::HeldMcp;
use crate::mcp::session::McpSession;
use crate::process::handles::HandleTable;
use crate::process::state::ProcessState;

view! {
    /// What a process has of MCP, and the handles of its sessions.
    McpClient { table: HandleTable, mcp: HeldMcp }
}

impl McpClient<'_> {
    /// Gives the program what a session is asked for.
    fn asked(
        &mut self,
        this: &Resource<McpSession>,
        ask: impl FnOnce(&McpSession, &HeldMcp) -> Future<Asked>,
    ) -> wasmtime::Result<Resource<FutureString>> {
        let future = ask(self.table.get(this)?, self.mcp);
        self.table.push_future(FutureString::Answered(future))
    }
}

impl client::Host for McpClient<'_> {
    fn available_servers(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.mcp.names())
    }

    fn connect(&mut self, name: String) -> CallResult<Resource<McpSession>> {
        let session = McpSession::open(self.mcp, &name)?;
        Ok(self.table.push(session)?)
    }
}

impl HostMcpSession for McpClient<'_> {
    fn hello(&mut self, this: Resource<McpSession>) -> wasmtime::Result<Resource<FutureString>> {
        self.asked(&this, McpSession::hello)
    }

    fn list_tools(
        &mut self,
        this: Resource<McpSession>,
    ) -> wasmtime::Result<Resource<FutureString>> {
        self.asked(&this, |session, held| {
            session.list(held, "tools/list", "tools")
        })
    }

    fn call_tool(
        &mut self,
        this: Resource<McpSession>,
        name: String,
        args: String,
    ) -> wasmtime::Result<Resource<FutureString>> {
        self.asked(&this, |session, held| {
            session.named(held, "tools/call", (&name, &args))
        })
    }

    fn list_resources(
        &mut self,
        this: Resource<McpSession>,
    ) -> wasmtime::Result<Resource<FutureString>> {
        self.asked(&this, |session, held| {
            session.list(held, "resources/list", "resources")
        })
    }

    fn read_resource(
        &mut self,
        this: Resource<McpSession>,
        uri: String,
    ) -> wasmtime::Result<Resource<FutureString>> {
        self.asked(&this, |session, held| session.read(held, &uri))
    }

    fn list_prompts(
        &mut self,
        this: Resource<McpSession>,
    ) -> wasmtime::Result<Resource<FutureString>> {
        self.asked(&this, |session, held| {
            session.list(held, "prompts/list", "prompts")
        })
    }

    fn get_prompt(
        &mut self,
        this: Resource<McpSession>,
        name: String,
        args: String,
    ) -> wasmtime::Result<Resource<FutureString>> {
        self.asked(&this, |session, held| {
            session.named(held, "prompts/get", (&name, &args))
        })
    }

    fn close(&mut self, this: Resource<McpSession>) -> wasmtime::Result<()> {
        self.table.get_mut(&this)?.close();
        Ok(())
    }

    fn drop(&mut self, this: Resource<McpSession>) -> wasmtime::Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    client::add_to_linker::<_, McpClient<'static>>(linker, McpClient::of)
}
