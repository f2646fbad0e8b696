//! The error of the client.

use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error_codes::ErrorCode;

/// A mistake or a failure with a stable code, the same in every client: `connection-failed`, `unknown-program`,
/// `limit-cpu` and so on. The message names the value, the limit and the remedy.
#[derive(Clone, PartialEq)]
pub struct Error(Box<Parts>);

/// What an error says, and as it travels.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(crate) struct Parts {
    code: String,
    message: String,
    #[serde(default)]
    details: Map<String, Value>,
}

impl Error {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::coded(code.as_str(), message)
    }

    /// With a code that a server gave.
    pub(crate) fn coded(code: &str, message: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            code: code.to_owned(),
            message: message.into(),
            details: Map::new(),
        }))
    }

    /// An argument that cannot be what it is.
    pub(crate) fn argument(name: &str, message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArgument, message).with("argument", name)
    }

    /// A server that sent what is not a message.
    pub(crate) fn protocol(what: impl fmt::Display) -> Self {
        let message = format!(
            "the server sent what is not a message of protocol 1: {what}; check that the address is that of `pie serve`"
        );
        Self::new(ErrorCode::ProtocolError, message)
    }

    /// The same, with one more of the values behind it.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.details.insert(name.to_owned(), value.into());
        self
    }

    /// The code, of `docs/reference/errors.md`.
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// The code, where this client knows it: a server of a later version may have others.
    pub fn error_code(&self) -> Option<ErrorCode> {
        ErrorCode::from_name(self.code())
    }

    /// For people: names the value, the limit and the remedy.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The values behind the message.
    pub fn details(&self) -> &Map<String, Value> {
        &self.0.details
    }
}

impl From<Parts> for Error {
    fn from(parts: Parts) -> Self {
        Self(Box::new(parts))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[{}] {}", self.0.code, self.0.message)
    }
}

// What a `main` that returns an error prints is this: it has to be in words.
impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_main_prints_of_an_error_is_its_code_and_message() {
        let error = Error::new(ErrorCode::UnknownProgram, "there is no program");
        assert_eq!(
            format!("{error:?}"),
            "[unknown-program] there is no program"
        );
        assert_eq!(format!("{error}"), format!("{error:?}"));
    }
}
