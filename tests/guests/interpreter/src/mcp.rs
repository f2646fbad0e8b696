//! Operations on sessions with MCP servers.

use inferlet::mcp::client::Session;
use inferlet::task::Either;
use inferlet::{Result, task};
use serde_json::Value;

use crate::handles::Handles;
use crate::operation::McpAsk;

/// What a session answers.
pub async fn asked(handles: &Handles, ask: &McpAsk) -> Result<Value> {
    let session = handles.session(&ask.session)?;
    let [first, second] = [0, 1].map(|at| ask.args.get(at).map(text).unwrap_or_default());
    let answer = match (ask.what.as_str(), ask.later) {
        ("server_info", _) => session.server_info().to_owned(),
        ("list_tools", false) => session.list_tools()?,
        ("list_tools", true) => session.list_tools_async().await?,
        ("call_tool", false) => session.call_tool(&first, &second)?,
        ("call_tool", true) => session.call_tool_async(&first, &second).await?,
        ("list_resources", false) => session.list_resources()?,
        ("list_resources", true) => session.list_resources_async().await?,
        ("read_resource", false) => session.read_resource(&first)?,
        ("read_resource", true) => session.read_resource_async(&first).await?,
        ("list_prompts", false) => session.list_prompts()?,
        ("list_prompts", true) => session.list_prompts_async().await?,
        ("get_prompt", false) => session.get_prompt(&first, &second)?,
        ("get_prompt", true) => session.get_prompt_async(&first, &second).await?,
        (what, _) => return Err(format!("a session is not asked for {what}")),
    };
    parsed(&answer)
}

/// Asks for something, and gives it up once something else was answered, which is the answer.
pub async fn give_up(handles: &Handles, ask: &McpAsk, beside: &McpAsk) -> Result<Value> {
    let [ask, beside] = [ask, beside].map(|one| McpAsk {
        session: ask.session.clone(),
        later: true,
        ..one.clone()
    });
    match task::select(asked(handles, &ask), asked(handles, &beside)).await {
        Either::Left(_) => Err("it was answered before it was given up".to_owned()),
        Either::Right(seen) => seen,
    }
}

/// The tools of a server, each as it wrote it.
pub fn tools(session: &Session) -> Result<Vec<String>> {
    let listed = parsed(&session.list_tools()?)?;
    let tools = listed["tools"]
        .as_array()
        .ok_or("there is no list of tools")?;
    Ok(tools.iter().map(Value::to_string).collect())
}

/// Arguments: a text as it is, an object as its text.
fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn parsed(answer: &str) -> Result<Value> {
    serde_json::from_str(answer).map_err(|error| error.to_string())
}
