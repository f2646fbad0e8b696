//! Errors as texts: `[code] message`.

use serde::Serialize;

use crate::ErrorCode;
use crate::bindings::pie::core::types::Error;
use crate::finite::not_finite;

/// What fallible calls return. The text of an engine error begins with `[code] `, which [`error_code`] reads.
pub type Result<T> = std::result::Result<T, String>;

/// The code at the front of an error text; none where the text begins otherwise or names no code of the list.
///
/// ```
/// use inferlet::{ErrorCode, error_code};
///
/// assert_eq!(error_code("[context-busy] a pass is under way"), Some(ErrorCode::ContextBusy));
/// assert_eq!(error_code("no such file"), None);
/// ```
pub fn error_code(text: &str) -> Option<ErrorCode> {
    split(text).map(|(code, _)| code)
}

/// The code at the front of an error text and the message behind it.
pub(crate) fn split(text: &str) -> Option<(ErrorCode, &str)> {
    let (name, message) = text.strip_prefix('[')?.split_once("] ")?;
    Some((ErrorCode::from_name(name)?, message))
}

/// An error text of this crate's own.
pub(crate) fn text(code: ErrorCode, message: impl std::fmt::Display) -> String {
    format!("[{code}] {message}")
}

/// A value that a program gives, as JSON text; `what` it is stands in the error.
///
/// # Errors
/// `invalid-argument` for a value that JSON cannot hold.
pub(crate) fn to_json(what: &str, value: &impl Serialize) -> Result<String> {
    let written = serde_json::to_string(value).map_err(|error| {
        let message =
            format!("{what} cannot be JSON: {error}; give a value whose map keys are strings");
        text(ErrorCode::InvalidArgument, message)
    })?;
    if nests_too_deep(&written) {
        let message = format!("{what} is nested more than {MAX_DEPTH} deep; give it flatter");
        return Err(text(ErrorCode::InvalidArgument, message));
    }
    match not_finite(value, &written) {
        Some(found) => Err(text(
            ErrorCode::InvalidArgument,
            format_args!("{what}{found}"),
        )),
        None => Ok(written),
    }
}

/// Levels of lists and objects around a value, as the engine and clients of every language hold them.
const MAX_DEPTH: usize = 500;

/// Whether a compact JSON text nests deeper.
fn nests_too_deep(text: &str) -> bool {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' if in_string => in_string = false,
            _ if in_string || byte.is_ascii_whitespace() => {}
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ if depth > MAX_DEPTH => return true,
            b'[' | b'{' => depth += 1,
            b'"' => in_string = true,
            _ => {}
        }
    }
    false
}

impl From<Error> for String {
    fn from(error: Error) -> Self {
        format!("[{}] {}", error.code, error.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_read_back_from_its_text() {
        for &code in ErrorCode::ALL {
            assert_eq!(
                split(&text(code, "what and why")),
                Some((code, "what and why"))
            );
        }
    }

    #[test]
    fn a_text_without_a_known_code_has_none() {
        for plain in [
            "",
            "[",
            "[]",
            "[no-such-code] text",
            "[deadlock]",
            "[deadlock]text",
            "deadlock] text",
            " [deadlock] text",
        ] {
            assert_eq!(error_code(plain), None, "{plain:?}");
        }
    }

    #[test]
    fn a_value_that_json_cannot_hold_is_named() {
        use std::collections::BTreeMap;

        assert_eq!(to_json("it", &[1, 2]).as_deref(), Ok("[1,2]"));
        let error = to_json("the body", &BTreeMap::from([([1], 2)])).unwrap_err();
        assert!(error.starts_with("[invalid-argument] the body cannot be JSON:"));
        let nested =
            (0..=MAX_DEPTH).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
        assert!(to_json("the body", &nested[0]).is_ok());
        let error = to_json("the body", &nested).unwrap_err();
        assert!(error.contains("nested more than 500 deep"), "{error}");
        let error = to_json("the body", &BTreeMap::from([("a", f64::NAN)])).unwrap_err();
        assert!(error.starts_with("[invalid-argument] the body at a is the number NaN;"));
    }

    #[test]
    fn an_engine_error_shows_its_code_first() {
        let error = Error {
            code: "empty-context".into(),
            message: "nothing to generate from".into(),
            details: "{}".into(),
        };
        assert_eq!(
            String::from(error),
            "[empty-context] nothing to generate from"
        );
    }
}
