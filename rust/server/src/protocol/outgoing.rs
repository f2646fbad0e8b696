//! What the server says.

use pie_host::{Error, Event};
use serde_json::{Map, Value, json};
use tokio_tungstenite::tungstenite::Message;

/// The hello of the server.
pub(crate) fn hello(instance: &str, user: &str, limits: &Value) -> Message {
    text(&json!({
        "type": "hello", "protocol": super::VERSION, "server": concat!("pie/", env!("CARGO_PKG_VERSION")), "instance": instance,
        "user": user, "limits": limits,
    }))
}

/// An error that concerns the whole connection.
pub(crate) fn connection_error(error: &Error) -> Message {
    text(&json!({ "type": "error", "error": error_object(error) }))
}

/// Tells that the server is about to end.
pub(crate) fn draining() -> Message {
    text(&json!({ "type": "draining" }))
}

/// The answer to a request.
pub(crate) fn answer(id: u64, result: Result<Value, Error>) -> Message {
    match result {
        Ok(value) => text(&json!({ "id": id, "ok": value })),
        Err(error) => text(&json!({ "id": id, "error": error_object(&error) })),
    }
}

/// An event of a process.
pub(crate) fn event(pid: u64, seq: u64, event: &Event) -> Message {
    let mut message = Map::new();
    message.insert("type".to_owned(), json!("event"));
    message.insert("pid".to_owned(), json!(pid));
    message.insert("seq".to_owned(), json!(seq));
    message.extend(event_fields(event));
    let message = Value::Object(message);
    match event {
        Event::File(data) => binary(&message, data),
        _ => text(&message),
    }
}

/// What an event says, without whose it is; of a file, only that it is one.
pub(crate) fn event_fields(event: &Event) -> Map<String, Value> {
    let fields = match event {
        Event::Stdout(text) => vec![("kind", json!("stdout")), ("text", json!(text))],
        Event::Stderr(text) => vec![("kind", json!("stderr")), ("text", json!(text))],
        Event::Message(text) => vec![("kind", json!("message")), ("text", json!(text))],
        Event::Return(value) => vec![("kind", json!("return")), ("value", json!(value))],
        Event::Error(failure) => vec![
            ("kind", json!("error")),
            ("code", json!(failure.code)),
            ("message", json!(failure.message)),
            ("error_kind", json!(failure.kind)),
            ("traceback", json!(failure.traceback)),
        ],
        Event::File(_) => vec![("kind", json!("file"))],
    };
    let named = fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    named.collect()
}

/// An error as it travels.
pub(crate) fn error_object(error: &Error) -> Value {
    let details: Value = serde_json::from_str(&error.details).unwrap_or_else(|_| json!({}));
    json!({ "code": error.code.as_str(), "message": error.message, "details": details })
}

fn text(value: &Value) -> Message {
    Message::text(value.to_string())
}

fn binary(header: &Value, payload: &[u8]) -> Message {
    let header = header.to_string();
    let mut frame = Vec::with_capacity(4 + header.len() + payload.len());
    // A header of the server is a few dozen bytes.
    frame.extend(u32::try_from(header.len()).unwrap_or(0).to_le_bytes());
    frame.extend(header.as_bytes());
    frame.extend(payload);
    Message::binary(frame)
}
