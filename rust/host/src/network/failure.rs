//! What goes wrong with a request, as errors of programs.

use std::error::Error as _;
use std::fmt;
use std::io;

use pie_core::ErrorCode;
use wasmtime_wasi_http::Error as WasiError;

use crate::Error;

/// An error on its way through hyper, which knows no others than those of `std`.
#[derive(Debug)]
pub(crate) struct Fault(pub(crate) Error);

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.message)
    }
}

impl std::error::Error for Fault {}

/// The error of a server that cannot be reached.
pub(crate) fn unreachable(at: &str, why: impl fmt::Display) -> Error {
    let message = format!("{at} cannot be reached: {why}; check the address and the server");
    Error::new(ErrorCode::NetUnreachable, message)
}

/// The error of a server that does not keep to HTTP.
pub(crate) fn protocol(at: &str, why: impl fmt::Display) -> Error {
    let message =
        format!("{at} did not answer as HTTP has it: {why}; ask again, or mend the server");
    Error::new(ErrorCode::HttpProtocol, message)
}

/// The error of a head that is longer than it may be.
pub(crate) fn head_too_long(what: &str, most: usize) -> Error {
    let message = format!(
        "{what} has more than limits.http_header_bytes = {most} bytes; send fewer headers, or raise the limit"
    );
    Error::new(ErrorCode::LimitHttpHeaders, message)
}

/// What hyper says about a request to `at`, whose head may have `header_bytes`.
pub(crate) fn of_hyper(at: &str, error: &hyper::Error, header_bytes: usize) -> Error {
    let own = error
        .source()
        .and_then(|source| source.downcast_ref::<Fault>());
    if let Some(Fault(error)) = own {
        return error.clone();
    }
    if error.is_parse_too_large() {
        return head_too_long(&format!("the head of the answer of {at}"), header_bytes);
    }
    let why = match error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>())
    {
        _ if error.is_incomplete_message() => {
            "it closed the connection before its answer was complete".to_owned()
        }
        Some(why) => format!("the connection broke off: {why}"),
        None => error.to_string(),
    };
    protocol(at, why)
}

/// An error as `wasi:http` has it. What it has no name for is told by `pie:core/http` beside.
pub(crate) fn for_wasi(error: &Error) -> WasiError {
    match error.code {
        ErrorCode::NetDenied => WasiError::HttpRequestDenied,
        ErrorCode::NetUnreachable => WasiError::DestinationUnavailable,
        ErrorCode::HttpProtocol => WasiError::HttpProtocolError,
        ErrorCode::LimitHttpRequests => WasiError::ConnectionLimitReached,
        ErrorCode::LimitHttpHeaders => WasiError::HttpResponseHeaderSectionSize(None),
        ErrorCode::LimitHttpTime => WasiError::ConnectionTimeout,
        ErrorCode::LimitHttpBytes => WasiError::HttpResponseBodySize(None),
        ErrorCode::InvalidArgument => WasiError::HttpRequestUriInvalid,
        _ => WasiError::InternalError(Some(error.to_string())),
    }
}
