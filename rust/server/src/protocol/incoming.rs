//! What clients say.

use std::collections::BTreeMap;
use std::fmt;

use pie_host::{Charge, Error};
use serde::Deserialize;
use serde::de::value::MapDeserializer;
use serde::de::{
    DeserializeOwned, Deserializer, Error as _, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess,
    Visitor,
};
use serde_json::value::RawValue;

use super::violation;
use crate::blocking::blocking;
use crate::wire::Payload;

/// Bytes of a type: those that there are have fewer.
const MAX_TYPE_BYTES: usize = 64;
/// Fields of an object, and bytes of their names: those that there are have fewer.
const MAX_FIELDS: usize = 32;
const MAX_NAME_BYTES: usize = 64;
/// Bytes of a field that carries nothing of the client's: what is wrong with one is told with its value.
const MAX_FIELD_BYTES: usize = 2 << 20;
/// The fields that do.
const CARRYING: [&str; 4] = ["input", "text", "args", "manifest"];
/// Arguments that are read; the host refuses so many.
const MAX_ARGS: usize = 10_001;
/// Bytes of JSON that are read on the threads of the connections.
const LARGE_BYTES: usize = 64 << 10;

/// The first message of a client.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hello {
    pub(crate) protocol: u64,
    pub(crate) user: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) public_key: Option<String>,
}

/// The answer to a challenge.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Proof {
    signature: String,
}

/// A message after the hello.
#[derive(Debug)]
pub(crate) enum Incoming {
    Ack(Ack),
    /// Of an MCP server that the client runs.
    Mcp(McpSaid),
    Request(Request),
}

/// The fields of an object by their names, each the text that the client wrote: a number keeps all its digits. They are
/// few, so that no message costs more than a small multiple of its bytes.
#[derive(Debug, Default)]
pub(crate) struct Fields(BTreeMap<String, Box<RawValue>>);

impl Fields {
    /// Names and texts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.get()))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Fields;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "an object of at most {MAX_FIELDS} fields")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                let mut n_fields = 0;
                while let Some(name) = map.next_key::<String>()? {
                    n_fields += 1;
                    if n_fields > MAX_FIELDS || name.len() > MAX_NAME_BYTES {
                        return Err(A::Error::custom(format!(
                            "it has more than {MAX_FIELDS} fields, or the name of one is longer than {MAX_NAME_BYTES} bytes"
                        )));
                    }
                    fields.0.insert(name, map.next_value()?);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Reading)
    }
}

/// The arguments of a launch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Args(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for Args {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Args;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of strings")
            }

            fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Args, E> {
                Err(E::custom("args is a string; give a list of strings"))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Args, A::Error> {
                let mut args = Vec::new();
                while args.len() < MAX_ARGS {
                    match list.next_element()? {
                        Some(arg) => args.push(arg),
                        None => return Ok(Args(args)),
                    }
                }
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Args(args))
            }
        }
        deserializer.deserialize_any(Reading)
    }
}

/// A request: its fields are read by the type that its handler names.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) kind: String,
    fields: Fields,
    /// What its fields hold, where that is much.
    _charge: Option<Charge>,
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
            .0
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
    /// What its client calls it.
    pub(crate) name: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Install {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) digest: String,
    pub(crate) manifest: Option<String>,
    pub(crate) http: Option<HttpAsked>,
}

/// How a program shall serve HTTP that is installed for that.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpAsked {
    /// One instance answers all requests.
    pub(crate) shared: bool,
    /// Anybody may ask.
    pub(crate) public: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Uninstall {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) user: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listing {
    pub(crate) all_users: Option<bool>,
}

/// What a user has of a model under a name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfModel {
    pub(crate) model: String,
    pub(crate) name: String,
    pub(crate) user: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiscardTopic {
    pub(crate) topic: String,
    pub(crate) user: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfConnection {
    pub(crate) connection: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Launch {
    pub(crate) program: String,
    /// The text as the client wrote it.
    pub(crate) input: Option<Box<RawValue>>,
    pub(crate) args: Option<Args>,
    pub(crate) seed: Option<u64>,
    pub(crate) token_budget: Option<u64>,
    pub(crate) credits: Option<f64>,
    pub(crate) limits: Option<Fields>,
    /// Programs that it can start, by the names that it calls them by.
    pub(crate) programs: Option<Fields>,
    pub(crate) detached: Option<bool>,
    pub(crate) attach: Option<bool>,
    pub(crate) window_bytes: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attach {
    pub(crate) pid: u64,
    pub(crate) window_bytes: Option<usize>,
    /// The number of the last event that the client has.
    pub(crate) after_seq: Option<u64>,
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
pub(crate) struct OfServer {
    pub(crate) name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfLink {
    pub(crate) link: u64,
    pub(crate) text: String,
}

/// What an MCP server has written, or why it has ended.
#[derive(Debug)]
pub(crate) struct McpSaid {
    pub(crate) of: OfLink,
    pub(crate) is_end: bool,
    /// What the text holds, where that is much.
    _charge: Option<Charge>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Processes {
    pub(crate) all: Option<bool>,
    pub(crate) all_users: Option<bool>,
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
/// `protocol-error` when it is none. The version is for the caller to judge: it stands in the answer even where other
/// fields of another version are unknown.
pub(crate) fn hello(text: &str) -> Result<(u64, Result<Hello, Error>), Error> {
    let (kind, fields) = object(text)?;
    if kind != "hello" {
        return Err(violation(format!(
            "the first message is {kind:?}; it has to be a hello"
        )));
    }
    let version = fields
        .0
        .get("protocol")
        .and_then(|version| whole(version))
        .ok_or_else(|| violation("the hello names no protocol version"))?;
    Ok((version, read(&kind, &fields)))
}

/// Reads a text frame, a long one off the threads of the connections.
///
/// # Errors
/// As [`text_message`].
pub(crate) async fn read_text(payload: Payload) -> Result<Incoming, Error> {
    if payload.bytes().len() <= LARGE_BYTES {
        return text_message(payload.text()?);
    }
    blocking(move || {
        let mut payload = payload;
        // The fields are a copy.
        payload.charge_twice()?;
        let mut incoming = text_message(payload.text()?)?;
        match &mut incoming {
            Incoming::Request(request) => request._charge = payload.into_charge(),
            Incoming::Mcp(said) => said._charge = payload.into_charge(),
            Incoming::Ack(_) => {}
        }
        Ok(incoming)
    })
    .await
}

/// Parts a binary frame into its header and its payload.
///
/// # Errors
/// As [`binary_message`].
pub(crate) async fn read_binary(mut payload: Payload) -> Result<(Request, Payload), Error> {
    let n_header = payload
        .bytes()
        .first_chunk::<4>()
        .copied()
        .map_or(0, u32::from_le_bytes);
    let reading = move || {
        let (request, rest) = binary_message(payload.bytes())?;
        let n_bytes = rest.len();
        payload.keep_last(n_bytes);
        Ok((request, payload))
    };
    if n_header as usize <= LARGE_BYTES {
        return reading();
    }
    blocking(reading).await
}

/// Reads the answer to a challenge: the signature.
///
/// # Errors
/// `protocol-error` when it is none.
pub(crate) fn proof(text: &str) -> Result<String, Error> {
    let (kind, fields) = object(text)?;
    if kind != "proof" {
        return Err(violation(format!(
            "a challenge is followed by {kind:?}; it has to be a proof"
        )));
    }
    read::<Proof>(&kind, &fields).map(|proof| proof.signature)
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
    if kind == "mcp_line" || kind == "mcp_end" {
        return Ok(Incoming::Mcp(McpSaid {
            of: read(&kind, &fields)?,
            is_end: kind == "mcp_end",
            _charge: None,
        }));
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
        .0
        .remove("id")
        .and_then(|id| whole(&id))
        .ok_or_else(|| {
            violation(format!(
                "a message of the type {kind:?} has no id; give it a whole number"
            ))
        })?;
    Ok(Request {
        id,
        kind,
        fields,
        _charge: None,
    })
}

/// A JSON object without its `type`.
fn object(text: &str) -> Result<(String, Fields), Error> {
    let mut fields: Fields = serde_json::from_str(text)
        .map_err(|error| violation(format!("a message is not a JSON object: {error}")))?;
    let kind = fields
        .0
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
    for (name, value) in fields.iter() {
        if value.len() > MAX_FIELD_BYTES && !CARRYING.contains(&name) {
            return Err(violation(format!(
                "in a message of the type {kind:?}: the field {name:?} has {} bytes, and {MAX_FIELD_BYTES} are the most",
                value.len()
            )));
        }
    }
    let fields = fields
        .0
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
            (launch.args, launch.attach, launch.limits.is_none()),
            (None, None, true)
        );
        assert!(launch.input.is_none());
    }

    #[test]
    fn what_a_message_holds_is_a_small_multiple_of_its_bytes() {
        let many: String = (0..MAX_FIELDS + 1)
            .map(|n| format!("\"f{n}\":1,"))
            .collect();
        let long = "n".repeat(MAX_NAME_BYTES + 1);
        let huge = "9".repeat(MAX_FIELD_BYTES + 1);
        for (text, part) in [
            (format!("{{{many}\"id\":1}}"), "more than 32 fields"),
            (
                format!("{{\"a\":1,{}\"id\":1}}", "\"a\":1,".repeat(MAX_FIELDS)),
                "more than 32 fields",
            ),
            (format!("{{\"{long}\":1}}"), "longer than 64 bytes"),
            (
                format!(r#"{{"id":1,"type":"launch","program":"x","limits":{{{many}"b":1}}}}"#),
                "more than 32 fields",
            ),
            (
                format!(r#"{{"id":1,"type":"launch","program":"x","seed":"{huge}"}}"#),
                "2097152 are the most",
            ),
            (
                r#"{"id":1,"type":"launch","program":"x","args":"a"}"#.to_owned(),
                "args is a string",
            ),
        ] {
            let message = launch(&text).unwrap_err();
            assert!(
                message.contains(part) && message.len() < 2000,
                "{message:.300}"
            );
        }
        let args = vec!["\"\""; 20_000].join(",");
        let text = format!(r#"{{"id":1,"type":"launch","program":"x","args":[{args}]}}"#);
        assert_eq!(launch(&text).unwrap().args.unwrap().0.len(), MAX_ARGS);
    }

    #[test]
    fn a_message_of_as_many_fields_as_may_be_is_read() {
        let message = |n_fields: usize| {
            let more: String = (1..n_fields).map(|n| format!(",\"f{n}\":1")).collect();
            serde_json::from_str::<Fields>(&format!("{{\"id\":1{more}}}"))
        };
        assert_eq!(message(MAX_FIELDS).unwrap().iter().count(), MAX_FIELDS);
        assert!(message(MAX_FIELDS + 1).is_err());
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
            ("[1]", "not a JSON object"),
            ("{", "not a JSON object"),
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
