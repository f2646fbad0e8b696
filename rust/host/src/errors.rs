//! Errors that several layers give.

use pie_core::ErrorCode;

use crate::Error;

/// The error of what the end of the engine overtakes.
pub(crate) fn stopped() -> Error {
    Error::new(
        ErrorCode::EngineStopped,
        "the engine is stopping; start it again",
    )
}

/// An error of the text side as one of the host.
pub(crate) fn text_error(error: pie_text::Error) -> Error {
    let code = ErrorCode::from_name(error.code()).unwrap_or(ErrorCode::Internal);
    Error::new(code, error.to_string())
}
