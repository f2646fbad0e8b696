//! What a program asks for, checked.

use std::time::Duration;

use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, Method};
use pie_core::ErrorCode;

use super::redirect::Redirects;
use super::target::Target;
use crate::Error;

/// Characters of a name or a value that a message shows.
const SHOWN_CHARS: usize = 80;
/// Methods that are written in capitals, however a program writes them.
const USUAL: [&str; 7] = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];
/// Methods that do more than ask for something.
const REFUSED: [&str; 3] = ["CONNECT", "TRACE", "TRACK"];
/// Headers that say how a request is sent, which the engine alone knows. A program's own are left out.
const OF_ENGINE: [HeaderName; 7] = [
    CONNECTION,
    HOST,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];
const OF_ENGINE_TOO: [&str; 3] = ["keep-alive", "proxy-connection", "http2-settings"];

/// The body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    None,
    Whole,
    Streamed,
}

/// How long the parts of a request may take, by the program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timeouts {
    pub(crate) connect: Option<Duration>,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) idle: Option<Duration>,
    pub(crate) whole: Option<Duration>,
}

/// What a program asks for.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) target: Target,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) redirects: Redirects,
    pub(crate) timeouts: Timeouts,
}

/// The method of that name.
///
/// # Errors
/// `invalid-argument`.
pub(crate) fn method(name: &str) -> Result<Method, Error> {
    let upper = name.to_ascii_uppercase();
    if REFUSED.contains(&&*upper) {
        return Err(invalid(
            "method",
            name,
            "programs cannot use it; give GET, POST or another one",
        ));
    }
    let name = match USUAL.contains(&&*upper) {
        true => upper.as_str(),
        false => name,
    };
    let is_short = name.len() <= SHOWN_CHARS;
    let method = Method::from_bytes(name.as_bytes())
        .ok()
        .filter(|_| is_short);
    method.ok_or_else(|| {
        invalid(
            "method",
            name,
            "it is not a method of HTTP; give GET, POST or another one",
        )
    })
}

/// The headers of a request. A value has a byte for each character, up to U+00FF.
///
/// # Errors
/// `invalid-argument`.
pub(crate) fn headers(
    given: impl IntoIterator<Item = (String, String)>,
    body: BodyKind,
) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    for (name, text) in given {
        let parsed = HeaderName::try_from(&*name)
            .map_err(|_| invalid("header", &name, "it is not the name of a header"))?;
        let value = bytes(&text).and_then(|bytes| HeaderValue::from_bytes(&bytes).ok());
        let value = value.ok_or_else(|| {
            let why = "it holds a line break, another control character, or one beyond U+00FF";
            invalid(&format!("value of the header {parsed}"), &text, why)
        })?;
        // Only of a body that comes in parts the program knows what the engine does not.
        let is_own = OF_ENGINE.contains(&parsed)
            || OF_ENGINE_TOO.contains(&parsed.as_str())
            || (parsed == CONTENT_LENGTH && body != BodyKind::Streamed);
        if is_own {
            continue;
        }
        if parsed == CONTENT_LENGTH {
            let is_number =
                text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u64>().is_ok();
            if !is_number || headers.contains_key(CONTENT_LENGTH) {
                return Err(invalid(
                    "header content-length",
                    &text,
                    "it is one number of bytes",
                ));
            }
        }
        headers.try_append(parsed, value).map_err(|_| {
            let message = "the request has too many headers; send fewer";
            Error::new(ErrorCode::LimitHttpHeaders, message)
        })?;
    }
    Ok(headers)
}

/// A value of a header as programs have it.
pub(crate) fn text(value: &HeaderValue) -> String {
    value
        .as_bytes()
        .iter()
        .map(|byte| char::from(*byte))
        .collect()
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let trimmed = text.trim_matches([' ', '\t', '\r', '\n']);
    trimmed
        .chars()
        .map(|one| u8::try_from(u32::from(one)).ok())
        .collect()
}

fn invalid(what: &str, value: &str, why: &str) -> Error {
    let shown: String = value.chars().take(SHOWN_CHARS).collect();
    Error::new(
        ErrorCode::InvalidArgument,
        format!("the {what} {shown:?} is refused: {why}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_those_that_ask() {
        for (name, is) in [
            ("get", "GET"),
            ("Post", "POST"),
            ("patch", "PATCH"),
            ("propfind", "propfind"),
        ] {
            assert_eq!(method(name).unwrap().as_str(), is);
        }
        for name in [
            "",
            "CONNECT",
            "trace",
            "Track",
            "GE T",
            "GET\r\nX: y",
            "\u{e9}",
            &"A".repeat(1000),
        ] {
            assert_eq!(
                method(name).unwrap_err().code,
                ErrorCode::InvalidArgument,
                "{name:?}"
            );
        }
    }

    fn read(name: &str, value: &str, body: BodyKind) -> Result<HeaderMap, Error> {
        headers([(name.to_owned(), value.to_owned())], body)
    }

    #[test]
    fn headers_say_nothing_of_how_a_request_is_sent() {
        for name in [
            "Host",
            "connection",
            "Transfer-Encoding",
            "TE",
            "upgrade",
            "Keep-Alive",
            "Content-Length",
        ] {
            assert!(
                read(name, "1", BodyKind::Whole).unwrap().is_empty(),
                "{name}"
            );
        }
        assert_eq!(
            read("X-A", " \u{e4} ", BodyKind::None).unwrap()["x-a"].as_bytes(),
            b"\xe4"
        );
        assert_eq!(text(&HeaderValue::from_bytes(b"\xe4").unwrap()), "\u{e4}");
        assert_eq!(
            read("content-length", "12", BodyKind::Streamed).unwrap()["content-length"],
            "12"
        );
        for (name, value) in [
            ("", "x"),
            ("a b", "x"),
            ("a:", "x"),
            ("a\r\nb", "x"),
            ("a", "x\r\ny: z"),
            ("a", "x\0"),
            ("a", "\u{100}"),
            ("content-length", "+1"),
            ("content-length", ""),
            ("content-length", "1, 1"),
        ] {
            let error = read(name, value, BodyKind::Streamed).unwrap_err();
            assert_eq!(
                error.code,
                ErrorCode::InvalidArgument,
                "{name:?}: {value:?}"
            );
        }
    }
}
