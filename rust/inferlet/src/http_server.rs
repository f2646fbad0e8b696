//! Requests by HTTP that this program answers (`pie run PROGRAM --port 8000`, `pie install --http PROGRAM`).
//!
//! ```no_run
//! # mod program {
//! use inferlet::http_server::{self, Request, Response};
//! use inferlet::prelude::*;
//! use serde_json::json;
//!
//! #[inferlet::main]
//! async fn main() -> Result<()> {
//!     http_server::serve(fetch).await
//! }
//!
//! async fn fetch(mut request: Request) -> Result<Response> {
//!     let text = request.text().await?;
//!     Response::json(&json!({ "path": request.path(), "n_bytes": text.len() }))
//! }
//! # }
//! # fn main() {}
//! ```
//!
//! Where one instance answers all requests, they are answered side by side. When the client of a request goes, the
//! future that answers it is dropped, and with it whatever it holds. An error of a handler goes to standard error, and
//! its client gets the status 500.

use std::fmt::{self, Display, Write as _};
use std::io::Write as _;
use std::pin::Pin;
use std::rc::Rc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::pie::core::http::Header;
use crate::bindings::pie::core::http_server as raw;
use crate::stdout::flush_output;
use crate::task::{self, Either, answer};
use crate::{ErrorCode, Result, error_code, errors};

const JSON: &str = "application/json";
const TEXT: &str = "text/plain;charset=UTF-8";
const EVENTS: &str = "text/event-stream";
const CONTENT_TYPE: &str = "content-type";
const CONTENT_LENGTH: &str = "content-length";
/// Statuses whose answers have no body.
const STATUSES_WITHOUT_BODY: [u16; 3] = [204, 205, 304];
/// What is larger is handed on in several parts, each when the client takes it.
const STRIDE_BYTES: usize = 64 << 10;

/// Whether this program was launched to answer requests.
pub fn is_serving() -> bool {
    raw::is_serving()
}

/// Answers requests by `fetch` until no more come, side by side.
///
/// # Errors
/// `not-serving` where the program was not launched to answer requests.
pub async fn serve<F, A, E>(fetch: F) -> Result<()>
where
    F: Fn(Request) -> A,
    A: Future<Output = std::result::Result<Response, E>>,
    E: Display,
{
    let mut answers = FuturesUnordered::new();
    loop {
        // A wait that is dropped takes no request.
        let next = answer(raw::next_request());
        let next = if answers.is_empty() {
            next.await?
        } else {
            match task::select(next, answers.next()).await {
                Either::Left(next) => next?,
                Either::Right(_) => continue,
            }
        };
        match next {
            Some(incoming) => answers.push(answer_one(&fetch, incoming)),
            None => break,
        }
    }
    while answers.next().await.is_some() {}
    Ok(())
}

/// Answers one request, unless its client goes before.
async fn answer_one<F, A, E>(fetch: &F, incoming: raw::IncomingRequest)
where
    F: Fn(Request) -> A,
    A: Future<Output = std::result::Result<Response, E>>,
    E: Display,
{
    let incoming = Rc::new(incoming);
    let responding = respond(fetch, incoming.clone());
    let gone = answer(incoming.gone());
    let Either::Left(Err(error)) = task::select(responding, gone).await else {
        return;
    };
    if error_code(&error) != Some(ErrorCode::ClientGone) {
        flush_output();
        // Where stderr is closed there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "{error}");
    }
}

async fn respond<F, A, E>(fetch: &F, incoming: Rc<raw::IncomingRequest>) -> Result<()>
where
    F: Fn(Request) -> A,
    A: Future<Output = std::result::Result<Response, E>>,
    E: Display,
{
    let request = Request::new(incoming.clone());
    let response = fetch(request).await.map_err(|error| error.to_string())?;
    response.send(incoming).await
}

/// A request of a client. Its body is read once, whole or part by part.
#[derive(Debug)]
pub struct Request {
    head: raw::RequestHead,
    raw: Rc<raw::IncomingRequest>,
}

impl Request {
    fn new(raw: Rc<raw::IncomingRequest>) -> Self {
        let head = raw.head();
        Self { head, raw }
    }

    /// Its method, such as `GET`.
    pub fn method(&self) -> &str {
        &self.head.method
    }

    /// As the client has asked for it, without what names the program at a server.
    pub fn url(&self) -> &str {
        &self.head.url
    }

    /// The path of its URL.
    pub fn path(&self) -> &str {
        let (path, _) = self.path_and_query();
        path
    }

    /// What follows the path, without the question mark; none where nothing does.
    pub fn query(&self) -> Option<&str> {
        let (_, query) = self.path_and_query();
        query
    }

    fn path_and_query(&self) -> (&str, Option<&str>) {
        let url = self.url();
        let behind_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
        let path = behind_scheme
            .find('/')
            .map_or("/", |at| &behind_scheme[at..]);
        match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path, None),
        }
    }

    /// The address of the client.
    pub fn remote_address(&self) -> &str {
        &self.head.remote_address
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
    /// `limit-http-bytes`, `limit-http-time` and `client-gone`.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>> {
        answer(self.raw.read()).await
    }

    /// What is left of the body.
    ///
    /// # Errors
    /// As [`Request::chunk`].
    pub async fn bytes(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while let Some(part) = self.chunk().await? {
            bytes.extend(part);
        }
        Ok(bytes)
    }

    /// What is left of the body, as text; bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// As [`Request::chunk`].
    pub async fn text(&mut self) -> Result<String> {
        let bytes = self.bytes().await?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// What is left of the body, as a JSON value.
    ///
    /// # Errors
    /// As [`Request::chunk`], and `invalid-argument` for what does not fit.
    pub async fn json<T: DeserializeOwned>(&mut self) -> Result<T> {
        let bytes = self.bytes().await?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("the request is not the JSON that is wanted: {error}");
            errors::text(ErrorCode::InvalidArgument, message)
        })
    }
}

type Writing = Pin<Box<dyn Future<Output = Result<()>>>>;

enum Body {
    Whole(Vec<u8>),
    Streamed(Box<dyn FnOnce(BodyWriter) -> Writing>),
}

/// The answer to a request: a status, headers and a body.
pub struct Response {
    status: u16,
    headers: Vec<Header>,
    body: Body,
}

impl fmt::Debug for Response {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Response")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

impl Response {
    /// An answer with bytes, of the status 200.
    pub fn new(body: impl Into<Vec<u8>>) -> Self {
        Self::of(Body::Whole(body.into()))
    }

    /// An answer without a body, of this status.
    pub fn empty(status: u16) -> Self {
        Self::new(Vec::new()).status(status)
    }

    /// An answer with a text, of the type `text/plain`.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(text.into()).header(CONTENT_TYPE, TEXT)
    }

    /// An answer with a JSON value, of the type `application/json`.
    ///
    /// # Errors
    /// `invalid-argument` for a value that JSON cannot hold.
    pub fn json(value: &impl Serialize) -> Result<Self> {
        let text = errors::to_json("the body of an answer", value)?;
        Ok(Self::new(text).header(CONTENT_TYPE, JSON))
    }

    /// An answer whose body is written as it is made: each write waits until the client has taken it.
    pub fn stream<A>(write: impl FnOnce(BodyWriter) -> A + 'static) -> Self
    where
        A: Future<Output = Result<()>> + 'static,
    {
        let begin = move |writer: BodyWriter| -> Writing { Box::pin(write(writer)) };
        Self::of(Body::Streamed(Box::new(begin)))
    }

    /// An answer whose body is a stream of server-sent events, which [`BodyWriter::event`] writes.
    pub fn events<A>(write: impl FnOnce(BodyWriter) -> A + 'static) -> Self
    where
        A: Future<Output = Result<()>> + 'static,
    {
        Self::stream(write)
            .header(CONTENT_TYPE, EVENTS)
            .header("cache-control", "no-store")
    }

    fn of(body: Body) -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            body,
        }
    }

    /// Gives it a status from 200 to 599.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Adds a header, behind those that it has.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push(Header {
            name: name.into(),
            value: value.into(),
        });
        self
    }

    async fn send(self, incoming: Rc<raw::IncomingRequest>) -> Result<()> {
        let (status, has_length) = (self.status, self.says_length());
        let mut headers = self.headers;
        if let Body::Whole(bytes) = &self.body
            && !has_length
            && !STATUSES_WITHOUT_BODY.contains(&status)
        {
            headers.push(Header {
                name: CONTENT_LENGTH.to_owned(),
                value: bytes.len().to_string(),
            });
        }
        incoming.respond(u32::from(status), &headers)?;
        let mut writer = BodyWriter {
            raw: incoming.clone(),
        };
        match self.body {
            Body::Whole(bytes) => writer.write(bytes).await?,
            Body::Streamed(write) => write(writer).await?,
        }
        Ok(incoming.finish()?)
    }

    fn says_length(&self) -> bool {
        let mut headers = self.headers.iter();
        headers.any(|header| header.name.eq_ignore_ascii_case(CONTENT_LENGTH))
    }
}

/// Writes the body of an answer.
#[derive(Debug)]
pub struct BodyWriter {
    raw: Rc<raw::IncomingRequest>,
}

impl BodyWriter {
    /// Hands on the next part, and waits until the client takes it.
    ///
    /// # Errors
    /// `client-gone`, and `limit-engine-memory`.
    pub async fn write(&mut self, part: impl AsRef<[u8]>) -> Result<()> {
        for part in part.as_ref().chunks(STRIDE_BYTES) {
            answer(self.raw.write_part(part)).await?;
        }
        Ok(())
    }

    /// Sends a server-sent event: a JSON value.
    ///
    /// # Errors
    /// As [`BodyWriter::write`], and `invalid-argument` for a value that JSON cannot hold.
    pub async fn event(&mut self, data: &impl Serialize) -> Result<()> {
        let data = errors::to_json("the data of an event", data)?;
        self.text_event(None, &data).await
    }

    /// Sends a server-sent event: a text, with the name by which pages listen to it; none: `message`.
    ///
    /// # Errors
    /// As [`BodyWriter::write`], and `invalid-argument` for a name that has several lines.
    pub async fn text_event(&mut self, name: Option<&str>, data: &str) -> Result<()> {
        let event = ServerEvent {
            data,
            event: name,
            ..ServerEvent::default()
        };
        self.server_event(event).await
    }

    /// Sends a server-sent event with all that it may have.
    ///
    /// # Errors
    /// As [`BodyWriter::write`], and `invalid-argument` for a name or an id that has several lines.
    pub async fn server_event(&mut self, event: ServerEvent<'_>) -> Result<()> {
        self.write(event.text()?).await
    }
}

/// One event of a stream of server-sent events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerEvent<'a> {
    /// A text, of any number of lines.
    pub data: &'a str,
    /// The name by which pages listen to it; none: `message`.
    pub event: Option<&'a str>,
    /// What a page sends as `Last-Event-ID` when it connects again.
    pub id: Option<&'a str>,
    /// How long a page waits before it does, in milliseconds.
    pub retry_ms: Option<u32>,
}

impl ServerEvent<'_> {
    /// The event as it is sent.
    fn text(&self) -> Result<String> {
        let mut text = String::new();
        for (field, value) in [("event", self.event), ("id", self.id)] {
            let Some(value) = value else { continue };
            if value.contains(['\r', '\n', '\0']) {
                let message = format!("{field} of an event is {value:?}; it is a text of one line");
                return Err(errors::text(ErrorCode::InvalidArgument, message));
            }
            // Writing to a text cannot fail.
            let _ = writeln!(text, "{field}: {value}");
        }
        if let Some(retry_ms) = self.retry_ms {
            let _ = writeln!(text, "retry: {retry_ms}");
        }
        let data = self.data.replace("\r\n", "\n").replace('\r', "\n");
        for line in data.split('\n') {
            let _ = writeln!(text, "data: {line}");
        }
        text.push('\n');
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_a_line_of_data_for_each_of_its_text() {
        for (event, data, text) in [
            (None, "", "data: \n\n"),
            (None, "a", "data: a\n\n"),
            (
                Some("token"),
                "a\r\nb\rc\n",
                "event: token\ndata: a\ndata: b\ndata: c\ndata: \n\n",
            ),
        ] {
            let event = ServerEvent {
                data,
                event,
                ..ServerEvent::default()
            };
            assert_eq!(event.text().unwrap(), text);
        }
        let whole = ServerEvent {
            data: "a",
            event: Some("token"),
            id: Some("7"),
            retry_ms: Some(1500),
        };
        let text = "event: token\nid: 7\nretry: 1500\ndata: a\n\n";
        assert_eq!(whole.text().unwrap(), text);
    }

    #[test]
    fn a_name_and_an_id_of_several_lines_are_refused() {
        let none = ServerEvent::default();
        let (event, id) = (Some("a\nb"), Some("a\0"));
        for event in [ServerEvent { event, ..none }, ServerEvent { id, ..none }] {
            let error = event.text().unwrap_err();
            assert_eq!(error_code(&error), Some(ErrorCode::InvalidArgument));
        }
    }
}
