//! Frames of the protocol: what travels, and what is not one. `docs/reference/protocol.md` describes each message.

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio_tungstenite::tungstenite::Message;

use crate::error::{Error, Parts};

pub(crate) const PROTOCOL: u64 = 1;

const HEADER_LENGTH_BYTES: usize = 4;
const MAX_HEADER_BYTES: usize = 64 << 10;
const MAX_SHOWN_CHARS: usize = 80;

/// The fields of a message.
pub(crate) type Fields = Map<String, Value>;

/// What one server takes: sizes in bytes, and the number of requests that may be open at once.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ServerLimits {
    pub(crate) frame_bytes: usize,
    pub(crate) message_bytes: u64,
    pub(crate) window_bytes: u64,
    pub(crate) open_requests: usize,
}

/// The first message of a server.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Hello {
    pub(crate) server: String,
    pub(crate) instance: String,
    pub(crate) user: String,
    #[serde(default = "Hello::default_role")]
    pub(crate) role: String,
    pub(crate) limits: ServerLimits,
}

impl Hello {
    fn default_role() -> String {
        "user".to_owned()
    }
}

/// A text frame.
pub(crate) fn encode(fields: &Fields) -> Message {
    // Every text is a valid key, so that writing a map cannot fail.
    Message::text(serde_json::to_string(fields).unwrap_or_default())
}

/// A binary frame: the length of the header (32 bits, little-endian), the header, the payload.
pub(crate) fn encode_binary(header: &Fields, payload: &[u8]) -> Message {
    let text = serde_json::to_string(header).unwrap_or_default();
    // Headers of a client are a few hundred bytes.
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(HEADER_LENGTH_BYTES + text.len() + payload.len());
    frame.extend(length.to_le_bytes());
    frame.extend(text.as_bytes());
    frame.extend(payload);
    Message::binary(frame)
}

/// A message of a server with its payload, which is empty unless it is binary.
///
/// # Errors
/// `protocol-error` for anything else.
pub(crate) fn decode(message: &Message) -> Result<(Fields, Vec<u8>), Error> {
    match message {
        Message::Text(text) => Ok((parse(text.as_str().as_bytes())?, Vec::new())),
        Message::Binary(data) => {
            let header = data.get(..HEADER_LENGTH_BYTES).and_then(|bytes| {
                let length = u32::from_le_bytes(bytes.try_into().ok()?);
                usize::try_from(length)
                    .ok()
                    .filter(|length| *length <= MAX_HEADER_BYTES)
            });
            let end = header.map(|length| HEADER_LENGTH_BYTES + length);
            let Some((end, text)) =
                end.and_then(|end| Some((end, data.get(HEADER_LENGTH_BYTES..end)?)))
            else {
                return Err(Error::protocol(format_args!(
                    "a binary frame of {} bytes without a whole header",
                    data.len()
                )));
            };
            Ok((parse(text)?, data[end..].to_vec()))
        }
        _ => Err(Error::protocol("a frame that is neither text nor bytes")),
    }
}

/// The error that a message carries, if it carries one.
///
/// # Errors
/// `protocol-error` for one of another form.
pub(crate) fn error_of(fields: &Fields) -> Result<Option<Error>, Error> {
    match fields.get("error") {
        None | Some(Value::Null) => Ok(None),
        Some(error) => Parts::deserialize(error)
            .map(|parts| Some(parts.into()))
            .map_err(Error::protocol),
    }
}

/// What an answer says, as a typed value.
///
/// # Errors
/// `protocol-error` for one of another form.
pub(crate) fn read<T: serde::de::DeserializeOwned>(fields: Fields) -> Result<T, Error> {
    serde_json::from_value(Value::Object(fields)).map_err(Error::protocol)
}

/// A field that is a whole number.
///
/// # Errors
/// `protocol-error` where it is not one.
pub(crate) fn number_of(fields: &Fields, name: &str) -> Result<u64, Error> {
    fields
        .get(name)
        .and_then(Value::as_u64)
        .ok_or_else(|| Error::protocol(format_args!("the field {name} is not a whole number")))
}

/// A field that is a text.
///
/// # Errors
/// `protocol-error` where it is not one.
pub(crate) fn text_of<'a>(fields: &'a Fields, name: &str) -> Result<&'a str, Error> {
    fields
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| Error::protocol(format_args!("the field {name} is not a text")))
}

fn parse(text: &[u8]) -> Result<Fields, Error> {
    serde_json::from_slice(text).map_err(|error| {
        let shown: String = String::from_utf8_lossy(text)
            .chars()
            .take(MAX_SHOWN_CHARS)
            .collect();
        Error::protocol(format_args!("{shown:?}: {error}"))
    })
}

/// The fields of an object.
pub(crate) fn fields(value: Value) -> Fields {
    match value {
        Value::Object(fields) => fields,
        _ => Fields::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let Value::Object(header) = json!({"id": 7, "type": "file", "pid": u64::MAX}) else {
            panic!("it is an object");
        };
        assert_eq!(
            decode(&encode(&header)).unwrap(),
            (header.clone(), Vec::new())
        );
        assert_eq!(
            decode(&encode_binary(&header, &[0, 255])).unwrap(),
            (header, vec![0, 255])
        );
    }

    #[test]
    fn what_is_not_a_message_is_refused() {
        for frame in [
            Message::text(""),
            Message::text("hello"),
            Message::text("[]"),
            Message::text("[".repeat(200_000)),
            Message::binary(Vec::new()),
            Message::binary(vec![1, 2]),
            Message::binary(vec![255, 255, 255, 255, b'{', b'}']),
            Message::binary(vec![4, 0, 0, 0, 255, 254, 253, 252]),
            Message::Ping(Vec::new().into()),
        ] {
            assert_eq!(decode(&frame).unwrap_err().code(), "protocol-error");
        }
    }

    #[test]
    fn an_error_has_its_code_and_its_details() {
        let fields = |error: Value| Fields::from_iter([("error".to_owned(), error)]);
        let whole = json!({"code": "limit-queue", "message": "full", "details": {"n": 1}});
        let error = error_of(&fields(whole)).unwrap().unwrap();
        assert_eq!((error.code(), error.message()), ("limit-queue", "full"));
        assert_eq!(error.details()["n"], 1);
        assert_eq!(error_of(&fields(Value::Null)).unwrap(), None);
        assert!(error_of(&fields(json!({"code": 5}))).is_err());
    }
}
