//! How a program fails.

use rquickjs::{Ctx, Error, Value};

use crate::bindings::exports::pie::inferlet::run::Failure;
use crate::errors::{self, EngineError};

/// Why a program cannot go on.
pub(crate) enum Fault<'js> {
    /// What the program threw.
    Thrown(Value<'js>),
    /// An error of QuickJS; an exception is still to be caught.
    Internal(Error),
}

impl From<Error> for Fault<'_> {
    fn from(error: Error) -> Self {
        Self::Internal(error)
    }
}

/// An error with one of the engine's codes, as if the program had met it.
pub(crate) fn raise<'js>(ctx: &Ctx<'js>, code: &str, message: String) -> Fault<'js> {
    errors::to_js(ctx, &engine_error(code, message)).map_or_else(Fault::Internal, Fault::Thrown)
}

/// An error of the engine without details.
pub(crate) fn engine_error(code: &str, message: String) -> EngineError {
    EngineError {
        code: code.to_owned(),
        message,
        details: "{}".to_owned(),
    }
}

/// A fault of the runtime itself, met where no JavaScript can run.
pub(crate) fn internal(error: impl std::fmt::Display) -> Failure {
    Failure {
        kind: "InternalError".to_owned(),
        message: format!("the JavaScript runtime failed: {error}"),
        code: Some("internal".to_owned()),
        traceback: String::new(),
    }
}

/// The record of a failure that no JavaScript could describe: what was thrown resists, or there is no memory left.
pub(crate) fn indescribable(thrown: &Value<'_>) -> Failure {
    if is_out_of_memory() {
        return out_of_memory();
    }
    let reason = thrown
        .as_exception()
        .and_then(rquickjs::Exception::message)
        .unwrap_or_default();
    Failure {
        kind: "Error".to_owned(),
        message: format!("the program threw something that cannot be shown ({reason})"),
        code: None,
        traceback: String::new(),
    }
}

/// The record of a program that used up its memory.
pub(crate) fn out_of_memory() -> Failure {
    Failure {
        kind: "InternalError".to_owned(),
        message: "out of memory".to_owned(),
        code: Some("limit-memory".to_owned()),
        traceback: String::new(),
    }
}

/// Whether the engine refuses even one more page of memory. Memory never shrinks, so that this stays true once it was.
pub(crate) fn is_out_of_memory() -> bool {
    core::arch::wasm32::memory_grow::<0>(1) == usize::MAX
}
