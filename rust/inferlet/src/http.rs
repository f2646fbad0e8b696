//! Requests by HTTP to servers that the operator of the engine allows (`pie run --allow-net HOST`).
//!
//! ```no_run
//! use inferlet::http::{self, Request};
//! use serde_json::{Value, json};
//!
//! # async fn ask() -> inferlet::Result<()> {
//! let items: Value = http::fetch("https://api.example.com/items").await?.json().await?;
//! let answer = http::fetch(Request::post("https://api.example.com/items").json(&json!({ "n": 1 }))?).await?;
//! println!("{} {}", answer.status(), answer.text().await?);
//! # Ok(())
//! # }
//! ```
//!
//! What fails has a code: `net-denied`, `net-unreachable`, `http-protocol`, `http-redirects`, `limit-http-requests`,
//! `limit-http-bytes`, `limit-http-headers` or `limit-http-time`. An answer with a status of 400 or more is an answer.
//! A program that brings a client of its own for `wasi:http`, like `wstd`, goes the same way.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::pie::core::http as raw;
pub use crate::bindings::pie::core::http::Redirects;
use crate::stdout::flush_output;
use crate::task::answer;
use crate::{ErrorCode, Result, errors};

const JSON: &str = "application/json";
const TEXT: &str = "text/plain;charset=UTF-8";
const CONTENT_TYPE: &str = "content-type";

/// Why the last request of this program that failed did so, as `[code] message`, whichever client sent it; none where
/// none has failed. The errors of `wasi:http` have a name and no words.
pub fn refusal() -> Option<String> {
    raw::refusal().err().map(String::from)
}

/// Sends a request and waits for the head of its answer, whose body is read as it comes. Dropping the wait, or the
/// answer, ends the request.
///
/// # Errors
/// Where there is no answer; the code says why.
pub async fn fetch(request: impl Into<Request>) -> Result<Response> {
    begin(request.into(), None)?.response().await
}

/// Begins a request whose body comes in parts.
///
/// # Errors
/// `net-denied`, `invalid-argument`, `limit-http-requests` and `limit-engine-memory`.
pub fn upload(request: impl Into<Request>) -> Result<Upload> {
    begin(request.into(), Some(raw::Body::Streamed))
}

fn begin(request: Request, body: Option<raw::Body>) -> Result<Upload> {
    flush_output();
    let mut asked = request.raw;
    if let Some(body) = body {
        asked.body = body;
    }
    Ok(Upload {
        raw: raw::Exchange::start(&asked)?,
    })
}

/// What is asked of a server: a method, a URL, headers and a body.
#[derive(Clone, Debug)]
pub struct Request {
    raw: raw::Request,
}

impl Request {
    /// A request with this method.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            raw: raw::Request {
                method: method.into(),
                url: url.into(),
                headers: Vec::new(),
                body: raw::Body::None,
                redirects: Redirects::Follow,
                timeouts: raw::Timeouts {
                    connect_ms: None,
                    first_byte_ms: None,
                    idle_ms: None,
                    whole_ms: None,
                },
            },
        }
    }

    /// A request by `GET`, which asks for something.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// A request by `POST`, which hands something in.
    pub fn post(url: impl Into<String>) -> Self {
        Self::new("POST", url)
    }

    /// Adds a header, behind those that it has.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.raw.headers.push(raw::Header {
            name: name.into(),
            value: value.into(),
        });
        self
    }

    /// Sends bytes as the body, in place of one that was given before.
    #[must_use]
    pub fn body(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.raw.body = raw::Body::Whole(bytes.into());
        self
    }

    /// Sends a text as the body, of the type `text/plain` where no header says another one.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.of_type(TEXT).body(text.into())
    }

    /// Sends a JSON value as the body, of the type `application/json` where no header says another one.
    ///
    /// # Errors
    /// `invalid-argument` for a value that JSON cannot hold.
    pub fn json(self, value: &impl Serialize) -> Result<Self> {
        let text = errors::to_json("the body of a request", value)?;
        Ok(self.of_type(JSON).body(text))
    }

    /// Bounds all of it in time, within `limits.http_s`.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.raw.timeouts.whole_ms = Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Says what becomes of an answer that sends the request on; it is followed unless this says otherwise.
    #[must_use]
    pub fn redirects(mut self, redirects: Redirects) -> Self {
        self.raw.redirects = redirects;
        self
    }

    fn of_type(self, kind: &str) -> Self {
        let mut headers = self.raw.headers.iter();
        if headers.any(|header| header.name.eq_ignore_ascii_case(CONTENT_TYPE)) {
            return self;
        }
        self.header(CONTENT_TYPE, kind)
    }
}

impl From<&str> for Request {
    fn from(url: &str) -> Self {
        Self::get(url)
    }
}

impl From<&String> for Request {
    fn from(url: &String) -> Self {
        Self::get(url)
    }
}

impl From<String> for Request {
    fn from(url: String) -> Self {
        Self::get(url)
    }
}

/// A request whose body comes in parts. Dropping it ends the request.
#[derive(Debug)]
pub struct Upload {
    raw: raw::Exchange,
}

impl Upload {
    /// Hands on the next part, and waits until it is taken.
    ///
    /// # Errors
    /// `limit-http-bytes`; and why the request failed, or `http-protocol` where the server has answered already.
    pub async fn write(&mut self, part: impl AsRef<[u8]>) -> Result<()> {
        answer(self.raw.write_part(part.as_ref())).await
    }

    /// The body is complete: waits for the head of the answer.
    ///
    /// # Errors
    /// As [`fetch`].
    pub async fn response(self) -> Result<Response> {
        self.raw.finish();
        let head = answer(self.raw.head()).await?;
        Ok(Response {
            head,
            raw: self.raw,
        })
    }
}

/// An answer. Its body is read as it comes.
#[derive(Debug)]
pub struct Response {
    head: raw::Head,
    raw: raw::Exchange,
}

impl Response {
    /// The number of its status, such as 200.
    pub fn status(&self) -> u16 {
        u16::try_from(self.head.status).unwrap_or(u16::MAX)
    }

    /// What the server says of the status.
    pub fn status_text(&self) -> &str {
        &self.head.status_text
    }

    /// Whether the status says that it succeeded: 200 to 299.
    pub fn ok(&self) -> bool {
        (200..300).contains(&self.head.status)
    }

    /// Where it comes from, behind all redirects.
    pub fn url(&self) -> &str {
        &self.head.url
    }

    /// Whether there was a redirect.
    pub fn is_redirected(&self) -> bool {
        self.head.is_redirected
    }

    /// The first value of a header, by its name in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers();
        headers.find_map(|(other, value)| other.eq_ignore_ascii_case(name).then_some(value))
    }

    /// Every header with its value, by names in small letters, in the order in which they came.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.head.headers.iter();
        headers.map(|header| (&*header.name, &*header.value))
    }

    /// The next part of the body; none at its end. Dropping the wait loses nothing.
    ///
    /// # Errors
    /// `http-protocol`, `limit-http-bytes` and `limit-http-time`.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>> {
        answer(self.raw.read()).await
    }

    /// What is left of the body.
    ///
    /// # Errors
    /// As [`Response::chunk`].
    pub async fn bytes(mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while let Some(part) = self.chunk().await? {
            bytes.extend(part);
        }
        Ok(bytes)
    }

    /// What is left of the body, as text in UTF-8; what is none becomes U+FFFD.
    ///
    /// # Errors
    /// As [`Response::chunk`].
    pub async fn text(self) -> Result<String> {
        let bytes = self.bytes().await?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// What is left of the body, as a JSON value.
    ///
    /// # Errors
    /// As [`Response::chunk`], and `invalid-argument` for what does not fit.
    pub async fn json<T: DeserializeOwned>(self) -> Result<T> {
        let bytes = self.bytes().await?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("the answer is not the JSON that is wanted: {error}");
            errors::text(ErrorCode::InvalidArgument, message)
        })
    }
}
