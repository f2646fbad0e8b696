//! What a process tells its client.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Error;
use crate::error_codes::ErrorCode;

/// What a text that was sent is.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// A text, verbatim.
    Text,
    /// The JSON of a value.
    Json,
}

/// One event of a process. Each has its number, counted from 1 in each process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// What the program sent or printed, verbatim.
    Stdout {
        /// The text.
        text: String,
        /// What `session.send` was given, as one event. None for what was printed, where the end of one event and the
        /// beginning of the next says nothing.
        form: Option<Form>,
        /// Its number.
        seq: u64,
    },
    /// What the program wrote to its standard error, verbatim.
    Stderr {
        /// The text.
        text: String,
        /// Its number.
        seq: u64,
    },
    /// What the program tells its client beside its output, by `session.message`.
    Message {
        /// The text.
        text: String,
        /// Its number.
        seq: u64,
    },
    /// What the engine itself says about the process, as that output was dropped while nobody read it.
    Notice {
        /// The text.
        text: String,
        /// Its number.
        seq: u64,
    },
    /// A file that the program sent.
    File {
        /// Its bytes.
        data: Vec<u8>,
        /// Its number.
        seq: u64,
    },
    /// The last event of a program that ended well.
    Return(Returned),
    /// The last event of a program that failed or was ended.
    Error(Failure),
}

/// What a program returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The JSON text, as the program returned it.
    pub text: String,
    /// The number of the event.
    pub seq: u64,
}

impl Returned {
    /// The value.
    ///
    /// # Errors
    /// `invalid-argument` where `T` cannot hold it.
    pub fn value<T: DeserializeOwned>(&self) -> Result<T, Error> {
        value_of(&self.text, "returned")
    }
}

/// Why a program ended without a return value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The code: `program-error` for an error of the program's own.
    pub code: String,
    /// For people.
    pub message: String,
    /// The type of the error in the language of the program; the code where the engine ended the program.
    pub kind: Option<String>,
    /// The program's own files and lines; empty where there are none.
    pub traceback: String,
    /// The number of the event.
    pub seq: u64,
}

/// How a process ended: one of the two events after which none comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ended well.
    Return(Returned),
    /// It failed, or was ended.
    Error(Failure),
}

impl Event {
    /// The number of the event, counted from 1 in its process.
    pub fn seq(&self) -> u64 {
        match self {
            Self::Stdout { seq, .. }
            | Self::Stderr { seq, .. }
            | Self::Message { seq, .. }
            | Self::Notice { seq, .. }
            | Self::File { seq, .. } => *seq,
            Self::Return(returned) => returned.seq,
            Self::Error(failure) => failure.seq,
        }
    }

    /// The value that the program sent, of a `Stdout` with a form: what its JSON holds, or the text. Of a `Return` the
    /// value that the program returned.
    ///
    /// # Errors
    /// `invalid-argument` for another event, as what was printed, and for a value that `T` cannot hold.
    pub fn value<T: DeserializeOwned>(&self) -> Result<T, Error> {
        match self {
            Self::Stdout {
                text,
                form: Some(Form::Json),
                ..
            } => value_of(text, "sent"),
            Self::Stdout {
                text,
                form: Some(Form::Text),
                ..
            } => serde_json::from_value(Value::String(text.clone()))
                .map_err(|error| not_held("sent", &error)),
            Self::Return(returned) => returned.value(),
            _ => Err(Error::new(
                ErrorCode::InvalidArgument,
                "the event holds no value; ask the events of what was sent, which have a form, and the return",
            )),
        }
    }

    /// The end of the process, where this is it.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Return(returned) => Some(Outcome::Return(returned.clone())),
            Self::Error(failure) => Some(Outcome::Error(failure.clone())),
            _ => None,
        }
    }

    /// What it counts towards the window of its process: bytes of what it carries.
    pub(crate) fn payload_bytes(&self) -> usize {
        match self {
            Self::Stdout { text, .. }
            | Self::Stderr { text, .. }
            | Self::Message { text, .. }
            | Self::Notice { text, .. } => text.len(),
            Self::File { data, .. } => data.len(),
            Self::Return(returned) => returned.text.len(),
            Self::Error(failure) => failure.message.len() + failure.traceback.len(),
        }
    }
}

impl Outcome {
    /// What the program returned; an error of the program is an error with its code, whose `details` have its parts:
    /// `kind`, `message`, `traceback` and the `pid`.
    pub(crate) fn into_result(self, pid: u64) -> Result<Returned, Error> {
        match self {
            Self::Return(returned) => Ok(returned),
            Self::Error(failure) => Err(Error::coded(&failure.code, described(&failure))
                .with("kind", failure.kind)
                .with("message", failure.message)
                .with("traceback", failure.traceback)
                .with("pid", pid)),
        }
    }
}

/// The message of a failed program, behind the type of an exception of its own.
fn described(failure: &Failure) -> String {
    match failure.kind.as_deref() {
        Some(kind)
            if failure.code == "program-error" && !kind.is_empty() && kind != failure.code =>
        {
            if failure.message.is_empty() {
                kind.to_owned()
            } else {
                format!("{kind}: {}", failure.message)
            }
        }
        _ => failure.message.clone(),
    }
}

fn value_of<T: DeserializeOwned>(text: &str, how: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| not_held(how, &error))
}

fn not_held(how: &str, error: &serde_json::Error) -> Error {
    let message = format!(
        "the value that the program {how} cannot be held by the type that was asked for ({error}); read the text of the event"
    );
    Error::new(ErrorCode::InvalidArgument, message)
}

/// The fields of an event as it travels.
#[derive(Deserialize)]
struct Fields {
    #[serde(default)]
    seq: u64,
    kind: String,
    text: Option<String>,
    form: Option<Form>,
    value: Option<String>,
    code: Option<String>,
    message: Option<String>,
    error_kind: Option<String>,
    traceback: Option<String>,
}

/// The event in a message of a server.
///
/// # Errors
/// `protocol-error` for what is not one.
pub(crate) fn event_of(fields: Value, payload: Vec<u8>) -> Result<Event, Error> {
    let Fields {
        seq,
        kind,
        text,
        form,
        value,
        code,
        message,
        error_kind,
        traceback,
    } = serde_json::from_value(fields).map_err(Error::protocol)?;
    let text = || text.ok_or_else(|| Error::protocol("an event without a text"));
    Ok(match kind.as_str() {
        "stdout" => Event::Stdout {
            text: text()?,
            form,
            seq,
        },
        "stderr" => Event::Stderr { text: text()?, seq },
        "message" => Event::Message { text: text()?, seq },
        "notice" => Event::Notice { text: text()?, seq },
        "file" => Event::File { data: payload, seq },
        "return" => Event::Return(Returned {
            text: value.ok_or_else(|| Error::protocol("a return without a value"))?,
            seq,
        }),
        "error" => Event::Error(Failure {
            code: code.unwrap_or_else(|| "program-error".to_owned()),
            message: message.unwrap_or_default(),
            kind: error_kind,
            traceback: traceback.unwrap_or_default(),
            seq,
        }),
        other => {
            return Err(Error::protocol(format_args!(
                "an event of the unknown kind {other:?}"
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_read_and_others_are_refused() {
        let read = |fields: Value| event_of(fields, vec![1]);
        let sent = read(json!({"seq": 3, "kind": "stdout", "text": "{\"n\":1}", "form": "json"}));
        let sent = sent.unwrap();
        assert_eq!(sent.seq(), 3);
        assert_eq!(sent.value::<Value>().unwrap(), json!({"n": 1}));
        let text = read(json!({"seq": 4, "kind": "stdout", "text": "1", "form": "text"})).unwrap();
        assert_eq!(text.value::<String>().unwrap(), "1");
        assert_eq!(text.value::<u64>().unwrap_err().code(), "invalid-argument");
        let printed = read(json!({"seq": 4, "kind": "stdout", "text": "x"})).unwrap();
        assert_eq!(
            printed.value::<Value>().unwrap_err().code(),
            "invalid-argument"
        );
        assert_eq!(
            read(json!({"seq": 5, "kind": "file"})).unwrap(),
            Event::File {
                data: vec![1],
                seq: 5
            }
        );
        for fields in [
            json!({"seq": 1, "kind": "riddle"}),
            json!({"seq": 1, "kind": "stdout"}),
            json!({"seq": "one", "kind": "stdout", "text": "x"}),
            json!({"seq": 1, "kind": "stdout", "text": "x", "form": "riddle"}),
            json!({"seq": 1, "kind": "return"}),
        ] {
            assert_eq!(
                read(fields.clone()).unwrap_err().code(),
                "protocol-error",
                "{fields}"
            );
        }
    }

    #[test]
    fn a_failure_says_its_kind_once() {
        let failed = |code: &str, kind: Option<&str>, message: &str| {
            let failure = Failure {
                code: code.to_owned(),
                message: message.to_owned(),
                kind: kind.map(str::to_owned),
                traceback: String::new(),
                seq: 1,
            };
            Outcome::Error(failure).into_result(7).unwrap_err()
        };
        assert_eq!(
            failed("program-error", Some("KeyError"), "'x'").message(),
            "KeyError: 'x'"
        );
        assert_eq!(
            failed("program-error", Some("KeyError"), "").message(),
            "KeyError"
        );
        assert_eq!(
            failed("limit-cpu", Some("limit-cpu"), "60 s").message(),
            "60 s"
        );
        assert_eq!(failed("program-error", None, "m").details()["pid"], 7);
    }
}
