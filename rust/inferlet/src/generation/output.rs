//! What a step gives.

use std::fmt;

use serde::Serialize;

use crate::bindings::pie::core::generation as raw;

/// What one step accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    /// Accepted tokens, a stop token included as the last.
    pub tokens: Vec<u32>,
    /// Set when this step ended the generation.
    pub finish: Option<FinishReason>,
}

impl From<raw::Output> for Output {
    fn from(output: raw::Output) -> Self {
        Self {
            tokens: output.tokens,
            finish: output.finish.map(Into::into),
        }
    }
}

/// Why a generation ended. As JSON and as text it is its name in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FinishReason {
    /// A stop token was accepted.
    Stop,
    /// The cap or the length of the model's context was reached.
    Length,
    /// A constraint ended the generation.
    Constraint,
    /// The generator was retired: by a newer one, a truncation, or the end of its context.
    Closed,
}

impl FinishReason {
    /// Its name in lower case, as in the other languages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Constraint => "constraint",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for FinishReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl From<raw::FinishReason> for FinishReason {
    fn from(reason: raw::FinishReason) -> Self {
        match reason {
            raw::FinishReason::Stop => Self::Stop,
            raw::FinishReason::Length => Self::Length,
            raw::FinishReason::Constraint => Self::Constraint,
            raw::FinishReason::Closed => Self::Closed,
        }
    }
}

impl From<FinishReason> for raw::FinishReason {
    fn from(reason: FinishReason) -> Self {
        match reason {
            FinishReason::Stop => Self::Stop,
            FinishReason::Length => Self::Length,
            FinishReason::Constraint => Self::Constraint,
            FinishReason::Closed => Self::Closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_one_name_as_text_and_as_json() {
        for reason in [
            FinishReason::Stop,
            FinishReason::Length,
            FinishReason::Constraint,
            FinishReason::Closed,
        ] {
            assert_eq!(
                serde_json::to_value(reason).unwrap(),
                serde_json::Value::from(reason.to_string())
            );
        }
    }
}
