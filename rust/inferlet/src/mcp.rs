//! Servers of MCP, the Model Context Protocol: their tools, resources and prompts.
//!
//! There are those that the operator has configured, and those that the client has registered that launched the
//! program.
//!
//! ```no_run
//! use inferlet::mcp;
//! use serde_json::{Value, json};
//!
//! # fn ask() -> inferlet::Result<()> {
//! let files = mcp::client::connect("files")?;
//! let tools: Value = serde_json::from_str(&files.list_tools()?).map_err(|error| error.to_string())?;
//! let answer = files.call_tool("read", &json!({ "path": "notes.txt" }).to_string())?;
//! # Ok(())
//! # }
//! ```

pub mod client {
    //! The client of a program.
    //!
    //! Every method returns the server's own JSON text and blocks the whole program meanwhile; the one that ends in
    //! `_async` is awaited, and lets other tasks run. What fails has a code: `unknown-mcp-server`, `mcp-unavailable`,
    //! `mcp-protocol`, `mcp-error`, `limit-mcp-calls`, `limit-mcp-bytes` or `limit-mcp-time`. A tool that fails says so
    //! in its result, by `isError`.

    pub use crate::bindings::pie::mcp::client::available_servers;

    use crate::Result;
    use crate::bindings::pie::mcp::client as raw;
    use crate::task::{answer, block_for};

    /// Opens a session with a server, which is started where it does not run.
    ///
    /// # Errors
    /// `unknown-mcp-server`, `mcp-unavailable`, `mcp-protocol`, `limit-mcp-calls`, `limit-mcp-time`.
    pub fn connect(name: &str) -> Result<Session> {
        let raw = raw::connect(name)?;
        let server_info = block_for(raw.hello())?;
        Ok(Session { raw, server_info })
    }

    /// As [`connect`], and lets other tasks run meanwhile.
    ///
    /// # Errors
    /// As [`connect`].
    pub async fn connect_async(name: &str) -> Result<Session> {
        let raw = raw::connect(name)?;
        let server_info = answer(raw.hello()).await?;
        Ok(Session { raw, server_info })
    }

    /// A session with a server. Dropping it closes it.
    ///
    /// Arguments are a JSON object as text; an empty text is none.
    #[derive(Debug)]
    pub struct Session {
        raw: raw::McpSession,
        server_info: String,
    }

    impl Session {
        /// What the server said of itself, `{"protocolVersion", "capabilities", "serverInfo", ...}`.
        pub fn server_info(&self) -> &str {
            &self.server_info
        }

        /// The tools of the server, `{"tools": [...]}`. `equip` takes each of them as it is, as a JSON text.
        ///
        /// # Errors
        /// `mcp-unavailable`, `mcp-protocol`, `mcp-error`, `limit-mcp-calls`, `limit-mcp-bytes` and `limit-mcp-time`.
        pub fn list_tools(&self) -> Result<String> {
            block_for(self.raw.list_tools())
        }

        /// As [`Self::list_tools`], awaited.
        ///
        /// # Errors
        /// As [`Self::list_tools`].
        pub async fn list_tools_async(&self) -> Result<String> {
            answer(self.raw.list_tools()).await
        }

        /// Calls a tool: `{"content": [...], "isError"?: bool}`.
        ///
        /// # Errors
        /// As [`Self::list_tools`], `mcp-error` for a tool that there is not; `invalid-argument` for arguments that are
        /// not an object.
        pub fn call_tool(&self, name: &str, args_json: &str) -> Result<String> {
            block_for(self.raw.call_tool(name, args_json))
        }

        /// As [`Self::call_tool`], awaited. Dropping the wait gives the call up at the server too.
        ///
        /// # Errors
        /// As [`Self::call_tool`].
        pub async fn call_tool_async(&self, name: &str, args_json: &str) -> Result<String> {
            answer(self.raw.call_tool(name, args_json)).await
        }

        /// The resources of the server, `{"resources": [...]}`.
        ///
        /// # Errors
        /// As [`Self::list_tools`].
        pub fn list_resources(&self) -> Result<String> {
            block_for(self.raw.list_resources())
        }

        /// As [`Self::list_resources`], awaited.
        ///
        /// # Errors
        /// As [`Self::list_resources`].
        pub async fn list_resources_async(&self) -> Result<String> {
            answer(self.raw.list_resources()).await
        }

        /// Reads a resource: `{"contents": [...]}`.
        ///
        /// # Errors
        /// As [`Self::list_tools`], `mcp-error` for one that there is not.
        pub fn read_resource(&self, uri: &str) -> Result<String> {
            block_for(self.raw.read_resource(uri))
        }

        /// As [`Self::read_resource`], awaited.
        ///
        /// # Errors
        /// As [`Self::read_resource`].
        pub async fn read_resource_async(&self, uri: &str) -> Result<String> {
            answer(self.raw.read_resource(uri)).await
        }

        /// The prompts of the server, `{"prompts": [...]}`.
        ///
        /// # Errors
        /// As [`Self::list_tools`].
        pub fn list_prompts(&self) -> Result<String> {
            block_for(self.raw.list_prompts())
        }

        /// As [`Self::list_prompts`], awaited.
        ///
        /// # Errors
        /// As [`Self::list_prompts`].
        pub async fn list_prompts_async(&self) -> Result<String> {
            answer(self.raw.list_prompts()).await
        }

        /// Renders a prompt, whose arguments are texts: `{"messages": [...]}`.
        ///
        /// # Errors
        /// As [`Self::call_tool`].
        pub fn get_prompt(&self, name: &str, args_json: &str) -> Result<String> {
            block_for(self.raw.get_prompt(name, args_json))
        }

        /// As [`Self::get_prompt`], awaited.
        ///
        /// # Errors
        /// As [`Self::get_prompt`].
        pub async fn get_prompt_async(&self, name: &str, args_json: &str) -> Result<String> {
            answer(self.raw.get_prompt(name, args_json)).await
        }

        /// Ends the session; calls that are under way, and later ones, fail with `mcp-closed`.
        pub fn close(self) {
            self.raw.close();
        }
    }
}
