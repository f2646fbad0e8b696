//! MCP servers that write anything: lines of a process, or events of one that is spoken to by HTTP.

use arbitrary::Unstructured;
use pie_host::{Error, McpWritten, mcp_heard};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::talking::{holds, spoiled};
use crate::written::{expanded, written};

/// Calls that wait.
const N_CALLS: u64 = 4;
/// Bytes that an answer may have.
const MOST: usize = 256;
/// Bytes of a reply: it repeats an id of at most 256 bytes.
const MOST_OF_REPLY: usize = 512;
/// What a server that is written down may write, in bytes.
const MAX_BYTES: usize = 64 << 10;
/// What begins a stream of events that is written down.
const EVENTS: u8 = b'~';

/// Messages that are right, for the bytes to spoil.
const MESSAGES: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":0,"result":{"tools":[{"name":"a"}],"nextCursor":"2"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[],"_meta":{"b":1}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no such tool","data":[1]}}"#,
    r#"{"jsonrpc":"2.0","id":3,"result":null}"#,
    r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":9,"method":"roots/list","params":{}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#,
    "Listening on stdio",
];
/// What an id or a code is in the place of a right one.
const INSTEAD: &[&str] = &[
    "0",
    "3",
    "-1",
    "1.0",
    "1e3",
    "\"0\"",
    "null",
    "[]",
    "18446744073709551615",
    "00",
];

/// Has a server write that, while calls wait. Each call gets its own answer, a right one is within its bound, and what
/// the server is told is a message.
pub fn mcp(data: &[u8]) {
    let (bytes, is_stream) = match written(data) {
        Some(text) => {
            let text = expanded(text, MAX_BYTES);
            match text.split_first() {
                Some((&EVENTS, text)) => (text.to_vec(), true),
                _ => (text, false),
            }
        }
        None => match made_up(&mut Unstructured::new(data)) {
            Ok(made_up) => made_up,
            Err(_) => return,
        },
    };
    let whole = outcome(&[bytes.as_slice()], is_stream);
    let pieces: Vec<&[u8]> = bytes.chunks(7).collect();
    assert_eq!(
        whole,
        outcome(&pieces, is_stream),
        "{}",
        bytes.escape_ascii()
    );
}

/// What comes of what a server writes, once it was checked.
fn outcome(pieces: &[&[u8]], is_stream: bool) -> Value {
    let written = match is_stream {
        true => McpWritten::Events(pieces),
        false => McpWritten::Lines(pieces),
    };
    let heard = mcp_heard(written, N_CALLS, MOST).expect("calls begin");
    for answer in heard.answers.iter().flatten() {
        match answer {
            Ok(text) => {
                assert!(text.len() <= MOST, "{text}");
                assert!(is_json(text), "{text}");
                let bytes = pieces.concat();
                assert!(
                    text == "null" || holds_data(&bytes, text, is_stream),
                    "{text}"
                );
            }
            Err(error) => check(error),
        }
    }
    for reply in &heard.replies {
        assert!(reply.len() <= MOST_OF_REPLY, "{reply}");
        // Data of an event may have several lines, and nothing that it asks is answered.
        assert!(is_stream || !reply.contains('\n'), "{reply}");
        let told: Value = serde_json::from_str(reply).expect("a reply is JSON");
        assert_eq!(told["jsonrpc"], "2.0", "{reply}");
    }
    if let Some(Ok(list)) = &heard.list {
        assert!(is_json(list), "{list}");
    }
    let answers = heard.answers.into_iter().map(|answer| match answer {
        None => Value::Null,
        Some(Ok(text)) => json!({ "ok": text }),
        Some(Err(error)) => json!({ "code": error.code.as_str(), "message": error.message }),
    });
    json!({ "answers": answers.collect::<Vec<_>>(), "replies": heard.replies, "list": heard.list.map(Result::ok) })
}

fn check(error: &Error) {
    let code = error.code.as_str();
    let codes = ["limit-mcp-bytes", "mcp-error", "mcp-protocol"];
    assert!(codes.contains(&code), "{error}");
    assert!(error.message.len() < 64 << 10, "{}", error.message.len());
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Whether a server has written that, where it writes lines: data of one event may stand in several.
fn holds_data(bytes: &[u8], text: &str, is_stream: bool) -> bool {
    is_stream || holds(bytes, text.as_bytes())
}

/// What a server writes, of which some is spoiled; whether they are events.
fn made_up(bytes: &mut Unstructured<'_>) -> arbitrary::Result<(Vec<u8>, bool)> {
    let is_stream = bytes.ratio(1, 4)?;
    let mut all = Vec::new();
    for _ in 0..bytes.int_in_range(1..=8)? {
        let mut message = bytes.choose(MESSAGES)?.as_bytes().to_vec();
        match bytes.int_in_range(0..=7)? {
            0 => message = spoiled(&message, bytes)?,
            1 => message = with_instead(&message, bytes)?,
            // One that is too long, whose id stands anywhere.
            2 => {
                let long = format!(r#"{{"a":"{}","id":1}}"#, "x".repeat(2 * MOST));
                message = long.into_bytes();
            }
            3 => message = bytes.arbitrary()?,
            _ => {}
        }
        if is_stream {
            all.extend_from_slice(b"data: ");
        }
        all.extend(message);
        let ends: &[&str] = match is_stream {
            true => &["\n\n", "\n\n", "\r\n\r\n", "\n"],
            false => &["\n", "\n", "\r\n", ""],
        };
        all.extend_from_slice(bytes.choose(ends)?.as_bytes());
    }
    Ok((all, is_stream))
}

/// A message with another value for the first of its numbers behind a colon.
fn with_instead(message: &[u8], bytes: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let instead = bytes.choose(INSTEAD)?;
    let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
    let colon = message
        .windows(2)
        .position(|two| two[0] == b':' && is_number(&two[1]));
    let Some(from) = colon.map(|at| at + 1) else {
        return Ok(message.to_vec());
    };
    let n_bytes = message[from..]
        .iter()
        .take_while(|byte| is_number(byte))
        .count();
    let mut changed = message.to_vec();
    changed.splice(from..from + n_bytes, instead.bytes());
    Ok(changed)
}
