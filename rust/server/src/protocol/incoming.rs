//! What clients say.

use std::collections::BTreeMap;

use pie_host::Error;
use serde::Deserialize;
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::violation;

/// Bytes of a type: those that there are have fewer.
const MAX_TYPE_BYTES: usize = 64;

/// The first message of a client.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hello {
    pub(crate) protocol: u64,
    pub(crate) user: Option<String>,
    pub(crate) client: Option<String>,
}

/// A message after the hello.
#[derive(Debug)]
pub(crate) enum Incoming {
    Ack(Ack),
    Request(Request),
}

/// The fields of a message by their names, each the text that the client wrote: a number keeps all its digits.
type Fields = BTreeMap<String, Box<RawValue>>;

/// A request: its fields are read by the type that its handler names.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) kind: String,
    fields: Fields,
}

impl Request {
    /// The fields of the request.
    ///
    /// # Errors
    /// `protocol-error` for an unknown or missing field and a value of another type.
    pub(crate) fn fields<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        read(&self.kind, &std::mem::take(&mut self.fields))
    }

    /// True when the field `name` is there and true, whatever is wrong with the others.
    pub(crate) fn says(&self, name: &str) -> bool {
        self.fields
            .get(name)
            .is_some_and(|value| value.get() == "true")
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ack {
    pub(crate) pid: u64,
    pub(crate) seq: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Upload {
    pub(crate) digest: String,
    pub(crate) bytes: u64,
    pub(crate) offset: u64,
    pub(crate) last: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Install {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) digest: String,
    pub(crate) manifest: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Uninstall {
    pub(crate) name: String,
    pub(crate) version: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Launch {
    pub(crate) program: String,
    /// The text as the client wrote it.
    pub(crate) input: Option<Box<RawValue>>,
    pub(crate) args: Option<Vec<String>>,
    pub(crate) seed: Option<u64>,
    pub(crate) token_budget: Option<u64>,
    pub(crate) limits: Option<Map<String, Value>>,
    pub(crate) detached: Option<bool>,
    pub(crate) attach: Option<bool>,
    pub(crate) window_bytes: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attach {
    pub(crate) pid: u64,
    pub(crate) window_bytes: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfProcess {
    pub(crate) pid: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Send {
    pub(crate) pid: u64,
    pub(crate) text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Processes {
    pub(crate) all: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Logs {
    pub(crate) pid: u64,
    pub(crate) after: Option<u64>,
    pub(crate) tail_bytes: Option<usize>,
    pub(crate) follow: Option<bool>,
}

/// Reads the hello.
///
/// # Errors
/// `protocol-error` when it is none. The version is for the caller to judge: it stands in the answer even where other fields of
/// another version are unknown.
pub(crate) fn hello(text: &str) -> Result<(u64, Result<Hello, Error>), Error> {
    let (kind, fields) = object(text)?;
    if kind != "hello" {
        return Err(violation(format!(
            "the first message is {kind:?}; it has to be a hello"
        )));
    }
    let version = fields
        .get("protocol")
        .and_then(|version| whole(version))
        .ok_or_else(|| violation("the hello names no protocol version"))?;
    Ok((version, read(&kind, &fields)))
}

/// Reads a text frame.
///
/// # Errors
/// `protocol-error` for one that nothing could answer: no JSON object, no type, no usable id.
pub(crate) fn text_message(text: &str) -> Result<Incoming, Error> {
    let (kind, fields) = object(text)?;
    if kind == "ack" {
        return Ok(Incoming::Ack(read(&kind, &fields)?));
    }
    request(kind, fields).map(Incoming::Request)
}

/// Parts a binary frame into its header and its payload.
///
/// # Errors
/// As [`text_message`].
pub(crate) fn binary_message(frame: &[u8]) -> Result<(Request, &[u8]), Error> {
    let cut = || violation("a binary frame is shorter than its header says");
    let (length, rest) = frame.split_first_chunk::<4>().ok_or_else(cut)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (header, payload) = rest.split_at_checked(length).ok_or_else(cut)?;
    let header = std::str::from_utf8(header)
        .map_err(|_| violation("the header of a binary frame is not UTF-8"))?;
    let (kind, fields) = object(header)?;
    Ok((request(kind, fields)?, payload))
}

fn request(kind: String, mut fields: Fields) -> Result<Request, Error> {
    let id = fields
        .remove("id")
        .and_then(|id| whole(&id))
        .ok_or_else(|| {
            violation(format!(
                "a message of the type {kind:?} has no id; give it a whole number"
            ))
        })?;
    Ok(Request { id, kind, fields })
}

/// A JSON object without its `type`.
fn object(text: &str) -> Result<(String, Fields), Error> {
    let mut fields: Fields = serde_json::from_str(text)
        .map_err(|error| violation(format!("a message is no JSON object: {error}")))?;
    let kind = fields
        .remove("type")
        .and_then(|kind| serde_json::from_str::<String>(kind.get()).ok())
        .filter(|kind| kind.len() <= MAX_TYPE_BYTES);
    match kind {
        Some(kind) => Ok((kind, fields)),
        None => Err(violation("a message has no usable type")),
    }
}

fn whole(value: &RawValue) -> Option<u64> {
    serde_json::from_str(value.get()).ok()
}

fn read<T: DeserializeOwned>(kind: &str, fields: &Fields) -> Result<T, Error> {
    let fields = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_ref().into_deserializer()));
    T::deserialize(MapDeserializer::new(fields)).map_err(|error: serde_json::Error| {
        violation(format!("in a message of the type {kind:?}: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(text: &str) -> Result<Launch, String> {
        match text_message(text) {
            Ok(Incoming::Request(mut request)) => request.fields().map_err(|error| error.message),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.message),
        }
    }

    #[test]
    fn null_means_left_out_and_seeds_have_64_bits() {
        let text = r#"{"id":1,"type":"launch","program":"x","seed":18446744073709551615,"args":null,"attach":null,"limits":null,"input":null}"#;
        let launch = launch(text).unwrap();
        assert_eq!(launch.seed, Some(u64::MAX));
        assert_eq!(
            (launch.args, launch.attach, launch.limits),
            (None, None, None)
        );
        assert!(launch.input.is_none());
    }

    #[test]
    fn an_input_keeps_its_text() {
        let input =
            r#"{"f": 94.52706955539223, "n": 123456789012345678901234567890, "s": "\u00e4"}"#;
        let text = format!(r#"{{"id":1,"input":{input},"type":"launch","program":"x"}}"#);
        assert_eq!(launch(&text).unwrap().input.unwrap().get(), input);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("[1]", "no JSON object"),
            ("{", "no JSON object"),
            (r#"{"id":1}"#, "no usable type"),
            (r#"{"type":7,"id":1}"#, "no usable type"),
            (r#"{"type":"launch"}"#, "has no id"),
            (r#"{"type":"launch","id":-1}"#, "has no id"),
            (r#"{"type":"launch","id":"1"}"#, "has no id"),
            (r#"{"type":"launch","id":1}"#, "missing field `program`"),
            (
                r#"{"type":"launch","id":1,"program":"x","colour":1}"#,
                "unknown field `colour`",
            ),
            (
                r#"{"type":"launch","id":1,"program":"x","seed":1.5}"#,
                "expected u64",
            ),
        ] {
            let message = launch(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn binary_frames_are_parted_within_their_bounds() {
        let header = br#"{"type":"file","id":3,"pid":1}"#;
        let mut frame = 30_u32.to_le_bytes().to_vec();
        frame.extend(header);
        frame.extend(b"\0\xff");
        let (request, payload) = binary_message(&frame).unwrap();
        assert_eq!(
            (request.id, request.kind.as_str(), payload),
            (3, "file", &b"\0\xff"[..])
        );
        for cut in 0..34 {
            assert!(binary_message(&frame[..cut]).is_err());
        }
        assert!(binary_message(&[0xff; 40]).is_err());
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = format!("{{\"a\":{}", "[".repeat(100_000));
        assert!(text_message(&deep).is_err());
    }
}
