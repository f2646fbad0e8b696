//! What goes wrong: a code of the one list, a message for people, and the values behind it.

mod codes;

pub use codes::ErrorCode;

/// A mistake or a failure. The message names the value, the limit and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("[{code}] {message}")]
pub struct Error {
    /// The stable name of what went wrong.
    pub code: ErrorCode,
    /// For people.
    pub message: String,
    /// A JSON object with the values behind the message; `{}` when there are none.
    pub details: String,
}

/// What fallible calls of the core answer.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: "{}".to_owned(),
        }
    }

    /// An error with the whole numbers behind its message. Names are plain identifiers, so nothing needs to be escaped:
    /// texts stand in the message alone.
    pub fn with_values(
        code: ErrorCode,
        message: impl Into<String>,
        values: &[(&str, u64)],
    ) -> Self {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let are_plain = values.iter().all(|(name, _)| name.bytes().all(is_plain));
        debug_assert!(are_plain, "a name is escaped nowhere: {values:?}");
        let fields: Vec<String> = values
            .iter()
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect();
        Self {
            code,
            message: message.into(),
            details: format!("{{{}}}", fields.join(",")),
        }
    }

    /// A fault of the engine itself.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        Self::new(
            ErrorCode::Internal,
            format!("{message}; this is a fault of the engine, please report it"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_a_json_object() {
        let error = Error::with_values(ErrorCode::OutOfPages, "no", &[("needed", 3), ("limit", 2)]);
        let details: serde_json::Value = serde_json::from_str(&error.details).unwrap();
        assert_eq!(details, serde_json::json!({"needed": 3, "limit": 2}));
        assert_eq!(error.to_string(), "[out-of-pages] no");
        assert_eq!(Error::new(ErrorCode::Internal, "x").details, "{}");
    }

    #[test]
    fn every_code_is_found_by_its_name() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_name(code.as_str()), Some(*code));
        }
        assert_eq!(ErrorCode::from_name("no-such-code"), None);
    }
}
