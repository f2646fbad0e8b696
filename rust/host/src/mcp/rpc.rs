//! Messages of JSON-RPC 2.0, as MCP has them: each is one line.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::failure::{protocol, refused};
use crate::Error;

/// The version of the protocol that is asked for.
const VERSION: &str = "2025-06-18";
/// The versions of which all that is used here is the same.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", VERSION, "2025-11-25"];

/// Bytes of the id of a request that is answered: the answer repeats it.
const MAX_ID_BYTES: usize = 256;

/// Characters of what a server has written that a message repeats.
const SHOWN_CHARS: usize = 80;

/// The error of a request that a client cannot be asked.
const METHOD_NOT_FOUND: i64 = -32601;

/// A message of a server.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    /// The answer to a request of ours: its result as it was written, or why it is refused.
    Answer {
        id: u64,
        result: Result<String, Fault>,
    },
    /// A request, which wants an answer: its id as it was written. One whose id is longer than any counts as what needs
    /// none.
    Request { id: String, method: String },
    /// What needs no answer.
    Notification,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    /// The server says so.
    Refused { code: i64, message: String },
    /// What it says is no error of the protocol: why.
    Malformed(String),
}

impl Fault {
    /// Reads the error in an answer.
    fn read(error: &RawValue) -> Self {
        #[derive(Deserialize)]
        struct Written<'a> {
            #[serde(borrow, default)]
            code: Option<&'a RawValue>,
            #[serde(borrow, default)]
            message: Option<&'a RawValue>,
        }
        let not = |what: &str, written: &RawValue, wanted: &str| {
            let shown: String = written.get().chars().take(SHOWN_CHARS).collect();
            Self::Malformed(format!("{what} is {shown}, which is not {wanted}"))
        };
        let Ok(Written { code, message }) = serde_json::from_str(error.get()) else {
            return not("its error", error, "an object with a code and a message");
        };
        let read_message = |written: &RawValue| serde_json::from_str::<String>(written.get());
        let message = match message.map(|written| (written, read_message(written))) {
            None => String::new(),
            Some((_, Ok(message))) => message,
            Some((written, Err(_))) => return not("the message of its error", written, "a text"),
        };
        match code.map(|written| (written, written.get().parse::<i64>())) {
            None => Self::Refused { code: 0, message },
            Some((_, Ok(code))) => Self::Refused { code, message },
            Some((written, Err(_))) => {
                let wanted = "a whole number of 64 bits";
                not("the code of its error", written, wanted)
            }
        }
    }

    /// The same as the error of a call.
    pub(crate) fn error(&self, server: &str) -> Error {
        match self {
            Self::Refused { code, message } => refused(server, *code, message),
            Self::Malformed(why) => protocol(server, why),
        }
    }
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl Incoming {
    /// Reads a message; none where it is not one.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let message: Message<'_> = serde_json::from_slice(line).ok()?;
        match message {
            Message {
                method: Some(method),
                id: Some(id),
                ..
            } if id.get().len() <= MAX_ID_BYTES => Some(Self::Request {
                id: id.get().to_owned(),
                method: method.into_owned(),
            }),
            Message {
                method: Some(_), ..
            } => Some(Self::Notification),
            Message {
                id: Some(id),
                result,
                error,
                ..
            } => {
                let result = match (error, result) {
                    (Some(error), _) => Err(Fault::read(error)),
                    (None, Some(result)) => Ok(result.get().to_owned()),
                    // An empty result may be written as null.
                    (None, None) => Ok("null".to_owned()),
                };
                Some(Self::Answer {
                    id: own_id(id.get())?,
                    result,
                })
            }
            _ => None,
        }
    }
}

/// The id of a request of ours, as it was written; none where it is of somebody else.
pub(crate) fn own_id(written: &str) -> Option<u64> {
    written.parse().ok()
}

/// A request. `params` is an object of JSON.
pub(crate) fn request(id: u64, method: &str, params: &str) -> String {
    let method = quoted(method);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#)
}

/// What the request `initialize` says, which opens a conversation.
pub(crate) fn hello() -> String {
    format!(
        r#"{{"protocolVersion":"{VERSION}","capabilities":{{}},"clientInfo":{{"name":"pie","version":"{}"}}}}"#,
        env!("CARGO_PKG_VERSION")
    )
}

/// What follows the answer to [`hello`].
pub(crate) fn initialized() -> String {
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()
}

/// Gives up a request.
pub(crate) fn cancelled(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"the program gave the call up"}}}}"#
    )
}

/// The answer to a request of a server: `ping` is answered, and nothing else can be asked of a client here.
pub(crate) fn reply(id: &str, method: &str) -> String {
    if method == "ping" {
        return format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    }
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{METHOD_NOT_FOUND},"message":"this client answers ping alone"}}}}"#
    )
}

/// The version in the answer to [`hello`].
///
/// # Errors
/// What is wrong with it, for a message.
pub(crate) fn version(hello: &str) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Hello {
        #[serde(rename = "protocolVersion")]
        version: String,
    }
    let version = serde_json::from_str::<Hello>(hello)
        .map_err(|error| format!("its hello is not one: {error}"))?
        .version;
    if VERSIONS.contains(&version.as_str()) {
        return Ok(version);
    }
    let version: String = version.chars().take(32).collect();
    Err(format!(
        "it speaks the version {version:?} of MCP, and these are known here: {}",
        VERSIONS.join(", ")
    ))
}

/// A text as JSON.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Arguments as a program wrote them, as an object of JSON on one line; an empty text is no arguments.
///
/// # Errors
/// What is wrong with them, for a message.
pub(crate) fn arguments(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Ok("{}".to_owned());
    }
    let raw: &RawValue =
        serde_json::from_str(text).map_err(|error| format!("they are not JSON ({error})"))?;
    if !raw.get().starts_with('{') {
        return Err("they are not an object".to_owned());
    }
    // Texts in JSON hold no end of a line: those that there are stand between its parts.
    Ok(raw.get().replace(['\n', '\r'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let answer = |id, result| Some(Incoming::Answer { id, result });
        let fault = |code, message: &str| {
            Err(Fault::Refused {
                code,
                message: message.to_owned(),
            })
        };
        let malformed = |why: &str| answer(3, Err(Fault::Malformed(why.to_owned())));
        for (line, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":3,"result":{"a": 1.10, "b":"é"}}"#,
                answer(3, Ok(r#"{"a": 1.10, "b":"é"}"#.to_owned())),
            ),
            (
                r#"{"id":3,"result":null}"#,
                answer(3, Ok("null".to_owned())),
            ),
            (
                r#"{"id":3,"error":{"code":-1,"message":"no","data":[]}}"#,
                answer(3, fault(-1, "no")),
            ),
            (r#"{"id":3,"error":{}}"#, answer(3, fault(0, ""))),
            (
                r#"{"id":3,"error":{"code":"E1","message":"no"}}"#,
                malformed(
                    "the code of its error is \"E1\", which is not a whole number of 64 bits",
                ),
            ),
            (
                r#"{"id":3,"error":{"code":1,"message":[]}}"#,
                malformed("the message of its error is [], which is not a text"),
            ),
            (
                r#"{"id":3,"error":7}"#,
                malformed("its error is 7, which is not an object with a code and a message"),
            ),
            (
                r#"{"id":"x","method":"ping"}"#,
                Some(Incoming::Request {
                    id: r#""x""#.to_owned(),
                    method: "ping".to_owned(),
                }),
            ),
            (
                &*format!(r#"{{"id":"{}","method":"ping"}}"#, "x".repeat(MAX_ID_BYTES)),
                Some(Incoming::Notification),
            ),
            (
                r#"{"method":"notifications/progress","params":{}}"#,
                Some(Incoming::Notification),
            ),
            (r#"{"id":"3","result":{}}"#, None),
            (r#"{"id":-3,"result":{}}"#, None),
            (r#"{"result":{}}"#, None),
            ("[]", None),
            ("", None),
            ("Listening on stdio", None),
            (r#"{"id":3,"result":{}"#, None),
        ] {
            assert_eq!(Incoming::parse(line.as_bytes()), expected, "{line}");
        }
        assert_eq!(Incoming::parse(b"{\"id\":3,\"result\":\"\xff\"}"), None);
    }

    #[test]
    fn arguments_are_one_object_on_one_line() {
        for (text, expected) in [
            ("", "{}"),
            (" \n", "{}"),
            ("{\"a\":\n1e400}", "{\"a\": 1e400}"),
            (
                r#" {"a":12345678901234567890123} "#,
                r#"{"a":12345678901234567890123}"#,
            ),
        ] {
            assert_eq!(arguments(text).unwrap(), expected);
        }
        for text in ["[]", "1", "null", "{", "{}{}", "{\"a\":\"\n\"}"] {
            arguments(text).unwrap_err();
        }
    }

    #[test]
    fn a_hello_has_a_version_that_is_known() {
        assert_eq!(
            version(r#"{"protocolVersion":"2024-11-05"}"#).unwrap(),
            "2024-11-05"
        );
        for (hello, part) in [
            ("{}", "not one"),
            (r#"{"protocolVersion":"1.0"}"#, "the version \"1.0\""),
        ] {
            let why = version(hello).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn what_is_written_is_json() {
        for text in [
            request(1, "tools/list", "{}"),
            request(0, "initialize", &hello()),
            initialized(),
            cancelled(7),
            reply("\"a\"", "ping"),
            reply("1", "roots/list"),
        ] {
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["jsonrpc"], "2.0");
            assert!(!text.contains('\n'));
        }
    }
}
