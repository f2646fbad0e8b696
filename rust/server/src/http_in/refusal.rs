//! What clients get in the place of an answer: a status, and the error as JSON.

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use pie_host::{Error, ErrorCode};
use serde_json::{Value, json};

use super::bodies::Outgoing;
use crate::protocol::outgoing;

/// When to come back, where nothing says it better.
const RETRY_AFTER_S: u64 = 1;

/// The status of an error.
fn status(code: ErrorCode) -> StatusCode {
    use ErrorCode as Code;
    match code {
        Code::InvalidArgument | Code::InvalidName | Code::ProtocolError => StatusCode::BAD_REQUEST,
        Code::AuthenticationRequired | Code::AuthenticationFailed => StatusCode::UNAUTHORIZED,
        Code::NotPermitted | Code::ForbiddenOrigin | Code::UntrustedHeader => StatusCode::FORBIDDEN,
        Code::UnknownProgram | Code::NotServing => StatusCode::NOT_FOUND,
        Code::LimitHttpBytes => StatusCode::PAYLOAD_TOO_LARGE,
        Code::LimitAttempts => StatusCode::TOO_MANY_REQUESTS,
        Code::LimitHttpHeaders => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        Code::WebsocketUnsupported => StatusCode::NOT_IMPLEMENTED,
        Code::LimitHttpRequests
        | Code::LimitConnections
        | Code::LimitProcesses
        | Code::LimitEngineMemory
        | Code::LimitQueue
        | Code::ServerDraining
        | Code::EngineStopped => StatusCode::SERVICE_UNAVAILABLE,
        Code::LimitHttpTime => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The answer to a request that failed.
pub(super) fn response(error: &Error) -> Response<Outgoing> {
    of_status(status(error.code), error)
}

/// The same to a request that is not as HTTP has it, or whose body did not come in time or is too long: the connection
/// ends with it, and what is left is not read.
pub(super) fn closing(error: &Error) -> Response<Outgoing> {
    let status = match error.code {
        ErrorCode::LimitHttpTime => StatusCode::REQUEST_TIMEOUT,
        code => status(code),
    };
    let mut response = of_status(status, error);
    let close = HeaderValue::from_static("close");
    response
        .headers_mut()
        .insert(http::header::CONNECTION, close);
    response
}

/// The same, as it is written to a connection of which no request is read.
pub(super) fn unread(error: &Error) -> Vec<u8> {
    let (status, body) = (status(error.code), body(error));
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nCache-Control: no-store\r\nRetry-After: {}\r\nConnection: close\r\n\r\n{body}",
        body.len(),
        retry_after(error)
    )
    .into_bytes()
}

/// The error as JSON.
fn body(error: &Error) -> String {
    json!({ "error": outgoing::error_object(error) }).to_string() + "\n"
}

fn of_status(status: StatusCode, error: &Error) -> Response<Outgoing> {
    tracing::debug!(
        status = status.as_u16(),
        code = error.code.as_str(),
        "refused an HTTP request"
    );
    let body = Full::new(Bytes::from(body(error))).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let mut say = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    say(CONTENT_TYPE, "application/json");
    say(CACHE_CONTROL, "no-store");
    match status {
        StatusCode::UNAUTHORIZED => say(WWW_AUTHENTICATE, "Bearer"),
        StatusCode::METHOD_NOT_ALLOWED => {
            say(ALLOW, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
        }
        _ => {}
    }
    if matches!(
        status,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
    ) {
        headers.insert(RETRY_AFTER, retry_after(error).into());
    }
    response
}

/// The answer to a method that no program is asked by.
pub(super) fn method_refused(method: &http::Method) -> Response<Outgoing> {
    let message = format!("programs are not asked by {method}; use GET, POST or another method");
    let error = Error::new(ErrorCode::InvalidArgument, message);
    of_status(StatusCode::METHOD_NOT_ALLOWED, &error)
}

/// Seconds after which to come back.
fn retry_after(error: &Error) -> u64 {
    let details: Value = serde_json::from_str(&error.details).unwrap_or_default();
    let wait_ms = details["retry_after_ms"].as_u64();
    wait_ms.map_or(RETRY_AFTER_S, |wait_ms| wait_ms.div_ceil(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_error_is_a_status_with_its_code() {
        for (code, status, retry) in [
            (ErrorCode::UnknownProgram, 404, None),
            (ErrorCode::LimitHttpHeaders, 431, None),
            (ErrorCode::LimitHttpBytes, 413, None),
            (ErrorCode::LimitHttpRequests, 503, Some("1")),
            (ErrorCode::LimitHttpTime, 504, None),
            (ErrorCode::WebsocketUnsupported, 501, None),
            (ErrorCode::HttpNoAnswer, 500, None),
        ] {
            let response = response(&Error::new(code, "what to do"));
            assert_eq!(response.status().as_u16(), status);
            let said = response.headers().get(RETRY_AFTER);
            assert_eq!(said.map(|said| said.to_str().unwrap()), retry);
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let read: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(read["error"]["code"], code.as_str());
        }
        let error = Error::with_values(ErrorCode::LimitAttempts, "", &[("retry_after_ms", 2500)]);
        assert_eq!(response(&error).headers()[RETRY_AFTER], "3");
        let unread = String::from_utf8(unread(&Error::new(ErrorCode::LimitConnections, "later")));
        let unread = unread.unwrap();
        let (head, body) = unread.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())));
        assert!(body.contains("\"limit-connections\""), "{body}");
        let slow = closing(&Error::new(ErrorCode::LimitHttpTime, ""));
        assert_eq!(slow.status(), 408);
    }
}
