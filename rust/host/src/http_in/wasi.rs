//! Requests as `wasi:http/incoming-handler` has them: a request and a place for its answer, for components that bring
//! the interface of their own.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use pie_core::ErrorCode;
use tokio::sync::oneshot;
use wasmtime_wasi::p2::Pollable as _;
use wasmtime_wasi_http::Error as WasiError;
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode as WasiCode;
use wasmtime_wasi_http::p2::body::HyperOutgoingBody;

use super::answer::Answering;
use super::gone::Gone;
use super::incoming::{IncomingRequest, RequestHead, RequestResources};
use crate::Error;
use crate::futures::Awaited as _;
use crate::network::failure::for_wasi;
use crate::network::parts::Parts;

/// What an instance answers with.
pub(crate) type WasiResponse = Result<Response<HyperOutgoingBody>, WasiCode>;

type NextPart = Pin<Box<dyn Future<Output = Result<Option<Vec<u8>>, Error>> + Send>>;

/// The body of a request, as an instance reads it.
pub(crate) struct RequestBody {
    parts: Arc<Parts>,
    next: Option<NextPart>,
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = WasiError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, WasiError>>> {
        let this = &mut *self;
        let parts = &this.parts;
        let next = this
            .next
            .get_or_insert_with(|| Box::pin(next_part(parts.clone())));
        let part = ready!(next.as_mut().poll(context));
        this.next = None;
        Poll::Ready(match part {
            Ok(Some(part)) => Some(Ok(Frame::data(Bytes::from(part)))),
            Ok(None) => None,
            Err(error) => Some(Err(for_wasi(&error))),
        })
    }
}

async fn next_part(parts: Arc<Parts>) -> Result<Option<Vec<u8>>, Error> {
    let mut next = parts.next();
    loop {
        next.ready().await;
        if let Some(part) = next.take() {
            return part;
        }
    }
}

/// A request that is about to be handed to an instance.
pub(crate) struct Handling {
    /// What the instance gets.
    pub(crate) request: Request<RequestBody>,
    pub(crate) sending: Sending,
    /// Whether somebody still wants the answer.
    pub(crate) gone: Arc<Gone>,
}

impl Handling {
    /// The request as it is handed over; none where its URL is none that the interface can say.
    pub(crate) fn new(incoming: IncomingRequest) -> Option<Self> {
        let (head, parts, answering, gone, resources) = incoming.into_parts();
        let RequestHead {
            method,
            url,
            headers,
            ..
        } = head;
        let body = RequestBody { parts, next: None };
        let mut request = Request::builder().method(method).uri(url).body(body).ok()?;
        *request.headers_mut() = headers;
        let sending = Sending {
            answering,
            gone: gone.clone(),
            _resources: resources,
        };
        Some(Self {
            request,
            sending,
            gone,
        })
    }
}

/// The way of an answer to the client.
pub(crate) struct Sending {
    answering: Answering,
    gone: Arc<Gone>,
    _resources: RequestResources,
}

/// How the way of an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The client has all that the instance has answered, which may be nothing.
    All,
    /// The client went before.
    Gone,
}

impl Sending {
    /// Sends what the instance answers, part by part as the client takes it.
    pub(crate) async fn send(mut self, given: oneshot::Receiver<WasiResponse>) -> Sent {
        let mut gone = self.gone.wait();
        let given = tokio::select! {
            biased;
            given = given => given,
            () = gone.ready() => return Sent::Gone,
        };
        // An instance that gives no answer, or an error, has its client told so by what is dropped here.
        let Ok(Ok(response)) = given else {
            return Sent::All;
        };
        let (head, mut body) = response.into_parts();
        let length = head.headers.get(CONTENT_LENGTH);
        let mut n_left: Option<u64> = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let status = u32::from(head.status.as_u16());
        if let Err(error) = self.answering.respond(status, head.headers) {
            return went(&error);
        }
        loop {
            let has_all = n_left == Some(0);
            let frame = tokio::select! {
                biased;
                frame = body.frame() => frame,
                // Who has all of the answer goes, too.
                () = gone.ready(), if !has_all => return Sent::Gone,
            };
            let Some(Ok(frame)) = frame else {
                if frame.is_none() {
                    // It was answered above.
                    drop(self.answering.finish());
                }
                return Sent::All;
            };
            let Ok(bytes) = frame.into_data() else {
                continue;
            };
            if has_all {
                continue;
            }
            if let Some(left) = &mut n_left {
                *left = left.saturating_sub(bytes.len() as u64);
            }
            if let Err(error) = self.write(bytes).await {
                return went(&error);
            }
        }
    }

    async fn write(&mut self, part: Bytes) -> Result<(), Error> {
        let mut written = self.answering.write(Vec::from(part));
        loop {
            written.ready().await;
            if let Some(written) = written.take() {
                return written;
            }
        }
    }
}

/// What an error of sending says of the client.
fn went(error: &Error) -> Sent {
    match error.code {
        ErrorCode::ClientGone => Sent::Gone,
        _ => Sent::All,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};
    use http_body_util::{Empty, Full};

    use super::*;
    use crate::budget::Budget;
    use crate::http_in::incoming::ArrivedRequest;
    use crate::http_in::queue::RequestQueue;

    fn arrived(url: &str) -> ArrivedRequest {
        let body = Full::new(Bytes::from_static(b"hello"));
        ArrivedRequest {
            method: Method::POST,
            url: url.to_owned(),
            headers: HeaderMap::new(),
            remote_address: "127.0.0.1".to_owned(),
            body: body.map_err(|never| match never {}).boxed_unsync(),
        }
    }

    #[tokio::test]
    async fn an_answer_goes_to_who_has_asked() {
        let queue = RequestQueue::new(1, Budget::new(16 << 20, None).account("ada"));
        let asking = queue.enter(arrived("http://a/b?c")).unwrap();
        let Handling {
            request, sending, ..
        } = Handling::new(queue.taken().await.unwrap()).unwrap();
        assert_eq!(request.uri().path(), "/b");
        let read = request.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(read, "hello");
        let (given, giving) = oneshot::channel();
        let sent = tokio::spawn(sending.send(giving));
        let body = Full::new(Bytes::from_static(b"world"));
        let body = body.map_err(|never| match never {}).boxed_unsync();
        given.send(Ok(Response::new(body))).unwrap();
        let answer = asking.answer().await.unwrap().into_body();
        assert_eq!(answer.collect().await.unwrap().to_bytes(), "world");
        assert_eq!(sent.await.unwrap(), Sent::All);
    }

    #[tokio::test]
    async fn a_client_that_goes_is_told_of() {
        let queue = RequestQueue::new(1, Budget::new(16 << 20, None).account("ada"));
        let asking = queue.enter(arrived("http://a/")).unwrap();
        let Handling { sending, .. } = Handling::new(queue.taken().await.unwrap()).unwrap();
        let (given, giving) = oneshot::channel::<WasiResponse>();
        drop(asking);
        assert_eq!(sending.send(giving).await, Sent::Gone);
        let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
        assert!(given.send(Ok(Response::new(body))).is_err());
    }
}
