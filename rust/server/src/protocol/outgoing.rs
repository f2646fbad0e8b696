//! What the server says.

use pie_host::{Error, Event};
use serde_json::{Value, json};
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
    let with = |kind: &str, field: &str, value: &str| {
        text(&json!({ "type": "event", "pid": pid, "seq": seq, "kind": kind, field: value }))
    };
    match event {
        Event::Stdout(text) => with("stdout", "text", text),
        Event::Stderr(text) => with("stderr", "text", text),
        Event::Message(text) => with("message", "text", text),
        Event::Return(value) => with("return", "value", value),
        Event::Error(failure) => text(&json!({
            "type": "event", "pid": pid, "seq": seq, "kind": "error", "code": failure.code, "message": failure.message,
            "error_kind": failure.kind, "traceback": failure.traceback,
        })),
        Event::File(data) => binary(
            &json!({ "type": "event", "pid": pid, "seq": seq, "kind": "file" }),
            data,
        ),
    }
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
