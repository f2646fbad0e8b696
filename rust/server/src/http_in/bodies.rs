//! Both bodies of a request on their way: bounded in bytes and in time.

use std::any::Any;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use pie_host::{AnswerBody, Error, ErrorCode};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep_until};

/// The body of what a client gets.
pub(super) type Outgoing = UnsyncBoxBody<Bytes, Error>;

/// What a body may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyBounds {
    /// Bytes of it.
    pub(super) most_bytes: u64,
    /// Time between two parts of it, while somebody waits for the next one.
    pub(super) idle: Duration,
}

/// The body of a request, as it comes.
pub(super) struct RequestBody {
    inner: Incoming,
    bounds: BodyBounds,
    n_bytes: u64,
    /// When the next part has to be there; none while nobody waits for it.
    due: Option<Pin<Box<Sleep>>>,
    /// Told what is wrong with it.
    fault: Option<oneshot::Sender<Error>>,
}

impl RequestBody {
    /// The body, and what will be wrong with it; nothing where it is dropped.
    pub(super) fn new(inner: Incoming, bounds: BodyBounds) -> (Self, oneshot::Receiver<Error>) {
        let (sender, fault) = oneshot::channel();
        let body = Self {
            inner,
            bounds,
            n_bytes: 0,
            due: None,
            fault: Some(sender),
        };
        (body, fault)
    }

    fn failed(&mut self, error: Error) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(fault) = self.fault.take() {
            // Who has answered already wants to know nothing of it.
            drop(fault.send(error.clone()));
        }
        Poll::Ready(Some(Err(error)))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        let frame = match Pin::new(&mut this.inner).poll_frame(context) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                let until = Instant::now() + this.bounds.idle;
                let due = this.due.get_or_insert_with(|| Box::pin(sleep_until(until)));
                if due.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                return this.failed(too_slow(this.bounds.idle));
            }
        };
        this.due = None;
        match frame {
            None => Poll::Ready(None),
            Some(Err(error)) => this.failed(broken(&error)),
            Some(Ok(frame)) => {
                let n_bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
                this.n_bytes = this.n_bytes.saturating_add(n_bytes);
                if this.n_bytes > this.bounds.most_bytes {
                    return this.failed(too_long(this.bounds.most_bytes));
                }
                Poll::Ready(Some(Ok(frame)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Waits until something is wrong with the body of a request, for ever where nothing is.
pub(super) async fn fault(told: oneshot::Receiver<Error>) -> Error {
    match told.await {
        Ok(error) => error,
        Err(_) => std::future::pending().await,
    }
}

/// What is done where a client goes before it has all of its answer.
pub(super) type WhenGone = Box<dyn FnOnce() + Send>;

/// The body of an answer, which keeps what has to be there until it has ended. Its time is looked at by the connection
/// ([`super::due`]), since nobody asks for more of it as long as the client takes nothing.
pub(super) struct AnswerOut {
    inner: AnswerBody,
    /// Bytes that are to come, where the head says how many.
    n_left: Option<u64>,
    is_whole: bool,
    /// What it fails with when it is asked next: what came before is on its way to the client by then.
    failing: Option<Error>,
    when_gone: Option<WhenGone>,
    _kept: Box<dyn Any + Send>,
}

/// What belongs to the body of an answer.
pub(super) struct Around {
    pub(super) when_gone: Option<WhenGone>,
    /// Dropped with it.
    pub(super) kept: Box<dyn Any + Send>,
}

impl AnswerOut {
    /// A body of so many bytes, where the head says how many.
    pub(super) fn new(inner: AnswerBody, n_bytes: Option<u64>, around: Around) -> Self {
        let Around { when_gone, kept } = around;
        Self {
            // Of a body of no bytes nobody asks for a part.
            is_whole: inner.is_end_stream() || n_bytes == Some(0),
            inner,
            n_left: n_bytes,
            failing: None,
            when_gone,
            _kept: kept,
        }
    }
}

impl Body for AnswerOut {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        if let Some(error) = this.failing.take() {
            return Poll::Ready(Some(Err(error)));
        }
        let polled = Pin::new(&mut this.inner).poll_frame(context);
        match &polled {
            Poll::Ready(None) => this.is_whole = true,
            Poll::Ready(Some(Err(error))) => {
                // It is the program that has failed: its process ends by itself, and with its own error.
                this.when_gone = None;
                // A failure drops what is not written yet, the head included: that goes out while this waits.
                this.failing = Some(error.clone());
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(Some(Ok(frame))) => {
                let n_bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
                if let Some(left) = &mut this.n_left {
                    *left = left.saturating_sub(n_bytes);
                    this.is_whole = *left == 0;
                }
            }
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for AnswerOut {
    fn drop(&mut self) {
        if let Some(when_gone) = self.when_gone.take()
            && !self.is_whole
        {
            when_gone();
        }
    }
}

/// The error of a body that is longer than it may be.
pub(super) fn too_long(most: u64) -> Error {
    Error::new(
        ErrorCode::LimitHttpBytes,
        format!(
            "the body of the request has more than server.http_body_bytes = {most} bytes; send less, or raise the limit"
        ),
    )
}

fn too_slow(limit: Duration) -> Error {
    Error::new(
        ErrorCode::LimitHttpTime,
        format!(
            "the next part of the request did not come within server.http_idle_s = {} s; send it faster, or raise the limit",
            limit.as_secs_f64()
        ),
    )
}

/// The error of an answer whose head did not come in time.
pub(super) fn no_head(limit: Duration) -> Error {
    Error::new(
        ErrorCode::LimitHttpTime,
        format!(
            "the program did not answer within server.http_answer_s = {} s; ask for less, stream the answer, or raise the limit",
            limit.as_secs_f64()
        ),
    )
}

/// The error of a body that ends before its end.
fn broken(error: &hyper::Error) -> Error {
    let cause = std::error::Error::source(error);
    match cause.and_then(|cause| cause.downcast_ref::<io::Error>()) {
        Some(cause) if is_violation(cause.kind()) => {
            Error::new(ErrorCode::ProtocolError, cause.to_string())
        }
        _ => Error::new(
            ErrorCode::ClientGone,
            "the client has gone before it had sent all of the request; stop working on it",
        ),
    }
}

/// Whether it is said of what the client sent, and not of its connection.
fn is_violation(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
    )
}
