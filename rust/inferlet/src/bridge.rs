//! JSON texts to the entry's types and back.

use std::any::{Any, type_name};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::finite::not_finite;
use crate::{ErrorCode, Result, errors};

/// The launch input as the entry takes it. A `String` gets the text itself.
pub(crate) fn decode<T: DeserializeOwned + 'static>(input: &str) -> Result<T> {
    // Asked of the type, not of its spelling in the source, so that an alias of `String` is one too.
    let slot: &mut Option<T> = &mut None;
    if let Some(slot) = (slot as &mut dyn Any).downcast_mut::<Option<String>>() {
        *slot = Some(launch_text(input));
    }
    if let Some(text) = slot.take() {
        return Ok(text);
    }
    if let Ok(value) = serde_json::from_str(input) {
        return Ok(value);
    }
    // A launch without input is `null`, which an input whose fields all have defaults takes as the empty object.
    let fields = if input.trim() == "null" { "{}" } else { input };
    serde_json::from_str(fields).map_err(|error| {
        let takes = type_name::<T>();
        let shown = excerpt(input);
        errors::text(
            ErrorCode::InvalidInput,
            format_args!(
                "the input {shown} does not fit `{takes}`: {error}; launch with a JSON value of that shape"
            ),
        )
    })
}

/// The answer as compact JSON.
pub(crate) fn encode<T: Serialize>(answer: &T) -> Result<String> {
    let written = serde_json::to_string(answer).map_err(|error| {
        let returned = type_name::<T>();
        errors::text(ErrorCode::InvalidOutput, format_args!("`{returned}` cannot be written as JSON: {error}; return a value whose map keys are strings"))
    })?;
    match not_finite(answer, &written) {
        Some(found) => Err(errors::text(
            ErrorCode::InvalidOutput,
            format_args!("what main returned{found}"),
        )),
        None => Ok(written),
    }
}

/// The text of a JSON string or of an object that wraps one as `{"input": text}`; anything else as it stands.
fn launch_text(input: &str) -> String {
    match serde_json::from_str(input) {
        Ok(Value::String(text)) => text,
        Ok(Value::Object(mut fields)) if fields.len() == 1 => match fields.remove("input") {
            Some(Value::String(text)) => text,
            _ => input.to_owned(),
        },
        _ => input.to_owned(),
    }
}

/// The input as an error message shows it: a long one is cut.
fn excerpt(input: &str) -> String {
    const SHOWN_CHARS: usize = 200;
    match input.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}… ({} bytes)", &input[..end], input.len()),
        None => input.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;
    use crate::error_code;

    #[derive(Debug, Deserialize, PartialEq, Serialize)]
    struct Ask {
        prompt: String,
        #[serde(default)]
        n: Option<u32>,
    }

    #[test]
    fn an_object_becomes_a_struct() {
        let ask: Ask = decode(r#"{"prompt": "x", "n": 3}"#).unwrap();
        assert_eq!(
            ask,
            Ask {
                prompt: "x".into(),
                n: Some(3)
            }
        );
    }

    #[test]
    fn no_input_is_null_or_no_fields() {
        #[derive(Debug, Deserialize, PartialEq)]
        struct Defaults {
            n: Option<u32>,
        }
        assert_eq!(decode::<Defaults>("null"), Ok(Defaults { n: None }));
        assert_eq!(decode::<Option<Defaults>>("null"), Ok(None));
        let error = decode::<Ask>("null").unwrap_err();
        assert!(error.contains("missing field `prompt`"), "{error}");
    }

    #[test]
    fn a_string_entry_gets_the_text_itself() {
        type Question = String;
        for (input, text) in [
            (r#""plain \u00fc""#, "plain ü"),
            (r#"{"input": "wrapped"}"#, "wrapped"),
            (
                r#"{"input": "one", "other": 1}"#,
                r#"{"input": "one", "other": 1}"#,
            ),
            (r#"{"input": 3}"#, r#"{"input": 3}"#),
            ("[1, 2]", "[1, 2]"),
            ("not JSON", "not JSON"),
        ] {
            assert_eq!(decode::<Question>(input).unwrap(), text);
        }
    }

    #[test]
    fn input_that_does_not_fit_names_the_value_and_the_field() {
        let error = decode::<Ask>(r#"{"n": 3}"#).unwrap_err();
        assert_eq!(error_code(&error), Some(ErrorCode::InvalidInput));
        for part in [r#"{"n": 3}"#, "missing field `prompt`", "Ask"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_long_input_is_cut_between_characters() {
        let error = decode::<Ask>(&"ü".repeat(5_000)).unwrap_err();
        assert!(
            error.len() < 1_000 && error.contains("(10000 bytes)"),
            "{error}"
        );
    }

    #[test]
    fn the_answer_is_compact_and_keeps_the_order_of_fields() {
        assert_eq!(
            encode(&Ask {
                prompt: "ü\n".into(),
                n: None
            })
            .unwrap(),
            "{\"prompt\":\"ü\\n\",\"n\":null}"
        );
        assert_eq!(encode(&()).unwrap(), "null");
    }

    #[test]
    fn an_answer_that_is_not_json_is_an_error() {
        let error = encode(&BTreeMap::from([((1, 2), "pair")])).unwrap_err();
        assert_eq!(error_code(&error), Some(ErrorCode::InvalidOutput));
        let error = encode(&BTreeMap::from([("score", f32::NAN)])).unwrap_err();
        assert_eq!(error_code(&error), Some(ErrorCode::InvalidOutput));
        assert!(error.contains("what main returned at score is the number NaN"));
        assert_eq!(encode(&None::<f32>).unwrap(), "null");
    }
}
