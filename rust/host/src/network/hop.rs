//! One request to one server, and the head of its answer.

use bytes::Bytes;
use http::header::{CONNECTION, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use pie_core::ErrorCode;
use wasmtime_wasi_http::io::TokioIo;

use super::config::HttpLimits;
use super::connection::Network;
use super::failure::{head_too_long, of_hyper, protocol};
use super::pace::{Progress, too_long};
use super::places::OutgoingPlace;
use super::received::Received;
use super::running::Running;
use super::sent::{Counted, SentBody};
use super::target::Target;
use crate::Error;

/// Headers of one answer.
const MAX_HEADERS: usize = 256;
/// What a header takes on the wire beside its name and its value.
const HEADER_BYTES: usize = 4;

/// What one server is asked.
pub(crate) struct Hop<'a> {
    pub(crate) network: &'a Network,
    pub(crate) place: &'a OutgoingPlace,
    pub(crate) limits: &'a HttpLimits,
    pub(crate) target: &'a Target,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
}

impl Hop<'_> {
    /// Sends the request, and waits for the head of its answer.
    ///
    /// # Errors
    /// `net-denied`, `net-unreachable`, `http-protocol`, `limit-http-headers`, `limit-http-time`, `limit-http-bytes`.
    pub(crate) async fn send(self, body: SentBody) -> Result<(response::Parts, Received), Error> {
        let (target, limits, at) = (self.target, self.limits, self.target.place());
        let progress = Progress::new();
        let body = Counted::new(body, limits.sent_bytes, progress.clone());
        let request = self.request(body)?;
        let stream = self.network.connect(target, self.place, limits).await?;
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(limits.header_bytes)
            .max_headers(MAX_HEADERS)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| of_hyper(&at, &error, limits.header_bytes))?;
        // How a connection ends is told to whoever reads from it.
        let connection = Running::from(tokio::spawn(async move { drop(connection.await) }));
        progress.moved(false);
        let answer = tokio::select! {
            answer = sender.send_request(request) => answer,
            () = progress.stalled(limits.first_byte) => {
                let what = "the head of the answer";
                return Err(too_long(&at, what, "limits.http_first_byte_s", limits.first_byte));
            }
        };
        let answer = answer.map_err(|error| of_hyper(&at, &error, limits.header_bytes))?;
        Self::opened(answer, at, limits, connection)
    }

    fn opened(
        answer: http::Response<Incoming>,
        at: String,
        limits: &HttpLimits,
        connection: Running,
    ) -> Result<(response::Parts, Received), Error> {
        let (parts, body) = answer.into_parts();
        if parts.status.is_informational() {
            return Err(protocol(
                &at,
                format!("it answered with the status {}", parts.status),
            ));
        }
        let received = Received::new(body, at, *limits, connection)?;
        Ok((parts, received))
    }

    fn request(&self, body: Counted) -> Result<Request<SentBody>, Error> {
        let path = self.target.path();
        if path.len() > self.limits.header_bytes {
            return Err(head_too_long(
                "the head of the request",
                self.limits.header_bytes,
            ));
        }
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(path)
            .body(body)
            .map_err(|error| refused(self.target, error))?;
        let headers = request.headers_mut();
        let host = HeaderValue::try_from(self.target.authority());
        let host = host.map_err(|error| refused(self.target, error))?;
        headers.insert(HOST, host);
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        for (name, value) in &self.headers {
            headers
                .try_append(name.clone(), value.clone())
                .map_err(|_| head_too_long("the head of the request", self.limits.header_bytes))?;
        }
        check_head(&request, self.limits.header_bytes)?;
        Ok(request.map(BodyExt::boxed_unsync))
    }
}

/// The error of what cannot be asked for in HTTP.
fn refused(target: &Target, why: impl std::fmt::Display) -> Error {
    let message = format!(
        "{} cannot be asked for: {why}; change the URL",
        target.url()
    );
    Error::new(ErrorCode::InvalidArgument, message)
}

/// Checks how long the head of a request is.
fn check_head<B>(request: &Request<B>, most: usize) -> Result<(), Error> {
    let headers = request.headers().iter();
    let of_headers: usize = headers
        .map(|(name, value)| name.as_str().len() + value.len() + HEADER_BYTES)
        .sum();
    let line = request.method().as_str().len() + request.uri().to_string().len();
    if of_headers + line > most {
        return Err(head_too_long("the head of the request", most));
    }
    Ok(())
}

/// A body of these bytes.
pub(crate) fn whole(bytes: Bytes) -> SentBody {
    http_body_util::Full::new(bytes)
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// No body.
pub(crate) fn empty() -> SentBody {
    http_body_util::Empty::new()
        .map_err(|never| match never {})
        .boxed_unsync()
}
