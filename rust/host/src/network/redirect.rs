//! Where an answer sends a request on (the rules of the Fetch standard, "HTTP-redirect fetch").

use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_LOCATION,
    CONTENT_TYPE, COOKIE, LOCATION, PROXY_AUTHORIZATION,
};
use http::{HeaderMap, HeaderName, Method, StatusCode};
use pie_core::ErrorCode;

use super::target::Target;
use crate::Error;

/// Times that one request is sent on.
pub(crate) const MOST: usize = 20;
/// What is said of a body, and goes with it.
const OF_BODY: [HeaderName; 5] = [
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_LOCATION,
    CONTENT_TYPE,
    CONTENT_LENGTH,
];
/// What only the server may see that it was meant for.
const SECRETS: [HeaderName; 3] = [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION];

/// What becomes of an answer that sends the request on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirects {
    /// The request goes on.
    Follow,
    /// It is an error.
    Fail,
    /// It is the answer.
    Keep,
}

/// What goes on to the next server.
#[derive(Debug)]
pub(crate) struct Onward {
    pub(crate) target: Target,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    /// Whether its body goes with it.
    pub(crate) keeps_body: bool,
}

/// Where an answer sends a request on, as the server wrote it; none where it does not.
///
/// # Errors
/// `http-redirects` where nobody can read it.
pub(crate) fn location<'a>(
    status: StatusCode,
    headers: &'a HeaderMap,
    from: &Target,
) -> Result<Option<&'a str>, Error> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(value) = headers.get(LOCATION) else {
        return Ok(None);
    };
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(refused(from, "its header Location is not text")),
    }
}

/// The request that follows.
///
/// # Errors
/// `http-redirects` where the place is no URL that can be asked for.
pub(crate) fn onward(
    (status, location): (StatusCode, &str),
    from: &Target,
    method: &Method,
    mut headers: HeaderMap,
) -> Result<Onward, Error> {
    let target = from
        .join(location)
        .map_err(|error| refused(from, error.message))?;
    let is_post = matches!(status.as_u16(), 301 | 302) && method == Method::POST;
    let is_other =
        status == StatusCode::SEE_OTHER && method != Method::GET && method != Method::HEAD;
    let keeps_body = !(is_post || is_other);
    if !keeps_body {
        OF_BODY.iter().for_each(|name| drop(headers.remove(name)));
    }
    if !target.is_same_origin(from) {
        SECRETS.iter().for_each(|name| drop(headers.remove(name)));
    }
    Ok(Onward {
        target,
        method: if keeps_body {
            method.clone()
        } else {
            Method::GET
        },
        headers,
        keeps_body,
    })
}

/// The error of an answer that sends a request on, and must not.
pub(crate) fn refused(from: &Target, why: impl std::fmt::Display) -> Error {
    let message = format!(
        "{} sends the request on: {why}; ask for the last place itself, or keep the answer",
        from.place()
    );
    Error::new(ErrorCode::HttpRedirects, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn next(status: u16, method: Method, location: &str) -> Onward {
        let mut headers = HeaderMap::new();
        for name in ["authorization", "cookie", "content-type", "x-own"] {
            headers.insert(name, HeaderValue::from_static("x"));
        }
        let from = Target::parse("https://a.example/x").unwrap();
        let status = StatusCode::from_u16(status).unwrap();
        onward((status, location), &from, &method, headers).unwrap()
    }

    #[test]
    fn a_method_with_a_body_becomes_get_where_the_standard_says_so() {
        for (status, method, becomes) in [
            (301, Method::POST, Method::GET),
            (302, Method::POST, Method::GET),
            (301, Method::PUT, Method::PUT),
            (303, Method::PUT, Method::GET),
            (303, Method::HEAD, Method::HEAD),
            (307, Method::POST, Method::POST),
            (308, Method::POST, Method::POST),
            (302, Method::GET, Method::GET),
        ] {
            let onward = next(status, method.clone(), "/y");
            assert_eq!(onward.method, becomes, "{status} {method}");
            assert_eq!(onward.keeps_body, method == becomes);
            assert_eq!(
                onward.headers.contains_key("content-type"),
                onward.keeps_body
            );
        }
    }

    #[test]
    fn secrets_stay_with_their_server() {
        for (location, is_same) in [
            ("/y", true),
            ("https://a.example:443/y", true),
            ("http://a.example/y", false),
            ("https://a.example:444/y", false),
            ("https://b.example/y", false),
            ("//b.a.example/", false),
        ] {
            let headers = next(302, Method::GET, location).headers;
            assert_eq!(headers.contains_key("authorization"), is_same, "{location}");
            assert_eq!(headers.contains_key("cookie"), is_same, "{location}");
            assert!(headers.contains_key("x-own"));
        }
    }

    #[test]
    fn a_place_that_is_none_is_refused() {
        let from = Target::parse("https://a.example/x").unwrap();
        for location in [
            "file:///etc/passwd",
            "ftp://a/",
            "http://u:p@a.example/",
            "http://[::1",
        ] {
            let onward = onward(
                (StatusCode::FOUND, location),
                &from,
                &Method::GET,
                HeaderMap::new(),
            );
            assert_eq!(
                onward.unwrap_err().code,
                ErrorCode::HttpRedirects,
                "{location}"
            );
        }
        let mut headers = HeaderMap::new();
        assert_eq!(location(StatusCode::FOUND, &headers, &from).unwrap(), None);
        headers.insert(LOCATION, HeaderValue::from_bytes(b"/\xff").unwrap());
        assert!(location(StatusCode::FOUND, &headers, &from).is_err());
        assert_eq!(location(StatusCode::OK, &headers, &from).unwrap(), None);
    }
}
