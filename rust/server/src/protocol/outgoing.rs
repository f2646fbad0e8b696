//! What the server says.

use std::sync::Arc;

use pie_host::{Error, Event};
use serde_json::{Value, json};

use super::body::Body;
use crate::auth::Identity;
use crate::faults;

/// The hello of the server.
pub(crate) fn hello(instance: &str, who: &Identity, limits: &Value) -> Body {
    Body::json(&json!({
        "type": "hello", "protocol": super::VERSION, "server": concat!("pie/", env!("CARGO_PKG_VERSION")), "instance": instance,
        "user": who.user, "role": who.role.name(), "limits": limits,
    }))
}

/// What a client has to sign before it is let in.
pub(crate) fn challenge(nonce: &str) -> Body {
    Body::json(&json!({ "type": "challenge", "nonce": nonce }))
}

/// An error that concerns the whole connection.
pub(crate) fn connection_error(error: &Error) -> Body {
    Body::json(&json!({ "type": "error", "error": error_object(error) }))
}

/// Tells that the server is about to end.
pub(crate) fn draining() -> Body {
    Body::json(&json!({ "type": "draining" }))
}

/// Asks the client to start an MCP server that it has registered.
pub(crate) fn mcp_start(link: u64, server: &str) -> Body {
    Body::json(&json!({ "type": "mcp_start", "link": link, "server": server }))
}

/// A line for an MCP server that the client runs.
pub(crate) fn mcp_line(link: u64, text: &str) -> Body {
    Body::json(&json!({ "type": "mcp_line", "link": link, "text": text }))
}

/// Tells that an MCP server that the client runs is needed no more.
pub(crate) fn mcp_stop(link: u64) -> Body {
    Body::json(&json!({ "type": "mcp_stop", "link": link }))
}

/// The answer to a request.
pub(crate) fn answer(id: u64, result: Result<Value, Error>) -> Body {
    match result {
        Ok(value) => Body::json(&json!({ "id": id, "ok": value })),
        Err(error) => Body::json(&json!({ "id": id, "error": error_object(&error) })),
    }
}

/// An event of a process.
pub(crate) fn event(pid: u64, seq: u64, event: &Arc<Event>) -> Body {
    Body::event(pid, seq, event)
}

/// An error as it travels.
pub(crate) fn error_object(error: &Error) -> Value {
    let details: Value = serde_json::from_str(&error.details).unwrap_or_else(|_| json!({}));
    json!({ "code": error.code.as_str(), "message": faults::message(error), "details": details })
}
