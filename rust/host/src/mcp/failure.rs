//! What goes wrong with servers of MCP, as errors of programs.

use std::fmt;
use std::time::Duration;

use pie_core::ErrorCode;

use crate::Error;

/// Characters of a server's own words that a message repeats.
const SHOWN_CHARS: usize = 2000;

/// The error of a server that cannot be used now.
pub(crate) fn unavailable(server: &str, why: impl fmt::Display) -> Error {
    let message =
        format!("the MCP server {server:?} is not available: {why}; try again, or look at it");
    Error::new(ErrorCode::McpUnavailable, message)
}

/// The error of a server that does not speak MCP.
pub(crate) fn protocol(server: &str, why: impl fmt::Display) -> Error {
    let message = format!(
        "the MCP server {server:?} did not answer as the protocol has it: {why}; mend or update it"
    );
    Error::new(ErrorCode::McpProtocol, message)
}

/// The error of a call that a server refuses.
pub(crate) fn refused(server: &str, code: i64, words: &str) -> Error {
    let message = format!(
        "the MCP server {server:?} refused the call, with the code {code}: {}",
        shortened(words)
    );
    Error::new(ErrorCode::McpError, message)
}

/// The error of an answer that is longer than it may be.
pub(crate) fn answer_too_long(server: &str, most: u64) -> Error {
    let message = format!(
        "the answer of the MCP server {server:?} has more than limits.mcp_answer_bytes = {most} bytes; ask for less, or raise the limit"
    );
    Error::new(ErrorCode::LimitMcpBytes, message)
}

/// The error of a call that is longer than it may be.
pub(crate) fn call_too_long(n_bytes: usize, most: u64) -> Error {
    let message = format!(
        "the call of an MCP server has {n_bytes} bytes, of at most limits.mcp_sent_bytes = {most}; send less, or raise the limit"
    );
    Error::new(ErrorCode::LimitMcpBytes, message)
}

/// The error of what took longer than a limit.
pub(crate) fn too_slow(server: &str, what: &str, limit: &str, most: Duration) -> Error {
    let most = most.as_secs_f64();
    let message = format!(
        "the MCP server {server:?} was given up: {what} took longer than {limit} = {most} s; look at the server, or raise the limit"
    );
    Error::new(ErrorCode::LimitMcpTime, message)
}

/// The error of a session, or a call, for which there is no place.
pub(crate) fn too_many(n: usize, what: &str, whose: &str, bound: &str) -> Error {
    let message = format!(
        "{n} {what} {whose} are there, of at most {bound}; close or await some of them, or raise the limit"
    );
    Error::new(ErrorCode::LimitMcpCalls, message)
}

/// The error of a call by a session that is closed.
pub(crate) fn closed(server: &str) -> Error {
    let message = format!("the session with the MCP server {server:?} is closed; connect again");
    Error::new(ErrorCode::McpClosed, message)
}

/// The first characters of a text.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(SHOWN_CHARS).collect()
}
